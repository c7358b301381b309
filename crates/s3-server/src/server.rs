//! Reserves addresses, serves on reactor threads, and ends in good order.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use haul_file_store::Store;
use haul_http_engine::{ConnectionLimits, Connections, Engine, ListenerOptions, PeerRate};
use haul_http1::HeadLimits;
use haul_reactor::{self as reactor, AdmissionLimit, Listener, Rate, RateLimit, Reactor};
use haul_tls::Acceptor;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use tokio::runtime;
use tokio::sync::mpsc;

use crate::admin::Admin;
use crate::auth::OneKey;
use crate::bound::Bound;
use crate::config::{Addresses, Config, Credentials, Inherited, Limits, Logs};
use crate::error::{Error, Result};
use crate::front::Front;
use crate::front::answer::RequestIds;
use crate::front::handler::Requests;
use crate::front::hot::HotObjects;
use crate::front::signature::Verifier;
use crate::memory::{BodyMemory, PeerMemory};
use crate::metrics::Metrics;
use crate::service::Haul;

/// Addresses that are taken, in a configuration that was checked. Nothing is served, and clients
/// are refused, until there is a [`Server`]. So a server that cannot start opens no store.
#[derive(Debug)]
pub struct Listening {
    listen: Bound,
    admin: Bound,
    credentials: Option<Credentials>,
    tls: Option<Acceptor>,
    limits: Limits,
    logs: Logs,
}

impl Listening {
    /// Checks the configuration and takes both addresses. Must be called in a Tokio runtime with
    /// I/O.
    ///
    /// # Errors
    /// If the configuration is unsafe or cannot work, or an address cannot be had.
    pub fn bind(config: Config) -> Result<Self> {
        Self::with_inherited(config, Inherited::default())
    }

    /// As [`Self::bind`], with sockets that another process listens on in place of addresses of the
    /// configuration.
    ///
    /// # Errors
    /// As [`Self::bind`], also if an inherited socket is not a TCP socket.
    pub fn with_inherited(mut config: Config, inherited: Inherited) -> Result<Self> {
        let bound = |listener: Option<Listener>| listener.map(Bound::inherited).transpose();
        let (listen, admin) = (bound(inherited.listen)?, bound(inherited.admin)?);
        config.listen = listen.as_ref().map_or(config.listen, |bound| bound.address);
        config.admin = admin.as_ref().map_or(config.admin, |bound| bound.address);
        config.check()?;
        let listen = listen.map_or_else(|| Bound::new(config.listen), Ok)?;
        let admin = admin.map_or_else(|| Bound::new(config.admin), Ok)?;
        let Config { credentials, tls, limits, .. } = config;
        Ok(Self { listen, admin, credentials, tls, limits, logs: Logs::default() })
    }

    /// Sets the logs.
    #[must_use]
    pub fn with_logs(mut self, logs: Logs) -> Self {
        self.logs = logs;
        self
    }

    /// Returns the addresses, with the ports the kernel chose.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        Addresses { listen: self.listen.address, admin: self.admin.address }
    }
}

/// The response to a client with too many connections.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Slow Down\r\n\
    content-type: application/xml\r\ncontent-length: 128\r\nconnection: close\r\nretry-after: 1\r\n\r\n\
    <?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>SlowDown</Code>\
    <Message>Too many connections of this client</Message></Error>";

/// The body of the response to a request above the rate of its client.
const TOO_FAST: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>SlowDown</Code>\
    <Message>Too many requests of this client; try later</Message></Error>";

/// The most bytes of a request that are received after an early response, so that the client can
/// read it.
const LINGER_BYTES_MAX: usize = 64 << 20;

/// The time for them.
const LINGER_TIME: std::time::Duration = std::time::Duration::from_secs(10);

/// A server that listens. Connections wait until it [runs](Self::run).
pub struct Server {
    reactors: Vec<Reactor<Engine<Requests>>>,
    addresses: Addresses,
    limits: Limits,
}

