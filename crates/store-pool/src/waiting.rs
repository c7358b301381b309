//! Calls in progress in a member, counted so that a disk that does not respond is not called again
//! and again: each call in progress takes a thread or the memory of a request from the calls of the
//! other members.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_sync::Mutex;

/// The unit in which the beginnings of calls are recorded.
const TICK: Duration = Duration::from_millis(250);

/// The time after which a call counts as waiting, in ticks.
const WAITING_TICKS: u32 = 8;

/// The number of waiting calls from which on further ones are rejected.
const WAITING_CALLS_MAX: usize = 16;

/// Calls of a member that have waited for more than two seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The number of these calls.
    pub calls: usize,
    /// The time that the longest call in progress has taken so far.
    pub longest: Duration,
}

impl Waiting {
    /// Returns `true` if further calls are rejected until some of these have returned.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.calls >= WAITING_CALLS_MAX
    }
}

/// The calls in progress of a member.
#[derive(Debug)]
pub(crate) struct Calls {
    created: Instant,
    /// The number of calls in progress by the tick in which they began, in ascending order; none is
    /// 0.
    begun: Mutex<VecDeque<(u32, usize)>>,
}

/// A call in progress, until it is dropped.
#[derive(Debug)]
pub(crate) struct Call {
    calls: Arc<Calls>,
    tick: u32,
}

impl Calls {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { created: Instant::now(), begun: Mutex::default() })
    }

    fn now(&self) -> u32 {
        let ticks = self.created.elapsed().as_millis() / TICK.as_millis();
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Begins a call. Returns the waiting calls if it is rejected.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Call, Waiting> {
        self.begin_at(self.now())
    }

    fn begin_at(self: &Arc<Self>, now: u32) -> Result<Call, Waiting> {
        let mut begun = self.begun.lock();
        let waiting = waiting(&begun, now);
        if waiting.is_stalled() {
            return Err(waiting);
        }
        // A clock that was read before the lock may be behind the last call's.
        let now = begun.back().map_or(now, |(last, _)| now.max(*last));
        match begun.back_mut().filter(|(last, _)| *last == now) {
            Some((_, calls)) => *calls += 1,
            None => begun.push_back((now, 1)),
        }
        Ok(Call { calls: Arc::clone(self), tick: now })
    }

    /// Returns the waiting calls.
    pub(crate) fn waiting(&self) -> Waiting {
        waiting(&self.begun.lock(), self.now())
    }
}

fn waiting(begun: &VecDeque<(u32, usize)>, now: u32) -> Waiting {
    let old = begun.iter().take_while(|(tick, _)| tick.saturating_add(WAITING_TICKS) < now);
    let longest = begun.front().map_or(0, |(tick, _)| now.saturating_sub(*tick));
    Waiting { calls: old.map(|(_, calls)| calls).sum(), longest: TICK * longest }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut begun = self.calls.begun.lock();
        let Ok(position) = begun.binary_search_by_key(&self.tick, |(tick, _)| *tick) else {
            debug_assert!(false, "a call in progress is counted");
            return;
        };
        begun[position].1 -= 1;
        if begun[position].1 == 0 {
            begun.remove(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_calls_reject_others_until_one_returns() {
        let calls = Calls::new();
        let mut waiting: Vec<Call> =
            (0..WAITING_CALLS_MAX).map(|_| calls.begin_at(10).unwrap()).collect();
        let young = calls.begin_at(10 + WAITING_TICKS).unwrap();
        let rejected = calls.begin_at(11 + WAITING_TICKS).unwrap_err();
        let longest = TICK * (1 + WAITING_TICKS);
        assert_eq!(rejected, Waiting { calls: WAITING_CALLS_MAX, longest });
        waiting.pop();
        let next = calls.begin_at(11 + WAITING_TICKS).unwrap();
        drop((waiting, young, next));
        assert!(calls.begun.lock().is_empty());
        assert_eq!(calls.waiting(), Waiting::default());
    }

    #[test]
    fn many_calls_that_return_in_time_are_accepted() {
        let calls = Calls::new();
        let mut in_progress = VecDeque::new();
        for now in 0..10 {
            in_progress.extend((0..1_000).map(|_| calls.begin_at(now).unwrap()));
            if now >= WAITING_TICKS {
                drop(in_progress.drain(..1_000));
            }
        }
    }

    #[test]
    fn call_that_read_the_clock_early_is_counted_in_order() {
        let calls = Calls::new();
        let late = calls.begin_at(5).unwrap();
        let early = calls.begin_at(4).unwrap();
        assert_eq!(calls.begun.lock().as_slices().0, [(5, 2)]);
        drop((late, early));
        assert!(calls.begun.lock().is_empty());
    }
}
