//! Listens, and starts the serving threads.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_admin_endpoint::{Admin, AllowedHosts, RecentRequests};
use haul_disk::KernelFiles;
use haul_http_engine::{ConnectionLimits, Connections, Engine, ListenerOptions, PeerRate};
use haul_http1::{CONNECTION_REFUSED, HeadLimits};
use haul_reactor::{Address, AdmissionLimit, Listener, Rate, RateLimit, Reactor, TcpOptions};

use super::handle::{Handle, ThreadHandle};
use super::shutdown::RunningThread;
use crate::config::{Config, Limits};
use crate::context::{Shared, ThreadContext};
use crate::error::{Error, Result};
use crate::file::frequency::FrequencySketch;
use crate::file::freshness::check_intervals_ms;
use crate::file::tier::TierRules;
use crate::listing::cache::ListingCache;
use crate::lookup::cache::FileCache;
use crate::lookup::disk_threads::DiskThreads;
use crate::lookup::encoded_forms::EncodedForms;
use crate::lookup::finder::Finder;
use crate::lookup::root::Root;
use crate::lookup::single_flight::SingleFlight;
use crate::outcome::DiskResult;
use crate::response::handler::{DISCARD_BYTES_MAX, FileHandler};

/// The connections that wait to be accepted, for each thread.
const BACKLOG: i32 = 1024;

/// The bytes that are received after the last response, so that the client can read it.
const LINGER_BYTES_MAX: usize = 1 << 20;

/// The application cache, and the longest file that is promoted, may take this part of the memory.
const MEMORY_SHARE: u64 = 8;

/// A server that listens, and serves once [`Server::run`] is called.
pub struct Server {
    reactors: Vec<Reactor<Engine<FileHandler>>>,
    admin: Option<Admin>,
    addresses: Addresses,
    handle: Arc<Handle>,
    thread_name: String,
    drain_time: Duration,
}

/// The addresses a server listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// The address clients connect to.
    pub listen: Address,
    /// The address of metrics and health; `None` if none is configured, or if another process listens
    /// on it: see [`Server::with_listener`].
    pub admin: Option<Address>,
}

impl Server {
    /// Opens the directory and listens. The kernel queues connections from now on; they are served
    /// once [`Self::run`] is called.
    ///
    /// # Errors
    /// The directory cannot be opened, a setting is invalid, or an address cannot be listened on or
    /// is public without TLS and without [`Config::is_public`].
    pub fn bind(config: Config) -> Result<Self> {
        config.check()?;
        Self::serve_on(config, None)
    }

    /// Opens the directory, and serves connections of a socket that another process listens on, or
    /// did before, in place of [`Config::listen`]. If that process also listens on the address of
    /// [`Config::admin`], the server runs without it; [`Handle::bind_admin`] can take the address
    /// later.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn with_listener(config: Config, listener: Listener) -> Result<Self> {
        let config = Config { listen: listener.address().clone(), ..config };
        config.check()?;
        Self::serve_on(config, Some(listener))
    }

    fn serve_on(config: Config, listener: Option<Listener>) -> Result<Self> {
        let shared = Arc::new(shared(&config)?);
        let (connections_max, peer_max) = config.limits.connections_max();
        let clock = config.clock.clone();
        let connections = Connections::with_clock(connections_max, peer_max, clock, || ());
        let peer_rate = config.limits.peer_rate.map(peer_rate);
        let is_inherited = listener.is_some();
        let first = listener.map_or_else(|| listen(&config.listen), Ok)?;
        let listen = first.address().clone();
        let mut listeners = vec![first];
        for _ in 1..config.threads {
            let another = listeners[0].another();
            listeners.push(another.map_err(|source| listen_error(&config.listen, source))?);
        }
        let (mut reactors, mut threads) = (Vec::new(), Vec::new());
        for listener in listeners {
            let is_tls = config.tls.is_some();
            let thread = ThreadContext::new(&shared, &config.tiers, is_tls, random_seed());
            let (counts, buffers) = (Arc::clone(&thread.counts), thread.buffers.clone());
            let options = ListenerOptions {
                connections: Arc::clone(&connections),
                peer_rate: peer_rate.clone(),
                tls: config.tls.clone(),
                access_log: config.access_log.clone(),
            };
            let limits = connection_limits(&config.limits);
            let engine = Engine::new(FileHandler::new(thread), vec![options], limits);
            let all = AdmissionLimit::new(usize::MAX);
            let reactor = Reactor::new(engine, vec![listener], all).map_err(Error::Thread)?;
            let reactor = reactor.with_clock(config.clock.clone());
            threads.push(ThreadHandle { reactor: reactor.handle(), counts, buffers });
            reactors.push(reactor);
        }
        let handle = Arc::new(Handle::new(shared, connections, peer_rate, threads));
        let admin = match config.admin.map(|address| (handle.bind_admin(&address), address)) {
            Some((Ok(admin), _)) => Some(admin),
            Some((Err(error), _)) if is_inherited && error.kind() == io::ErrorKind::AddrInUse => {
                None
            }
            Some((Err(source), address)) => return Err(listen_error(&address, source)),
            None => None,
        };
        Ok(Self {
            reactors,
            addresses: Addresses {
                listen,
                admin: admin.as_ref().map(|admin| admin.address().clone()),
            },
            admin,
            handle,
            thread_name: config.thread_name,
            drain_time: config.limits.drain_time,
        })
    }

    /// Returns the addresses the server listens on, with the ports the kernel chose for port 0.
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Returns a handle for other threads.
    #[must_use]
    pub fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.handle)
    }

    /// Serves until [`Handle::drain`] or [`Handle::stop`] is called. Then it stops accepting, and
    /// returns once all responses are sent or the drain time is over.
    ///
    /// # Errors
    /// A thread cannot be started, or the kernel refuses to wait for sockets.
    pub fn run(self) -> Result<()> {
        let mut threads = Vec::new();
        for reactor in self.reactors {
            self.handle.shutdown.add_thread();
            match start(&self.thread_name, reactor, Arc::clone(&self.handle)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    self.handle.stop();
                    return Err(error);
                }
            }
        }
        self.handle.shutdown.wait(self.drain_time, || self.handle.sweep());
        self.handle.stop();
        let outcome = threads.into_iter().map(join).fold(Ok(()), Result::and);
        // The admin address reports the end until now.
        drop(self.admin);
        outcome
    }
}

