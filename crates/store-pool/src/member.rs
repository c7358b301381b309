//! A member of a pool.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_file_store::{Error, Result, Store};
use haul_sync::Mutex;

use crate::waiting::{Call, Calls, Waiting};

/// A member of an open pool: a store, or the reason why it is missing.
#[derive(Debug)]
pub struct Member {
    pub(crate) number: u16,
    pub(crate) dir: PathBuf,
    /// The store, or the reason why it is missing.
    pub(crate) store: std::result::Result<Arc<Store>, String>,
    reads: Arc<Calls>,
    // Apart from the reads: a file system that is frozen for a snapshot can be read.
    writes: Arc<Calls>,
    /// The calls for which a key is moved from this member, by the number of the new member. Either
    /// of the two disks may be the one that does not respond: so they are counted for the pair, and
    /// never make a member reject its other calls.
    moves: Mutex<BTreeMap<u16, Arc<Calls>>>,
}

impl Member {
    pub(crate) fn new(
        number: u16,
        dir: PathBuf,
        store: std::result::Result<Arc<Store>, String>,
    ) -> Self {
        let (reads, writes) = (Calls::new(), Calls::new());
        Self { number, dir, store, reads, writes, moves: Mutex::default() }
    }

    /// Returns the member's number, which no other member of the pool has.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the member's directory. That of a missing member is where it was last open.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns `true` if this is the member's directory, named from the root or from the current
    /// directory.
    #[must_use]
    pub fn is_at(&self, dir: &Path) -> bool {
        self.dir == dir || std::path::absolute(dir).is_ok_and(|dir| self.dir == dir)
    }

    /// Returns the member's store.
    ///
    /// # Errors
    /// [`Error::MemberMissing`].
    pub fn store(&self) -> Result<&Arc<Store>> {
        self.store.as_ref().map_err(|why| {
            let (dir, why) = (self.dir.clone(), why.clone());
            Error::MemberMissing { dir, why }
        })
    }

    /// Returns the calls that its disk has kept waiting for more than two seconds: those of the reads
    /// or of the writes, whichever wait longer. Always none for a store of its own.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        let (reads, writes) = (self.reads.waiting(), self.writes.waiting());
        if reads.longest > writes.longest { reads } else { writes }
    }

    /// Begins a call that may read the disk.
    ///
    /// # Errors
    /// [`Error::MemberMissing`]; [`Error::MemberStalled`].
    pub(crate) fn begin_read(&self) -> Result<Call> {
        self.begin(&self.reads)
    }

    /// Begins a call that may write to the disk, like [`Self::begin_read`].
    pub(crate) fn begin_write(&self) -> Result<Call> {
        self.begin(&self.writes)
    }

    /// Begins a call for which a key is moved from this member to another one.
    ///
    /// # Errors
    /// [`Error::MemberMissing`]; [`Error::MemberStalled`] if one of the two rejects calls, or if too
    /// many moves between them wait.
    pub(crate) fn begin_move(&self, to: &Self) -> Result<Call> {
        [self, to].into_iter().try_for_each(|member| member.begin_write().map(drop))?;
        let calls = Arc::clone(self.moves.lock().entry(to.number).or_insert_with(Calls::new));
        calls.begin().map_err(|waiting| {
            // The one whose other calls wait for longer is probably the cause.
            let is_to = to.waiting().longest > self.waiting().longest;
            if is_to { to } else { self }.stalled_with(waiting)
        })
    }

    fn begin(&self, calls: &Arc<Calls>) -> Result<Call> {
        self.store()?;
        calls.begin().map_err(|waiting| self.stalled_with(waiting))
    }

    /// Returns the error for a call that does not wait for this member any longer.
    pub(crate) fn stalled(&self) -> Error {
        self.stalled_with(self.waiting())
    }

    fn stalled_with(&self, Waiting { calls, longest }: Waiting) -> Error {
        Error::MemberStalled { dir: self.dir.clone(), calls, longest }
    }

    /// Reads the store.
    ///
    /// # Errors
    /// Fails like [`Self::begin_read`] and `read`.
    pub(crate) fn read<'a, T>(&'a self, read: impl FnOnce(&'a Store) -> Result<T>) -> Result<T> {
        let _call = self.begin_read()?;
        read(self.store()?)
    }

    /// Changes the store.
    ///
    /// # Errors
    /// Fails like [`Self::begin_write`] and `write`.
    pub(crate) fn write<'a, T>(&'a self, write: impl FnOnce(&'a Store) -> Result<T>) -> Result<T> {
        let _call = self.begin_write()?;
        write(self.store()?)
    }

    /// Returns the reason why the member is missing; `None` if it is open.
    #[must_use]
    pub fn why_missing(&self) -> Option<&str> {
        self.store.as_ref().err().map(String::as_str)
    }
}
