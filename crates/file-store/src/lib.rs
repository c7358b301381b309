//! An object store: small objects packed into volumes, big ones in their own files.
//!
//! # What it is
//! A durable store of objects under arbitrary keys, in buckets. Small objects are appended to
//! volumes (the segments of a [`haul_append_log`]) and located by a compact table in memory, so
//! that reading one is one disk read; big objects are streamed into their own files, bypassing the
//! page cache. The keys are in sorted files. The index is derived from the volumes, and saved by
//! checkpoints, so that opening a store reads only the end of the log.
//!
//! # Example
//! ```
//! use haul_file_store::{Attributes, Options, Precondition, Store};
//!
//! # fn main() -> haul_file_store::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let small = Options { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..Options::default()
//! };
//! let (store, _recovered) = Store::open(dir.path(), small)?;
//! store.create_bucket("photos")?;
//! let attributes = Attributes::from_iter([("content-type", "text/plain")]);
//! store.put("photos", "a/greeting", b"hello", &attributes, &Precondition::None)?;
//! // The object now survives a power cut.
//! let object = store.get("photos", "a/greeting")?;
//! assert_eq!(&object.read(0, 100)?[..], b"hello");
//! assert_eq!(&store.get_range("photos", "a/greeting", 1, 3)?[..], b"ell");
//! for (index, object) in store.get_many("photos", &["a/greeting", "absent"]) {
//!     assert_eq!(object.is_ok(), index == 0);
//! }
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - An acknowledged operation survives a power cut; an unacknowledged one is applied completely or
//!   not at all.
//! - Bytes that fail their checksum are never returned. Corruption is reported with file and
//!   offset, and affects no other object.
//! - Corruption never brings back an older version or a deleted object, and never hides one
//!   silently: if the newest state of a key may be in damaged or missing data, the result is an
//!   error that names it.
//! - No function of the store removes a version that is retained, has a legal hold, or has a lock
//!   that damage makes unreadable. [`Store::move_key`] removes it once another store of the pool has
//!   it, with its lock.
//! - A listing is complete, and in the byte order of the keys.
//! - Index files are derived data: if one is missing or corrupt, the index is rebuilt from the
//!   volumes when the store is opened.
//! - On a full disk objects can still be read, deleted and compacted, and compaction always frees
//!   space: two volumes are reserved for it, on a disk with room for at least three. Overwrites
//!   reach a steady state: writers are delayed until compaction has caught up, and refused only
//!   when no dead space is left (`docs/space.md`).
//! - With [`Options::replication`], an acknowledged change is in the store's copy, too. A change
//!   that fails with [`Error::NotReplicated`] is durable on this machine.
//! - Keys are text and are never used as paths.
//! - In a bucket with versioning, no version is lost: an object that cannot be retained, because it
//!   is damaged, is not replaced. Deleting a version never affects another one.
//! - A sweep of a [`Lifecycle`] deletes an object only if it is expired at that moment: an object
//!   is kept if it was replaced since it was listed, or if its newest state may be in a damaged
//!   place.
//!
//! # Cost
//! | operation | disk requests |
//! |---|---|
//! | store a small object | one write and one sync, shared by concurrent writers |
//! | store an object of up to 8 KiB with [`Store::start_put`] | the same, and no thread that waits; a batch wakes one thread of the store |
//! | overwrite or delete an object | also one read of up to 4 KiB, unless it was stored recently |
//! | read a small object, cold | one read of up to 256 KiB: at most 4.5 KiB or about twice its length; two reads if it is longer |
//! | read a range of an object longer than 128 KiB ([`Store::get_range`]), cold | one read for the head, and one for the blocks of 64 KiB |
//! | read many objects ([`Store::get_many`]), cold | one read for each group of needles that are at most 16 KiB apart, up to 256 KiB; for an object longer than 128 KiB, one read for the head |
//! | delete several objects or versions in one call | one write and one sync, or more if they exceed the log's buffer; another one for each later deletion with the same key, except that up to 64 versions share one |
//! | replace an object in a bucket with versions | one read of the object, and two writes and syncs; the object is written again, except for a big object's files |
//! | delete an object in a bucket with versions | the same, with one write and one sync |
//! | read a version | also one lookup of the current object |
//! | store a big object | aligned writes of 1 MiB, and two syncs: the file's and the directory's |
//! | look up a key | one read of up to 4 KiB, none if it was stored recently; for an absent key, one read in about 300 to 500 lookups |
//! | list | for the first page, a read of a 16 KiB block from each key run (at most 19 runs in simulations), then sequential reads; a later page starts in blocks that are kept in memory, up to 8 in each run |
//! | move a key to another store ([`Store::move_key`]) | two reads of each needle, one append of it to the other store, and a tombstone; in each store one sync for up to 1,024 needles; the files of big objects are read and written once |
//! | sweep a bucket | the reads of a listing, of the prefixes that rules expire; one write and one sync for up to 256 deletions, without a read for an object that is where it was listed; for each key with expired versions a search of its versions, and in a bucket with object lock one read for each of these |
//! | delete a version in a bucket with object lock | also one read of its head |
//! | open | reads of the location table (about 6 bytes an object), of the runs' block indexes, and of what was stored after the last checkpoint: the indexes of sealed volumes, and the end of the volume that was being written. After a kill, about [`Options::index_memory_bytes`] / 1 KiB needles are replayed, and those stored while a checkpoint was being written |
//! | a checkpoint, in the background | writes of the recent changes, at times of the whole location table; three syncs of files, two of the directory |
//!
//! Memory: about 10 bytes for an object and at most a fiftieth of its key's length, up to
//! [`Options::index_memory_bytes`] for recent changes, and the list of big objects' files.
//!
//! # What it is not
//! It is not distributed, and it keeps old versions of objects only in buckets with versioning
//! ([`Store::set_versioning`]).
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Haystack10\] needles and volumes, \[Fagin79\] and \[Elias74\]
//! the location table, \[ONeil96\] the runs of keys, \[Rosenblum92\] cleaning, \[RocksDBStall\]
//! delaying writers.

