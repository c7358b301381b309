//! From a directory to a store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use haul_append_log::{Log, Lsn, SegmentInfo};
use haul_disk::{Disk, Subdir};

use crate::checkpoint::files::IndexFiles;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::manifest::format::Manifest;
use crate::manifest::{self, ManifestFile};
use crate::names;
use crate::options::Options;
use crate::recovery::coverage::Coverage;
use crate::recovery::damage::Damage;
use crate::recovery::marker::{self, Marker};
use crate::recovery::open_index::{OpenedIndex, Replayed, open_index, remove_unlisted};
use crate::recovery::replay::Replayer;
use crate::recovery::survey::{Survey, settle_absent};
use crate::volume_index::format::{FIRST_RECORD, VolumeId};
use crate::volume_index::pending::Pending;
use crate::volume_index::{self, IndexWriter};

/// What opening a store found: data for the caller to show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recovered {
    /// The process before did not close the store: it was killed, or the machine stopped.
    pub after_crash: bool,
    /// Objects in the store.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// Bytes cut from the end of the log: written and never acknowledged.
    pub torn_bytes: u64,
    /// Files of big objects that no object refers to, removed. None are when there is damage: it
    /// may have swallowed the needle that refers to one.
    pub orphans_removed: u64,
    /// Damage found on the way, with the names of the objects it hit.
    pub damage: Vec<Damage>,
    /// Damaged places whose objects are unknown; they are in `damage` as well.
    /// Until their loss is accepted ([`crate::Store::accept_damage`]), whatever may have had its
    /// newest state there answers with an error.
    pub hidden: Vec<Damage>,
    /// The reason why the index was rebuilt from the volumes, if its checkpoint could not be used.
    pub index_rebuilt: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

/// The parts of a store that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) volumes: Arc<dyn Disk>,
    pub(crate) objects: Arc<dyn Disk>,
    pub(crate) log: Log,
    pub(crate) index: Index,
    pub(crate) index_files: Arc<IndexFiles>,
    /// The replay was so long that a checkpoint should be written at once.
    pub(crate) is_checkpoint_due: bool,
    pub(crate) indexes: IndexWriter,
    pub(crate) manifest: Option<ManifestFile>,
    /// Volumes with damage, those that are missing included.
    pub(crate) damaged_volumes: BTreeSet<u32>,
    /// Sealed volumes whose index is complete.
    pub(crate) indexed_volumes: BTreeSet<u32>,
    pub(crate) recovered: Recovered,
}

/// Opens the directory.
///
/// 1. The marker: a directory with anything else in it is refused before it is touched; an empty
///    one gets its marker last, so that a crash on the way leaves an empty one.
/// 2. The volumes: sealed ones from their indexes, the others from their needles, and where these
///    do not check out from the indexes again.
/// 3. The manifest is brought up to date; a store of version 1 gets one. Then a store of an earlier
///    version gets the marker of this version. A crash before that leaves a store of the earlier
///    version, because no needle or index was written yet.
/// 4. The index of the volume being written loses the mark of a store that was closed: before
///    anything is appended nothing says any more that the volume ends there.
/// 5. The big files: those no object refers to were written and never acknowledged, or deleted
///    and not yet removed. A crash in between leaves some for the next time. With damage in the
///    volumes nobody can tell, and all of them stay.
pub(crate) fn recover(disk: &Arc<dyn Disk>, options: &Options) -> Result<Opened> {
    let began = Instant::now();
    let mut marker = marker::read(&**disk)?;
    if marker == Marker::Empty {
        marker::make(&**disk)?;
        marker = Marker::Version1;
    } else {
        // The process that made it may have been killed before this: the names are visible, and
        // gone after a power cut, which would leave volumes where there is no store.
        disk.sync_dir("")?;
    }
    disk.create_dir(names::INDEX)?;
    let subdir = |name| -> Arc<dyn Disk> { Arc::new(Subdir::new(Arc::clone(disk), name)) };
    let (volumes, objects) = (subdir(names::VOLUMES), subdir(names::OBJECTS));
    let index_disk = subdir(names::INDEX);
    let listed = match marker.has_manifest() {
        true => manifest::load(&**disk)?,
        false => manifest::Found::default(),
    };
    refuse_lost_volumes(&**disk, listed.manifest.as_ref())?;

    let expected = expected_volumes(&*volumes, listed.manifest.as_ref())?;
    let OpenedIndex { replayed, index_files, index_rebuilt, mut is_checkpoint_due } =
        open_index(&volumes, &index_disk, &expected, listed.manifest.as_ref(), options)?;
    let Replayed { log, found, mut replay, mut survey } = replayed;
    let has_volume_damage = !survey.damage.is_empty();
    // Each of these headers has another copy: no needle is affected.
    survey.damage.extend(found.header_damage.into_iter().map(Damage::from));
    let manifest = bring_up_to_date(disk, &*volumes, &log, marker, &listed, &survey)?;
    survey.add_manifest(disk.root(), marker.has_manifest(), &listed, found.closed);

    let indexes = IndexWriter::new(Arc::clone(&volumes));
    resume_index(&indexes, &log, &replay, &survey)?;
    let hidden = std::mem::take(&mut survey.hidden);
    replay.index.hidden = settle_absent(hidden, &log, &replay, &*volumes)?;
    let (index, indexed_volumes) = (replay.index, replay.complete);
    is_checkpoint_due |= index.location_changes.is_none();
    remove_unlisted(&*index_disk, &index, &index_files)?;
    let orphans_removed = if has_volume_damage { 0 } else { remove_orphans(&*objects, &index)? };
    remove_unfinished(&*objects, names::is_unfinished_big_file)?;
    remove_unfinished(&*volumes, names::is_unfinished_index)?;

    let recovered = Recovered {
        after_crash: !found.closed,
        objects: index.objects(),
        object_bytes: index.bytes(),
        torn_bytes: found.torn_bytes,
        orphans_removed,
        damage: survey.damage,
        hidden: survey.hidden_damage,
        index_rebuilt,
        seconds: began.elapsed().as_secs_f64(),
    };
    let damaged_volumes = survey.volumes;
    Ok(Opened {
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
        recovered,
    })
}

