//! Serves requests on reactor threads, and shuts down gracefully.

pub(crate) mod bound;
pub(crate) mod listening;
mod memory;
mod quotas;
mod watch;

use std::num::NonZero;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_admin_endpoint::{History, Sampler};
use haul_store_pool::Pool;

use haul_http_engine::{ConnectionLimits, Connections, Engine, Handler, ListenerOptions, PeerRate};
use haul_http1::{FIELDS_MAX, HeadLimits};
use haul_reactor::{self as reactor, AdmissionLimit, Listener, Rate, RateLimit, Reactor};
use haul_tls::Acceptor;
use tokio::runtime;
use tokio::sync::mpsc;

use crate::access::keys::key_ring::AllKeys;
use crate::admin::account::login_limit;
use crate::admin::pending_logins::PendingLogins;
use crate::admin::sessions::Sessions;
use crate::admin::{Admin, overview};
use crate::bucket_logs::{delivery::Delivery, queue::LogQueue};
use crate::config::{Addresses, Config, Limits};
use crate::encryption::operator::EncryptionKeys;
use crate::error::{Error, Result};
use crate::events::delivery::Deliveries;
use crate::front::Front;
use crate::front::handler::Requests;
use crate::hot::HotObjects;
use crate::memory::{BodyMemory, PeerMemory};
use crate::metrics::{Counts, Metrics};
use crate::oidc::provider::Providers;
use crate::request::domains::Domains;
use crate::request::ids::RequestIds;
use crate::served::ServedStore;
use crate::server::bound::Bound;
use crate::server::listening::Listening;
use crate::server::memory::adapt_cache;
use crate::server::quotas::UserQuotas;
use crate::service::Haul;

/// The response to a client that has too many connections.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Slow Down\r\n\
    content-type: application/xml\r\ncontent-length: 128\r\nconnection: close\r\nretry-after: 1\r\n\r\n\
    <?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>SlowDown</Code>\
    <Message>Too many connections of this client</Message></Error>";

/// The body of the response to a client that exceeds its request rate.
const TOO_FAST: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>SlowDown</Code>\
    <Message>Too many requests of this client; try later</Message></Error>";

/// The maximum number of request bytes that are received and discarded after an early response, so
/// that the client can read the response.
const LINGER_BYTES_MAX: usize = 64 << 20;

/// The maximum time for receiving these bytes.
const LINGER_TIME: Duration = Duration::from_secs(10);

/// A server that listens on its addresses. It accepts connections once it [runs](Self::run).
pub struct Server {
    reactors: Vec<Reactor<Engine<Requests>>>,
    addresses: Addresses,
    limits: Limits,
    counts: Counts,
    sampler: Sampler,
    front: Arc<Front>,
    quotas: UserQuotas,
}

impl Server {
    /// Listens on the addresses and serves `store`. Must be called in a Tokio runtime with time.
    ///
    /// # Errors
    /// Fails like [`Listening::bind`] and [`Self::new`].
    pub fn bind(config: Config, store: Arc<Pool>) -> Result<Self> {
        Self::new(Listening::bind(config)?, store)
    }

    /// Serves `store` on addresses that are already bound.
    ///
    /// # Errors
    /// If another process listens on one of the addresses by now, or no file descriptors are left.
    pub fn new(listening: Listening, store: Arc<Pool>) -> Result<Self> {
        Self::serving(listening, Arc::new(ServedStore::new(store)))
    }

