//! Binding, accepting, and ending in good order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haul_file_store::Store;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::admin::Admin;
use crate::answer::RequestIds;
use crate::auth::OneKey;
use crate::config::{Config, Limits};
use crate::error::{Error, Result};
use crate::front::Front;
use crate::metrics::Metrics;
use crate::service::Haul;

/// How long to wait after the kernel refused a connection, which it does when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where a server listens, with the ports it really got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// S3 and plain HTTP.
    pub listen: SocketAddr,
    /// The admin page, `/metrics` and `/health`.
    pub admin: SocketAddr,
}

/// A server that listens already. Connections wait until it [runs](Self::run).
pub struct Server {
    listen: Door,
    admin: Door,
    addresses: Addresses,
    limits: Limits,
    front: Arc<Front>,
    page: Arc<Admin>,
}

impl Server {
    /// Listens on both addresses. Must be called in a Tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When the configuration is unsafe or cannot work, or an address cannot be had.
    pub async fn bind(config: Config, store: Arc<Store>) -> Result<Self> {
        config.check()?;
        let Config { listen, admin, credentials, limits } = config;
        let listen = Door::open(listen, limits.connections_max).await?;
        let admin = Door::open(admin, limits.connections_max).await?;
        let addresses = Addresses { listen: listen.address, admin: admin.address };
        let metrics = Arc::new(Metrics::new());
        let page = Arc::new(Admin {
            store: Arc::clone(&store),
            metrics: Arc::clone(&metrics),
            credentials: credentials.clone().filter(|_| !admin.address.ip().is_loopback()),
            addresses,
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
        let Self { listen, admin, limits, front, page, .. } = self;
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                (stream, slot) = listen.next() => {
                    let front = Arc::clone(&front);
                    let answer = move |request| {
                        let front = Arc::clone(&front);
                        async move { front.answer(request).await }
                    };
                    connections.spawn(serve(stream, slot, &limits, &graceful, answer));
                }
                (stream, slot) = admin.next() => {
                    let page = Arc::clone(&page);
                    let answer = move |request| {
                        let page = Arc::clone(&page);
                        async move { page.answer(request).await }
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

/// A listening socket, and how many may be inside.
struct Door {
    listener: TcpListener,
    address: SocketAddr,
    slots: Arc<Semaphore>,
}

impl Door {
    async fn open(address: SocketAddr, connections_max: usize) -> Result<Self> {
        let fail = |source: io::Error| Error::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let slots = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
        Ok(Self { listener, address, slots })
    }

    /// The next connection, once there is a slot for it.
    async fn next(&self) -> (TcpStream, OwnedSemaphorePermit) {
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.expect("nobody closes the semaphore");
        loop {
            match self.listener.accept().await {
                Ok((stream, _peer)) => return (stream, slot),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Serves one connection to its end.
fn serve<A, F, B>(
    stream: TcpStream,
    slot: OwnedSemaphorePermit,
    limits: &Limits,
    graceful: &GracefulShutdown,
    answer: A,
) -> impl Future<Output = ()> + use<A, F, B>
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = std::result::Result<Response<B>, s3s::StdError>>,
    B: Body + 'static,
    B::Error: Into<s3s::StdError>,
{
    if let Err(error) = prepare(&stream, limits) {
        tracing::debug!(%error, "a connection keeps the kernel's defaults");
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Who has said all may still want to hear the answer.
        .half_close(true)
        .header_read_timeout(limits.head_time_max)
        .max_header_size(limits.head_bytes_max)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    let connection = graceful.watch(connection);
    async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended early");
        }
        drop(slot);
    }
}

/// No waiting for more to send with small answers; and the kernel gives up clients that take
/// nothing any more, so that they cannot hold what is being sent for ever.
fn prepare(stream: &TcpStream, limits: &Limits) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_user_timeout(Some(limits.stall_time_max))
}
