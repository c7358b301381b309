//! The clients that listen to events (ListenBucketNotification of MinIO).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::Bytes;
use haul_file_store::QueuedEvent;
use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::events::fields::NAME;
use crate::events::record::line;
use crate::settings::notification::name::{EventName, EventPattern};

/// The number of lines that wait for a client. One that reads more slowly is disconnected.
const WAITING_MAX: usize = 1000;

/// The events that a client listens to.
#[derive(Debug, Clone)]
pub(crate) struct Interest {
    /// `None` for all buckets.
    pub(crate) bucket: Option<String>,
    pub(crate) patterns: Vec<EventPattern>,
    pub(crate) prefix: String,
    pub(crate) suffix: String,
}

impl Interest {
    fn selects(&self, bucket: &str, name: EventName, key: &str) -> bool {
        self.bucket.as_deref().is_none_or(|wanted| wanted == bucket)
            && self.patterns.iter().any(|pattern| pattern.selects(name))
            && key.starts_with(&self.prefix)
            && key.ends_with(&self.suffix)
    }
}

#[derive(Debug)]
struct Listener {
    interest: Interest,
    lines: Sender<Bytes>,
}

/// All listening clients.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    all: Mutex<Vec<Listener>>,
    count: AtomicUsize,
}

impl Listeners {
    /// Adds a client.
    pub(crate) fn listen(&self, interest: Interest) -> EventStream {
        let (lines, received) = channel(WAITING_MAX);
        let mut all = self.all.lock();
        all.push(Listener { interest, lines });
        self.count.store(all.len(), Relaxed);
        EventStream(Some(received))
    }

    /// Returns `true` if a client listens to this event.
    pub(crate) fn select(&self, bucket: &str, name: EventName, key: &str) -> bool {
        // Most servers have no listeners: they cost only this test.
        self.count.load(Relaxed) > 0
            && self.all.lock().iter().any(|one| one.interest.selects(bucket, name, key))
    }

    /// Sends an event to the clients that listen to it.
    pub(super) fn send(&self, event: &QueuedEvent) {
        let field = |name: &str| event.fields.get(name).unwrap_or_default();
        let Some(name) = EventName::parse(field(NAME)) else { return };
        let line = Bytes::from(line(event));
        let (bucket, key) = (field("bucket"), field("key"));
        self.each(|one| {
            !one.interest.selects(bucket, name, key) || one.lines.try_send(line.clone()).is_ok()
        });
    }

    /// Sends a space to each client, so that a lost connection is noticed.
    pub(super) fn ping(&self) {
        let is_connected = |one: &Listener| match one.lines.capacity() {
            WAITING_MAX => one.lines.try_send(Bytes::from_static(b" ")).is_ok(),
            _ => !one.lines.is_closed(),
        };
        self.each(is_connected);
    }

    /// Disconnects all clients.
    pub(crate) fn end(&self) {
        self.each(|_| false);
    }

    fn each(&self, keep: impl Fn(&Listener) -> bool) {
        let mut all = self.all.lock();
        all.retain(keep);
        self.count.store(all.len(), Relaxed);
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
