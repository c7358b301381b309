//! The targets as all threads know them.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use haul_reactor::Address;
use parking_lot::Mutex;

use super::balance::{Balance, Known, order};
use super::health::{CheckOptions, State};

/// All targets; threads share it.
#[derive(Debug)]
pub(crate) struct Targets {
    balance: Balance,
    pub(super) options: CheckOptions,
    all: Vec<Target>,
    turn: AtomicU64,
}

#[derive(Debug)]
struct Target {
    address: Address,
    state: Mutex<State>,
    active: AtomicU64,
    connected: AtomicU64,
    failed: AtomicU64,
    checks_failed: AtomicU64,
}

/// What is known of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Where it is.
    pub address: String,
    /// Whether connections go there.
    pub is_up: bool,
    /// Connections there are now, or that are being made.
    pub active: u64,
    /// Connections made.
    pub connected: u64,
    /// Connections that could not be made.
    pub failed: u64,
    /// Checks that failed.
    pub checks_failed: u64,
}

impl Targets {
    /// All of them up, until something else is known.
    pub(crate) fn new(
        addresses: Vec<Address>,
        balance: Balance,
        options: CheckOptions,
    ) -> Arc<Self> {
        let target = |address| Target {
            address,
            state: Mutex::default(),
            active: AtomicU64::new(0),
            connected: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            checks_failed: AtomicU64::new(0),
        };
        let all = addresses.into_iter().map(target).collect();
        Arc::new(Self { balance, options, all, turn: AtomicU64::new(0) })
    }

    /// The targets a connection of `client` may use, the best first.
    pub(crate) fn attempts(self: &Arc<Self>, client: Option<IpAddr>, now: Instant) -> Attempts {
        let known = |target: &Target| Known {
            is_up: target.state.lock().is_up(now),
            connections: target.active.load(Relaxed),
        };
        let known: Vec<_> = self.all.iter().map(known).collect();
        let mut order = order(self.balance, &known, self.turn.fetch_add(1, Relaxed), client);
        order.reverse();
        Attempts { targets: Arc::clone(self), left: order }
    }

    /// What is known of each.
    pub(crate) fn seen(&self, now: Instant) -> Vec<Seen> {
        let seen = |target: &Target| Seen {
            address: target.address.to_string(),
            is_up: target.state.lock().is_up(now),
            active: target.active.load(Relaxed),
            connected: target.connected.load(Relaxed),
            failed: target.failed.load(Relaxed),
            checks_failed: target.checks_failed.load(Relaxed),
        };
        self.all.iter().map(seen).collect()
    }

    /// Whether connections go anywhere.
    pub(crate) fn is_any_up(&self, now: Instant) -> bool {
        self.all.iter().any(|target| target.state.lock().is_up(now))
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.all.iter().map(|target| &target.address)
    }

    pub(super) fn checked(&self, index: usize, success: bool) {
        let target = &self.all[index];
        target.checks_failed.fetch_add(u64::from(!success), Relaxed);
        target.state.lock().checked(&self.options, success);
    }
}

/// The targets that are left to try for one connection.
#[derive(Debug)]
pub(crate) struct Attempts {
    targets: Arc<Targets>,
    /// The next one last.
    left: Vec<usize>,
}

impl Attempts {
    /// The number of the next target.
    pub(crate) fn first(&self) -> Option<usize> {
        self.left.last().copied()
    }

    /// The next target, which counts as used from now on; none when all were tried.
    pub(crate) fn next_target(&mut self) -> Option<Using> {
        let index = self.left.pop()?;
        self.targets.all[index].active.fetch_add(1, Relaxed);
        Some(Using { targets: Arc::clone(&self.targets), index })
    }
}

/// A target that is in use, until this is dropped.
#[derive(Debug)]
pub(crate) struct Using {
    targets: Arc<Targets>,
    index: usize,
}

impl Using {
    /// Its number.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Where it is.
    pub(crate) fn address(&self) -> &Address {
        &self.target().address
    }

    /// Notes whether it could be connected to.
    pub(crate) fn connected(&self, success: bool, now: Instant) {
        let target = self.target();
        let count = if success { &target.connected } else { &target.failed };
        count.fetch_add(1, Relaxed);
        target.state.lock().connected(&self.targets.options, success, now);
    }

    fn target(&self) -> &Target {
        &self.targets.all[self.index]
    }
}

impl Drop for Using {
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
            .map(|u| u.address().to_string())
            .collect();
        assert_eq!(tried, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]);
    }

    #[test]
    fn who_is_in_use_counts_until_it_is_let_go() {
        let (targets, now) = (targets(Balance::LeastConnections), Instant::now());
        let next = || targets.attempts(None, now).next_target().unwrap();
        let (first, second, third) = (next(), next(), next());
        assert_eq!(targets.seen(now).iter().map(|seen| seen.active).collect::<Vec<_>>(), [1; 3]);
        let free = second.address().clone();
        drop(second);
        assert_eq!(next().address().to_string(), free.to_string());
        drop((first, third));
    }

    #[test]
    fn a_target_that_refuses_is_left_out_and_comes_back() {
        let (targets, now) = (targets(Balance::RoundRobin), Instant::now());
        let using = targets.attempts(None, now).next_target().unwrap();
        (0..3).for_each(|_| using.connected(false, now));
        assert!(!targets.seen(now)[0].is_up && targets.is_any_up(now));
        for _ in 0..6 {
            let first = targets.attempts(None, now).next_target().unwrap();
            assert_ne!(first.address().to_string(), "127.0.0.1:1");
        }
        assert!(targets.seen(now + CheckOptions::default().eject_time)[0].is_up);
        targets.checked(0, true);
        assert!(targets.seen(now)[0].is_up);
        assert_eq!(targets.seen(now)[0].failed, 3);
    }
}
