//! Which volumes writers may still have needles in that the index does not know.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{ArcRwLockReadGuard, Condvar, Mutex, RawRwLock};

/// The writers between their first look at the index and their entry in it.
///
/// Between its sync and the index a needle is in no structure, and compaction, which asks the
/// index, would take it for dead. A writer registers with the volume that was being written when
/// it began: all it appends is there or behind. So a volume is settled when every writer that is
/// active began behind it, and no writer ever waits for compaction to find that out.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The volume being written, or one before it.
    current: u32,
    /// How many writers began in each volume.
    active: BTreeMap<u32, usize>,
    waiting: usize,
}

/// A writer that is active until this is dropped, on any thread.
#[derive(Debug)]
pub(crate) struct ActiveWriter {
    writers: Arc<Writers>,
    began_in: u32,
}

/// A writer in a bucket that exists, until this is dropped, on any thread.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) _bucket: ArcRwLockReadGuard<RawRwLock, ()>,
    pub(crate) _writer: ActiveWriter,
}

impl Writers {
    /// Those of a store whose log continues in the volume `current`.
    pub(crate) fn new(current: u32) -> Self {
        Self { state: Mutex::new(State { current, ..State::default() }), left: Condvar::new() }
    }

    /// Registers a writer that has appended nothing yet.
    pub(crate) fn enter(self: &Arc<Self>) -> ActiveWriter {
        let mut state = self.state.lock();
        let began_in = state.current;
        *state.active.entry(began_in).or_default() += 1;
        drop(state);
        ActiveWriter { writers: Arc::clone(self), began_in }
    }

    /// Notes that `volume` is being written, and returns `true` if that is news.
    pub(crate) fn advance(&self, volume: u32) -> bool {
        let mut state = self.state.lock();
        let is_new = state.current < volume;
        state.current = state.current.max(volume);
        is_new
    }

    /// Waits until the index has all needles of the volumes before `volume`, which is being
    /// written.
    pub(crate) fn wait_until_settled_before(&self, volume: u32) {
        let mut state = self.state.lock();
        state.current = state.current.max(volume);
        state.waiting += 1;
        while state.active.first_key_value().is_some_and(|(began_in, _)| *began_in < volume) {
            self.left.wait(&mut state);
        }
        state.waiting -= 1;
    }

    /// Returns `true` if a writer is active.
    #[cfg(test)]
    pub(crate) fn is_any_active(&self) -> bool {
        !self.state.lock().active.is_empty()
    }
}

impl Drop for ActiveWriter {
    fn drop(&mut self) {
        let mut state = self.writers.state.lock();
        if let Some(count) = state.active.get_mut(&self.began_in) {
            *count -= 1;
            if *count == 0 {
                state.active.remove(&self.began_in);
            }
        }
        if state.waiting > 0 {
            self.writers.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_volume_is_settled_when_those_who_began_in_it_have_left() {
        let writers = Arc::new(Writers::new(1));
        writers.wait_until_settled_before(1);
        let first = writers.enter();
        assert!(writers.advance(3) && !writers.advance(3) && !writers.advance(2));
        let second = writers.enter();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| writers.wait_until_settled_before(3));
            while writers.state.lock().waiting == 0 {
                thread::yield_now();
            }
            assert!(!waiting.is_finished());
            drop(writers.enter());
            drop(first);
            waiting.join().unwrap();
        });
        assert!(writers.is_any_active(), "who began behind it stays");
        drop(second);
        assert!(!writers.is_any_active());
    }
}
