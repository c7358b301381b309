//! Recovery: opens the parts of a store and determines its damage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use haul_append_log::Log;
use haul_disk::{Disk, Open, Subdir};

use crate::catalog::files::IndexFiles;
use crate::damage::report::Damage;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::manifest::format::Manifest;
use crate::manifest::{self, ManifestFile};
use crate::names;
use crate::options::Options;
use crate::recovery::coverage::Coverage;
use crate::recovery::marker::{self, Marker};
use crate::recovery::open_index::{OpenedIndex, Replayed, open_index, remove_unlisted};
use crate::recovery::replay::Replayer;
use crate::recovery::survey::{Survey, mark_absent_keys};
use crate::volume_index::format::FIRST_RECORD;
use crate::volume_index::pending::Pending;
use crate::volume_index::{self, IndexWriter};
use crate::volumes::nonempty_volumes;

/// The result of opening a store, for display.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecoveryReport {
    /// `true` if the previous process did not close the store: it was killed, or the machine
    /// stopped.
    pub after_crash: bool,
    /// The number of objects.
    pub objects: u64,
    /// The total length of the objects.
    pub object_bytes: u64,
    /// The bytes that were truncated at the end of the log: written but never acknowledged.
    pub torn_bytes: u64,
    /// The number of unreferenced files of big objects that were removed. None are removed if there
    /// is damage, because the needle that references a file may be lost.
    pub orphans_removed: u64,
    /// The damage that was found, with the names of affected objects.
    pub damage: Vec<Damage>,
    /// The damaged ranges whose objects are unknown; `damage` contains them, too. Until their loss
    /// is accepted ([`crate::Store::accept_damage`]), requests for keys whose newest state may have
    /// been in them fail.
    pub hidden: Vec<Damage>,
    /// The reason why the index was rebuilt from the volumes, if its checkpoint could not be used.
    pub index_rebuilt: Option<String>,
    /// The duration, in seconds.
    pub seconds: f64,
}

/// An open store's parts.
#[derive(Debug)]
pub(crate) struct OpenedStore {
    pub(crate) volumes: Arc<dyn Disk>,
    pub(crate) objects: Arc<dyn Disk>,
    pub(crate) log: Log,
    pub(crate) index: Index,
    pub(crate) index_files: Arc<IndexFiles>,
    /// `true` if a checkpoint should be written at once: the previous one was missing or unusable,
    /// or the replay was long.
    pub(crate) is_checkpoint_due: bool,
    pub(crate) indexes: IndexWriter,
    pub(crate) manifest: Option<ManifestFile>,
    /// Damaged and missing volumes.
    pub(crate) damaged_volumes: BTreeSet<u32>,
    /// Sealed volumes whose index is complete.
    pub(crate) indexed_volumes: BTreeSet<u32>,
    /// `true` if versioning was enabled or suspended in a bucket.
    pub(crate) has_versions: bool,
    pub(crate) recovered: RecoveryReport,
}