impl Server {
    /// Listens on both addresses, for this store. Must be called in a Tokio runtime with time.
    ///
    /// # Errors
    /// As [`Listening::bind`].
    pub fn bind(config: Config, store: Arc<Store>) -> Result<Self> {
        Self::new(Listening::bind(config)?, store)
    }

    /// Serves this store on addresses that were taken before.
    ///
    /// # Errors
    /// If another process listens on one of the addresses since, or the kernel has no descriptors
    /// left.
    pub fn new(listening: Listening, store: Arc<Store>) -> Result<Self> {
        let addresses = listening.addresses();
        let Listening { listen, admin, credentials, tls, limits, logs } = listening;
        let admin_tls = tls.clone().filter(|_| !addresses.admin.ip().is_loopback());
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let listeners = listen.listen(threads, limits.stall_time_max)?;
        let mut admin = admin.listen(1, limits.stall_time_max)?.into_iter();
        let peer_bytes_max = limits.peer_body_memory_bytes_max;
        let [connections, admin_connections] = [(), ()].map(|()| {
            let new_peer = move || PeerMemory::new(peer_bytes_max);
            Connections::new(limits.connections_max, limits.peer_connections_max, new_peer)
        });
        let metrics = Arc::new(Metrics::new());
        // TLS copies all bytes, and files would cost it another copy.
        let files_max = if tls.is_some() { 0 } else { limits.cache_files_max };
        let hot = Arc::new(HotObjects::new(limits.cache_bytes_max, files_max));
        let page = Arc::new(Admin {
            store: Arc::clone(&store),
            metrics: Arc::clone(&metrics),
            credentials: credentials.clone().filter(|_| !addresses.admin.ip().is_loopback()),
            addresses,
            connections: Arc::clone(&connections),
            hot: Arc::clone(&hot),
        });
        let front = front(store, credentials, &limits, metrics, hot);
        let front = Arc::new(Front { audit: logs.audit, ..front });
        let rate = limits.peer_rate.map(peer_rate);
        let reactor = |listener: Listener| {
            let requests = Requests { front: Arc::clone(&front), page: Arc::clone(&page) };
            let s3 = ListenerOptions {
                connections: Arc::clone(&connections),
                peer_rate: rate.clone(),
                tls: tls.clone(),
                access_log: logs.access.clone(),
            };
            let admin_page = ListenerOptions {
                connections: Arc::clone(&admin_connections),
                peer_rate: None,
                tls: admin_tls.clone(),
                access_log: None,
            };
            let options = vec![s3, admin_page];
            let engine = Engine::new(requests, options, connection_limits(&limits));
            // The admin page has a listener on the first thread only.
            let listeners = std::iter::once(listener).chain(admin.next()).collect();
            let all = AdmissionLimit::new(usize::MAX);
            Reactor::new(engine, listeners, all).map_err(|source| Error::Start { source })
        };
        let reactors = listeners.into_iter().map(reactor).collect::<Result<Vec<_>>>()?;
        Ok(Self { reactors, addresses, limits })
    }

    /// Returns the addresses the server listens on.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Serves until `shutdown` is ready; then accepts nothing more, finishes what is in flight
    /// within [`Limits::drain_time_max`], and aborts what is not finished by then. Must be called in
    /// a Tokio runtime with time, on which the calls of the store run.
    ///
    /// # Errors
    /// A thread cannot be started, or the kernel refuses to wait for sockets. An error of a
    /// connection ends that connection only.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let (sender, mut ended) = mpsc::unbounded_channel();
        let mut threads = Threads::default();
        for reactor in self.reactors {
            threads.start(reactor, sender.clone())?;
        }
        drop(sender);
        tokio::select! {
            () = shutdown => {}
            _failed = ended.recv() => return threads.join(),
        }
        threads.handles.iter().for_each(reactor::Handle::drain);
        let all_ended = async { while ended.recv().await.is_some() {} };
        if tokio::time::timeout(self.limits.drain_time_max, all_ended).await.is_err() {
            let connections: u64 = threads.handles.iter().map(open).sum();
            tracing::warn!(connections, "broke off requests still in flight");
        }
        threads.join()
    }
}

