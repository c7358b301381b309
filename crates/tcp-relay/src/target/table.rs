//! Holds the targets of a relay with their health and their counters, which all threads share.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use haul_reactor::{Address, HostAddress};
use parking_lot::{Mutex, RwLock};

use super::balance::{Balance, Candidate, order};
use super::health::{CheckOptions, Health};

/// All targets of a relay.
#[derive(Debug)]
pub(crate) struct Targets {
    balance: Balance,
    pub(super) options: CheckOptions,
    all: Vec<Target>,
    sequence: AtomicU64,
    /// Wakes the thread that resolves host names.
    resolve_requests: OnceLock<SyncSender<()>>,
}

#[derive(Debug)]
struct Target {
    name: HostAddress,
    /// The name as text, for logs.
    text: String,
    /// The addresses of the name; empty before the first resolution of a host name.
    addresses: RwLock<Arc<[Address]>>,
    /// The index of the address that accepted the last connection, which is tried first.
    preferred: AtomicUsize,
    health: Mutex<Health>,
    active: AtomicU64,
    connected: AtomicU64,
    failed: AtomicU64,
    checks_failed: AtomicU64,
}

/// Statistics of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetStats {
    /// The address or host name of the target, such as `192.0.2.7:80`.
    pub address: String,
    /// `true` if the target is neither down nor ejected.
    pub is_up: bool,
    /// Open connections, and connection attempts that have not finished.
    pub active: u64,
    /// Connections established.
    pub connected: u64,
    /// Failed connection attempts.
    pub failed: u64,
    /// Failed health checks.
    pub checks_failed: u64,
}

impl Targets {
    /// Creates the table. Every target counts as up until checks or connections to it fail. Host
    /// names have no addresses before [`Self::resolve`].
    pub(crate) fn new(
        names: Vec<impl Into<HostAddress>>,
        balance: Balance,
        options: CheckOptions,
    ) -> Arc<Self> {
        let target = |name: HostAddress| Target {
            addresses: RwLock::new(match &name {
                HostAddress::Address(address) => Arc::new([address.clone()]),
                HostAddress::Name(..) => Arc::new([]),
            }),
            preferred: AtomicUsize::new(0),
            text: name.to_string(),
            name,
            health: Mutex::default(),
            active: AtomicU64::new(0),
            connected: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            checks_failed: AtomicU64::new(0),
        };
        let all = names.into_iter().map(|name| target(name.into())).collect();
        let (sequence, resolve_requests) = (AtomicU64::new(0), OnceLock::new());
        Arc::new(Self { balance, options, all, sequence, resolve_requests })
    }

    /// Returns the address or host name of the target with this index in the configuration.
    pub(crate) fn name(&self, index: usize) -> &str {
        self.all.get(index).map_or("", |target| &target.text)
    }

    /// Returns `true` if a target has a host name.
    pub(super) fn has_names(&self) -> bool {
        self.all.iter().any(|target| matches!(target.name, HostAddress::Name(..)))
    }

    /// Sets the queue of requests to resolve host names after failed connections.
    pub(super) fn set_resolve_requests(&self, requests: SyncSender<()>) {
        self.resolve_requests.set(requests).ok();
    }

    /// Resolves all host names. A name that cannot be resolved keeps its addresses.
    ///
    /// # Errors
    /// The first name that cannot be resolved, and the error of the resolver.
    pub(crate) fn resolve(&self) -> Result<(), (String, io::Error)> {
        self.resolve_with(HostAddress::resolve)
    }

    fn resolve_with(
        &self,
        resolve: impl Fn(&HostAddress) -> io::Result<Vec<Address>>,
    ) -> Result<(), (String, io::Error)> {
        let mut result = Ok(());
        for target in &self.all {
            if matches!(target.name, HostAddress::Address(_)) {
                continue;
            }
            match resolve(&target.name) {
                Ok(addresses) if *addresses == **target.addresses.read() => {}
                Ok(addresses) => {
                    *target.addresses.write() = addresses.into();
                    target.preferred.store(0, Relaxed);
                }
                Err(error) => result = result.and(Err((target.name.to_string(), error))),
            }
        }
        result
    }

