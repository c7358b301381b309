//! A directory in which a copy's states are opened one after the other, for reading only.
//!
//! ```text
//! LOCK
//! followed/       shared by all states: recent volumes, stubs of the others, the index
//! state-1/        a store in the newest state
//! state-0/        a store in an earlier state, which calls in progress may still read
//! REMOTE.cache    the blocks of volumes and big objects that were read
//! ```
//!
//! Nothing in the directory is needed: a new process fetches what is missing.

mod directory;
mod state;

use std::sync::Arc;
use std::time::Duration;

use haul_append_log::Lsn;
use haul_disk::{Disk, Lock, Subdir};

use crate::error::{Error, Result};
use crate::follow::{Follower, follow_once};
use crate::manifest::object::ManifestObject;
use crate::manifest::{Manifest, STORE};
use crate::progress::Progress;
use crate::remote::Remote;
use crate::restore::load;
use crate::tier::TieredDisk;
use crate::tier::catalog::Catalog;
use crate::tier::lazy_cache::LazyCache;

use directory::FOLLOWED;
use state::Stubs;

/// Opens the states of a file store's copy, which another process extends.
#[derive(Debug)]
pub struct CopyReader {
    remote: Remote,
    root: Arc<dyn Disk>,
    followed: Arc<dyn Disk>,
    follower: Follower,
    stubs: Stubs,
    cache: Arc<LazyCache>,
    /// The manifest that was loaded last; `None` before the first one.
    object: Option<ManifestObject>,
    /// `true` if this manifest has no state yet.
    is_due: bool,
    progress: Arc<Progress>,
    _lock: Lock,
}

/// A store's state in its own directory.
#[derive(Debug)]
pub struct CopyState {
    disk: Arc<TieredDisk>,
    dir: Arc<dyn Disk>,
    name: String,
}

/// The time after which a request for the manifest fails.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

impl CopyReader {
    /// Uses a directory that is empty or was used like this before. Its cache takes up to
    /// `cache_bytes`. Makes no request.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the directory has other files or another process uses it,
    /// [`Error::Disk`].
    pub fn open(remote: &Remote, root: Arc<dyn Disk>, cache_bytes: u64) -> Result<Self> {
        let lock = directory::lock(&*root)?;
        directory::remove_states(&*root)?;
        let followed: Arc<dyn Disk> = Arc::new(Subdir::new(Arc::clone(&root), FOLLOWED));
        let stubs = Stubs::remove_all(&*followed)?;
        let progress = Arc::new(Progress::without_waiting());
        progress.attach(remote);
        Ok(Self {
            remote: remote.clone(),
            follower: Follower::new(remote, &followed, false),
            stubs,
            cache: Arc::new(LazyCache::new(&root, cache_bytes)),
            object: None,
            is_due: false,
            progress,
            root,
            followed,
            _lock: lock,
        })
    }

    /// Returns the progress, for [`haul_file_store::Options::replication`]: its status has the
    /// newest state's end, and the time for which there has been a newer one.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Opens the copy's newest state by `open`, unless the previous call did. `open` opens the
    /// store on the disk, with [`haul_file_store::Options::is_read_only`]. `in_use` names the
    /// states that still exist.
    ///
    /// 1. Loads the manifest, with one request if it was not replaced.
    /// 2. Fetches what opening the store reads, and the directory lacks.
    /// 3. Creates the state's directory. After a crash the next [`Self::open`] empties it.
    ///
    /// # Errors
    /// [`Error::NoCopy`], [`Error::NotThisLog`] if the copy belongs to another log than before,
    /// [`Error::Damaged`], [`Error::Remote`], [`Error::Disk`], and the error from `open` as
    /// [`Error::Store`]. A later call tries again.
    ///
    /// # Durability
    /// None is needed.
    pub fn open_next<T>(
        &mut self,
        in_use: &[&str],
        open: impl FnOnce(Arc<dyn Disk>) -> haul_file_store::Result<T>,
    ) -> Result<Option<(T, CopyState)>> {
        let next = self.next_state(in_use).and_then(|next| match next {
            None => Ok(None),
            Some((state, end)) => {
                let opened = open(Arc::clone(&state.disk) as _)?;
                self.is_due = false;
                self.progress.advance(end, false);
                Ok(Some((opened, state)))
            }
        });
        if let Err(error) = &next {
            self.progress.note_behind();
            self.progress.note_error(error);
        }
        next
    }

    /// Creates the newest state's directory. Also returns the end of its log.
    fn next_state(&mut self, in_use: &[&str]) -> Result<Option<(CopyState, Lsn)>> {
        let is_first = self.object.is_none();
        match &mut self.object {
            Some(object) => self.is_due |= object.reload()?,
            None => {
                self.object = Some(load(&self.remote.with_timeout(REQUEST_TIME_MAX), STORE)?);
                self.is_due = true;
            }
        }
        if !self.is_due {
            self.progress.note_current();
            return Ok(None);
        }
        self.progress.note_behind();
        match self.follow() {
            // An earlier process has followed another copy.
            Err(Error::NotThisLog { .. }) if is_first => {
                directory::clear(&*self.root, FOLLOWED)?;
                self.follower = Follower::new(&self.remote, &self.followed, false);
                self.follow()?;
            }
            followed => followed?,
        }
        let Some(object) = &self.object else { return Ok(None) };
        let manifest = object.current();
        let name = directory::unused_state(in_use);
        let dir: Arc<dyn Disk> = Arc::new(Subdir::new(Arc::clone(&self.root), &name));
        directory::clear(&*self.root, &name)?;
        state::create(&self.followed, &dir, manifest, &mut self.stubs)?;
        let catalog = Arc::new(Catalog::new(&self.remote));
        catalog.add(&manifest.segments);
        let (local, cache) = (Arc::clone(&dir), Arc::clone(&self.cache));
        let disk = Arc::new(TieredDisk::with_cache(local, catalog, cache));
        Ok(Some((CopyState { disk, dir, name }, manifest.end())))
    }

    fn follow(&mut self) -> Result<()> {
        let Some(object) = &mut self.object else { return Ok(()) };
        directory::create(&*self.root, FOLLOWED)?;
        follow_once(&mut self.follower, object, Manifest::recent)
    }
}

impl CopyState {
    /// `true` if the store, and each object that was read from it, was dropped.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.disk) == 1
    }

    /// Returns the directory's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Removes the state's files. The state must be unused.
    ///
    /// # Errors
    /// A failed system call: the directory is emptied when its name is used again.
    pub fn remove(self) -> Result<()> {
        directory::clear(&*self.dir, "")
    }
}
