//! Starts, drains and stops the threads of a relay.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_admin_endpoint::{Admin, AllowedHosts, Overview, RecentRequests, StatusSource};
use haul_http_engine::ThreadLog;
use haul_pipe::PipePool;
use haul_reactor::{Address, AdmissionLimit, Handle as ThreadHandle, Listener, RateLimit, Reactor};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::http::IdlePool;
use crate::metrics;
use crate::service::RelayService;
use crate::stats::{Counters, Stats};
use crate::stream_session::Shared;
use crate::target::{Checker, Targets, resolver};
use crate::thread_context::ThreadContext;

/// The maximum number of connections in each listener's accept queue.
const BACKLOG: i32 = 1024;

/// A relay that listens but does not accept connections before [`Self::run`].
pub struct Server {
    addresses: Addresses,
    handle: Handle,
    events: Receiver<Event>,
    reactors: Vec<Reactor<RelayService>>,
    threads: Vec<ThreadHandle>,
    drain_time_max: Duration,
    _admin: Option<Admin>,
    _checker: Option<Checker>,
}

/// The addresses a relay listens on, with the ports the kernel chose for port 0.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// The addresses to accept connections on, in the order of [`Config::listen`].
    pub listen: Vec<Address>,
    /// The address that serves `/metrics`, `/health` and `/ready`; `None` if none is configured, or
    /// if another process listens on it: see [`Server::with_listeners`].
    pub admin: Option<Address>,
}

/// A handle to a running relay for other threads.
#[derive(Debug, Clone)]
pub struct Handle {
    events: Sender<Event>,
    monitor: Arc<Monitor>,
}

/// State of a running relay that the handles and the admin address read.
#[derive(Debug)]
struct Monitor {
    since: Instant,
    threads: Vec<(Arc<Counters>, PipePool)>,
    limit: AdmissionLimit,
    targets: Arc<Targets>,
    /// `None` without HTTP.
    recent: Option<Arc<RecentRequests>>,
    is_draining: AtomicBool,
}

/// An event for the thread that runs [`Server::run`].
#[derive(Debug)]
enum Event {
    Drain,
    Stop,
    ThreadEnded(usize),
}

impl Server {
    /// Binds the addresses, and starts the health checks and the admin address. The kernel queues
    /// connections until [`Self::run`] is called, which accepts them.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid, an address is in use, or the kernel
    /// refuses a resource.
    pub fn bind(config: Config) -> Result<Self> {
        config.check()?;
        let listen = listeners(&config)?;
        Self::relay_on(config, listen, false)
    }

