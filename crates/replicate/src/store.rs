//! File stores: the source that a replica follows, and their restoration.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, SegmentInfo, segment_name};
use haul_disk::{Disk, Durability, File, Open, Subdir, write_full};
use haul_file_store::{Options, Store};

use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::names;
use crate::remote::Remote;
use crate::restore::{Restored, fetch, load, restore_segments, verify_empty};
use crate::session::Sessions;
use crate::source::{CheckpointFiles, SmallFiles, Source};
use crate::tier::{self, stub};

/// The kind of a copy of a file store.
const KIND: &str = "file store";

/// The directory of the volumes.
pub(crate) const VOLUMES: &str = "volumes";

/// The directory of the files of big objects.
pub(crate) const BIG_FILES: &str = "objects";

/// The other directories of a store.
const DIRECTORIES: [&str; 2] = [BIG_FILES, "index"];

/// The file that makes a directory a store.
const MARKER: &str = "STORE";

/// A file store as the source of a replica.
#[derive(Debug)]
pub struct StoreSource {
    store: Arc<Store>,
    disk: Arc<dyn Disk>,
}

impl StoreSource {
    /// Returns the source for a store and the disk that it was opened on.
    #[must_use]
    pub fn new(store: Arc<Store>, disk: Arc<dyn Disk>) -> Self {
        Self { store, disk }
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
        KIND
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
        let layout = self.store.layout(&volumes);
        Ok(SmallFiles { files: layout.files, checkpoint_min: layout.checkpoint_min })
    }

    fn checkpoint_place(&self) -> Option<Lsn> {
        self.store.checkpoint_place()
    }

    fn checkpoint(&self) -> Result<Option<CheckpointFiles>> {
        let checkpoint = self.store.checkpoint()?;
        Ok(checkpoint.map(|found| CheckpointFiles {
            place: found.place,
            files: found.files.into_iter().map(|file| (file.name, file.bytes, file.file)).collect(),
        }))
    }
}

/// The parts of a store that a restoration fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// Everything.
    Everything,
    /// What opening the store reads: the index, and the newest volume. Other volumes and big objects
    /// stay in the copy, and the store opens only on a [`crate::TieredDisk`].
    OnDemand,
}

/// Restores a file store into the root of a disk, which must be empty.
///
/// With [`Fetch::OnDemand`], step 1 creates the marker of a store of which parts are only in the
/// copy, and stubs in the place of volumes; step 3 is omitted.
///
/// 1. Rebuilds the volumes and fetches the index.
/// 2. Writes the small files, the marker last. From here on the directory can be opened as a store.
/// 3. Opens the store, and fetches the files of all big objects that its index refers to.
/// 4. Stores the session of the copy, so that the store can continue it.
///
/// # Errors
/// [`Error::NoCopy`], [`Error::NotThisLog`] if the copy is not of a file store, [`Error::Invalid`]
/// if the directory is not empty, [`Error::Damaged`], [`Error::Remote`], [`Error::Store`],
/// [`Error::Disk`]. An incomplete directory remains: remove it.
///
/// # Durability
/// The store survives a power cut when this returns.
pub fn restore_store(remote: &Remote, disk: &Arc<dyn Disk>, fetch: Fetch) -> Result<Restored> {
    let mut manifest = load(remote)?;
    let end = manifest.end();
    if manifest.kind != KIND {
        return Err(Error::NotThisLog { what: format!("it is of a {}", manifest.kind) });
    }
    verify_empty(&**disk)?;
    disk.create_dir(VOLUMES)?;
    let volumes = Subdir::new(Arc::clone(disk), VOLUMES);
    let mut restored = match fetch {
        Fetch::Everything => restore_segments(remote, &manifest, &volumes)?,
        Fetch::OnDemand => {
            tier::disk::create_marker(&**disk)?;
            let complete = manifest.segments.iter().filter(|segment| segment.is_complete);
            for segment in complete.clone() {
                stub::create(&volumes, &segment_name(segment.number), segment)?;
            }
            let stubs = complete.count() as u64;
            manifest.segments.retain(|segment| !segment.is_complete);
            let restored = restore_segments(remote, &manifest, &volumes)?;
            Restored { end, segments: restored.segments + stubs, ..restored }
        }
    };
    for dir in DIRECTORIES {
        disk.create_dir(dir)?;
    }
    restored.fetched_bytes += restore_index(remote, &manifest, &**disk)?;
    let (marker, others): (Vec<_>, Vec<_>) =
        manifest.small_files.iter().partition(|(name, _)| name == MARKER);
    for (name, content) in others.into_iter().chain(marker) {
        write_file(&**disk, name, content)?;
        disk.sync_dir("")?;
    }
    if fetch == Fetch::Everything {
        restored.fetched_bytes += restore_big_files(remote, disk)?;
    }
    Sessions::restored(manifest.session).store(&**disk)?;
    Ok(restored)
}

/// Fetches the files of the checkpoint. Returns the number of bytes fetched.
fn restore_index(remote: &Remote, manifest: &Manifest, disk: &dyn Disk) -> Result<u64> {
    for file in &manifest.index {
        let bytes = fetch(remote, &names::index_file(file), file.checksum)?;
        write_file(disk, &file.name, &bytes)?;
    }
    disk.sync_dir("index")?;
    Ok(manifest.index.iter().map(|file| file.bytes).sum())
}

/// Fetches the files of the big objects of a store that is not open. Returns the number of bytes
/// fetched.
fn restore_big_files(remote: &Remote, disk: &Arc<dyn Disk>) -> Result<u64> {
    let options =
        Options { lifecycle_check_every: std::time::Duration::ZERO, ..Options::default() };
    let (store, _) = Store::open_on(Arc::clone(disk), options)?;
    let mut fetched = 0;
    for name in store.big_files() {
        let source = names::file(&name);
        let damaged = || {
            let what = "an object refers to it, and it does not exist".to_owned();
            Error::Damaged { name: remote.full_name(&source), what }
        };
        let file = disk.create(&name, Open::default())?;
        let mut write = |at: u64, bytes: &[u8]| Ok(write_full(&*file, bytes, at)?);
        fetched += remote.get_pieces(&source, &mut write)?.ok_or_else(damaged)?;
        file.sync(Durability::Everything)?;
    }
    disk.sync_dir("objects")?;
    store.close()?;
    Ok(fetched)
}

/// Writes a new file.
///
/// # Durability
/// The content is durable when this returns, the name after [`Disk::sync_dir`].
fn write_file(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<()> {
    let file = disk.create(name, Open::default())?;
    write_full(&*file, bytes, 0)?;
    Ok(file.sync(Durability::Everything)?)
}