    /// Returns the targets to try for a connection of `client`, in the order of preference.
    pub(crate) fn attempts(self: &Arc<Self>, client: Option<IpAddr>, now: Instant) -> Attempts {
        let candidate = |target: &Target| Candidate {
            is_up: target.health.lock().is_up(now),
            connections: target.active.load(Relaxed),
        };
        let candidates: Vec<_> = self.all.iter().map(candidate).collect();
        let mut order =
            order(self.balance, &candidates, self.sequence.fetch_add(1, Relaxed), client);
        order.reverse();
        Attempts { targets: Arc::clone(self), remaining: order }
    }

    /// Returns the statistics of each target.
    pub(crate) fn stats(&self, now: Instant) -> Vec<TargetStats> {
        let stats = |target: &Target| TargetStats {
            address: target.name.to_string(),
            is_up: target.health.lock().is_up(now),
            active: target.active.load(Relaxed),
            connected: target.connected.load(Relaxed),
            failed: target.failed.load(Relaxed),
            checks_failed: target.checks_failed.load(Relaxed),
        };
        self.all.iter().map(stats).collect()
    }

    /// Returns `true` if any target is neither down nor ejected.
    pub(crate) fn is_any_up(&self, now: Instant) -> bool {
        self.all.iter().any(|target| target.health.lock().is_up(now))
    }

    /// Returns the addresses of each target.
    pub(super) fn addresses(&self) -> Vec<Arc<[Address]>> {
        self.all.iter().map(|target| Arc::clone(&target.addresses.read())).collect()
    }

    pub(super) fn checked(&self, index: usize, success: bool) {
        let target = &self.all[index];
        target.checks_failed.fetch_add(u64::from(!success), Relaxed);
        target.health.lock().checked(&self.options, success);
    }
}

/// The targets not yet tried for one connection.
#[derive(Debug)]
pub(crate) struct Attempts {
    targets: Arc<Targets>,
    /// The indexes of the targets not yet tried, in reverse order: the last element is tried next.
    remaining: Vec<usize>,
}

impl Attempts {
    /// Returns the index of the target that [`Self::next_target`] would return.
    pub(crate) fn first(&self) -> Option<usize> {
        self.remaining.last().copied()
    }

    /// Returns the next target, which counts as active from now on; `None` if all were tried.
    pub(crate) fn next_target(&mut self) -> Option<ActiveTarget> {
        let index = self.remaining.pop()?;
        let target = &self.targets.all[index];
        target.active.fetch_add(1, Relaxed);
        let addresses = Arc::clone(&target.addresses.read());
        let first = target.preferred.load(Relaxed);
        Some(ActiveTarget {
            targets: Arc::clone(&self.targets),
            index,
            addresses,
            first,
            failed: 0,
        })
    }
}

/// A target for which one connection or connection attempt counts as active until this value is
/// dropped.
#[derive(Debug)]
pub(crate) struct ActiveTarget {
    targets: Arc<Targets>,
    index: usize,
    addresses: Arc<[Address]>,
    /// The index of the address to try first.
    first: usize,
    /// The number of addresses that did not accept the connection.
    failed: usize,
}

impl ActiveTarget {
    /// Returns the index of the target in the configuration.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Returns the address of the target to try; `None` if it has none.
    pub(crate) fn address(&self) -> Option<&Address> {
        self.addresses.get(self.address_index())
    }

    fn address_index(&self) -> usize {
        (self.first + self.failed) % self.addresses.len().max(1)
    }

    /// Selects the next address of the target; returns `false` if all were tried.
    pub(crate) fn next_address(&mut self) -> bool {
        self.failed += 1;
        self.failed < self.addresses.len()
    }

    /// Records the result of a connection attempt. After a failure, host names are resolved again.
    pub(crate) fn connected(&self, success: bool, now: Instant) {
        let target = self.target();
        match (success, self.targets.resolve_requests.get()) {
            (true, _) => target.preferred.store(self.address_index(), Relaxed),
            // The queue is full if a request waits already.
            (false, Some(requests)) => requests.try_send(()).unwrap_or_default(),
            (false, None) => {}
        }
        let count = if success { &target.connected } else { &target.failed };
        count.fetch_add(1, Relaxed);
        target.health.lock().connected(&self.targets.options, success, now);
    }

    fn target(&self) -> &Target {
        &self.targets.all[self.index]
    }
}

