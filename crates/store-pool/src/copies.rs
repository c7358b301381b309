//! The copies of the members' stores, which whoever opens a pool keeps elsewhere.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_disk::Disk;
use haul_file_store::{Replication, Result, Store};

/// The copies of a pool's stores, each of which has one of its own.
///
/// A store is named by the number of its member, which stays the same for the life of the member,
/// and is never given to another one; `None` for a store of its own.
pub trait Copies: Send + Sync + fmt::Debug {
    /// Returns what a store is opened with. `local` is the root of its directory, and not locked
    /// yet; `is_new` is `true` if the directory is becoming a member.
    ///
    /// # Errors
    /// Any error: a new directory does not join, and a member is missing.
    fn prepare(&self, member: Option<u16>, local: &Arc<dyn Disk>, is_new: bool)
    -> Result<CopiedBy>;

    /// Starts to copy a store, before any call of it waits for the copy. `file` is a part of the
    /// copy of a member: [`restore_pool`](crate::restore_pool) needs it.
    ///
    /// # Errors
    /// Any error: the pool is not opened.
    fn start(
        &self,
        member: Option<u16>,
        store: &Arc<Store>,
        file: Option<MembershipFile>,
    ) -> Result<()>;

    /// Checks that a member has a copy, without changes.
    ///
    /// # Errors
    /// The copy does not exist, or cannot be read.
    fn check(&self, member: u16) -> Result<()>;

    /// Restores the copy of a member into the root of a disk, which has none of the files of a
    /// store. Returns the time of the copy, in milliseconds since 1970.
    ///
    /// # Errors
    /// Any error; the disk may then have parts of a store.
    ///
    /// # Durability
    /// The store survives a power cut when this returns.
    fn restore(&self, member: u16, disk: &Arc<dyn Disk>) -> Result<u64>;
}

/// A small file of a copy, which says to which pool its member belongs. It has the name
/// [`MembershipFile::NAME`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipFile {
    /// The content.
    pub content: Vec<u8>,
}

impl MembershipFile {
    /// The name of the file.
    pub const NAME: &str = "POOL.membership";
}

/// What a store with a copy is opened with.
#[derive(Debug)]
pub struct CopiedBy {
    /// The disk that has the parts which are only in the copy; `None` if all are local.
    pub disk: Option<Arc<dyn Disk>>,
    /// The copy for which the store's calls wait.
    pub replication: Arc<dyn Replication>,
}

/// What opening a pool changes, beside the directories that join.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenWith<'a> {
    /// The directories of the members that are lost for good: the other members get their slots,
    /// and they are refused if they come back. A directory of no member is ignored: its loss may
    /// have been accepted earlier.
    pub lost: &'a [PathBuf],
    /// An empty directory into which the copy of the only missing member is restored. The directory
    /// of a member is ignored: it may have been refilled earlier.
    pub refill: Option<&'a Path>,
    /// The copies of the members.
    pub copies: Option<&'a dyn Copies>,
    /// The limit on the rate at which keys are moved between members in the background, in bytes per
    /// second; 0 for none. A key that is written while its slot is moved is moved at once.
    pub move_rate: u64,
    /// `true` to refuse directories that are not in a store which exists, instead of adding them.
    pub keeps_members: bool,
}
