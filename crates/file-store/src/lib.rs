//! An object store: small objects packed into volumes, big ones in files of their own.
//!
//! # What it is
//! A durable store of objects under arbitrary keys, in buckets. Small objects are appended to
//! volumes (the segments of a [`haul_append_log`]) and located by an in-memory index, so that
//! reading one is one disk read; big objects are streamed into files of their own, bypassing the
//! page cache.
//!
//! # Example
//! ```
//! use haul_file_store::{Attributes, Options, Precondition, Store};
//!
//! # fn main() -> haul_file_store::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let small = Options { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..Options::default() };
//! let (store, _recovered) = Store::open(dir.path(), small)?;
//! store.create_bucket("photos")?;
//! let attributes = Attributes::from_iter([("content-type", "text/plain")]);
//! store.put("photos", "a/greeting", b"hello", &attributes, &Precondition::None)?;
//! // The object now survives a power cut.
//! let object = store.get("photos", "a/greeting")?;
//! assert_eq!(&object.read(0, 100)?[..], b"hello");
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - An operation that was acknowledged survives a power cut; one that was not is applied entirely
//!   or not at all.
//! - Bytes that fail their checksum are never returned. Corruption is reported with file and
//!   offset, and affects no other object.
//! - Corruption never brings back an older version or a deleted object, and never hides one
//!   silently: if the newest state of a key may be in damaged or missing data, the result is an
//!   error that names it.
//! - A listing is complete, in the byte order of the keys, and reads nothing from the disk.
//! - On a full disk objects can still be read, deleted and compacted, and compaction always frees
//!   space: two volumes are reserved for it, on a disk with room for at least three. Overwrites
//!   reach a steady state: writers are delayed until compaction has caught up, and refused only
//!   when no dead space is left (`docs/space.md`).
//! - Keys are text and are never used as paths.
//!
//! # Cost
//! | operation | disk requests |
//! |---|---|
//! | store a small object | one write and one sync, shared by concurrent writers |
//! | read a small object, cold | one read of its bytes and about 150 more |
//! | store a big object | writes of aligned mebibytes, two syncs, one of them of the directory |
//! | list, or look up a key | none |
//! | open | reads of the indexes of sealed volumes and of the volume that was being written |
//!
//! Memory: about 150 bytes for an object and its key.
//!
//! # What it is not
//! It is not distributed, and it keeps no old versions of objects.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Haystack10\] needles, volumes and the in-memory index,
//! \[Rosenblum92\] cleaning, \[RocksDBStall\] delaying writers.

mod access;
mod background;
mod big_files;
mod clock;
mod compaction;
mod counters;
mod error;
mod format;
mod index;
mod inner;
mod keys;
mod locks;
mod manifest;
mod names;
mod object;
mod options;
mod recovery;
mod signal;
mod stats;
mod store;
mod verification;
mod volume_index;

pub use access::get::Object;
pub use access::written::{ObjectWriter, Written};
pub use compaction::compact::Compacted;
pub use error::{Error, Result};
pub use object::{
    ATTRIBUTE_BYTES_MAX, Attributes, BucketInfo, Etag, KEY_BYTES_MAX, ListPage, ListRequest,
    Listed, ObjectInfo, PART_NUMBER_MAX, PartInfo, Precondition, UploadInfo,
};
pub use options::Options;
pub use recovery::damage::Damage;
pub use recovery::recover::Recovered;
pub use stats::Stats;
pub use store::Store;
pub use verification::verify::Verified;
