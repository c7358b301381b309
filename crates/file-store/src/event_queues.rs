//! The newest events of all stores of a pool, in memory, for the consumers of the queues.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use haul_append_log::Position;
use haul_sync::{Condvar, Mutex, now};

use crate::clock::{Clock, Version};
use crate::event::EventFields;

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
    /// Returns `true` if damage makes the event unreadable: it has no fields.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.fields.as_bytes().is_empty()
    }

    /// Returns the time of the change.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        Version(self.sequence).time()
    }
}

/// The source of the numbers of a store's events, from [`crate::StoreEvents::clock`].
#[derive(Debug, Clone, Copy)]
pub struct EventClock<'a>(pub(crate) &'a Clock);

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
    queues: BTreeMap<Arc<str>, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    recent: Mutex<Recent>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<QueuedEvent>,
    /// `false` if later events are not added, because earlier ones are in the stores only.
    is_recording: bool,
    /// The number of events for which the consumer waits: fewer do not wake it.
    wanted: Option<usize>,
    is_stopped: bool,
}

impl EventQueues {
    /// Creates the queues with these names, all [`Taken::Incomplete`].
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        let queues = names.into_iter().map(|name| (name, Queue::default())).collect();
        Self { queues }
    }

    /// Returns the names of the queues.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.queues.keys().cloned().collect()
    }

    /// Adds events whose changes are visible.
    pub(crate) fn push(&self, events: Vec<QueuedEvent>) {
        for event in events {
            let Some(queue) = self.queues.get(&event.queue) else { continue };
            let mut recent = queue.recent.lock();
            recent.is_recording &= recent.events.len() < RECENT_MAX;
            if recent.is_recording {
                recent.events.push_back(event);
            }
            if recent.wanted.is_some_and(|wanted| recent.events.len() >= wanted) {
                recent.wanted = None;
                drop(recent);
                queue.changed.notify_all();
            }
        }
    }

    /// Removes and returns at most `count` events from the front of a queue. Waits until
    /// `full_until` for `count` events, and then until `until` for the first one.
    #[must_use]
    pub fn take(&self, queue: &str, count: usize, full_until: Instant, until: Instant) -> Taken {
        let Some(queue) = self.queues.get(queue) else { return Taken::Stopped };
        let mut recent = queue.recent.lock();
        loop {
            if recent.is_stopped {
                return Taken::Stopped;
            }
            if recent.events.is_empty() && !recent.is_recording {
                return Taken::Incomplete;
            }
            let now = now();
            let (wanted, deadline) = match now < full_until {
                true => (count, full_until),
                false => (1, until),
            };
            if recent.events.len() >= wanted || now >= deadline {
                let count = recent.events.len().min(count);
                return Taken::Events(recent.events.drain(..count).collect());
            }
            recent.wanted = Some(wanted);
            let _timed_out = queue.changed.wait_until(&mut recent, deadline);
            recent.wanted = None;
        }
    }

    /// Forgets a queue's events and begins to record new ones: all earlier events are then in the
    /// stores, and events that are queued from now on are in both. Returns a number for each clock:
    /// the events with greater numbers are in memory.
    #[must_use]
    pub fn restart(&self, queue: &str, clocks: &[EventClock<'_>]) -> Vec<u64> {
        // While the lock is held, no event becomes visible, so no later one of its key in another
        // store can get a number that is below that store's bound.
        let mut recent = self.queues.get(queue).map(|queue| queue.recent.lock());
        if let Some(recent) = &mut recent {
            recent.events.clear();
            recent.is_recording = true;
        }
        clocks.iter().map(|EventClock(clock)| clock.next().0).collect()
    }

    /// Lets the consumer of a queue wait for `time`, or until the queues are stopped; returns `true`
    /// if they are.
    #[must_use]
    pub fn pause(&self, queue: &str, time: Duration) -> bool {
        let Some(queue) = self.queues.get(queue) else { return true };
        let until = now() + time;
        let mut recent = queue.recent.lock();
        while !recent.is_stopped {
            if queue.changed.wait_until(&mut recent, until).timed_out() {
                break;
            }
        }
        recent.is_stopped
    }

    /// Ends all present and later waits.
    pub fn stop(&self) {
        for queue in self.queues.values() {
            queue.recent.lock().is_stopped = true;
            queue.changed.notify_all();
        }
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
        let take = |count| sequences(queues.take("queue", count, now(), now()));
        queues.push(vec![event(1)]);
        assert_eq!(take(1), None, "what the stores have is not known");
        let _bounds = queues.restart("queue", &[]);
        assert_eq!(take(1), Some(vec![]));
        queues.push((0..RECENT_MAX as u64 + 1).map(event).collect());
        assert_eq!(take(2), Some(vec![0, 1]));
        queues.push(vec![event(u64::MAX)]);
        let rest = take(usize::MAX).unwrap();
        assert_eq!((rest.len(), rest.last()), (RECENT_MAX - 2, Some(&(RECENT_MAX as u64 - 1))));
        assert_eq!(take(1), None, "later events were not kept");
        let _bounds = queues.restart("queue", &[]);
        queues.push(vec![event(7)]);
        assert_eq!(take(9), Some(vec![7]));
        assert_eq!(sequences(queues.take("other", 1, now(), now())), None);
    }

    #[test]
    fn waiting_consumer_is_woken_by_an_event_and_by_the_stop() {
        let queues = &EventQueues::new(["queue".into()]);
        let _bounds = queues.restart("queue", &[]);
        std::thread::scope(|scope| {
            let later = now() + Duration::from_secs(60);
            let taken = scope.spawn(move || queues.take("queue", 9, now(), later));
            queues.push(vec![event(3)]);
            assert_eq!(sequences(taken.join().unwrap()), Some(vec![3]));
            let taken = scope.spawn(move || queues.take("queue", 9, later, later));
            queues.push(vec![event(4)]);
            queues.stop();
            assert!(matches!(taken.join().unwrap(), Taken::Stopped));
        });
        assert!(queues.pause("queue", Duration::from_secs(60)));
    }

    #[test]
    fn consumer_waits_for_a_full_batch_for_a_limited_time() {
        let queues = &EventQueues::new(["queue".into()]);
        let _bounds = queues.restart("queue", &[]);
        let later = now() + Duration::from_secs(60);
        std::thread::scope(|scope| {
            let taken = scope.spawn(move || queues.take("queue", 2, later, later));
            queues.push(vec![event(1)]);
            queues.push(vec![event(2)]);
            assert_eq!(sequences(taken.join().unwrap()), Some(vec![1, 2]));
        });
        queues.push(vec![event(3)]);
        let soon = now() + Duration::from_millis(20);
        assert_eq!(sequences(queues.take("queue", 2, soon, later)), Some(vec![3]));
        assert!(now() >= soon);
    }
}
