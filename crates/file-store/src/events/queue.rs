//! Reads and removes queued events.

use std::sync::Arc;

use haul_append_log::{Position, SpacePriority};

use crate::clock::Version;
use crate::error::{Error, Result};
use crate::event::EventFields;
use crate::event_queues::{EventClock, QueuedEvent, StoredEvent};
use crate::format::{Head, Kind, needles};
use crate::index::bucket::Bucket;
use crate::index::entry::{Change, Entry, Replaced, full_key, split_key};
use crate::index::keys::not_an_entry;
use crate::index::quotas::Reserved;
use crate::index::runs::source::Source;
use crate::index::version_names::{event_key, event_queue_bucket, parse_event_key};
use crate::inner::Inner;

/// The maximum number of events that one record removes.
const RECORD_EVENTS: usize = 256;

/// The maximum length of a queue's name, in bytes.
const NAME_BYTES_MAX: usize = 63;

const READAHEAD_BYTES: usize = 64 << 10;

/// A queue's present state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventQueueState {
    /// The number of queued events.
    pub events: u64,
    /// The length of their descriptions. In the store an event takes about 100 bytes more.
    pub bytes: u64,
}

/// The queues of events of a store, from [`crate::Store::events`].
#[derive(Debug, Clone, Copy)]
pub struct StoreEvents<'a> {
    inner: &'a Inner,
}

impl<'a> StoreEvents<'a> {
    pub(crate) fn new(inner: &'a Inner) -> Self {
        Self { inner }
    }

    /// Creates a queue, unless it exists.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name has other characters than lowercase letters, digits, `-`, `_`
    /// and `.`, or more than 63; [`Error::Full`].
    ///
    /// # Durability
    /// The queue survives a power cut when this returns.
    pub fn create(&self, queue: &str) -> Result<()> {
        check_queue(queue)?;
        let inner = self.inner;
        inner.check_writable()?;
        let bucket = event_queue_bucket(queue);
        let _exclusive = inner.keyspace.gate.write();
        let _lock = inner.keyspace.keys.lock(&bucket, "");
        if inner.keyspace.index.read().buckets.contains_key(bucket.as_str()) {
            return Ok(());
        }
        let _writer = inner.keyspace.writers.enter();
        let mut head = Head::new(Kind::BucketCreated, &bucket, "");
        head.version = inner.keyspace.clock.next();
        inner.commit_heads(vec![head.into()], SpacePriority::Ordinary)
    }

    /// Returns the source of the events' numbers, for [`crate::EventQueues::restart`].
    #[must_use]
    pub fn clock(&self) -> EventClock<'a> {
        EventClock(&self.inner.keyspace.clock)
    }

    /// Returns the queues' names and states.
    #[must_use]
    pub fn queues(&self) -> Vec<(String, EventQueueState)> {
        let index = self.inner.keyspace.index.read();
        let state =
            |bucket: &Bucket| EventQueueState { events: bucket.objects, bytes: bucket.bytes };
        index.event_queues().map(|(name, bucket)| (name.to_owned(), state(bucket))).collect()
    }

    /// Returns at most `limit` events of a queue with greater numbers than `after`, in their order.
    /// Costs one read of the disk for each event. An event that damage makes unreadable has no
    /// fields: it can be removed, so that it does not hold up those after it.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the index cannot be read; [`Error::Disk`] or [`Error::Log`] if a read
    /// fails.
    pub fn list(&self, queue: &Arc<str>, after: u64, limit: usize) -> Result<Vec<QueuedEvent>> {
        let inner = self.inner;
        let bucket = event_queue_bucket(queue);
        let mut events = Vec::new();
        for (version, listed) in list_places(inner, &bucket, after, limit)? {
            // Compaction locks the queue, too, and removes no volume with events.
            let _lock = inner.keyspace.keys.lock(&bucket, "");
            let key = event_key(version);
            let Some(stored) = present(inner, &bucket, &key, listed)? else { continue };
            let fields = match read(inner, stored.at, &bucket, &key) {
                Err(Error::Damaged { .. }) => EventFields::default(),
                fields => fields?,
            };
            let fields = Arc::new(fields);
            let (queue, member) = (Arc::clone(queue), inner.options.member);
            events.push(QueuedEvent { queue, member, sequence: version.0, fields, stored });
        }
        Ok(events)
    }

    /// Removes events of one queue. Events that are not in the queue are ignored.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Log`].
    ///
    /// # Durability
    /// The events do not come back after a power cut when this returns. After a crash before, some
    /// of them may be in the queue again.
    pub fn remove(&self, queue: &str, events: &[QueuedEvent]) -> Result<()> {
        let inner = self.inner;
        inner.check_writable()?;
        let bucket = event_queue_bucket(queue);
        for events in events.chunks(RECORD_EVENTS) {
            let _gate = inner.keyspace.gate.read();
            let _writer = inner.keyspace.writers.enter();
            // One lock for all events of a queue: only compaction moves them meanwhile.
            let _lock = inner.keyspace.keys.lock(&bucket, "");
            let removal = |event: &QueuedEvent| removal(inner, &bucket, event).transpose();
            let changes = events.iter().filter_map(removal).collect::<Result<Vec<_>>>()?;
            if !changes.is_empty() {
                inner.commit_heads(changes, SpacePriority::Reserve)?;
            }
        }
        Ok(())
    }

    /// Removes the oldest events of a queue, at most `limit`, without reading them, and returns their
    /// number.
    ///
    /// # Errors
    /// Fails like [`Self::remove`].
    pub fn drop_oldest(&self, queue: &Arc<str>, limit: usize) -> Result<usize> {
        let inner = self.inner;
        let bucket = event_queue_bucket(queue);
        let fields = Arc::new(EventFields::default());
        let event = |version: Version, stored| QueuedEvent {
            queue: Arc::clone(queue),
            member: inner.options.member,
            sequence: version.0,
            fields: Arc::clone(&fields),
            stored,
        };
        let events = list_places(inner, &bucket, 0, limit)?.into_iter();
        let events: Vec<_> = events.map(|(version, stored)| event(version, stored)).collect();
        self.remove(queue, &events)?;
        Ok(events.len())
    }
}