/// Returns the number of open connections of a thread.
fn open(handle: &reactor::Handle) -> u64 {
    let stats = handle.stats();
    stats.accepted.saturating_sub(stats.closed)
}

fn front(
    store: Arc<Store>,
    credentials: Option<Credentials>,
    limits: &Limits,
    metrics: Arc<Metrics>,
    hot: Arc<HotObjects>,
) -> Front {
    let verifier = credentials.clone().map(Verifier::new);
    let access_key = credentials.as_ref().map(|keys| Arc::from(keys.access_key.as_str()));
    let mut s3_config = S3Config::default();
    s3_config.xml_max_body_size = limits.xml_bytes_max;
    let memory = BodyMemory::new(limits.body_memory_bytes_max, limits.stall_time_max);
    let memory = Arc::new(memory);

    let haul = Haul::new(
        Arc::clone(&store),
        limits.clone(),
        Arc::clone(&metrics),
        Arc::clone(&memory),
        Arc::clone(&hot),
    );
    let mut s3 = S3ServiceBuilder::new(haul.clone());
    s3.set_config(Arc::new(StaticConfigProvider::new(Arc::new(s3_config))));
    if let Some(credentials) = credentials {
        s3.set_auth(OneKey(credentials));
    }
    let (xml_bytes_max, ids) = (limits.xml_bytes_max, RequestIds::new());
    let (s3, audit) = (s3.build(), None);
    Front { s3, haul, store, memory, hot, verifier, access_key, audit, metrics, xml_bytes_max, ids }
}

fn peer_rate(rate: Rate) -> Arc<PeerRate> {
    Arc::new(PeerRate {
        limit: RateLimit::new(rate),
        status: 503,
        content_type: "application/xml",
        body: TOO_FAST,
    })
}

fn connection_limits(limits: &Limits) -> ConnectionLimits {
    let head_bytes_max = limits.head_bytes_max;
    // Keys are checked by S3, which has an error of its own for those that are too long.
    let head =
        HeadLimits { head_bytes_max, target_bytes_max: head_bytes_max, ..HeadLimits::default() };
    ConnectionLimits {
        head,
        head_time: limits.head_time_max,
        idle_time: limits.idle_time_max,
        stall_time: limits.stall_time_max,
        linger_time: LINGER_TIME,
        linger_bytes_max: LINGER_BYTES_MAX,
        too_many: TOO_MANY,
    }
}

/// The reactor threads of a running server, which are stopped when this is dropped.
#[derive(Default)]
struct Threads {
    handles: Vec<reactor::Handle>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
}

impl Threads {
    /// Starts a thread, which sends a message when it has ended.
    fn start(
        &mut self,
        reactor: Reactor<Engine<Requests>>,
        ended: mpsc::UnboundedSender<()>,
    ) -> Result<()> {
        let runtime = runtime::Handle::current();
        self.handles.push(reactor.handle());
        let run = move || {
            // Futures of requests use the timers and the blocking threads of the runtime.
            let _context = runtime.enter();
            let outcome = reactor.run().map(drop);
            // Without a receiver, the server has ended already.
            ended.send(()).unwrap_or_default();
            outcome
        };
        let thread = thread::Builder::new().name("haul-http".to_owned()).spawn(run);
        self.threads.push(thread.map_err(|source| Error::Start { source })?);
        Ok(())
    }

    /// Stops the threads, and waits until they have ended.
    fn join(mut self) -> Result<()> {
        self.handles.iter().for_each(reactor::Handle::stop);
        let mut outcome = Ok(());
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(ended) => outcome = outcome.and(ended.map_err(|source| Error::Start { source })),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcome
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.handles.iter().for_each(reactor::Handle::stop);
        for thread in self.threads.drain(..) {
            // The server failed, or its future was dropped: a panic has no other place to go.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_is_as_long_as_it_declares() {
        let text = str::from_utf8(TOO_MANY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
    }
}
