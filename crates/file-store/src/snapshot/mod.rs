//! Snapshots: directories that open as stores of their own, and share the immutable files of the
//! store by hard links.
//!
//! A sealed volume is never overwritten while it has two names: the log does not recycle files with
//! other names.

mod files;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use haul_append_log::{Lsn, segment_name};
use haul_disk::{Disk, Durability, Open, OsDisk, Subdir, write_full};

use crate::error::{Error, Result};
use crate::format::FilePart;
use crate::format::MARKER_TEXT;
use crate::inner::Inner;
use crate::maintenance::volume_states::VolumeStates;
use crate::manifest::ManifestFile;
use crate::manifest::format::Manifest;
use crate::names;
use crate::snapshot::files::{Progress, read_end_page};
use crate::store::Store;
use crate::volume_index::format::FIRST_RECORD;

/// A snapshot's content and files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Objects.
    pub objects: u64,
    /// Bytes of these objects.
    pub object_bytes: u64,
    /// Volumes.
    pub volumes: u64,
    /// Files of big objects.
    pub big_files: u64,
    /// Bytes of files that the snapshot shares with the store.
    pub linked_bytes: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
}

impl SnapshotInfo {
    /// Returns the snapshots of two stores of a pool together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            objects: self.objects + other.objects,
            object_bytes: self.object_bytes + other.object_bytes,
            volumes: self.volumes + other.volumes,
            big_files: self.big_files + other.big_files,
            linked_bytes: self.linked_bytes + other.linked_bytes,
            copied_bytes: self.copied_bytes + other.copied_bytes,
        }
    }
}

/// The store's state at the time of the snapshot. No volume is removed while the caller holds the
/// [`VolumeStates`] lock, and no big object's file while this value exists.
struct StoreState<'a> {
    inner: &'a Inner,
    sealed: BTreeSet<u32>,
    /// The volume with the last record, and its last page.
    tail: Option<(u32, Vec<u8>)>,
    /// The end of the last acknowledged record.
    end: Lsn,
    manifest: Manifest,
    pinned: Vec<FilePart>,
    objects: u64,
    object_bytes: u64,
}

impl Drop for StoreState<'_> {
    fn drop(&mut self) {
        let mut index = self.inner.keyspace.index.write();
        index.files.unpin(&self.pinned);
        let freed = index.files.take_freed();
        drop(index);
        self.inner.remove_files(&freed);
    }
}

impl Store {
    /// Creates a snapshot in the directory `to`, which is created if it does not exist, and must be
    /// empty. The snapshot opens as a store with exactly the objects that were acknowledged at some
    /// time during this call.
    ///
    /// Writers wait only while this time is determined; compaction waits until the call returns.
    /// Sealed volumes and files of big objects are shared by hard links, or copied if `to` is on
    /// another file system. The newest volume is copied. The index is omitted: the first opening of
    /// the snapshot rebuilds it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the directory is not empty or a sync failed before; [`Error::Full`]; a
    /// failed system call. An incomplete snapshot remains, and opening it fails with
    /// [`Error::NotAStore`].
    ///
    /// # Durability
    /// The snapshot survives a power cut when this returns. After a power cut before that, it is
    /// complete or opening it fails.
    pub fn snapshot(&self, to: &Path) -> Result<SnapshotInfo> {
        self.snapshot_on(Arc::new(OsDisk::open_or_create(to)?))
    }

    /// Creates a snapshot in the root of any disk, such as a simulated one.
    ///
    /// # Errors
    /// Fails like [`Store::snapshot`].
    ///
    /// # Durability
    /// Like [`Store::snapshot`].
    pub fn snapshot_on(&self, to: Arc<dyn Disk>) -> Result<SnapshotInfo> {
        if let Some(name) = to.list("")?.first() {
            let what = format!("{} is not empty (it contains {name})", to.root().display());
            return Err(Error::Invalid { what });
        }
        let volume_states = self.inner.maintenance.volume_states.lock();
        let state = capture_state(&self.inner)?;
        state.write(&to, &volume_states)
    }
}

