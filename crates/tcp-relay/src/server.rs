//! The threads of a relay, how they begin and how they end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_admin_endpoint::{Admin, Told};
use haul_pipe::PipePool;
use haul_reactor::{Address, Gate, Handle as ThreadHandle, Listener, Reactor};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::flow::Core;
use crate::http::Spares;
use crate::metrics;
use crate::relayed::Shared;
use crate::service::Relaying;
use crate::stats::{Counters, Stats};
use crate::target::{Checker, Targets};

/// How many connections the kernel keeps for each listener until they are accepted.
const BACKLOG: i32 = 1024;

/// A relay that listens, and serves nobody yet.
pub struct Server {
    addresses: Addresses,
    handle: Handle,
    news: Receiver<News>,
    reactors: Vec<Reactor<Relaying>>,
    threads: Vec<ThreadHandle>,
    drain_time_max: Duration,
    _admin: Option<Admin>,
    _checker: Option<Checker>,
}

/// Where it listens: the ports that were free are told here.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// In the order of the configuration.
    pub listen: Vec<Address>,
    /// For metrics and health.
    pub admin: Option<Address>,
}

/// A relay, as other threads see it.
#[derive(Debug, Clone)]
pub struct Handle {
    news: Sender<News>,
    seen: Arc<Seen>,
}

/// What is seen of a relay from outside.
#[derive(Debug)]
struct Seen {
    since: Instant,
    threads: Vec<(Arc<Counters>, PipePool)>,
    targets: Arc<Targets>,
    is_ending: AtomicBool,
}

/// What the thread that waits for the end hears.
#[derive(Debug)]
enum News {
    Drain,
    Stop,
    Ended(usize),
}