    /// Relays connections of sockets that another process listens on, or did before, in place of
    /// [`Config::listen`]. If that process also listens on the address of [`Config::admin`], the relay
    /// runs without it; [`Handle::bind_admin`] can take the address later.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn with_listeners(config: Config, listen: Vec<Listener>) -> Result<Self> {
        let addresses = listen.iter().map(|listener| listener.address().clone()).collect();
        let config = Config { listen: addresses, ..config };
        config.check()?;
        Self::relay_on(config, listen, true)
    }

    /// Starts everything except the threads. With `is_inherited`, another process may listen on the
    /// admin address.
    fn relay_on(config: Config, listen: Vec<Listener>, is_inherited: bool) -> Result<Self> {
        let limit = config.admission();
        let addresses = listen.iter().map(|listener| listener.address().clone()).collect();
        let targets = Targets::new(config.targets, config.balance, config.checks);
        targets.resolve().map_err(|(name, source)| Error::Resolve { name, source })?;
        let recent = config.http.as_ref();
        let recent = recent.map(|http| Arc::new(RecentRequests::new(http.slow_request_time)));
        let peer_rate = config.http.as_ref().and_then(|http| http.peer_rate);
        let shared = Arc::new(Shared {
            targets: Arc::clone(&targets),
            limits: config.limits.clone(),
            tcp: config.tcp,
            proxy_out: config.proxy_out,
            tls: config.tls,
            peer_rate: peer_rate.map(RateLimit::new),
            recent: recent.clone(),
            http: config.http,
        });
        let (mut reactors, mut threads) = (Vec::new(), Vec::new());
        let mut listen = Some(listen);
        for number in (0..config.threads).rev() {
            // Thread 0, created last, takes the original listeners; every other thread gets
            // duplicates.
            let own = match (number, &listen) {
                (0, _) => listen.take().unwrap_or_default(),
                (_, Some(first)) => duplicate(first)?,
                (_, None) => Vec::new(),
            };
            let thread = ThreadContext::new(PipePool::new(config.pool), config.transfer_mode);
            threads.push((Arc::clone(&thread.counters), thread.pool.clone()));
            let idle_pool = IdlePool::new(shared.http.as_ref());
            let (shared, proxy_in) = (Arc::clone(&shared), config.proxy_in.clone());
            let log = config.access_log.clone().map(ThreadLog::new);
            let service = RelayService { shared, thread, proxy_in, idle_pool, log };
            let reactor = Reactor::new(service, own, limit.clone()).map_err(Error::Start)?;
            reactors.push(reactor.with_clock(config.clock.clone()));
        }
        let monitor = Arc::new(Monitor {
            since: Instant::now(),
            threads,
            limit,
            targets,
            recent,
            is_draining: AtomicBool::new(false),
        });
        let (events, receiver) = channel();
        let handle = Handle { events, monitor };
        let admin = admin(&handle, config.admin.as_ref(), is_inherited)?;
        let monitor = &handle.monitor;
        let checker = Checker::start(Arc::clone(&monitor.targets), config.limits.connect_time_max);
        resolver::start(&monitor.targets, config.resolve_interval).map_err(Error::Start)?;
        Ok(Self {
            addresses: Addresses {
                listen: addresses,
                admin: admin.as_ref().map(|admin| admin.address().clone()),
            },
            handle,
            events: receiver,
            threads: reactors.iter().map(Reactor::handle).collect(),
            reactors,
            drain_time_max: config.limits.drain_time_max,
            _admin: admin,
            _checker: checker.map_err(Error::Start)?,
        })
    }

    /// Returns the addresses the relay listens on.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Returns a handle for other threads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Relays until [`Handle::stop`] is called, or until [`Handle::drain`] is called and all
    /// connections have ended or the drain time is over. Returns the final statistics.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started or fails; the other threads are stopped then.
    pub fn run(mut self) -> Result<Stats> {
        let mut running = Vec::new();
        for (number, reactor) in std::mem::take(&mut self.reactors).into_iter().enumerate() {
            let notifier = EndNotifier(self.handle.events.clone(), number);
            let started = thread::Builder::new().name(format!("relay-{number}")).spawn(move || {
                let _notifies_when_dropped = notifier;
                reactor.run().map(drop)
            });
            match started {
                Ok(thread) => running.push(Some(thread)),
                Err(error) => {
                    self.stop();
                    return self.wait(running).and(Err(Error::Start(error)));
                }
            }
        }
        self.wait(running)
    }

    /// Waits until all threads have ended, and executes the commands of handles until then.
    fn wait(&self, mut running: Vec<Option<JoinHandle<io::Result<()>>>>) -> Result<Stats> {
        let mut deadline: Option<Instant> = None;
        let mut result = Ok(());
        while running.iter().any(Option::is_some) {
            let event = match deadline {
                None => self.events.recv().map_err(|_none| RecvTimeoutError::Disconnected),
                Some(at) => self.events.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(Event::Drain) => {
                    deadline.get_or_insert_with(|| Instant::now() + self.drain_time_max);
                    self.threads.iter().for_each(ThreadHandle::drain);
                }
                Ok(Event::ThreadEnded(number)) => {
                    let Some(thread) = running[number].take() else { continue };
                    if let Err(error) = join(thread) {
                        result = Err(Error::Run(error));
                        self.stop();
                    }
                }
                Ok(Event::Stop) | Err(_) => {
                    deadline = None;
                    self.stop();
                }
            }
        }
        result.map(|()| self.handle.stats())
    }

    fn stop(&self) {
        self.threads.iter().for_each(ThreadHandle::stop);
    }
}

