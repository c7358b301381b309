//! File stores: the source that a replica follows, and their restoration.

use std::sync::Arc;
use std::time::SystemTime;

use haul_append_log::{Log, Lsn, SegmentInfo, segment_name};
use haul_disk::{Disk, File, Subdir};
use haul_file_store::{Options, Store};

use crate::error::{Error, Result};
use crate::follow::{Follower, exists, fetch_file, follow_once};
use crate::manifest::names::{self, VOLUMES};
use crate::manifest::object::ManifestObject;
use crate::manifest::{Manifest, STORE};
use crate::remote::Remote;
use crate::restore::{Restored, load, state_at, verify_empty};
use crate::session::Sessions;
use crate::source::{CheckpointFiles, SmallFiles, Source};
use crate::tier::{self, stub};

/// A file store as a replica's source.
#[derive(Debug)]
pub struct StoreSource {
    store: Arc<Store>,
    disk: Arc<dyn Disk>,
    /// Small files beside those of the store: name and content.
    files: Vec<(String, Vec<u8>)>,
}

impl StoreSource {
    /// Returns the source for a store and the disk on which it was opened.
    #[must_use]
    pub fn new(store: Arc<Store>, disk: Arc<dyn Disk>) -> Self {
        Self { store, disk, files: Vec::new() }
    }

    /// Adds a small file to the copy, which [`find_copy`] returns and a restoration creates beside
    /// the files of the store.
    #[must_use]
    pub fn with_file(mut self, name: &str, content: Vec<u8>) -> Self {
        self.files.push((name.to_owned(), content));
        self
    }
}

impl Source for StoreSource {
    fn log(&self) -> &Log {
        self.store.log()
    }

    fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    fn kind(&self) -> &'static str {
        STORE
    }

    fn segment_dir(&self) -> &'static str {
        VOLUMES
    }

    fn record_files(&self, payload: &[u8]) -> Result<Vec<String>> {
        Ok(Store::record_files(payload)?)
    }

    fn open_file(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        Ok(self.store.open_file(name)?)
    }

    fn files(&self) -> Vec<String> {
        self.store.big_files()
    }

    fn small_files(&self, segments: &[SegmentInfo]) -> Result<SmallFiles> {
        let volumes: Vec<_> =
            segments.iter().map(|segment| (segment.number, segment.nonce)).collect();
        let layout = self.store.metadata_files(&volumes);
        let files = layout.files.into_iter().chain(self.files.iter().cloned()).collect();
        Ok(SmallFiles { files, checkpoint_min: layout.checkpoint_min })
    }

    fn checkpoint_lsn(&self) -> Option<Lsn> {
        self.store.checkpoint_lsn()
    }

    fn checkpoint(&self) -> Result<Option<CheckpointFiles>> {
        let checkpoint = self.store.checkpoint()?;
        Ok(checkpoint.map(|found| CheckpointFiles {
            lsn: found.lsn,
            files: found.files.into_iter().map(|file| (file.name, file.bytes, file.file)).collect(),
        }))
    }
}

/// The part of a store that a restoration fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// Everything.
    Everything,
    /// The part that opening the store reads: the index, and the volumes with later records. Other
    /// volumes and big objects stay in the copy, and the store opens only on a
    /// [`crate::TieredDisk`].
    OnDemand,
}

/// Restores a file store into a disk's root, which must be empty.
///
/// With [`Fetch::OnDemand`], step 1 first creates the marker for a store with parts that are only
/// in the copy, and stubs in place of volumes that are not fetched; step 3 is omitted.
///
/// 1. Rebuilds the volumes and fetches the index.
/// 2. Writes the small files, the marker last. From here on the directory can be opened as a store.
/// 3. Opens the store, and fetches all big-object files that its index refers to.
/// 4. Stores the copy's session, so that the store can continue it.
///
/// # Errors
/// [`Error::NoCopy`], [`Error::NotThisLog`] if the copy does not hold a file store,
/// [`Error::Invalid`] if the directory is not empty, [`Error::Damaged`], [`Error::Remote`],
/// [`Error::Store`], [`Error::Disk`]. An incomplete directory remains: remove it.
///
/// # Durability
/// The store survives a power cut when this returns.
pub fn restore_store(remote: &Remote, disk: &Arc<dyn Disk>, fetch: Fetch) -> Result<Restored> {
    let object = load(remote, STORE)?;
    verify_empty(&**disk)?;
    restore(object, remote, disk, fetch)
}

/// Checks that there is the copy of a file store, with one request.
///
/// # Errors
/// [`Error::NoCopy`], [`Error::NotThisLog`] if the copy does not hold a file store,
/// [`Error::Damaged`], [`Error::Remote`].
pub fn check_copy(remote: &Remote) -> Result<()> {
    load(remote, STORE).map(drop)
}

/// A copy that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCopy {
    /// The time at which the manifest was written, in milliseconds since 1970, by its writer's
    /// clock.
    pub written_ms: u64,
    /// The content of the file that was asked for, if the copy has it.
    pub file: Option<Vec<u8>>,
}