/// Opens a store.
///
/// 1. The marker: a directory with other files is refused without a change. An empty directory gets
///    an empty manifest, and its marker last, so that a crash before leaves it empty.
/// 2. The volumes: sealed ones are known by their indexes, the others by their needles. Damaged
///    ones are known by their indexes as far as possible.
/// 3. The manifest is updated.
/// 4. The mark of the newest volume's end is removed from its index before anything is appended.
/// 5. Big files that are not referenced are removed: they were written but never acknowledged, or
///    deleted and not yet removed. A crash in between leaves some for the next opening. If volumes
///    are damaged, references may be lost, and all files stay.
pub(crate) fn recover(disk: &Arc<dyn Disk>, options: &Options) -> Result<OpenedStore> {
    let began = Instant::now();
    if marker::read(&**disk)? == Marker::Empty {
        marker::make(disk)?;
    } else {
        refuse_without_copy(&**disk)?;
        // A snapshot has no index.
        disk.create_dir(names::INDEX)?;
        // The process that created the store may have been killed before this sync: the names are
        // visible, but a power cut would remove them and leave volumes in a directory that is not a
        // store.
        disk.sync_dir("")?;
    }
    let subdir = |name| -> Arc<dyn Disk> { Arc::new(Subdir::new(Arc::clone(disk), name)) };
    let (volumes, objects) = (subdir(names::VOLUMES), subdir(names::OBJECTS));
    let index_disk = subdir(names::INDEX);
    let listed = manifest::load(&**disk)?;
    refuse_lost_volumes(&**disk, listed.manifest.as_ref())?;

    let expected = expected_volumes(&*volumes, listed.manifest.as_ref())?;
    let OpenedIndex { replayed, index_files, index_rebuilt, mut is_checkpoint_due } =
        open_index(&volumes, &index_disk, &expected, listed.manifest.as_ref(), options)?;
    let Replayed { log, found, mut replay, mut survey } = replayed;
    let has_volume_damage = !survey.damage.is_empty();
    // Each damaged header has an intact copy: no needle is affected.
    survey.damage.extend(found.header_damage.into_iter().map(Damage::from));
    let manifest = bring_up_to_date(disk, &*volumes, &log, &listed, &survey)?;
    survey.add_manifest(disk.root(), &listed, found.closed);

    let indexes = IndexWriter::new(Arc::clone(&volumes));
    resume_index(&indexes, &log, &replay, &survey)?;
    let hidden = std::mem::take(&mut survey.hidden);
    replay.index.hidden = mark_absent_keys(hidden, &log, &replay, &*volumes)?;
    let (index, indexed_volumes) = (replay.index, replay.complete);
    is_checkpoint_due |= index.location_changes.is_none();
    remove_unlisted(&*index_disk, &index, &index_files)?;
    let orphans_removed = if has_volume_damage { 0 } else { remove_orphans(&*objects, &index)? };
    remove_unfinished(&*objects, names::is_unfinished_big_file)?;
    remove_unfinished(&*volumes, names::is_unfinished_index)?;

    let recovered = RecoveryReport {
        after_crash: !found.closed,
        objects: index.current_and_older().0,
        object_bytes: index.current_and_older_bytes().0,
        torn_bytes: found.torn_bytes,
        orphans_removed,
        damage: survey.damage,
        hidden: survey.hidden_damage,
        index_rebuilt,
        seconds: began.elapsed().as_secs_f64(),
    };
    if recovered.damage.is_empty() {
        index.check_totals();
    }
    debug_assert!(!index.replaying);
    let has_versions = index.has_versions();
    let damaged_volumes = survey.volumes;
    Ok(OpenedStore {
        volumes,
        objects,
        log,
        index,
        index_files,
        is_checkpoint_due,
        indexes,
        manifest,
        damaged_volumes,
        indexed_volumes,
        has_versions,
        recovered,
    })
}

/// Returns all volumes that must exist, with their nonces if known: those in the manifest, and
/// those with an index, which is removed before its volume.
fn expected_volumes(
    volumes: &dyn Disk,
    manifest: Option<&Manifest>,
) -> Result<BTreeMap<u32, Option<u64>>> {
    let mut expected = BTreeMap::new();
    for number in volumes.list("")?.iter().filter_map(|name| names::parse_index(name)) {
        expected.insert(number, None);
    }
    for (number, nonce) in manifest.iter().flat_map(|manifest| &manifest.volumes) {
        expected.insert(*number, Some(*nonce));
    }
    Ok(expected)
}