/// A guard that reports the end of a thread when it is dropped, even if the thread panics.
struct EndNotifier(Sender<Event>, usize);

impl Drop for EndNotifier {
    fn drop(&mut self) {
        // Sending fails only if the relay has ended already.
        self.0.send(Event::ThreadEnded(self.1)).ok();
    }
}

fn join(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|_panic| {
        Err(io::Error::other("the thread panicked, which is a defect of the relay"))
    })
}

fn listeners(config: &Config) -> Result<Vec<Listener>> {
    let bind = |address: &Address| {
        Listener::bind(address, config.tcp, BACKLOG)
            .map_err(|source| Error::Listen { address: address.to_string(), source })
    };
    config.listen.iter().map(bind).collect()
}

fn duplicate(first: &[Listener]) -> Result<Vec<Listener>> {
    let duplicate = |listener: &Listener| {
        let address = listener.address().to_string();
        listener.another().map_err(|source| Error::Listen { address, source })
    };
    first.iter().map(duplicate).collect()
}

/// Serves the admin address, unless another process listens on it and `may_be_in_use` is set.
fn admin(handle: &Handle, address: Option<&Address>, may_be_in_use: bool) -> Result<Option<Admin>> {
    let Some(address) = address else { return Ok(None) };
    match handle.bind_admin(address) {
        Ok(admin) => Ok(Some(admin)),
        Err(error) if may_be_in_use && error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(source) => Err(Error::Listen { address: address.to_string(), source }),
    }
}

impl Monitor {
    fn stats(&self) -> Stats {
        let now = Instant::now();
        let mut stats = Stats { uptime: now.duration_since(self.since), ..Stats::default() };
        for (counters, pool) in &self.threads {
            stats.add(counters, pool.stats());
        }
        let admission = self.limit.stats();
        (stats.refused, stats.evicted) = (admission.refused, admission.evicted);
        stats.targets = self.targets.stats(now);
        stats
    }
}

/// The pages of the admin address.
struct AdminPages {
    monitor: Arc<Monitor>,
    hosts: AllowedHosts,
}

impl StatusSource for AdminPages {
    fn metrics(&self) -> String {
        metrics::text(&self.monitor.stats())
    }

    fn unready_reason(&self) -> Option<&'static str> {
        if self.monitor.is_draining.load(Relaxed) {
            return Some("The relay is draining");
        }
        let is_any_up = self.monitor.targets.is_any_up(Instant::now());
        (!is_any_up).then_some("No target is up")
    }

    fn overview(&self) -> Option<Overview> {
        Some(self.monitor.stats().to_overview(self.monitor.recent.is_some()))
    }

    fn recent_requests(&self) -> Option<&RecentRequests> {
        self.monitor.recent.as_deref()
    }

    fn is_allowed_host(&self, host: Option<&str>) -> bool {
        self.hosts.allows(host)
    }
}

impl Handle {
    /// Stops accepting connections, and ends the relay when all connections have ended or
    /// [`Limits::drain_time_max`](crate::Limits::drain_time_max) is over.
    pub fn drain(&self) {
        self.monitor.is_draining.store(true, Relaxed);
        // Sending fails only if the relay has ended.
        self.events.send(Event::Drain).ok();
    }

    /// Resets all connections and ends the relay.
    pub fn stop(&self) {
        self.events.send(Event::Stop).ok();
    }

    /// Serves the pages of the admin address at `address`, in place of [`Config::admin`], until the
    /// returned value is dropped.
    ///
    /// # Errors
    /// The address is in use or invalid, or the kernel refuses a thread.
    pub fn bind_admin(&self, address: &Address) -> io::Result<Admin> {
        let hosts = AllowedHosts::at(address, Vec::new());
        Admin::bind(address, AdminPages { monitor: Arc::clone(&self.monitor), hosts })
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> Stats {
        self.monitor.stats()
    }
}
