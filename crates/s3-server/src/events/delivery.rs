//! Delivers the events of a queue to its target.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use haul_file_store::{EventQueues, QueuedEvent, Taken};
use tokio::runtime::Handle;

use crate::access::keys::key_ring::AllKeys;
use crate::errors::chain;
use crate::events::listening;
use crate::events::send_error::SendError;
use crate::events::sender::Sender;
use crate::events::target::{EventTargets, Target};
use crate::served::ServedStore;

/// The number of delivered events that are removed from the queue together, which takes a sync. A
/// crash repeats them.
const REMOVE_EVENTS: usize = 64;

/// The time after which fewer delivered events are removed.
const REMOVE_TIME: Duration = Duration::from_millis(50);

const IDLE_TIME: Duration = Duration::from_secs(1);

/// The time for which events are gathered after a message, unless they fill the next one: a message
/// costs much more than a record in it.
const GATHER_TIME: Duration = Duration::from_millis(10);

/// The pauses between attempts: each is twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The interval at which a pause ends early if an operator asks for it.
const PAUSE_STEP: Duration = Duration::from_millis(200);

/// The interval at which the oldest events of a queue that is too long are dropped, while its target
/// is slow or down.
const TRIM_TIME: Duration = Duration::from_secs(1);

/// An event whose change was being made when a scan began may be in memory, too. Changes take less
/// time than this, which also covers steps of the clock.
const SCAN_MARGIN: Duration = Duration::from_secs(60);

/// The threads that deliver events, one for each target.
pub(crate) struct Deliveries {
    queues: Arc<EventQueues>,
    threads: Vec<JoinHandle<()>>,
}

impl Deliveries {
    /// Starts to deliver. Must be called in a Tokio runtime with I/O and time.
    pub(crate) fn start(
        store: &Arc<ServedStore>,
        targets: &Arc<EventTargets>,
        keys: &AllKeys,
    ) -> std::io::Result<Self> {
        targets.warn_of_unknown(&store.get());
        let mut deliveries = Self { queues: targets.queues(), threads: Vec::new() };
        deliveries.threads.push(listening::start(store, targets, keys)?);
        for target in targets.iter() {
            let sender = Sender::new(&target.settings).map_err(std::io::Error::other)?;
            let delivery = Delivery {
                store: Arc::clone(store),
                queues: targets.queues(),
                target: Arc::clone(target),
                sender,
                runtime: Handle::current(),
                scanned: HashSet::new(),
                delivered: Vec::new(),
                delivered_at: Instant::now(),
                sent_at: Instant::now(),
                next_pause: PAUSE_MIN,
                trimmed_at: Instant::now(),
                has_dropped: false,
            };
            let thread = thread::Builder::new().name(format!("events-{}", target.name()));
            deliveries.threads.push(thread.spawn(move || delivery.run())?);
        }
        Ok(deliveries)
    }

    fn end(&mut self) {
        self.queues.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that delivers events panicked");
            }
        }
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        self.end();
    }
}

/// Delivers the events of one queue.
struct Delivery {
    store: Arc<ServedStore>,
    queues: Arc<EventQueues>,
    target: Arc<Target>,
    sender: Sender,
    runtime: Handle,
    /// Events that were read from the store and are or will be in memory, too.
    scanned: HashSet<(u16, u64)>,
    /// Delivered events that are still in the queue.
    delivered: Vec<QueuedEvent>,
    delivered_at: Instant,
    sent_at: Instant,
    /// The pause after the next failure.
    next_pause: Duration,
    trimmed_at: Instant,
    /// The oldest events were dropped since the last scan: those in memory may be among them.
    has_dropped: bool,
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Done,
    /// The next events are not in memory.
    Incomplete,
    Stopped,
}

impl Delivery {
    /// Delivers until the queues are stopped.
    ///
    /// 1. Takes the next events from memory, or, if those in memory are not all, from the store.
    /// 2. Sends them until the target accepts them. After a crash they are sent again.
    /// 3. Removes them from the store, many at a time. After a crash before the removal is durable,
    ///    they are sent again.
    fn run(mut self) {
        let queue = Arc::clone(self.target.name());
        while let Err(error) = self.store.get().events().create(&queue) {
            self.target.failed(&chain(&error));
            if self.queues.pause(self.target.name(), PAUSE_MAX) {
                return;
            }
        }
        let mut step = Step::Done;
        while step != Step::Stopped {
            step = match step {
                Step::Incomplete => self.scan(),
                _ => self.deliver_recent(),
            };
            self.remove_if_due();
        }
        self.remove();
    }

    /// Delivers the next events from memory.
    fn deliver_recent(&mut self) -> Step {
        let wait = if self.delivered.is_empty() { IDLE_TIME } else { REMOVE_TIME };
        let (full_until, until) = (self.sent_at + GATHER_TIME, Instant::now() + wait);
        let count = self.target.settings.batch_max;
        match self.queues.take(self.target.name(), count, full_until, until) {
            Taken::Stopped => Step::Stopped,
            Taken::Incomplete => Step::Incomplete,
            Taken::Events(events) if events.is_empty() => {
                self.remove();
                self.scanned.clear();
                Step::Done
            }
            Taken::Events(mut events) => {
                events.retain(|event| !self.scanned.remove(&id(event)));
                self.deliver(events)
            }
        }
    }

