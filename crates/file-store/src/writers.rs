//! Tracks the volumes that may contain active writers' needles that the index lacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_sync::{ArcRwLockReadGuard, Condvar, Mutex};

/// The active writers. A writer is active from its first lookup in the index until its needle is
/// applied.
///
/// After its sync and before its application, a needle is not in the index, and compaction, which
/// consults the index, would consider it dead. Therefore a writer registers with the volume that
/// was the newest one when it started; it appends only to this volume and later ones. A volume is
/// settled when all active writers started in later volumes. So compaction waits for writers, but
/// no writer waits for compaction.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The newest volume, or one before it.
    current: u32,
    /// The number of active writers by the volume in which they started.
    active: BTreeMap<u32, usize>,
    waiting: usize,
}

/// The registration of a writer, which ends when this value is dropped, on any thread.
#[derive(Debug)]
pub(crate) struct ActiveWriter {
    writers: Arc<Writers>,
    began_in: u32,
}

/// The registration of a writer in an existing bucket, which ends when this value is dropped, on
/// any thread.
#[derive(Debug)]
pub(crate) struct BucketWriter {
    pub(crate) _bucket: ArcRwLockReadGuard<()>,
    pub(crate) _writer: ActiveWriter,
}

impl Writers {
    /// Creates the registry for a store whose newest volume is `current`.
    pub(crate) fn new(current: u32) -> Self {
        Self { state: Mutex::new(State { current, ..State::default() }), left: Condvar::new() }
    }

    /// Registers a writer that has appended nothing yet.
    pub(crate) fn enter(self: &Arc<Self>) -> ActiveWriter {
        let mut state = self.state.lock();
        let began_in = state.current;
        debug_assert!(
            state.active.last_key_value().is_none_or(|(last, _)| *last <= began_in),
            "no writer began in a later volume"
        );
        *state.active.entry(began_in).or_default() += 1;
        drop(state);
        ActiveWriter { writers: Arc::clone(self), began_in }
    }

    /// Records that `volume` is the newest one, and returns `true` if it was not known.
    pub(crate) fn advance(&self, volume: u32) -> bool {
        let mut state = self.state.lock();
        let is_new = state.current < volume;
        state.current = state.current.max(volume);
        is_new
    }

    /// Waits until the index has all needles in the volumes before `volume`, which is the newest
    /// one.
    pub(crate) fn wait_until_settled_before(&self, volume: u32) {
        let mut state = self.state.lock();
        state.current = state.current.max(volume);
        state.waiting += 1;
        while state.active.first_key_value().is_some_and(|(began_in, _)| *began_in < volume) {
            self.left.wait(&mut state);
        }
        state.waiting -= 1;
    }

    #[cfg(test)]
    pub(crate) fn is_any_active(&self) -> bool {
        !self.state.lock().active.is_empty()
    }
}

impl Drop for ActiveWriter {
    fn drop(&mut self) {
        let mut state = self.writers.state.lock();
        debug_assert!(state.active.contains_key(&self.began_in), "a writer leaves once");
        if let Some(count) = state.active.get_mut(&self.began_in) {
            debug_assert!(*count > 0);
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
    fn volume_is_settled_when_its_writers_have_left() {
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
        assert!(writers.is_any_active(), "the writer of the later volume is active");
        drop(second);
        assert!(!writers.is_any_active());
    }
}