/// Starts a thread, which reports its end to `handle`.
fn start(
    name: &str,
    reactor: Reactor<Engine<FileHandler>>,
    handle: Arc<Handle>,
) -> Result<JoinHandle<io::Result<()>>> {
    let run = move || {
        let _running = RunningThread(&handle.shutdown);
        reactor.run().map(drop)
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map_err(Error::Thread)
}

fn join(thread: JoinHandle<io::Result<()>>) -> Result<()> {
    match thread.join() {
        Ok(outcome) => outcome.map_err(Error::Poll),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn listen(address: &Address) -> Result<Listener> {
    Listener::bind(address, TcpOptions::default(), BACKLOG)
        .map_err(|source| listen_error(address, source))
}

fn listen_error(address: &Address, source: io::Error) -> Error {
    Error::Listen { address: address.to_string(), source }
}

fn random_seed() -> u64 {
    RandomState::new().hash_one(0)
}

fn peer_rate(rate: Rate) -> Arc<PeerRate> {
    Arc::new(PeerRate {
        limit: RateLimit::new(rate),
        status: 429,
        content_type: "text/plain; charset=utf-8",
        body: "429 Too Many Requests\n",
    })
}

fn connection_limits(limits: &Limits) -> ConnectionLimits {
    ConnectionLimits {
        head: HeadLimits::default(),
        head_time: limits.head_time,
        idle_time: limits.idle_time,
        stall_time: limits.send_time,
        send_rate_min: limits.send_rate_min,
        requests_max: limits.requests,
        discard_bytes_max: DISCARD_BYTES_MAX,
        linger_time: limits.head_time,
        linger_bytes_max: LINGER_BYTES_MAX,
        too_many: CONNECTION_REFUSED,
    }
}

fn shared(config: &Config) -> Result<Shared> {
    let (content, tiers) = (&config.content, &config.tiers);
    let valid_ms = u64::try_from(tiers.valid.as_millis()).unwrap_or(u64::MAX);
    let (_, directory_ms) = check_intervals_ms(valid_ms);
    let memory_share = memory_bytes() / MEMORY_SHARE;
    let cache_bytes = tiers.cache_bytes.unwrap_or(memory_share);
    Ok(Shared {
        finder: Arc::new(Finder {
            root: Root::open(&config.dir)?,
            with_dotfiles: content.dotfiles,
            forms: content.precompressed.then(|| EncodedForms::new(directory_ms)),
            with_listings: content.listings,
            cache_control: content.cache_control.as_deref().map(Arc::from),
        }),
        hosts: match config.is_public {
            true => AllowedHosts::all(),
            false => AllowedHosts::at(&config.listen, config.hosts.clone()),
        },
        host_names: config.hosts.clone(),
        cache: Arc::new(FileCache::new(cache_bytes, tiers, valid_ms)),
        listings: Arc::new(ListingCache::new(valid_ms)),
        single_flight: SingleFlight::new(DiskResult::Failed(503)),
        frequency: FrequencySketch::new(),
        rules: TierRules {
            direct_bytes_min: tiers.direct_bytes_min,
            promote_requests: tiers.promote_asked,
            promote_bytes_max: tiers.promote_bytes_max.unwrap_or(memory_share),
        },
        disk: DiskThreads::start(tiers.disk_threads, tiers.disk_queue_max)?,
        hot_bytes_max: if cache_bytes == 0 { 0 } else { tiers.cache_object_bytes_max },
        recent: RecentRequests::new(config.slow_request_time),
        started: Instant::now(),
    })
}

/// Returns the memory of the machine, or the limit of the process's control group.
fn memory_bytes() -> u64 {
    KernelFiles::default().machine().memory_bytes().unwrap_or_else(|| {
        let system = rustix::system::sysinfo();
        (system.totalram as u64).saturating_mul(u64::from(system.mem_unit))
    })
}
