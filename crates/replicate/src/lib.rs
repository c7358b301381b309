//! A log, or a file store's log, copied continuously to a remote object store.
//!
//! # What it is
//! A thread follows an append log and uploads its durable bytes as immutable chunks. One object,
//! the manifest, lists everything that belongs to the copy. It is replaced by compare-and-swap, so
//! that it is also the fence between two writers: a writer that finds another manifest than its own
//! stops. No list of objects is ever taken as the truth.
//!
//! The newest bytes are in the manifest itself, so that shipping a few records costs one request.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//!
//! use haul_append_log::{Log, Options, Position, SpacePriority};
//! use haul_disk::{Disk, OsDisk};
//! use haul_replicate::{PlainLog, Remote, Replica, restore_log};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let restored = tempfile::tempdir()?;
//! # let (dir, restored) = (dir.path(), restored.path());
//! let remote = Remote::new(Arc::new(object_store::memory::InMemory::new()), "backup")?;
//! let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir)?);
//! let ignore = &mut |_: Position, _: &[u8]| {};
//! # let small = Options { segment_bytes: 1 << 20, reserve_bytes: 4096, ..Options::default() };
//! # let options = small.clone();
//! let (log, _) = Log::open(Arc::clone(&disk), options, ignore)?;
//! let log = Arc::new(log);
//! let source = PlainLog::new(Arc::clone(&log), disk);
//! let replica = Replica::follow(source, &remote, haul_replicate::Options::default())?;
//! log.append(&[b"hello"], SpacePriority::Ordinary)?.wait()?; // durable on this machine,
//! replica.wait()?; //                                  and now in the remote store
//! replica.stop()?;
//!
//! // On another machine:
//! restore_log(&remote, &(Arc::new(OsDisk::open(restored)?) as Arc<dyn Disk>))?;
//! # let options = small;
//! let mut records = Vec::new();
//! let mut each = |_: Position, record: &[u8]| records.push(record.to_vec());
//! let (_log, _) = Log::open(Arc::new(OsDisk::open(restored)?), options, &mut each)?;
//! assert_eq!(records, [b"hello"]);
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - The copy is always the log's state at one time: all records before its end, in order.
//! - When [`Replica::wait`] returns `Ok`, the records survive the loss of the machine.
//! - If two processes claim a copy, at most one can extend it. The other one gets
//!   [`Error::Fenced`].
//! - A damaged record is never copied. Every chunk has a checksum, which is verified when it is
//!   restored.
//! - With a lease ([`Options::lease`]), a store acknowledges nothing while another process may own
//!   the copy, and a [`Standby`] takes over when the lease has run out.
//! - A [`CopyReader`] opens a file store's states one after the other, for reading only, while its
//!   owner extends the copy.
//! - While the remote store does not respond, the log keeps working, and shipping retries. Nothing
//!   is removed from the log because of the copy.
//!
//! # Cost
//! | | requests |
//! |---|---|
//! | an interval with at most [`Options::tail_bytes_max`] of new records | one |
//! | an interval with more | one for each [`Options::chunk_bytes`], and one |
//! | an interval without new records | none |
//! | a lease | three within its length, also without new records |
//! | a reader | one conditional read at each refresh, each new object once, and ranges of the rest |
//! | a standby | one conditional read at each poll, and each new object once |
//! | a complete segment | none if its chunks have half of [`Options::chunk_bytes`] on average, or if it was complete before it was shipped: then it is one object; otherwise it is uploaded once more as one object, in parts of 8 MiB, and one request deletes its chunks |
//! | a big object | one to find whether it is there, and one for each 8 MiB |
//! | a checkpoint of the index | one or two for each new file |
//!
//! # What it is not
//! It is no cluster: one process writes. The object store must support conditional puts
//! (`If-Match` and `If-None-Match`).
//!
//! # Sources
//! Keys refer to `docs/sources.md`. \[Armbrust20\] immutable objects and
//! a conditional put as the only commit. \[Gray89\] leases.

mod error;
mod follow;
mod lease;
mod manifest;
mod options;
mod owner;
mod progress;
mod provider;
mod reader;
mod remote;
mod restore;
mod session;
mod ship;
#[cfg(test)]
mod simulation;
mod source;
mod standby;
mod store;
mod tier;

pub use error::{Error, Result};
pub use haul_file_store::ReplicationStatus;
pub use options::Options;
pub use progress::Progress;
pub use reader::{CopyReader, CopyState};
pub use remote::Remote;
pub use restore::{Restored, restore_log, restore_log_at};
pub use ship::Replica;
pub use source::{CheckpointFiles, PlainLog, SmallFiles, Source};
pub use standby::{Standby, StandbyControl, Takeover, finish_takeover};
pub use store::{
    Fetch, FoundCopy, StoreSource, check_copy, find_copy, restore_store, restore_store_at,
    restore_store_at_beside, restore_store_beside,
};
pub use tier::{Tier, TierStatus, TieredDisk};
