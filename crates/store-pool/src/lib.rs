//! One object store over several disks.
//!
//! # What it is
//! A pool of file stores ([`haul_file_store::Store`]), each in a directory of its own, with its own
//! log, index and threads. Each key belongs to one member, by a hash of its bucket and its name, so
//! that every rule about a key is kept by one store, and stores on different disks do not wait for
//! each other. A pool has the operations of a store. One directory alone is the store in it.
//!
//! # Example
//! ```
//! use haul_file_store::{Attributes, ListRequest, Options, Precondition};
//! use haul_store_pool::Pool;
//!
//! # fn main() -> haul_file_store::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let options = Options { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..Options::default() };
//! let dirs = [dir.path().join("d1"), dir.path().join("d2")];
//! let (pool, _opened) = Pool::open(&dirs, &options)?;
//! pool.create_bucket("photos")?;
//! let none = Attributes::new();
//! for key in ["a", "b", "c"] {
//!     pool.put("photos", key, b"hello", &none, &Precondition::None)?;
//! }
//! let page = pool.list("photos", &ListRequest { limit: 10, ..ListRequest::default() })?;
//! assert_eq!(page.entries.len(), 3);
//! pool.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - The promises of [`haul_file_store`], for each key.
//! - A key of a missing member is never reported as absent: its calls fail with
//!   [`haul_file_store::Error::MemberMissing`]. Keys of other members are read and written.
//! - A disk that does not respond does not take the threads of all calls: once 16 calls of a member
//!   have waited for two seconds, further ones fail with
//!   [`haul_file_store::Error::MemberStalled`] until one of them returns.
//! - A listing is complete, or fails.
//! - A member whose directory was replaced by an older copy is not used, unless it is refilled
//!   ([`OpenWith::refill`]): then it has the buckets of the others, and what the copy lacked is lost.
//! - A pool whose disks are all lost is restored from the copies of its members
//!   ([`restore_pool`]).
//! - While keys move between members, every call finds each key in its newest state. A crash at any
//!   time loses and doubles none.
//! - Buckets, settings and quotas are the same in all members. A quota limits the usage in all of
//!   them together.
//!
//! # Cost
//! | operation | cost in addition to a store |
//! |---|---|
//! | any call for a key | a hash of its name, and a lock for reading that threads do not share |
//! | a page of a listing | the page of each member, with its share of the entries and eight more |
//! | several deletions | a thread for each member except one |
//! | a change of a bucket or a setting | the change in each member, one after the other |
//! | a minute with changes | one small file in each member, replaced |
//!
//! # What it is not
//! It has no redundancy: the objects of a lost disk are lost, if nothing below (RAID) or behind (a
//! backup, or [`Copies`] of the members) has them.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[DeCandia07\] many more partitions of the keys than members,
//! and a table that assigns them.

mod buckets;
mod clearing;
mod copies;
mod events;
mod groups;
mod listing;
mod maintenance;
mod member;
mod membership;
mod moves;
mod opening;
mod pace;
mod pool;
mod pool_file;
mod progress;
mod reads;
mod restoring;
mod routes;
mod settling;
mod shared;
mod slots;
mod snapshot;
mod stop;
mod table;
mod upkeep;
mod waiting;
mod weights;
mod writes;

pub use copies::{CopiedBy, Copies, MembershipFile, OpenWith};
pub use events::{EventReader, PoolEvents};
pub use member::Member;
pub use opening::{OpenReport, OpenedMember};
pub use pool::Pool;
pub use progress::MoveProgress;
pub use restoring::{FoundCopy, RestoredMember, RestoredPool, restore_pool, restore_pool_on};
pub use waiting::Waiting;
pub use writes::PendingPut;