impl Server {
    /// Listens, and begins to check the targets. Clients may connect from now on; they are served
    /// from [`Self::run`] on.
    ///
    /// # Errors
    /// When the configuration cannot work, an address is taken, or the kernel refuses what it
    /// needs.
    pub fn bind(config: Config) -> Result<Self> {
        config.check()?;
        let listen = listeners(&config)?;
        let addresses = listen.iter().map(|listener| listener.address().clone()).collect();
        let targets = Targets::new(config.targets, config.balance, config.checks);
        let shared = Arc::new(Shared {
            targets: Arc::clone(&targets),
            limits: config.limits.clone(),
            tcp: config.tcp,
            proxy_out: config.proxy_out,
            http: config.http,
        });
        let gate = Gate::new(config.limits.connections_max);
        let (mut reactors, mut threads) = (Vec::new(), Vec::new());
        let mut listen = Some(listen);
        for number in (0..config.threads).rev() {
            // The last thread takes the first listeners: every other one has its own.
            let own = match (number, &listen) {
                (0, _) => listen.take().unwrap_or_default(),
                (_, Some(first)) => another(first)?,
                (_, None) => Vec::new(),
            };
            let core = Core::new(PipePool::new(config.pool), config.moving);
            threads.push((Arc::clone(&core.counters), core.pool.clone()));
            let spares = Spares::new(shared.http.as_ref());
            let (shared, proxy_in) = (Arc::clone(&shared), config.proxy_in.clone());
            let service = Relaying { shared, core, proxy_in, spares };
            reactors.push(Reactor::new(service, own, gate.clone()).map_err(Error::Start)?);
        }
        let seen = Arc::new(Seen {
            since: Instant::now(),
            threads,
            targets,
            is_ending: AtomicBool::new(false),
        });
        let admin = config.admin.map(|address| admin(&address, &seen)).transpose()?;
        let checker = Checker::start(Arc::clone(&seen.targets), config.limits.connect_time_max);
        let (sender, news) = channel();
        Ok(Self {
            addresses: Addresses {
                listen: addresses,
                admin: admin.as_ref().map(|admin| admin.address().clone()),
            },
            handle: Handle { news: sender, seen },
            news,
            threads: reactors.iter().map(Reactor::handle).collect(),
            reactors,
            drain_time_max: config.limits.drain_time_max,
            _admin: admin,
            _checker: checker.map_err(Error::Start)?,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// For other threads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Relays until it is told to end, and its connections have or the time for that is over. What
    /// was done.
    ///
    /// # Errors
    /// When a thread cannot be started, or cannot go on; the others are ended then.
    pub fn run(mut self) -> Result<Stats> {
        let mut running = Vec::new();
        for (number, reactor) in std::mem::take(&mut self.reactors).into_iter().enumerate() {
            let ending = Ending(self.handle.news.clone(), number);
            let started = thread::Builder::new().name(format!("relay-{number}")).spawn(move || {
                let _told_in_any_case = ending;
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

    /// Waits for the threads, and does what handles ask for.
    fn wait(&self, mut running: Vec<Option<JoinHandle<io::Result<()>>>>) -> Result<Stats> {
        let mut deadline: Option<Instant> = None;
        let mut result = Ok(());
        while running.iter().any(Option::is_some) {
            let news = match deadline {
                None => self.news.recv().map_err(|_none| RecvTimeoutError::Disconnected),
                Some(at) => self.news.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match news {
                Ok(News::Drain) => {
                    deadline.get_or_insert_with(|| Instant::now() + self.drain_time_max);
                    self.threads.iter().for_each(ThreadHandle::drain);
                }
                Ok(News::Ended(number)) => {
                    let Some(thread) = running[number].take() else { continue };
                    if let Err(error) = join(thread) {
                        result = Err(Error::Run(error));
                        self.stop();
                    }
                }
                Ok(News::Stop) | Err(_) => {
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

/// Tells that a thread is over, when it is dropped.
struct Ending(Sender<News>, usize);

impl Drop for Ending {
    fn drop(&mut self) {
        // Nobody hears it when the relay is gone.
        self.0.send(News::Ended(self.1)).ok();
    }
}

fn join(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|_panic| {
        Err(io::Error::other("it ended in a panic, which is a defect of the relay"))
    })
}

fn listeners(config: &Config) -> Result<Vec<Listener>> {
    let bind = |address: &Address| {
        Listener::bind(address, config.tcp, BACKLOG)
            .map_err(|source| Error::Listen { address: address.to_string(), source })
    };
    config.listen.iter().map(bind).collect()
}

fn another(first: &[Listener]) -> Result<Vec<Listener>> {
    let another = |listener: &Listener| {
        let address = listener.address().to_string();
        listener.another().map_err(|source| Error::Listen { address, source })
    };
    first.iter().map(another).collect()
}

fn admin(address: &Address, seen: &Arc<Seen>) -> Result<Admin> {
    Admin::bind(address, Telling(Arc::clone(seen)))
        .map_err(|source| Error::Listen { address: address.to_string(), source })
}

impl Seen {
    fn stats(&self) -> Stats {
        let now = Instant::now();
        let mut stats = Stats { since: now.duration_since(self.since), ..Stats::default() };
        for (counters, pool) in &self.threads {
            stats.add(counters, pool.stats());
        }
        stats.targets = self.targets.seen(now);
        stats
    }
}

/// What the admin address tells of it.
struct Telling(Arc<Seen>);

impl Told for Telling {
    fn metrics(&self) -> String {
        metrics::text(&self.0.stats())
    }

    fn trouble(&self) -> Option<&'static str> {
        if self.0.is_ending.load(Relaxed) {
            return Some("It is told to stop");
        }
        let is_any_up = self.0.targets.is_any_up(Instant::now());
        (!is_any_up).then_some("No target is up")
    }
}

impl Handle {
    /// Accepts nothing more, and ends when the last connection has, or the time for it is over.
    pub fn drain(&self) {
        self.seen.is_ending.store(true, Relaxed);
        // A relay that is over needs no more.
        self.news.send(News::Drain).ok();
    }

    /// Cuts all connections off, and ends.
    pub fn stop(&self) {
        self.news.send(News::Stop).ok();
    }

    /// What it did so far.
    pub fn stats(&self) -> Stats {
        self.seen.stats()
    }
}
