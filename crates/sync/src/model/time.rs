//! The clock of the model. Time is part of the schedule: it advances when it is read, when the end of
//! an operation is measured, and when a wait times out.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time by which the clock advances each time it is read, so that waiting loops end.
const TICK: Duration = Duration::from_micros(10);

/// The time that [`elapsed`] adds to each measured write and sync. With it, a sync takes so long
/// that the next batch of a log waits for other writers, so tests cover this wait, too.
const WORK: Duration = Duration::from_micros(80);

/// The maximum result of [`elapsed`]. More time passes only because waits of other threads time out,
/// and a log would then wait as long for other writers, in thousands of steps.
const WORK_MAX: Duration = Duration::from_millis(1);

thread_local! {
    /// The current time of the model. All threads of a schedule run on the same system thread, so a
    /// thread-local variable suffices.
    static TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Advances the time of the model by [`TICK`] and returns the new time.
#[must_use]
pub fn now() -> Instant {
    TIME.set(TIME.get() + TICK);
    epoch() + TIME.get()
}

/// Returns the duration of an operation that began at `began`. First advances the time of the model
/// by [`WORK`], because the operation itself takes no time in the model.
#[must_use]
pub fn elapsed(began: Instant) -> Duration {
    TIME.set(TIME.get() + WORK);
    (now() - began).min(WORK_MAX)
}

/// Advances the time of the model, as if no thread had run for this time.
pub fn advance(time: Duration) {
    TIME.set(TIME.get() + time);
}

pub(super) fn advance_to(time: Instant) {
    TIME.set(TIME.get().max(time - epoch()));
}

/// Does nothing: the timers of the model are exact.
pub fn set_precise_timers() {}