/// Returns the numbers and places of at most `limit` events after `after`, in their order.
fn list_places(
    inner: &Inner,
    bucket: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<(Version, StoredEvent)>> {
    let keys = inner.keyspace.index.read().keys.snapshot();
    let mut keys = keys.merged(READAHEAD_BYTES);
    let mut listed = || {
        let mut from = full_key(bucket, &event_key(Version(after)));
        from.push(0);
        keys.seek(&from)?;
        let mut found = Vec::new();
        while let Some((name, value)) = keys.key().zip(keys.value()) {
            let (of, key) = split_key(name).ok_or_else(not_an_entry)?;
            if of != bucket || found.len() == limit {
                break;
            }
            let version = parse_event_key(key).ok_or_else(not_an_entry)?;
            let entry = Entry::decode(value).ok_or_else(not_an_entry)?;
            found.push((version, StoredEvent { at: entry.at, bytes: entry.bytes }));
            keys.advance()?;
        }
        Ok(found)
    };
    listed().map_err(|error: Error| inner.note_index_damage(error))
}

/// Returns the present place of an event that was at `earlier`; `None` if it was removed. The caller
/// has locked the queue.
fn present(
    inner: &Inner,
    bucket: &str,
    key: &str,
    earlier: StoredEvent,
) -> Result<Option<StoredEvent>> {
    let place = |entry: Entry| StoredEvent { at: entry.at, bytes: entry.bytes };
    let index = inner.keyspace.index.read();
    if index.is_object_at(bucket, key, earlier.at) {
        return Ok(Some(earlier));
    }
    if let Some(recent) = index.keys.recent(bucket, key) {
        return Ok(recent.map(place));
    }
    let keys = index.keys.snapshot();
    drop(index);
    let found = keys.get(bucket, key).map_err(|error| inner.note_index_damage(error))?;
    Ok(found.map(place))
}

/// Reads an event from its record, in which it may follow the needle of its change.
fn read(inner: &Inner, at: Position, bucket: &str, key: &str) -> Result<EventFields> {
    let record = inner.volumes.log.read_hinted(at.lsn, at.payload_bytes);
    let record = record.map_err(|error| inner.map_missing_volume(at.lsn, error.into()))?;
    inner.counters.local().needle_read(record.payload().len());
    for needle in needles(record.payload()) {
        let (head, needle) = inner.check(needle, at)?;
        if head.kind == Kind::Object && head.bucket == bucket && head.key == key {
            let data = &needle[needle.len() - head.inline_bytes()..];
            let fields = EventFields::from_bytes(data);
            return fields.ok_or_else(|| inner.damaged(at.lsn, "the event is malformed"));
        }
    }
    Err(inner.damaged(at.lsn, "the record lacks its event"))
}

/// Returns the tombstone of an event; `None` if it is not in the queue. The caller has locked the
/// queue.
fn removal(inner: &Inner, bucket: &str, event: &QueuedEvent) -> Result<Option<Change>> {
    let key = event_key(Version(event.sequence));
    let stored = present(inner, bucket, &key, event.stored)?;
    Ok(stored.map(|StoredEvent { at, bytes }| {
        let mut head = Head::new(Kind::Tombstone, bucket, &key);
        head.version = inner.keyspace.clock.next();
        let replaces = Some(Replaced { at, bytes, files: Box::default() });
        Change { head, replaces, reserved: Reserved::nothing(), event: None }
    }))
}

fn check_queue(queue: &str) -> Result<()> {
    let is_valid =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if !queue.is_empty() && queue.len() <= NAME_BYTES_MAX && queue.bytes().all(is_valid) {
        return Ok(());
    }
    let what = format!(
        "\"{queue}\" cannot be the name of a queue: it has 1 to {NAME_BYTES_MAX} lowercase \
         letters, digits or characters of - _ ."
    );
    Err(Error::Invalid { what })
}
