//! A copy's lease: the owner acknowledges only while no other process may take over.
//!
//! The lease follows \[Gray89\]: only differences of monotonic clocks count, so that a wrong or
//! stepped wall clock does no harm. The owner counts from before it sends a request, a standby from
//! after it received a response. The owner's lease therefore ends first.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub(crate) trait Clock: fmt::Debug + Send + Sync {
    /// Returns the time since a fixed moment.
    fn now(&self) -> Duration;
}

/// The machine's clock. It also advances while the machine is suspended.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        let now = clock_gettime(ClockId::Boottime);
        let (seconds, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
        Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
    }
}

/// The shortest lease. A renewal has a third of it for its request.
pub(crate) const LEASE_MIN: Duration = Duration::from_millis(100);

pub(crate) const LEASE_MAX: Duration = Duration::from_hours(1);

/// Returns the time that a standby waits in addition to the lease. It covers the two clocks'
/// different rates, and the time between the owner's last check of its lease and its
/// acknowledgement.
pub(crate) fn margin(lease: Duration) -> Duration {
    (lease / 10).max(Duration::from_millis(50))
}

/// The owner's lease.
#[derive(Debug)]
pub(crate) struct Lease {
    length: Duration,
    clock: Arc<dyn Clock>,
    /// The time in nanoseconds at which the lease runs out, by the clock; 0 before the first
    /// renewal.
    until_ns: AtomicU64,
}

impl Lease {
    /// Returns a lease that is not held until it is renewed.
    pub(crate) fn new(length: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { length, clock, until_ns: AtomicU64::new(0) }
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Returns the time by the lease's clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Extends the lease. `start` is the time before the request that stored the current manifest.
    pub(crate) fn renew(&self, start: Duration) {
        let until = u64::try_from((start + self.length).as_nanos()).unwrap_or(u64::MAX);
        self.until_ns.fetch_max(until, Ordering::AcqRel);
    }

    /// Returns the time for which the lease is still held; zero if it has run out.
    pub(crate) fn remaining(&self) -> Duration {
        let until = Duration::from_nanos(self.until_ns.load(Ordering::Acquire));
        until.saturating_sub(self.clock.now())
    }

    /// Checks that the lease is held.
    ///
    /// # Errors
    /// A text if the lease has run out: another process may have taken over the copy.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.remaining().is_zero() {
            return Ok(());
        }
        let seconds = self.length.as_secs_f64();
        Err(format!("the lease of {seconds} s ran out, and another server may take over the copy"))
    }

    /// Returns the time until the next renewal is due, at a third of the lease.
    pub(crate) fn until_renewal(&self) -> Duration {
        self.remaining().saturating_sub(self.length * 2 / 3)
    }
}

/// Another process's lease, as far as a standby knows it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The newest version, and the time after the first response that had it.
    observed: Option<(Version, Duration)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    /// The number of times that the manifest was replaced.
    pub(crate) generation: u64,
    /// The owner's session.
    pub(crate) session: u128,
    /// The owner's lease.
    pub(crate) lease: Option<Duration>,
}

impl Watch {
    /// Records that a response had this version, at the time `now` after the response.
    pub(crate) fn observe(&mut self, version: Version, now: Duration) {
        if self.observed.is_none_or(|(observed, _)| observed != version) {
            self.observed = Some((version, now));
        }
    }

    /// Returns the time until the lease has certainly run out, unless the manifest is replaced
    /// before; `None` if the owner has no lease.
    pub(crate) fn until_expiry(&self, now: Duration) -> Option<Duration> {
        let (Version { lease, .. }, since) = self.observed?;
        let lease = lease?;
        Some((since + lease + margin(lease)).saturating_sub(now))
    }
}