    /// Like [`Self::new`], with a store that the caller may replace.
    ///
    /// # Errors
    /// Fails like [`Self::new`].
    pub fn serving(listening: Listening, store: Arc<ServedStore>) -> Result<Self> {
        let addresses = listening.addresses();
        let Listening { listen, admin, access_keys, key_file, encryption, domains, tls, .. } =
            listening;
        let Listening { events, limits, is_read_only, logs, website, website_domains, .. } =
            listening;
        let admin_tls = tls.clone().filter(|_| addresses.admin_has_tls());
        let website_tls = tls.clone().filter(|_| addresses.website_has_tls());
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let listeners = listen.listen(threads, limits.stall_time_max)?;
        let mut admin = admin.listen(1, limits.stall_time_max)?.into_iter();
        let has_websites = website.is_some();
        let listen_all = |bound: Bound| bound.listen(threads, limits.stall_time_max);
        let mut websites = website.map_or(Ok(Vec::new()), listen_all)?.into_iter();
        let [connections, website_connections, admin_connections] =
            [(); 3].map(|()| count_connections(&limits));
        let metrics = Arc::new(Metrics::new(limits.slow_request_time));
        // TLS copies all bytes, and locking would cost it an additional system call.
        let hot = Arc::new(HotObjects::new(limits.cache_bytes_max, tls.is_none()));
        let rate = limits.peer_rate.map(peer_rate);
        let page = Arc::new(Admin {
            store: Arc::clone(&store),
            metrics: Arc::clone(&metrics),
            keys: access_keys.clone(),
            sessions: Sessions::new(&addresses),
            providers: listening.providers.clone(),
            pending_logins: PendingLogins::new(&addresses),
            login_limit: login_limit(),
            key_file,
            addresses,
            connections: Arc::clone(&connections),
            peer_rate: rate.clone(),
            hot: Arc::clone(&hot),
            events: events.clone(),
            map_lock: tokio::sync::Mutex::default(),
            history: Arc::new(History::new(&overview(&store, &metrics, &connections))),
        });
        let sampler = sampler(&page)?;
        let counts = Counts::new(&metrics);
        let quotas = UserQuotas::start(access_keys.clone(), &store.load());
        let providers = listening.providers;
        let clients = Clients { keys: access_keys, providers, domains };
        let front = build_front(store, clients, encryption, &limits, metrics, hot);
        let front = Arc::new(Front {
            audit: logs.audit,
            website_domains,
            is_read_only,
            is_encrypted: tls.is_some(),
            haul: Haul { events, ..front.haul },
            ..front
        });
        let reactor = |listener: Listener| {
            let (front, page) = (Arc::clone(&front), Arc::clone(&page));
            let requests = Requests { front, page, has_websites };
            let admin_page = listener_options(&admin_connections, &admin_tls);
            let public = |connections: &Arc<_>, tls: &Option<Acceptor>| ListenerOptions {
                peer_rate: rate.clone(),
                access_log: logs.access.clone(),
                ..listener_options(connections, tls)
            };
            let s3 = public(&connections, &tls);
            let website = has_websites.then(|| public(&website_connections, &website_tls));
            let options = std::iter::once(s3).chain(website).chain([admin_page]).collect();
            let engine = Engine::new(requests, options, connection_limits(&limits));
            // Only the first thread listens on the admin address.
            let listeners = std::iter::once(listener).chain(websites.next()).chain(admin.next());
            let all = AdmissionLimit::new(usize::MAX);
            Reactor::new(engine, listeners.collect(), all).map_err(|source| Error::Start { source })
        };
        let reactors = listeners.into_iter().map(reactor).collect::<Result<Vec<_>>>()?;
        Ok(Self { reactors, addresses, limits, counts, sampler, front, quotas })
    }

    /// Returns the request counts, which remain readable after the server has ended.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// Returns the addresses on which the server listens.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Serves requests until `shutdown` completes. Then stops accepting connections, waits up to
    /// [`Limits::drain_time_max`] for requests in flight, and aborts the remaining ones. Must be
    /// called in a Tokio runtime with time; store calls run on its blocking threads.
    ///
    /// # Errors
    /// If a thread cannot be started, or `epoll` fails. An error on one connection closes only that
    /// connection.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let (sender, mut ended) = mpsc::unbounded_channel();
        let delivery = Delivery::start(&self.front.haul, &self.front.logs);
        let (store, keys) = (&self.front.haul.store, &self.front.haul.keys);
        let events = self.front.haul.events.as_ref().filter(|_| !self.front.is_read_only);
        let events = events.map(|targets| Deliveries::start(store, targets, keys)).transpose();
        let _events = events.map_err(|source| Error::Start { source })?;
        let mut threads = Threads::default();
        for reactor in self.reactors {
            threads.start(reactor, sender.clone())?;
        }
        drop(sender);
        let is_failed = tokio::select! {
            () = shutdown => false,
            _failed = ended.recv() => true,
            never = adapt_cache(self.front.haul.clone()) => match never {},
            never = watch::watch(Arc::clone(store)) => match never {},
            never = self.quotas.watch(Arc::clone(store)) => match never {},
        };
        let deadline = Instant::now() + self.limits.drain_time_max;
        if let Some(targets) = &self.front.haul.events {
            // Their responses have no end of their own.
            targets.listeners().end();
        }
        if is_failed {
            // The records of the requests so far are delivered all the same.
            let outcome = threads.join();
            delivery.finish(deadline).await;
            return outcome;
        }
        threads.handles.iter().for_each(reactor::Handle::drain);
        // The history is no longer readable: the admin address is closed.
        drop(self.sampler);
        let all_ended = async { while ended.recv().await.is_some() {} };
        if tokio::time::timeout_at(deadline.into(), all_ended).await.is_err() {
            let connections: u64 = threads.handles.iter().map(open).sum();
            tracing::warn!(connections, "aborted requests in flight: the drain time has passed");
        }
        let outcome = threads.join();
        delivery.finish(deadline).await;
        outcome
    }
}

