//! Starts a put without blocking the calling thread.

use std::sync::Arc;

use haul_append_log::SpacePriority;

use crate::access::put::check_precondition;
use crate::error::Result;
use crate::event::Event;
use crate::events::append::event_changes;
use crate::format::{Head, Kind, block_checksums};
use crate::index::entry::{Change, Replaced};
use crate::inner::Inner;
use crate::keys::{check_attributes, check_key};
use crate::object::{Attributes, Precondition, TargetBucket, Usage, Versioning};
use crate::object_lock::lock::ObjectLock;
use crate::pending_put::future::{PendingPut, pending_put};
use crate::pending_put::queue::{AppendedPut, Locks};
use crate::replication::interface::Replication;
use crate::store::Store;
use crate::writers::BucketWriter;

impl Store {
    /// The maximum object length for [`Store::start_put`], in bytes. Hashing a longer object takes
    /// more time than passing it to another thread.
    pub const START_PUT_BYTES_MAX: usize = 8 << 10;

    /// Starts to store a small object like [`Store::put`], without blocking the calling thread.
    /// Returns a future that resolves when the object is durable and visible, or `None` if the put
    /// would block: the caller then calls [`Store::put`] on a thread that may block.
    ///
    /// A put would block if
    /// - the object is longer than [`Store::START_PUT_BYTES_MAX`],
    /// - another thread writes the key,
    /// - the object that it replaces must be read from the disk: it was not stored recently, and is
    ///   not in the page cache,
    /// - the log's buffer or the disk is full,
    /// - the bucket has versions,
    /// - compaction delays writers,
    /// - the store has a copy that must confirm the put ([`crate::Options::replication`]), or
    /// - a checkpoint, a snapshot or a change of buckets keeps writers out.
    ///
    /// The put holds its locks until the completing thread has completed it, even if the future is
    /// never polled or is dropped. [`Store::close`] completes it, too.
    ///
    /// ```
    /// # use haul_file_store::{Attributes, Precondition, Result, Store, StoredObject};
    /// async fn put(store: &Store, key: &str, bytes: &[u8]) -> Result<StoredObject> {
    ///     let none = Attributes::new();
    ///     match store.start_put("bucket", key, bytes, &none, &Precondition::None)? {
    ///         Some(pending) => pending.await,
    ///         // A server calls this on a thread that may block.
    ///         None => store.put_located("bucket", key, bytes, &none, &Precondition::None),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// Fails like [`Store::put`], but never with [`crate::Error::Full`] or
    /// [`crate::Error::Stalled`]. After an error, nothing is stored.
    ///
    /// # Durability
    /// The object survives a power cut once the future has resolved.
    pub fn start_put<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        bytes: &[u8],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<Option<PendingPut>> {
        check_key(key)?;
        check_attributes(attributes)?;
        let inner = &*self.inner;
        let is_big = bytes.len() as u64 >= inner.options.big_object_bytes;
        let may_wait = |copy: &Arc<dyn Replication>| copy.may_wait();
        let must_wait = ObjectLock::is_in(attributes)
            || inner.options.replication.as_ref().is_some_and(may_wait)
            || inner.maintenance.admission.must_wait();
        if is_big || bytes.len() > Self::START_PUT_BYTES_MAX || must_wait {
            return Ok(None);
        }
        let bucket = bucket.into();
        let head = Head::new(Kind::Object, bucket.name, key);
        let Some(entered) = inner.keyspace.try_enter(bucket)? else { return Ok(None) };
        start_put(inner, entered, head, bytes, attributes, precondition, bucket.event)
    }
}

/// Starts a put whose head has only the names.
///
/// 1. Locks the key, looks up its current object in memory, and tests the precondition.
/// 2. Appends the needle to the log. After a crash the log may or may not have it.
/// 3. Queues the put for the completing thread, which owns its locks from then on.
fn start_put(
    inner: &Inner,
    entered: BucketWriter,
    mut head: Head,
    bytes: &[u8],
    attributes: &Attributes,
    precondition: &Precondition,
    event: Option<&Event>,
) -> Result<Option<PendingPut>> {
    if inner.keyspace.versioning(&head.bucket)? != Versioning::Off {
        return Ok(None);
    }
    let added = Usage { bytes: bytes.len() as u64, objects: 1 };
    let reserved = inner.keyspace.reserve(&head.bucket, added)?;
    let Some(key) = inner.keyspace.keys.try_lock(&head.bucket, &head.key) else {
        return Ok(None);
    };
    let locks = Locks { _key: key, _writer: entered };
    let Some(current) = inner.find_in_memory(&head.bucket, &head.key) else { return Ok(None) };
    check_precondition(inner, &head.bucket, &head.key, current.as_ref(), precondition)?;
    head.bytes = bytes.len() as u64;
    head.etag.md5 = haul_md5_lanes::digest(bytes);
    head.blocks = block_checksums(bytes);
    head.version = inner.keyspace.clock.next_for_key(None);
    let encoded = head.encode(attributes);
    let others = event_changes(inner, event, &head.bucket, || head.info());
    let Some(ticket) = inner.try_append_with(&encoded, bytes, &others, SpacePriority::Ordinary)?
    else {
        return Ok(None);
    };
    inner.maintenance.admission.admit_now(head.head_bytes() as u64 + head.bytes);
    let info = head.info();
    let replaces = current.map(Replaced::from);
    let change = Change { head, replaces, reserved, event: None };
    let (resolver, pending) = pending_put();
    inner.keyspace.pending_puts.push(AppendedPut { ticket, change, others, info, locks, resolver });
    Ok(Some(pending))
}