    /// Delivers all events that are in the store, in the order of their changes. Later ones are in
    /// memory.
    fn scan(&mut self) -> Step {
        // First, so that no dropped event gets into memory.
        self.trim();
        self.has_dropped = false;
        self.scanned.clear();
        let began = SystemTime::now().checked_sub(SCAN_MARGIN).unwrap_or(SystemTime::UNIX_EPOCH);
        let store = self.store.get();
        let mut reader = store.events().restart(&self.queues, self.target.name());
        loop {
            let mut events = match reader.next(self.target.settings.batch_max) {
                Ok(events) if events.is_empty() => return Step::Done,
                Ok(events) => events,
                Err(error) => {
                    self.target.failed(&chain(&error));
                    let is_stopped = self.queues.pause(self.target.name(), PAUSE_MAX);
                    return if is_stopped { Step::Stopped } else { Step::Incomplete };
                }
            };
            let recent = events.iter().filter(|event| event.time() >= began).map(id);
            self.scanned.extend(recent);
            self.drop_events(&mut events, QueuedEvent::is_damaged, "damage makes them unreadable");
            match self.deliver(events) {
                Step::Done => self.remove_if_due(),
                step => return step,
            }
        }
    }

    /// Sends events until the target accepts them, or until they are too old or too many. Halves a
    /// message that is too long for the target.
    fn deliver(&mut self, mut events: Vec<QueuedEvent>) -> Step {
        let mut count_max = events.len();
        while !events.is_empty() {
            if self.queues.pause(self.target.name(), Duration::ZERO) {
                return Step::Stopped;
            }
            self.sent_at = Instant::now();
            let count = count_max.min(events.len());
            match self.runtime.block_on(self.sender.send(&events[..count])) {
                Ok(()) => {
                    self.target.succeeded(count);
                    if self.delivered.is_empty() {
                        self.delivered_at = Instant::now();
                    }
                    self.delivered.extend(events.drain(..count));
                    self.next_pause = PAUSE_MIN;
                    self.trim_if_due();
                }
                Err(SendError::TooLong(_)) if count > 1 => count_max = count / 2,
                Err(error) => {
                    self.target.failed(&error.into_reason());
                    self.remove();
                    self.drop_old(&mut events);
                    if self.pause() {
                        return Step::Stopped;
                    }
                }
            }
            if self.has_dropped {
                return Step::Incomplete;
            }
        }
        Step::Done
    }

    /// Waits before the next attempt; returns `true` if the queues are stopped. Later pauses are
    /// longer, until the target accepts a message.
    fn pause(&mut self) -> bool {
        let until = Instant::now() + self.next_pause;
        self.next_pause = (2 * self.next_pause).min(PAUSE_MAX);
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.trim_if_due();
            if self.queues.pause(self.target.name(), left.min(PAUSE_STEP)) {
                return true;
            }
            if self.target.takes_retry() {
                break;
            }
        }
        false
    }

    /// Drops the events that exceed the maximum age.
    fn drop_old(&mut self, events: &mut Vec<QueuedEvent>) {
        let Some(age_max) = self.target.settings.queue_age_max else { return };
        let is_old = |event: &QueuedEvent| event.time().elapsed().is_ok_and(|age| age > age_max);
        self.drop_events(events, is_old, "they are too old");
    }

    fn drop_events(
        &mut self,
        events: &mut Vec<QueuedEvent>,
        is_dropped: impl Fn(&QueuedEvent) -> bool,
        why: &'static str,
    ) {
        let dropped: Vec<_> = events.extract_if(.., |event| is_dropped(event)).collect();
        let Some(first) = dropped.first() else { return };
        let field = |name| first.fields.get(name).unwrap_or("?");
        let first = format!("the first is of {}/{}", field("bucket"), field("key"));
        self.target.dropped(dropped.len() as u64, why, &first);
        self.delivered.extend(dropped);
        self.remove();
    }

    fn trim_if_due(&mut self) {
        if self.trimmed_at.elapsed() >= TRIM_TIME {
            self.trim();
        }
    }

    /// Drops the oldest events if the queue has too many.
    fn trim(&mut self) {
        // Delivered events are not dropped.
        self.remove();
        self.trimmed_at = Instant::now();
        let max = self.target.settings.queue_events_max;
        match self.store.get().events().trim(self.target.name(), max) {
            Ok(0) => {}
            Ok(dropped) => {
                self.has_dropped = true;
                self.target.dropped(dropped, "the queue is full", &format!("it has {max}"));
            }
            Err(error) => self.target.failed(&chain(&error)),
        }
    }

    fn remove_if_due(&mut self) {
        let is_due = self.delivered_at.elapsed() >= REMOVE_TIME;
        if self.delivered.len() >= REMOVE_EVENTS || is_due && !self.delivered.is_empty() {
            self.remove();
        }
    }

    /// Removes the delivered events from the queue. Those of a disk that fails stay there, and are
    /// delivered again after the next start.
    fn remove(&mut self) {
        if self.delivered.is_empty() {
            return;
        }
        let delivered = std::mem::take(&mut self.delivered);
        match self.store.get().events().remove(self.target.name(), delivered) {
            Ok(left) => self.delivered = left,
            Err(error) => tracing::error!(
                queue = &**self.target.name(),
                error = chain(&error),
                "delivered events stay in the queue, and may be delivered again"
            ),
        }
        self.delivered_at = Instant::now();
    }
}

fn id(event: &QueuedEvent) -> (u16, u64) {
    (event.member, event.sequence)
}
