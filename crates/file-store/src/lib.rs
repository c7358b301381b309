//! Small files merged into volumes, big ones beside them: one disk read a file.
//!
//! # What it is
//! A store of objects under arbitrary keys, in buckets. Small objects are appended to volumes
//! (the segments of a [`haul_append_log`]) and found by an index in memory, so that reading one
//! is one request to the disk; big ones stream into files of their own past the page cache.
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
//! // It survives a power cut now.
//! let object = store.get("photos", "a/greeting")?;
//! assert_eq!(&object.read(0, 100)?[..], b"hello");
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - What a call says is stored or deleted is so after a power cut; what it did not say yet is
//!   wholly so or not at all.
//! - Bytes that fail their checksum are never returned. Damage is told with file and offset, and
//!   harms no other object.
//! - A listing is complete, in the order of the keys' bytes, and touches no disk.
//! - On a full disk objects can still be read, deleted and compacted.
//! - Keys are text and nothing but text: none ever becomes a path.
//!
//! # Cost
//! | | requests to the disk |
//! |---|---|
//! | a small object stored | one write and one sync, shared by all who store at the same time |
//! | a small object read, cold | one read of its bytes and some 150 more |
//! | a big object stored | its bytes in aligned megabytes, two syncs, one of them of the directory |
//! | a listing, or whether a key is there | none |
//! | opening | the indexes of sealed volumes, and the volume that was being written |
//!
//! Memory: about 150 bytes an object and its key.
//!
//! # What it is not
//! It does not span machines, and it keeps no old versions of objects.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Haystack10\] needles, volumes and the index in memory.

mod background;
mod big_file;
mod carrier;
mod clock;
mod compact;
mod counters;
mod error;
mod format;
mod get;
mod index;
mod inner;
mod keys;
mod list;
mod locks;
mod names;
mod object;
mod objects;
mod options;
mod put;
mod recover;
mod stats;
mod store;
mod upkeep;
mod upload;
mod verify;
mod volumes;
mod written;

pub use compact::Compacted;
pub use error::{Error, Result};
pub use get::Object;
pub use object::{
    ATTRIBUTE_BYTES_MAX, Attributes, BucketInfo, Etag, KEY_BYTES_MAX, ListPage, ListRequest,
    Listed, ObjectInfo, PART_NUMBER_MAX, PartInfo, Precondition, UploadInfo,
};
pub use options::Options;
pub use recover::{Damage, Recovered};
pub use stats::Stats;
pub use store::Store;
pub use verify::Verified;
pub use written::{ObjectWriter, Written};
