//! Binding, accepting, and ending in good order.

use std::net::SocketAddr;
use std::sync::Arc;

use haul_file_store::Store;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::server::graceful::GracefulShutdown;
use s3s::StdError;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::admin::Admin;
use crate::answer::RequestIds;
use crate::auth::OneKey;
use crate::config::{Config, Credentials, Limits};
use crate::connections::{Bound, Connection, Connections, Listener, Slot, Tracked};
use crate::error::Result;
use crate::front::Front;
use crate::metrics::Metrics;
use crate::service::Haul;

/// Where a server listens, with the ports it really got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// S3 and plain HTTP.
    pub listen: SocketAddr,
    /// The admin page, `/metrics` and `/health`.
    pub admin: SocketAddr,
}

/// Addresses that are taken, in a configuration that was checked. Nothing is served, and clients
/// are refused, until there is a [`Server`]. So a server that cannot start opens no store.
#[derive(Debug)]
pub struct Listening {
    listen: Bound,
    admin: Bound,
    credentials: Option<Credentials>,
    limits: Limits,
}

impl Listening {
    /// Checks the configuration and takes both addresses. Must be called in a Tokio runtime with
    /// I/O.
    ///
    /// # Errors
    /// If the configuration is unsafe or cannot work, or an address cannot be had.
    pub fn bind(config: Config) -> Result<Self> {
        config.check()?;
        let Config { listen, admin, credentials, limits } = config;
        Ok(Self { listen: Bound::new(listen)?, admin: Bound::new(admin)?, credentials, limits })
    }

    /// Returns the addresses, with the ports the kernel chose.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        Addresses { listen: self.listen.address, admin: self.admin.address }
    }
}

/// A server that accepts connections. They wait until it [runs](Self::run).
pub struct Server {
    listen: Listener,
    admin: Listener,
    addresses: Addresses,
    limits: Limits,
    front: Arc<Front>,
    page: Arc<Admin>,
}

impl Server {
    /// Listens on both addresses, for this store. Must be called in a Tokio runtime with I/O and
    /// time.
    ///
    /// # Errors
    /// As [`Listening::bind`].
    pub fn bind(config: Config, store: Arc<Store>) -> Result<Self> {
        Self::new(Listening::bind(config)?, store)
    }

    /// Serves this store on addresses that were taken before. Must be called in a Tokio runtime
    /// with I/O and time.
    ///
    /// # Errors
    /// If another process listens on one of the addresses since.
    pub fn new(listening: Listening, store: Arc<Store>) -> Result<Self> {
        let addresses = listening.addresses();
        let Listening { listen, admin, credentials, limits } = listening;
        let (listen, admin) = (Listener::new(listen, &limits)?, Listener::new(admin, &limits)?);
        let metrics = Arc::new(Metrics::new());
        let page = Arc::new(Admin {
            store: Arc::clone(&store),
            metrics: Arc::clone(&metrics),
            credentials: credentials.clone().filter(|_| !addresses.admin.ip().is_loopback()),
            addresses,
            connections: Arc::clone(listen.connections()),
        });
        let anonymous = credentials.is_none();
        let mut s3_config = S3Config::default();
        s3_config.xml_max_body_size = limits.xml_bytes_max;
        let mut s3 = S3ServiceBuilder::new(Haul::new(store, limits.clone(), Arc::clone(&metrics)));
        s3.set_config(Arc::new(StaticConfigProvider::new(Arc::new(s3_config))));
        if let Some(credentials) = credentials {
            s3.set_auth(OneKey(credentials));
        }
        let xml_bytes_max = limits.xml_bytes_max;
        let (s3, ids) = (s3.build(), RequestIds::new());
        let front = Arc::new(Front { s3, anonymous, metrics, xml_bytes_max, ids });
        Ok(Self { listen, admin, addresses, limits, front, page })
    }

    /// Where the server listens.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Serves until `shutdown` is ready; then accepts nothing more, finishes what is in flight
    /// within [`Limits::drain_time_max`], and breaks off what is not finished by then.
    ///
    /// # Errors
    /// None yet: what goes wrong with a connection ends that connection only.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let Self { mut listen, mut admin, limits, front, page, .. } = self;
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        for listener in [&listen, &admin] {
            tokio::spawn(close_overdue(listener.connections()));
        }
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                (stream, slot) = listen.next() => {
                    let front = Arc::clone(&front);
                    let answer = move |request, connection: Arc<Connection>| {
                        let front = Arc::clone(&front);
                        async move { front.answer(request, &connection).await }
                    };
                    connections.spawn(serve(stream, slot, &limits, &graceful, answer));
                }
                (stream, slot) = admin.next() => {
                    let page = Arc::clone(&page);
                    let answer = move |request, connection: Arc<Connection>| {
                        let page = Arc::clone(&page);
                        async move {
                            let _exchange = connection.begin()?;
                            page.answer(request).await
                        }
                    };
                    connections.spawn(serve(stream, slot, &limits, &graceful, answer));
                }
                Some(_ended) = connections.join_next() => {}
            }
        }
        drop((listen, admin));
        if tokio::time::timeout(limits.drain_time_max, graceful.shutdown()).await.is_err() {
            tracing::warn!(connections = connections.len(), "broke off requests still in flight");
        }
        connections.shutdown().await;
        Ok(())
    }
}

/// Closes connections that take too long, until the listener and all of them are gone.
fn close_overdue(connections: &Arc<Connections>) -> impl Future<Output = ()> + use<> {
    let interval = connections.check_interval();
    let connections = Arc::downgrade(connections);
    async move {
        loop {
            tokio::time::sleep(interval).await;
            let Some(connections) = connections.upgrade() else { return };
            connections.close_overdue();
        }
    }
}

/// Serves one connection to its end.
fn serve<A, F, B>(
    stream: TcpStream,
    slot: Slot,
    limits: &Limits,
    graceful: &GracefulShutdown,
    answer: A,
) -> impl Future<Output = ()> + use<A, F, B>
where
    A: Fn(Request<Incoming>, Arc<Connection>) -> F,
    F: Future<Output = std::result::Result<Response<B>, StdError>>,
    B: Body + 'static,
    B::Error: Into<StdError>,
{
    let io = Tracked::new(stream, Arc::clone(slot.connection()));
    let asked = Arc::clone(slot.connection());
    let answer = move |request| answer(request, Arc::clone(&asked));
    let connection = http1::Builder::new()
        // A client that has sent everything may still wait for the answer.
        .half_close(true)
        // The table of connections has limits of its own.
        .header_read_timeout(None)
        .max_header_size(limits.head_bytes_max)
        .serve_connection(io, service_fn(answer));
    let connection = graceful.watch(connection);
    async move {
        tokio::select! {
            biased;
            () = slot.connection().closing() => tracing::debug!("closed a waiting connection"),
            outcome = connection => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "a connection ended early");
                }
            }
        }
        drop(slot);
    }
}