impl Drop for ActiveTarget {
    fn drop(&mut self) {
        self.target().active.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(balance: Balance) -> Arc<Targets> {
        let address = |port: u16| format!("127.0.0.1:{port}").parse::<Address>().unwrap();
        Targets::new((1..=3).map(address).collect::<Vec<_>>(), balance, CheckOptions::default())
    }

    #[test]
    fn each_target_is_tried_once() {
        let (targets, now) = (targets(Balance::RoundRobin), Instant::now());
        let mut attempts = targets.attempts(None, now);
        let tried: Vec<_> = std::iter::from_fn(|| attempts.next_target())
            .map(|target| target.address().unwrap().to_string())
            .collect();
        assert_eq!(tried, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]);
    }

    #[test]
    fn target_is_active_until_it_is_dropped() {
        let (targets, now) = (targets(Balance::LeastConnections), Instant::now());
        let next = || targets.attempts(None, now).next_target().unwrap();
        let (first, second, third) = (next(), next(), next());
        assert_eq!(targets.stats(now).iter().map(|stats| stats.active).collect::<Vec<_>>(), [1; 3]);
        let free = second.address().unwrap().clone();
        drop(second);
        assert_eq!(next().address().unwrap().to_string(), free.to_string());
        drop((first, third));
    }

    #[test]
    fn refusing_target_is_ejected_and_restored() {
        let (targets, now) = (targets(Balance::RoundRobin), Instant::now());
        let target = targets.attempts(None, now).next_target().unwrap();
        (0..3).for_each(|_| target.connected(false, now));
        assert!(!targets.stats(now)[0].is_up && targets.is_any_up(now));
        for _ in 0..6 {
            let first = targets.attempts(None, now).next_target().unwrap();
            assert_ne!(first.address().unwrap().to_string(), "127.0.0.1:1");
        }
        assert!(targets.stats(now + CheckOptions::default().eject_time)[0].is_up);
        targets.checked(0, true);
        assert!(targets.stats(now)[0].is_up);
        assert_eq!(targets.stats(now)[0].failed, 3);
    }

    #[test]
    fn failed_resolution_keeps_the_addresses_of_a_name() {
        let names: Vec<HostAddress> =
            ["a.example:80", "127.0.0.1:1"].map(|name| name.parse().unwrap()).into();
        let targets = Targets::new(names, Balance::RoundRobin, CheckOptions::default());
        let address = |text: &str| text.parse::<Address>().unwrap();
        let first = || {
            let target = targets.attempts(None, Instant::now()).remaining;
            assert_eq!(target.len(), 2);
            targets.addresses()[0].to_vec()
        };
        let fails = |_: &HostAddress| Err(io::ErrorKind::TimedOut.into());
        let (name, _) = targets.resolve_with(fails).unwrap_err();
        assert_eq!((name.as_str(), first()), ("a.example:80", Vec::new()));
        let two = vec![address("192.0.2.1:80"), address("[2001:db8::1]:80")];
        targets.resolve_with(|_| Ok(two.clone())).unwrap();
        assert_eq!(first(), two);
        assert!(targets.resolve_with(fails).is_err());
        assert_eq!(first(), two);
        targets.resolve_with(|_| Ok(vec![address("192.0.2.2:80")])).unwrap();
        assert_eq!(first(), [address("192.0.2.2:80")]);
        assert_eq!(targets.addresses()[1][..], [address("127.0.0.1:1")]);
    }

    #[test]
    fn address_that_accepted_is_tried_first() {
        let name: HostAddress = "a.example:80".parse().unwrap();
        let targets = Targets::new(vec![name], Balance::RoundRobin, CheckOptions::default());
        let three: Vec<Address> =
            (1..=3).map(|last| format!("192.0.2.{last}:80").parse().unwrap()).collect();
        targets.resolve_with(|_| Ok(three.clone())).unwrap();
        let now = Instant::now();
        let mut target = targets.attempts(None, now).next_target().unwrap();
        assert_eq!(target.address(), Some(&three[0]));
        assert!(target.next_address());
        target.connected(true, now);
        let mut target = targets.attempts(None, now).next_target().unwrap();
        for expected in [1, 2, 0] {
            assert_eq!(target.address(), Some(&three[expected]));
            assert_eq!(target.next_address(), expected != 0);
        }
    }
}