/// Returns the options of a listener without a rate limit and without an access log.
fn listener_options(
    connections: &Arc<Connections<PeerMemory>>,
    tls: &Option<Acceptor>,
) -> ListenerOptions<PeerMemory> {
    let (connections, tls) = (Arc::clone(connections), tls.clone());
    ListenerOptions { connections, peer_rate: None, tls, access_log: None }
}

/// Returns the limits on the connections to one address.
fn count_connections(limits: &Limits) -> Arc<Connections<PeerMemory>> {
    let peer_bytes_max = limits.peer_body_memory_bytes_max;
    let new_peer = move || PeerMemory::new(peer_bytes_max);
    Connections::new(limits.connections_max, limits.peer_connections_max, new_peer)
}

/// Starts the thread that records the console's history.
fn sampler(page: &Arc<Admin>) -> Result<Sampler> {
    let (history, started) = (Arc::clone(&page.history), page.metrics.started());
    let page = Arc::clone(page);
    let read = move || page.overview();
    Sampler::start(history, started, read).map_err(|source| Error::Start { source })
}

/// Returns the number of open connections on one reactor thread.
fn open(handle: &reactor::Handle) -> u64 {
    let stats = handle.stats();
    stats.accepted.saturating_sub(stats.closed)
}

/// The clients of a server: their keys, and the names by which they know the server.
struct Clients {
    keys: AllKeys,
    providers: Option<Arc<Providers>>,
    domains: Domains,
}

fn build_front(
    store: Arc<ServedStore>,
    clients: Clients,
    encryption: Option<Arc<EncryptionKeys>>,
    limits: &Limits,
    metrics: Arc<Metrics>,
    hot: Arc<HotObjects>,
) -> Front {
    let memory = BodyMemory::new(limits.body_memory_bytes_max, limits.stall_time_max);
    let logs = LogQueue::for_server(limits, &metrics);
    let Clients { keys, providers, domains } = clients;
    let haul = Haul {
        store,
        limits: limits.clone(),
        metrics,
        memory: Arc::new(memory),
        hot,
        keys,
        providers,
        encryption,
        events: None,
    };
    Front {
        haul,
        domains,
        website_domains: Domains::default(),
        audit: None,
        logs,
        is_read_only: false,
        is_encrypted: false,
        ids: RequestIds::new(),
    }
}

fn peer_rate(rate: Rate) -> Arc<PeerRate> {
    Arc::new(PeerRate {
        limit: RateLimit::new(rate),
        status: 503,
        content_type: "application/xml",
        body: TOO_FAST,
    })
}

pub(crate) fn connection_limits(limits: &Limits) -> ConnectionLimits {
    let head_bytes_max = limits.head_bytes_max;
    // The operations check key lengths, because S3 has an error code of its own for long keys. S3
    // limits the length of metadata, not the number of its fields.
    let head =
        HeadLimits { head_bytes_max, target_bytes_max: head_bytes_max, fields_max: FIELDS_MAX };
    ConnectionLimits {
        head,
        head_time: limits.head_time_max,
        idle_time: limits.idle_time_max,
        stall_time: limits.stall_time_max,
        send_rate_min: 1,
        requests_max: u32::MAX,
        discard_bytes_max: 0,
        linger_time: LINGER_TIME,
        linger_bytes_max: LINGER_BYTES_MAX,
        too_many: TOO_MANY,
    }
}

/// A running server's reactor threads. Dropping the value stops them.
#[derive(Default)]
pub(crate) struct Threads {
    handles: Vec<reactor::Handle>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
}

impl Threads {
    /// Starts a thread that sends a message on `ended` when it ends.
    pub(crate) fn start<H: Handler>(
        &mut self,
        reactor: Reactor<Engine<H>>,
        ended: mpsc::UnboundedSender<()>,
    ) -> Result<()>
    where
        Reactor<Engine<H>>: Send,
    {
        let runtime = runtime::Handle::current();
        self.handles.push(reactor.handle());
        let run = move || {
            // Request futures use the runtime's timers and blocking threads.
            let _context = runtime.enter();
            let outcome = reactor.run().map(drop);
            // No receiver is left if the server has already returned.
            ended.send(()).unwrap_or_default();
            outcome
        };
        let thread = thread::Builder::new().name("haul-http".to_owned()).spawn(run);
        self.threads.push(thread.map_err(|source| Error::Start { source })?);
        Ok(())
    }

    /// Stops the threads and joins them.
    pub(crate) fn join(mut self) -> Result<()> {
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
            // Nothing can receive an error or a panic: the server failed, or its future was
            // dropped.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_has_its_declared_length() {
        let text = str::from_utf8(TOO_MANY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
    }
}
