//! Holds the targets of a relay with their health and their counters, which all threads share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use haul_reactor::Address;
use parking_lot::Mutex;

use super::balance::{Balance, Candidate, order};
use super::health::{CheckOptions, Health};

/// All targets of a relay.
#[derive(Debug)]
pub(crate) struct Targets {
    balance: Balance,
    pub(super) options: CheckOptions,
    all: Vec<Target>,
    sequence: AtomicU64,
}

#[derive(Debug)]
struct Target {
    address: Address,
    health: Mutex<Health>,
    active: AtomicU64,
    connected: AtomicU64,
    failed: AtomicU64,
    checks_failed: AtomicU64,
}

/// Statistics of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetStats {
    /// The address of the target, such as `192.0.2.7:80`.
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
    /// Creates the table. Every target counts as up until checks or connections to it fail.
    pub(crate) fn new(
        addresses: Vec<Address>,
        balance: Balance,
        options: CheckOptions,
    ) -> Arc<Self> {
        let target = |address| Target {
            address,
            health: Mutex::default(),
            active: AtomicU64::new(0),
            connected: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            checks_failed: AtomicU64::new(0),
        };
        let all = addresses.into_iter().map(target).collect();
        Arc::new(Self { balance, options, all, sequence: AtomicU64::new(0) })
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
            address: target.address.to_string(),
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

    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.all.iter().map(|target| &target.address)
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
        self.targets.all[index].active.fetch_add(1, Relaxed);
        Some(ActiveTarget { targets: Arc::clone(&self.targets), index })
    }
}

/// A target for which one connection or connection attempt counts as active until this value is
/// dropped.
#[derive(Debug)]
pub(crate) struct ActiveTarget {
    targets: Arc<Targets>,
    index: usize,
}

impl ActiveTarget {
    /// Returns the index of the target in the configuration.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Returns the address of the target.
    pub(crate) fn address(&self) -> &Address {
        &self.target().address
    }

    /// Records the result of a connection attempt.
    pub(crate) fn connected(&self, success: bool, now: Instant) {
        let target = self.target();
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
        let address = |port: u16| format!("127.0.0.1:{port}").parse().unwrap();
        Targets::new((1..=3).map(address).collect(), balance, CheckOptions::default())
    }

    #[test]
    fn each_target_is_tried_once() {
        let (targets, now) = (targets(Balance::RoundRobin), Instant::now());
        let mut attempts = targets.attempts(None, now);
        let tried: Vec<_> = std::iter::from_fn(|| attempts.next_target())
            .map(|target| target.address().to_string())
            .collect();
        assert_eq!(tried, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]);
    }

    #[test]
    fn target_is_active_until_it_is_dropped() {
        let (targets, now) = (targets(Balance::LeastConnections), Instant::now());
        let next = || targets.attempts(None, now).next_target().unwrap();
        let (first, second, third) = (next(), next(), next());
        assert_eq!(targets.stats(now).iter().map(|stats| stats.active).collect::<Vec<_>>(), [1; 3]);
        let free = second.address().clone();
        drop(second);
        assert_eq!(next().address().to_string(), free.to_string());
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
            assert_ne!(first.address().to_string(), "127.0.0.1:1");
        }
        assert!(targets.stats(now + CheckOptions::default().eject_time)[0].is_up);
        targets.checked(0, true);
        assert!(targets.stats(now)[0].is_up);
        assert_eq!(targets.stats(now)[0].failed, 3);
    }
}