/// The volumes that something was written to. One that was only made ready may still be given up.
pub(crate) fn begun_volumes(log: &Log) -> Vec<VolumeId> {
    let synced = log.synced();
    let is_begun = |segment: &SegmentInfo| Lsn::new(segment.number, FIRST_RECORD) < synced;
    log.segments().iter().filter(|segment| is_begun(segment)).map(volume_id).collect()
}

pub(crate) fn volume_id(segment: &SegmentInfo) -> VolumeId {
    VolumeId { number: segment.number, nonce: segment.nonce }
}

/// All volumes that must exist: those that are listed, and those that have an index, which is
/// removed before its volume is. With their nonces, where these are known.
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

/// Writes a manifest that lists all volumes that were found and all that are missing, and then the
/// marker of the current version.
///
/// Returns [`Error::Full`] if there is no space for the manifest of a store of version 1, which then
/// stays one.
fn bring_up_to_date(
    disk: &Arc<dyn Disk>,
    volumes: &dyn Disk,
    log: &Log,
    marker: Marker,
    listed: &manifest::Found,
    survey: &Survey,
) -> Result<Option<ManifestFile>> {
    let before = listed.manifest.clone().unwrap_or_default();
    let mut manifest = before.clone();
    manifest.is_rebuilt |= marker.has_manifest() && listed.manifest.is_none();
    for volume in begun_volumes(log) {
        manifest.volumes.insert(volume.number, volume.nonce);
    }
    for number in &survey.missing {
        let index = volume_index::read(volumes, *number, None);
        let nonce = index.map_or(0, |index| index.nonce);
        manifest.volumes.entry(*number).or_insert(nonce);
    }
    let must_write = !marker.has_manifest() || listed.is_uneven || manifest != before;
    if must_write {
        manifest.generation += 1;
    }
    let file = match ManifestFile::open(disk, manifest, must_write) {
        Err(Error::Full { .. }) if marker.has_manifest() => {
            ManifestFile::open(disk, before, false).ok()
        }
        opened => Some(opened?),
    };
    if marker != Marker::Current {
        marker::upgrade(&**disk)?;
    }
    Ok(file)
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
    let pending =
        Pending::of_resumed_volume(end.offset(), &coverage.covered, counted, &unknown, records);
    indexes.resume(number, coverage.kept_bytes, pending)
}

/// Refuses a store that has lost all its volumes: they were moved away, or their file system is not
/// mounted. Opened all the same, it would begin again in an empty directory.
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
            "its manifest lists {listed} volumes in {}, and not one of them exists",
            names::VOLUMES
        ),
        (0, true, _) => {
            format!("there are indexes of volumes in {}, and not one volume", names::VOLUMES)
        }
        (0, false, true) => {
            format!("there are big objects in {}, and not one volume", names::OBJECTS)
        }
        (0, false, false) => return Ok(()),
    };
    Err(Error::NotAStore { dir: root.root().to_path_buf(), why })
}

/// Removes the files of big objects that the index does not know.
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
