//! Sends events to the clients that listen.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_file_store::{EventQueues, Taken};

use crate::errors::chain;
use crate::events::target::{EventTargets, LISTENERS};
use crate::served::ServedStore;

/// The interval at which idle connections are tested.
const PING_TIME: Duration = Duration::from_millis(500);

/// The number of events that are sent and removed together.
const BATCH: usize = 256;

/// Starts the thread that sends events to listening clients until the queues are stopped.
///
/// Their queue is durable like all others, although nobody needs its events after a crash: so the
/// events are those of the changes that the store has, with their numbers and in their order. Events
/// that are left from before, or do not fit into memory, are dropped.
pub(super) fn start(
    store: &Arc<ServedStore>,
    targets: &Arc<EventTargets>,
) -> std::io::Result<JoinHandle<()>> {
    let (store, targets, queues) = (Arc::clone(store), Arc::clone(targets), targets.queues());
    let send = move || send_until_stopped(&store, &targets, &queues);
    thread::Builder::new().name("events-listeners".to_owned()).spawn(send)
}

fn send_until_stopped(store: &ServedStore, targets: &EventTargets, queues: &EventQueues) {
    let queue: Arc<str> = LISTENERS.into();
    loop {
        let now = Instant::now();
        let outcome = match queues.take(&queue, BATCH, now, now + PING_TIME) {
            Taken::Stopped => return,
            Taken::Incomplete => {
                drop(store.get().events().restart(queues, &queue));
                store.get().events().trim(&queue, 0).map(drop)
            }
            Taken::Events(events) if events.is_empty() => {
                targets.listeners().ping();
                Ok(())
            }
            Taken::Events(events) => {
                events.iter().for_each(|event| targets.listeners().send(event));
                store.get().events().remove(&queue, events).map(drop)
            }
        };
        if let Err(error) = outcome {
            tracing::error!(error = chain(&error), "events of listening clients are not removed");
            if queues.pause(&queue, PING_TIME) {
                return;
            }
        }
    }
}