/// Determines the store's state between two writes. The caller holds the [`VolumeStates`] lock, so
/// that compaction neither appends nor removes anything.
fn capture_state(inner: &Inner) -> Result<StoreState<'_>> {
    let _no_writer = inner.keyspace.gate.write();
    inner.objects.check()?;
    if inner.volumes.log.is_latched() {
        return Err(Error::Stopped { what: "a sync of the log failed" });
    }
    let end = inner.volumes.log.synced();
    let mut manifest =
        inner.volumes.manifest.as_ref().map(ManifestFile::current).unwrap_or_default();
    let has_record = |number: u32| Lsn::new(number, FIRST_RECORD) < end;
    let segments = inner.volumes.log.segments();
    let begun = || segments.iter().filter(|segment| has_record(segment.number));
    manifest.volumes.extend(begun().map(|segment| (segment.number, segment.nonce)));
    let tail = begun().map(|segment| segment.number).next_back();
    let tail = match tail {
        // The page is read now, because another thread may append to this volume later, and some
        // versions also write to this page.
        Some(number) => Some((number, read_end_page(&*inner.volumes.disk, &segment_name(number))?)),
        None => None,
    };
    let is_sealed = |number: &u32| tail.as_ref().is_none_or(|(tail, _)| number != tail);
    // A damaged volume may be listed but not open.
    let sealed = manifest.volumes.keys().copied().filter(is_sealed).collect();
    let mut index = inner.keyspace.index.write();
    let pinned: Vec<FilePart> = index.files.uses().map(|(file, _)| file).collect();
    index.files.pin(&pinned);
    let (objects, object_bytes) = (index.current_and_older().0, index.current_and_older_bytes().0);
    drop(index);
    Ok(StoreState { inner, sealed, tail, end, manifest, pinned, objects, object_bytes })
}

impl StoreState<'_> {
    /// Writes the snapshot.
    ///
    /// 1. Writes the manifest durably, before anything else. A directory with a manifest and
    ///    without a marker is rejected as a store, even after a power cut.
    /// 2. Links the volumes, their indexes and the files of big objects, and makes their names
    ///    durable.
    /// 3. Writes the marker under a temporary name, syncs it, renames it, and makes the name
    ///    durable. From here on the directory is a store.
    fn write(&self, to: &Arc<dyn Disk>, volume_states: &VolumeStates) -> Result<SnapshotInfo> {
        drop(ManifestFile::open(to, self.manifest.clone(), true)?);
        to.create_dir(names::VOLUMES)?;
        to.create_dir(names::OBJECTS)?;
        to.sync_dir("")?;
        let mut progress = Progress::default();
        let volumes = self.write_volumes(to, volume_states, &mut progress)?;
        let big_files = self.write_big_files(to, &mut progress)?;
        let marker = names::unfinished(names::MARKER);
        let file = to.create(&marker, Open::default())?;
        write_full(&*file, MARKER_TEXT.as_bytes(), 0)?;
        file.sync(Durability::Everything)?;
        to.sync_dir("")?;
        to.rename(&marker, names::MARKER)?;
        to.sync_dir("")?;
        Ok(SnapshotInfo {
            objects: self.objects,
            object_bytes: self.object_bytes,
            volumes,
            big_files,
            linked_bytes: progress.linked_bytes,
            copied_bytes: progress.copied_bytes,
        })
    }

    fn write_volumes(
        &self,
        to: &Arc<dyn Disk>,
        volume_states: &VolumeStates,
        progress: &mut Progress,
    ) -> Result<u64> {
        let from = &*self.inner.volumes.disk;
        let to = Subdir::new(Arc::clone(to), names::VOLUMES);
        let mut count = 0;
        for number in &self.sealed {
            count += u64::from(progress.link(from, &to, &segment_name(*number))?);
            // Indexes are derived data, but name the objects in damaged volumes. They are copied,
            // because they may be overwritten. Incomplete indexes are omitted.
            if volume_states.indexed.contains(number) || volume_states.damaged.contains(number) {
                progress.copy_file(from, &to, &names::index(*number))?;
            }
        }
        if let Some((number, end_page)) = &self.tail {
            // A volume before the end of the log may have been sealed after its last record.
            let is_last = self.end.segment() == *number;
            let end = if is_last { self.end.offset().into() } else { u64::MAX };
            progress.copy_volume((from, &to), &segment_name(*number), end, end_page)?;
            count += 1;
        }
        to.sync_dir("")?;
        Ok(count)
    }

    /// Links all big objects' files. Some may be unreferenced; opening the snapshot removes them,
    /// as after a crash.
    fn write_big_files(&self, to: &Arc<dyn Disk>, progress: &mut Progress) -> Result<u64> {
        let from = &*self.inner.objects.disk;
        let to = Subdir::new(Arc::clone(to), names::OBJECTS);
        let mut count = 0;
        for name in from.list("")? {
            if names::parse_big_file(&name).is_some() {
                count += u64::from(progress.link(from, &to, &name)?);
            }
        }
        to.sync_dir("")?;
        Ok(count)
    }
}
