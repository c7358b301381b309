//! The clients that listen to events (ListenBucketNotification of MinIO).

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::Bytes;
use haul_file_store::{BucketId, QueuedEvent};
use haul_store_pool::Pool;
use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::access::caller::Caller;
use crate::access::keys::key_ring::AllKeys;
use crate::events::fields::{LISTENING, NAME};
use crate::events::record::line;
use crate::request::operation::Operation;
use crate::settings::notification::name::{EventName, EventNames};

/// The number of lines that wait for a client. One that reads more slowly is disconnected.
const WAITING_MAX: usize = 1000;

/// The number of clients that listen at the same time: every change compares its event with what
/// each of them selects.
const LISTENERS_MAX: usize = 100;

/// The same for one address, so that no client keeps all others from listening.
const PEER_LISTENERS_MAX: usize = 20;

/// The events that a client listens to.
#[derive(Debug, Clone)]
pub(crate) struct Interest {
    /// `None` for all buckets.
    pub(crate) bucket: Option<(String, BucketId)>,
    pub(crate) names: EventNames,
    pub(crate) prefix: String,
    pub(crate) suffix: String,
}

impl Interest {
    fn selects(&self, bucket: &str, name: EventName, key: &str) -> bool {
        self.bucket.as_ref().is_none_or(|(wanted, _)| wanted == bucket)
            && self.names.contains(name)
            && key.starts_with(&self.prefix)
            && key.ends_with(&self.suffix)
    }

    /// Returns `true` if the bucket is still the one that the client may listen to: after its
    /// deletion, another user can create one with the name.
    fn has_bucket(&self, store: &Pool) -> bool {
        self.bucket.as_ref().is_none_or(|(name, id)| store.bucket_id(name).ok() == Some(*id))
    }
}

/// A client that may listen.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) interest: Interest,
    pub(crate) caller: Caller,
    pub(crate) operation: Operation,
    pub(crate) peer: Option<IpAddr>,
}

impl Listener {
    /// Returns `true` if the client may still listen.
    fn is_allowed(&self, store: &Pool, keys: &AllKeys) -> bool {
        let bucket = self.interest.bucket.as_ref().map_or("", |(name, _)| name);
        self.interest.has_bucket(store)
            && self.caller.is_still_allowed(store, keys, self.operation, bucket)
    }
}

#[derive(Debug)]
struct Connected {
    listener: Listener,
    /// The number of clients that had begun to listen before this one.
    number: u64,
    lines: Sender<Bytes>,
}

#[derive(Debug, Default)]
struct Clients {
    connected: Vec<Arc<Connected>>,
    /// The number of clients that have begun to listen.
    begun: u64,
}

/// All listening clients.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    clients: Mutex<Clients>,
    count: AtomicUsize,
}

impl Listeners {
    /// Adds a client; `None` if too many listen.
    pub(crate) fn listen(&self, listener: Listener) -> Option<EventStream> {
        let (lines, received) = channel(WAITING_MAX);
        let mut clients = self.clients.lock();
        clients.connected.retain(|one| !one.lines.is_closed());
        let has_same_peer = |one: &&Arc<Connected>| one.listener.peer == listener.peer;
        let peer_listeners = clients.connected.iter().filter(has_same_peer).count();
        if clients.connected.len() >= LISTENERS_MAX || peer_listeners >= PEER_LISTENERS_MAX {
            return None;
        }
        let number = clients.begun;
        clients.begun += 1;
        clients.connected.push(Arc::new(Connected { listener, number, lines }));
        self.count.store(clients.connected.len(), Relaxed);
        Some(EventStream(Some(received)))
    }

    /// Returns the number of clients that have begun to listen, if one of them listens to this
    /// event.
    pub(crate) fn select(&self, bucket: &str, name: EventName, key: &str) -> Option<u64> {
        // Most servers have no listeners: they cost only this test.
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let clients = self.clients.lock();
        let selects = |one: &Arc<Connected>| one.listener.interest.selects(bucket, name, key);
        clients.connected.iter().any(selects).then_some(clients.begun)
    }

    /// Sends an event to the clients that listen to it and began before it: the event of a deleted
    /// bucket is not for those who listen to its successor.
    pub(super) fn send(&self, store: &Pool, event: &QueuedEvent) {
        let field = |name: &str| event.fields.get(name).unwrap_or_default();
        let Some(name) = EventName::parse(field(NAME)) else { return };
        let Ok(begun) = field(LISTENING).parse() else { return };
        let line = Bytes::from(line(event));
        let (bucket, key) = (field("bucket"), field("key"));
        self.retain(|one| {
            let interest = &one.listener.interest;
            let is_sent = one.number < begun && interest.selects(bucket, name, key);
            !is_sent || interest.has_bucket(store) && one.lines.try_send(line.clone()).is_ok()
        });
    }

    /// Disconnects the clients that may no longer listen, and sends a space to each other one, so
    /// that a lost connection is noticed.
    pub(super) fn check(&self, store: &Pool, keys: &AllKeys) {
        self.retain(|one| {
            let is_connected = match one.lines.capacity() {
                WAITING_MAX => one.lines.try_send(Bytes::from_static(b" ")).is_ok(),
                _ => !one.lines.is_closed(),
            };
            is_connected && one.listener.is_allowed(store, keys)
        });
    }

    /// Disconnects all clients.
    pub(crate) fn end(&self) {
        self.retain(|_| false);
    }

    /// Disconnects clients. Changes of objects do not wait for `keep`.
    fn retain(&self, keep: impl Fn(&Connected) -> bool) {
        let connected = self.clients.lock().connected.clone();
        let ended: Vec<_> =
            connected.iter().filter(|one| !keep(one)).map(|one| one.number).collect();
        if ended.is_empty() {
            return;
        }
        let mut clients = self.clients.lock();
        clients.connected.retain(|one| !ended.contains(&one.number));
        self.count.store(clients.connected.len(), Relaxed);
    }
}

/// The events that a client receives, as lines of JSON.
#[derive(Debug)]
pub(crate) struct EventStream(Option<Receiver<Bytes>>);

impl EventStream {
    /// Returns the next bytes; `None` once the client is disconnected.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(lines) = &mut self.0 else { return Poll::Ready(None) };
        let polled = lines.poll_recv(context);
        if matches!(polled, Poll::Ready(None)) {
            self.0 = None;
        }
        polled
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.0.is_none()
    }
}