mod access;
mod big_files;
mod buckets;
mod catalog;
mod checkpoint;
mod clock;
mod compaction;
mod counters;
mod damage;
mod deletion;
mod error;
mod event;
mod event_queues;
mod events;
mod expiration;
mod failures;
mod format;
mod index;
mod inner;
mod key_move;
mod keys;
mod keyspace;
mod lifecycle;
mod lifecycle_events;
mod locks;
mod maintenance;
mod manifest;
mod memory;
mod names;
mod needles;
mod object;
mod object_lock;
mod opening;
mod options;
mod pending_put;
mod quota_group;
mod recovery;
mod replication;
mod settings;
mod signal;
mod snapshot;
mod space;
mod stats;
mod store;
mod varint;
mod verification;
mod versions;
mod volume_index;
mod volumes;
mod worker;
mod writers;

pub use access::get_many::GetMany;
pub use access::put_many::NewObject;
pub use big_files::pinned::PinnedFile;
pub use buckets::LockedBuckets;
pub use buckets::quota::OWNER_SETTING;
pub use clock::TimeSource;
pub use compaction::compact::CompactionReport;
pub use compaction::volume_map::{VolumeExtent, VolumeMap};
pub use damage::report::Damage;
pub use deletion::request::Deletion;
pub use error::{Error, QuotaExceeded, Result};
pub use event::{Event, EventFields};
pub use event_queues::{EventClock, EventQueues, QueuedEvent, Taken};
pub use events::queue::{EventQueueState, StoreEvents};
pub use expiration::expirable::ExpiredEntry;
pub use expiration::gate::LifecycleGate;
pub use failures::{OngoingFailure, WorkKind};
pub use index::uploads::list::{ListUploadsRequest, UploadListEntry, UploadListPage};
pub use key_move::MovedKey;
pub use lifecycle::report::{LifecycleAction, LifecycleObserver, SweepReport};
pub use lifecycle::rules::{
    Expiry, LIFECYCLE_RULES_MAX, Lifecycle, LifecycleRule, NoncurrentExpiry,
};
pub use lifecycle::stats::LifecycleStats;
pub use lifecycle::tags::Tags;
pub use lifecycle_events::LifecycleEvents;
pub use memory::locked::LockedObject;
pub use names::{REMOTE_MARKER, is_root_name};
pub use needles::object::{Object, PinnedRange};
pub use needles::written::{ObjectWriter, WrittenContent};
pub use object::{
    ATTRIBUTE_BYTES_MAX, Attributes, BucketId, BucketInfo, Deleted, Etag, KEY_BYTES_MAX, ListEntry,
    ListPage, ListRequest, ListVersionsRequest, NewBucket, ObjectInfo, ObjectLocation,
    PART_NUMBER_MAX, PartInfo, Precondition, Quota, QuotaState, StoredObject, TargetBucket,
    UploadInfo, Usage, VersionId, VersionInfo, VersionListEntry, VersionListPage, Versioning,
};
pub use object_lock::lock::{
    DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod,
};
pub use options::Options;
pub use pending_put::future::PendingPut;
pub use quota_group::SharedQuotas;
pub use recovery::recover::RecoveryReport;
pub use replication::checkpoint::{CheckpointFile, CheckpointFiles};
pub use replication::interface::{Replication, ReplicationStatus};
pub use replication::source::MetadataFiles;
pub use settings::cache::BucketSettings;
pub use snapshot::SnapshotInfo;
pub use stats::Stats;
pub use store::Store;
pub use verification::verify::VerificationReport;
