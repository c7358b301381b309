//! Threads, each with its listener, and what stops them.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_admin_endpoint::Admin;
use haul_reactor::{
    self as reactor, Address, AdmissionLimit, Listener, RateLimit, Reactor, TcpOptions,
};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::admin::Telling;
use crate::caches::Caches;
use crate::carrier::Carriers;
use crate::config::{Config, is_local};
use crate::connection::Done;
use crate::disk_threads::DiskThreads;
use crate::error::{Error, Result};
use crate::find::Finder;
use crate::flights::Flights;
use crate::hosts::Hosts;
use crate::listing::Listings;
use crate::metrics::{Counts, Stats};
use crate::root::Root;
use crate::shared::{Desk, Shared};
use crate::sketch::Sketch;
use crate::tier::Rules;
use crate::worker::Worker;

/// Peers that wait to be taken on, for each thread.
const BACKLOG: i32 = 1024;

/// How often it is looked which files need not be open any more.
const SWEEP_TIME: Duration = Duration::from_secs(5);

/// A server that listens, and serves once [`Server::run`] is called.
pub struct Server {
    workers: Vec<Reactor<Worker>>,
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
    /// The address of metrics and health.
    pub admin: Option<Address>,
}

/// A handle to a running server for other threads.
#[derive(Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    limit: AdmissionLimit,
    threads: Vec<PerThread>,
    end: End,
}

#[derive(Debug)]
struct PerThread {
    reactor: reactor::Handle,
    counts: Arc<Counts>,
    carriers: Carriers,
}