/// Finds the copy of a file store, and the small file `file` in it, with one or two requests: its
/// newest state, or the newest one at or before `at`. `None` if there is no copy.
///
/// # Errors
/// [`Error::NotThisLog`] if the copy does not hold a file store, [`Error::NotKept`],
/// [`Error::Damaged`], [`Error::Remote`].
pub fn find_copy(remote: &Remote, file: &str, at: Option<SystemTime>) -> Result<Option<FoundCopy>> {
    let object = match load(remote, STORE) {
        Err(Error::NoCopy { .. }) => return Ok(None),
        loaded => loaded?,
    };
    let newest = object.current();
    let manifest = at.map_or_else(|| Ok(newest.clone()), |at| state_at(remote, newest, at))?;
    let mut files = manifest.small_files.into_iter();
    let file = files.find(|(name, _)| name == file).map(|(_, content)| content);
    Ok(Some(FoundCopy { written_ms: manifest.written_ms, file }))
}

/// Restores a file store like [`restore_store`] into a disk's root that may have other files. None of
/// them is a part of a store.
///
/// # Errors
/// Fails like [`restore_store`]; the parts of an incomplete store remain beside the other files.
///
/// # Durability
/// Like [`restore_store`].
pub fn restore_store_beside(
    remote: &Remote,
    disk: &Arc<dyn Disk>,
    fetch: Fetch,
) -> Result<Restored> {
    restore(load(remote, STORE)?, remote, disk, fetch)
}

fn restore(
    mut object: ManifestObject,
    remote: &Remote,
    disk: &Arc<dyn Disk>,
    fetch: Fetch,
) -> Result<Restored> {
    let mut follower = Follower::new(remote, disk, false);
    match fetch {
        Fetch::Everything => follow_once(&mut follower, &mut object, Manifest::clone)?,
        Fetch::OnDemand => {
            tier::disk::create_marker(&**disk)?;
            follow_once(&mut follower, &mut object, Manifest::recent)?;
            create_stubs(object.current(), &Subdir::new(Arc::clone(disk), VOLUMES))?;
        }
    }
    let manifest = object.current();
    follower.finish(manifest)?;
    let files = match fetch {
        Fetch::Everything => restore_big_files(remote, disk)?,
        Fetch::OnDemand => 0,
    };
    Sessions::restored(manifest.session, manifest.end()).store(&**disk)?;
    Ok(Restored::of(manifest, follower.fetched_bytes() + files))
}

/// Creates stubs in place of the volumes that opening the store does not read.
fn create_stubs(manifest: &Manifest, volumes: &Subdir) -> Result<()> {
    for segment in manifest.segments.iter().filter(|segment| !manifest.is_recent(segment)) {
        stub::create(volumes, &segment_name(segment.number), segment)?;
    }
    Ok(volumes.sync_dir("")?)
}

/// Restores a file store like [`restore_store`], in the newest state at or before `at`. The store
/// cannot continue the copy, which is newer.
///
/// # Errors
/// Fails like [`restore_store`], and with [`Error::NotKept`].
///
/// # Durability
/// Like [`restore_store`].
pub fn restore_store_at(remote: &Remote, disk: &Arc<dyn Disk>, at: SystemTime) -> Result<Restored> {
    let object = load(remote, STORE)?;
    verify_empty(&**disk)?;
    restore_at(&object, remote, disk, at)
}

/// Restores a file store like [`restore_store_at`] into a disk's root that may have other files, none
/// of which is a part of a store.
///
/// # Errors
/// Fails like [`restore_store_at`]; the parts of an incomplete store remain beside the other files.
///
/// # Durability
/// Like [`restore_store`].
pub fn restore_store_at_beside(
    remote: &Remote,
    disk: &Arc<dyn Disk>,
    at: SystemTime,
) -> Result<Restored> {
    restore_at(&load(remote, STORE)?, remote, disk, at)
}

fn restore_at(
    object: &ManifestObject,
    remote: &Remote,
    disk: &Arc<dyn Disk>,
    at: SystemTime,
) -> Result<Restored> {
    let manifest = state_at(remote, object.current(), at)?;
    let mut follower = Follower::new(remote, disk, false);
    follower.advance(&manifest, &mut || Ok(()))?;
    follower.finish(&manifest)?;
    let files = restore_big_files(remote, disk)?;
    Ok(Restored::of(&manifest, follower.fetched_bytes() + files))
}

/// Fetches the big-object files of a store that is not open. Returns the number of bytes fetched.
fn restore_big_files(remote: &Remote, disk: &Arc<dyn Disk>) -> Result<u64> {
    let options =
        Options { lifecycle_check_every: std::time::Duration::ZERO, ..Options::default() };
    let (store, _) = Store::open_on(Arc::clone(disk), options)?;
    let fetched = fetch_big_files(remote, &store, &**disk)?;
    store.close()?;
    Ok(fetched)
}

/// Fetches the big-object files that an open store lacks. Returns the number of bytes fetched.
///
/// # Durability
/// The files are durable when this returns.
pub(crate) fn fetch_big_files(remote: &Remote, store: &Store, disk: &dyn Disk) -> Result<u64> {
    let mut fetched = 0;
    for name in store.big_files() {
        if exists(disk, &name)? {
            continue;
        }
        // A store on a tiered disk reads the file from the copy. Without the marker, it could be
        // opened without the copy later, and would miss the file.
        if store.open_file(&name)?.is_some() {
            tier::disk::create_marker(disk)?;
            continue;
        }
        let damaged = || {
            let what = "an object refers to it, and it does not exist".to_owned();
            Error::Damaged { name: remote.full_name(&names::file(&name)), what }
        };
        fetched += fetch_file(remote, disk, &name, &mut || Ok(()))?.ok_or_else(damaged)?;
    }
    Ok(fetched)
}
