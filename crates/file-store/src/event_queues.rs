//! The newest events of all stores of a pool, in memory, for the consumers of the queues.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use haul_append_log::Position;
use haul_sync::{Condvar, Mutex, now};

use crate::clock::Version;
use crate::object::EventFields;

/// The number of events of a queue that are kept in memory.
const RECENT_MAX: usize = 8192;

/// An event in a queue.
#[derive(Debug, Clone)]
pub struct QueuedEvent {
    /// The queue.
    pub queue: Arc<str>,
    /// The number of the store in its pool.
    pub member: u16,
    /// The event's number, which is unique in the store, and increases with the changes of a key.
    pub sequence: u64,
    /// What happened: the fields of the [`crate::Event`], and those that the store adds.
    pub fields: Arc<EventFields>,
    pub(crate) stored: StoredEvent,
}

/// The place of an event when it was queued or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredEvent {
    /// Its record, and the length of its needle.
    pub(crate) at: Position,
    /// The length of its data.
    pub(crate) bytes: u64,
}

impl QueuedEvent {
    /// Returns the time of the change.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        Version(self.sequence).time()
    }
}

/// The result of [`EventQueues::take`].
#[derive(Debug)]
pub enum Taken {
    /// The queue's next events; none if no event arrived in time.
    Events(Vec<QueuedEvent>),
    /// The stores have events that are not in memory: call [`EventQueues::restart`], and then list
    /// them with [`crate::StoreEvents::list`].
    Incomplete,
    /// [`EventQueues::stop`] was called.
    Stopped,
}

/// The newest events of each queue, in the order in which the changes became visible. The stores of
/// a pool share it ([`crate::Options::event_queues`]), so that a key's events are in order even if
/// the key moves to another store.
///
/// An event is here once its change is durable. When a queue has more events than fit into memory,
/// later ones are only in the stores; the changes themselves never wait.
#[derive(Debug)]
pub struct EventQueues {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queues: BTreeMap<Arc<str>, Recent>,
    is_stopped: bool,
}

#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<QueuedEvent>,
    /// `false` if later events are not added, because earlier ones are in the stores only.
    is_recording: bool,
}

impl EventQueues {
    /// Creates the queues with these names, all [`Taken::Incomplete`].
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        let queues = names.into_iter().map(|name| (name, Recent::default())).collect();
        let state = State { queues, is_stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Returns the names of the queues.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.state.lock().queues.keys().cloned().collect()
    }

    /// Adds events whose changes are visible.
    pub(crate) fn push(&self, events: Vec<QueuedEvent>) {
        let mut state = self.state.lock();
        for event in events {
            let Some(recent) = state.queues.get_mut(&event.queue) else { continue };
            recent.is_recording &= recent.events.len() < RECENT_MAX;
            if recent.is_recording {
                recent.events.push_back(event);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Removes and returns at most `count` events from the front of a queue. Waits for the first
    /// one for at most `wait`.
    #[must_use]
    pub fn take(&self, queue: &str, count: usize, wait: Duration) -> Taken {
        let until = now() + wait;
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return Taken::Stopped;
            }
            let Some(recent) = state.queues.get_mut(queue) else { return Taken::Stopped };
            let count = recent.events.len().min(count);
            if count > 0 {
                return Taken::Events(recent.events.drain(..count).collect());
            }
            if !recent.is_recording {
                return Taken::Incomplete;
            }
            if self.changed.wait_until(&mut state, until).timed_out() {
                return Taken::Events(Vec::new());
            }
        }
    }

    /// Forgets a queue's events and begins to record new ones: all earlier events are then in the
    /// stores, and events that are queued from now on are in both.
    pub fn restart(&self, queue: &str) {
        if let Some(recent) = self.state.lock().queues.get_mut(queue) {
            *recent = Recent { events: VecDeque::new(), is_recording: true };
        }
    }

    /// Waits for `time`, or until the queues are stopped; returns `true` if they are.
    #[must_use]
    pub fn pause(&self, time: Duration) -> bool {
        let until = now() + time;
        let mut state = self.state.lock();
        while !state.is_stopped {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.is_stopped
    }

    /// Ends all present and later waits.
    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use haul_append_log::Lsn;

    use super::*;

    fn event(sequence: u64) -> QueuedEvent {
        let (queue, fields) = ("queue".into(), Arc::default());
        let at = Position { lsn: Lsn::new(1, 4096), payload_bytes: 1 };
        let stored = StoredEvent { at, bytes: 1 };
        QueuedEvent { queue, member: 0, sequence, fields, stored }
    }

    fn sequences(taken: Taken) -> Option<Vec<u64>> {
        match taken {
            Taken::Events(events) => Some(events.iter().map(|event| event.sequence).collect()),
            Taken::Incomplete | Taken::Stopped => None,
        }
    }

    #[test]
    fn full_queue_is_incomplete_until_it_restarts() {
        let queues = EventQueues::new(["queue".into()]);
        let take = |count| sequences(queues.take("queue", count, Duration::ZERO));
        queues.push(vec![event(1)]);
        assert_eq!(take(1), None, "what the stores have is not known");
        queues.restart("queue");
        assert_eq!(take(1), Some(vec![]));
        queues.push((0..RECENT_MAX as u64 + 1).map(event).collect());
        assert_eq!(take(2), Some(vec![0, 1]));
        queues.push(vec![event(u64::MAX)]);
        let rest = take(usize::MAX).unwrap();
        assert_eq!((rest.len(), rest.last()), (RECENT_MAX - 2, Some(&(RECENT_MAX as u64 - 1))));
        assert_eq!(take(1), None, "later events were not kept");
        queues.restart("queue");
        queues.push(vec![event(7)]);
        assert_eq!(take(9), Some(vec![7]));
        assert_eq!(sequences(queues.take("other", 1, Duration::ZERO)), None);
    }

    #[test]
    fn waiting_consumer_is_woken_by_an_event_and_by_the_stop() {
        let queues = EventQueues::new(["queue".into()]);
        queues.restart("queue");
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| queues.take("queue", 9, Duration::from_secs(60)));
            queues.push(vec![event(3)]);
            assert_eq!(sequences(taken.join().unwrap()), Some(vec![3]));
            let taken = scope.spawn(|| queues.take("queue", 9, Duration::from_secs(60)));
            queues.stop();
            assert!(matches!(taken.join().unwrap(), Taken::Stopped));
        });
        assert!(queues.pause(Duration::from_secs(60)));
    }
}