/// The end of a server: asked for, and come.
#[derive(Debug, Default)]
struct End {
    state: Mutex<EndState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct EndState {
    is_asked: bool,
    is_now: bool,
    /// Threads that serve.
    running: usize,
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
    /// did before, in place of [`Config::listen`].
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
        let limit = config.limits.admission();
        let first = listener.map_or_else(|| listen(&config.listen), Ok)?;
        let listens = first.address().clone();
        let mut listeners = vec![first];
        for _ in 1..config.threads {
            let another = listeners[0].another();
            listeners.push(another.map_err(|source| not_listening(&config.listen, source))?);
        }
        let (mut workers, mut threads) = (Vec::new(), Vec::new());
        for listener in listeners {
            let desk = Desk::new(&shared, &config.tiers);
            let (counts, carriers) = (Arc::clone(&desk.counts), desk.carriers.clone());
            let worker = Worker::new(desk, seed());
            let reactor =
                Reactor::new(worker, vec![listener], limit.clone()).map_err(Error::Thread)?;
            threads.push(PerThread { reactor: reactor.handle(), counts, carriers });
            workers.push(reactor);
        }
        let handle = Arc::new(Handle { shared, limit, threads, end: End::default() });
        let admin = config.admin.map(|address| {
            Admin::bind(&address, Telling(Arc::clone(&handle)))
                .map_err(|source| not_listening(&address, source))
        });
        let admin = admin.transpose()?;
        Ok(Self {
            workers,
            addresses: Addresses {
                listen: listens,
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
        for worker in self.workers {
            self.handle.end.state.lock().running += 1;
            match start(&self.thread_name, worker, Arc::clone(&self.handle)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    self.handle.stop();
                    return Err(error);
                }
            }
        }
        let shared = Arc::clone(&self.handle.shared);
        let sweep = move || {
            let now_ms = shared.ms(Instant::now());
            shared.caches.sweep(now_ms);
            shared.listings.sweep(now_ms);
        };
        self.handle.end.wait(self.drain_time, sweep);
        self.handle.stop();
        let ended = threads.into_iter().map(joined).fold(Ok(()), Result::and);
        // To the very end it tells that this is the end.
        drop(self.admin);
        ended
    }
}

/// Runs a thread, whose end is told to `handle`.
fn start(
    name: &str,
    reactor: Reactor<Worker>,
    handle: Arc<Handle>,
) -> Result<JoinHandle<io::Result<()>>> {
    let run = move || {
        let _told = OneEnds(&handle.end);
        reactor.run().map(drop)
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map_err(Error::Thread)
}

/// Tells the end of a thread, even of one that panics: the others do not go on without it.
struct OneEnds<'a>(&'a End);

impl Drop for OneEnds<'_> {
    fn drop(&mut self) {
        self.0.one_ended();
    }
}

fn joined(thread: JoinHandle<io::Result<()>>) -> Result<()> {
    match thread.join() {
        Ok(ended) => ended.map_err(Error::Poll),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn listen(address: &Address) -> Result<Listener> {
    Listener::bind(address, TcpOptions::default(), BACKLOG)
        .map_err(|source| not_listening(address, source))
}

fn not_listening(address: &Address, source: io::Error) -> Error {
    Error::Listen { address: address.to_string(), source }
}

fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

fn shared(config: &Config) -> Result<Shared> {
    let (content, tiers) = (&config.content, &config.tiers);
    let valid_ms = u64::try_from(tiers.valid.as_millis()).unwrap_or(u64::MAX);
    let promote_bytes_max = tiers.promote_bytes_max.unwrap_or_else(|| {
        let system = rustix::system::sysinfo();
        (system.totalram as u64).saturating_mul(u64::from(system.mem_unit)) / 8
    });
    Ok(Shared {
        finder: Arc::new(Finder {
            root: Root::open(&config.dir)?,
            with_dotfiles: content.dotfiles,
            with_precompressed: content.precompressed,
            with_listings: content.listings,
            cache_control: content.cache_control.clone(),
        }),
        hosts: Hosts {
            // A public server has names of its own.
            is_checked: !config.is_public
                && matches!(config.listen, Address::Tcp(_))
                && is_local(&config.listen),
            names: config.hosts.clone(),
        },
        tls: config.tls.clone(),
        caches: Arc::new(Caches::new(tiers, valid_ms)),
        listings: Arc::new(Listings::new(valid_ms)),
        together: Flights::new(Done::Failed(503)),
        sketch: Sketch::new(),
        rules: Rules {
            direct_bytes_min: tiers.direct_bytes_min,
            promote_asked: tiers.promote_asked,
            promote_bytes_max,
        },
        disk: DiskThreads::start(tiers.disk_threads, tiers.disk_queue_max)?,
        limits: config.limits.clone(),
        peer_rate: config.limits.peer_rate.map(RateLimit::new),
        access_log: config.access_log.clone(),
        hot_bytes_max: if tiers.cache_bytes == 0 { 0 } else { tiers.cache_object_bytes_max },
        started: Instant::now(),
    })
}

impl Handle {
    /// Stops accepting, and ends the server when the responses under way are complete or the drain
    /// time is over.
    pub fn drain(&self) {
        // First: a thread without connections ends at once, and must not seem to have done so
        // unasked.
        self.end.ask(false);
        self.threads.iter().for_each(|thread| thread.reactor.drain());
    }

    /// Ends the server at once, and closes all connections.
    pub fn stop(&self) {
        self.threads.iter().for_each(|thread| thread.reactor.stop());
        self.end.ask(true);
    }

    /// Whether the directory that is served was not removed.
    pub(crate) fn has_root(&self) -> bool {
        self.shared.finder.root.is_there()
    }

    /// Whether it was told to drain or to stop.
    pub(crate) fn is_ending(&self) -> bool {
        self.end.state.lock().is_asked
    }

    /// Whether a request for this host is answered.
    pub(crate) fn answers_to(&self, host: Option<&str>) -> bool {
        self.shared.hosts.allows(host)
    }

    /// Returns the statistics so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for thread in &self.threads {
            stats.add(&thread.counts);
            let carriers = thread.carriers.stats();
            stats.carriers_made += carriers.made;
            stats.carriers_lent += carriers.lent;
            stats.carriers_refused += carriers.refused;
        }
        let (cached_files, cached_bytes) = self.shared.caches.hot_size();
        stats.cached_files = cached_files as u64;
        stats.cached_bytes = cached_bytes;
        stats.open_files = self.shared.caches.open_size() as u64;
        stats.listings_bytes = self.shared.listings.alive_bytes();
        let admission = self.limit.stats();
        stats.connections_refused = admission.refused;
        stats.connections_evicted = admission.evicted;
        let peer_rate = self.shared.peer_rate.as_ref();
        stats.requests_refused = peer_rate.map_or(0, RateLimit::refused);
        let disk = self.shared.disk.stats();
        stats.disk_jobs_waiting = disk.waiting as u64;
        stats.disk_jobs_refused = disk.refused;
        stats.disk_jobs_dropped = disk.dropped;
        stats
    }
}

impl End {
    fn ask(&self, is_now: bool) {
        let mut state = self.state.lock();
        state.is_asked = true;
        state.is_now |= is_now;
        self.changed.notify_all();
    }

    fn one_ended(&self) {
        self.state.lock().running -= 1;
        self.changed.notify_all();
    }

    /// Waits until it is asked for, and then until all threads have ended, or so long. A thread
    /// that ends unasked ends the others. Has what is not needed swept meanwhile.
    fn wait(&self, drain_time: Duration, sweep: impl Fn()) {
        let mut state = self.state.lock();
        let all = state.running;
        while !state.is_asked && state.running == all {
            if self.changed.wait_for(&mut state, SWEEP_TIME).timed_out() {
                MutexGuard::unlocked(&mut state, &sweep);
            }
        }
        let until = Instant::now() + drain_time;
        while state.is_asked && !state.is_now && state.running > 0 {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_has_ended_too() {
        let end = End::default();
        end.state.lock().running = 2;
        let panicking = || {
            let _told = OneEnds(&end);
            std::panic::resume_unwind(Box::new("as tested"))
        };
        let joined = thread::scope(|scope| scope.spawn::<_, ()>(panicking).join());
        assert!(joined.is_err());
        assert_eq!(end.state.lock().running, 1);
    }
}
