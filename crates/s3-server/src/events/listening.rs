//! Sends events to the clients that listen.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_file_store::Taken;

use crate::access::keys::key_ring::AllKeys;
use crate::errors::chain;
use crate::events::target::{EventTargets, LISTENERS};
use crate::served::ServedStore;

/// The interval at which connections and the rights of their clients are checked.
const CHECK_TIME: Duration = Duration::from_millis(500);

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
    keys: &AllKeys,
) -> std::io::Result<JoinHandle<()>> {
    let (store, targets, keys) = (Arc::clone(store), Arc::clone(targets), keys.clone());
    let send = move || send_until_stopped(&store, &targets, &keys);
    thread::Builder::new().name("events-listeners".to_owned()).spawn(send)
}

fn send_until_stopped(store: &ServedStore, targets: &EventTargets, keys: &AllKeys) {
    let (queue, queues): (Arc<str>, _) = (LISTENERS.into(), targets.queues());
    let listeners = targets.listeners();
    let mut checked = Instant::now();
    loop {
        let outcome = match queues.take(&queue, BATCH, checked, checked + CHECK_TIME) {
            Taken::Stopped => return,
            Taken::Incomplete => {
                drop(store.get().events().restart(&queues, &queue));
                store.get().events().trim(&queue, 0).map(drop)
            }
            Taken::Events(events) => {
                events.iter().for_each(|event| listeners.send(&store.get(), event));
                store.get().events().remove(&queue, events).map(drop)
            }
        };
        if checked.elapsed() >= CHECK_TIME {
            listeners.check(&store.get(), keys);
            checked = Instant::now();
        }
        if let Err(error) = outcome {
            tracing::error!(error = chain(&error), "events of listening clients are not removed");
            if queues.pause(&queue, CHECK_TIME) {
                return;
            }
        }
    }
}