/// Writes a manifest that lists all existing and all missing volumes. Returns `None` if the
/// manifest was lost and the disk has no space for another one.
fn bring_up_to_date(
    disk: &Arc<dyn Disk>,
    volumes: &dyn Disk,
    log: &Log,
    listed: &manifest::LoadedManifest,
    survey: &Survey,
) -> Result<Option<ManifestFile>> {
    let before = listed.manifest.clone().unwrap_or_default();
    let mut manifest = before.clone();
    manifest.is_rebuilt |= listed.manifest.is_none();
    for volume in nonempty_volumes(log) {
        manifest.volumes.insert(volume.number, volume.nonce);
    }
    for number in &survey.missing {
        let index = volume_index::read(volumes, *number, None);
        let nonce = index.map_or(0, |index| index.nonce);
        manifest.volumes.entry(*number).or_insert(nonce);
    }
    let must_write = listed.is_uneven || manifest != before;
    if must_write {
        manifest.generation += 1;
    }
    debug_assert!(before.volumes.keys().all(|number| manifest.volumes.contains_key(number)));
    match ManifestFile::open(disk, manifest, must_write) {
        Err(Error::Full { .. }) => Ok(ManifestFile::open(disk, before, false).ok()),
        opened => opened.map(Some),
    }
}

/// Continues the index of the volume that is being written.
fn resume_index(
    indexes: &IndexWriter,
    log: &Log,
    replay: &Replayer<'_>,
    survey: &Survey,
) -> Result<()> {
    let end = log.synced();
    let number = end.segment();
    if !replay.opened.contains_key(&number) {
        return Ok(());
    }
    let none = Coverage::default();
    let coverage = replay.coverage.get(&number).unwrap_or(&none);
    // Needles before the checkpoint were not read, and are unknown if the index lacks them.
    let mut unknown = survey.ranges.get(&number).cloned().unwrap_or_default();
    unknown.insert(FIRST_RECORD, replay.covered_end(number));
    let records = match &replay.last_records {
        (volume, records) if *volume == number => &records[..],
        _ => &[],
    };
    let counted = u32::try_from(coverage.needles).unwrap_or(u32::MAX);
    let pending = Pending::resumed(end.offset(), &coverage.covered, counted, &unknown, records);
    indexes.resume(number, coverage.kept_bytes, pending)
}

/// Rejects a store if parts of it are only in a remote copy that `root` does not have.
fn refuse_without_copy(root: &dyn Disk) -> Result<()> {
    let read_only = Open { read_only: true, ..Open::default() };
    match root.open(names::REMOTE_MARKER, read_only) {
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => {
            let why = "parts of it are only in its remote copy".to_owned();
            Err(Error::NotAStore { dir: root.root().to_path_buf(), why })
        }
    }
}

/// Rejects a store that has none of its volumes: they were moved away, or their file system is not
/// mounted. Opening it would start an empty store.
fn refuse_lost_volumes(root: &dyn Disk, manifest: Option<&Manifest>) -> Result<()> {
    let volumes = root.list(names::VOLUMES)?;
    if volumes.iter().any(|name| names::parse_volume(name).is_some()) {
        return Ok(());
    }
    let listed = manifest.map_or(0, |manifest| manifest.volumes.len());
    let has_indexes = volumes.iter().any(|name| names::parse_index(name).is_some());
    let has_objects =
        root.list(names::OBJECTS)?.iter().any(|name| names::parse_big_file(name).is_some());
    let why = match (listed, has_indexes, has_objects) {
        (1.., _, _) => format!(
            "its manifest lists {listed} volumes in {}, but none of them exists",
            names::VOLUMES
        ),
        (0, true, _) => {
            format!("there are indexes of volumes in {}, but no volumes", names::VOLUMES)
        }
        (0, false, true) => {
            format!("there are big objects in {}, but no volumes", names::OBJECTS)
        }
        (0, false, false) => return Ok(()),
    };
    Err(Error::NotAStore { dir: root.root().to_path_buf(), why })
}

/// Removes big objects' files that the index does not reference.
fn remove_orphans(objects: &dyn Disk, index: &Index) -> Result<u64> {
    let mut removed = 0;
    for name in objects.list("")? {
        if names::parse_big_file(&name).is_some_and(|id| !index.files.contains(id)) {
            objects.remove(&name)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn remove_unfinished(disk: &dyn Disk, is_unfinished: fn(&str) -> bool) -> Result<()> {
    for name in disk.list("")?.iter().filter(|name| is_unfinished(name)) {
        disk.remove(name)?;
    }
    Ok(())
}
