//! Opening the log and the index together.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_append_log::{self as log, Log, Lsn, OnDamage, SyncMethod};
use haul_disk::{Disk, random_bytes};

use crate::catalog::files::IndexFiles;
use crate::catalog::format::Catalog;
use crate::catalog::load::{Loaded, is_unusable, load};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::index::hash::KeyHash;
use crate::index::keys::Keys;
use crate::manifest::format::{AcceptedLoss, Manifest};
use crate::names;
use crate::options::{Options, RecentChanges};
use crate::recovery::replay::Replayer;
use crate::recovery::spill::Spill;
use crate::recovery::survey::Survey;

/// A log and an index that were opened together.
pub(super) struct OpenedIndex<'a> {
    pub(super) replayed: Replayed<'a>,
    pub(super) index_files: Arc<IndexFiles>,
    /// The reason why the index was rebuilt, if its checkpoint could not be used.
    pub(super) index_rebuilt: Option<String>,
    /// `true` if the checkpoint was unusable, so that a new one should be written at once.
    pub(super) is_checkpoint_due: bool,
}

/// Loads the checkpoint and replays the log from its position; replays the whole log if the
/// checkpoint is missing or unusable.
///
/// # Errors
/// A failed system call; a log that cannot be opened.
pub(super) fn open_index<'a>(
    volumes: &'a Arc<dyn Disk>,
    disk: &Arc<dyn Disk>,
    expected: &BTreeMap<u32, Option<u64>>,
    manifest: Option<&Manifest>,
    options: &Options,
) -> Result<OpenedIndex<'a>> {
    let accepted = manifest.map_or(&[][..], |manifest| &manifest.accepted);
    let checkpoint_min = manifest.map_or(Lsn::default(), |manifest| manifest.checkpoint_min);
    let (loaded, mut index_rebuilt) = match load(&**disk, options.volume_bytes, checkpoint_min) {
        Err(error) if is_unusable(&error) => (None, Some(error.to_string())),
        loaded => (loaded?, None),
    };
    let had_index = disk.list("")?.iter().any(|name| names::parse_index_file(name).is_some());
    let mut is_checkpoint_due = had_index && loaded.is_none();
    let mut index_files = index_files_of(disk, loaded.as_ref())?;
    let replay = |index_files: &Arc<IndexFiles>, loaded| {
        replay_log(volumes, index_files, loaded, expected.clone(), options, accepted)
    };
    let replayed = match replay(&index_files, loaded) {
        // The checkpoint does not match the volumes, or is damaged in a place that only the replay
        // reads.
        Err(error) if had_index && is_unusable(&error) => {
            index_files.discard_catalog();
            index_files = index_files_of(disk, None)?;
            (is_checkpoint_due, index_rebuilt) = (true, Some(error.to_string()));
            replay(&index_files, None)?
        }
        replayed => replayed?,
    };
    Ok(OpenedIndex { replayed, index_files, index_rebuilt, is_checkpoint_due })
}

/// An open log, and the index that results from its records.
pub(super) struct Replayed<'a> {
    pub(super) log: Log,
    pub(super) found: log::Recovered,
    pub(super) replay: Replayer<'a>,
    pub(super) survey: Survey,
}

/// Opens the log and applies its records to the checkpoint's index or to an empty one.
fn replay_log<'a>(
    volumes: &'a Arc<dyn Disk>,
    index_files: &Arc<IndexFiles>,
    loaded: Option<Loaded>,
    expected: BTreeMap<u32, Option<u64>>,
    options: &Options,
    accepted: &[AcceptedLoss],
) -> Result<Replayed<'a>> {
    let newest = expected.last_key_value().map_or(0, |(number, _)| *number);
    let (index, checkpoint) = match loaded {
        Some(loaded) => (loaded.index, (loaded.catalog.applied, loaded.nonces)),
        None => (empty_index(options)?, (Lsn::default(), BTreeMap::new())),
    };
    let RecentChanges { key_bytes, needles } = options.recent_changes_max();
    let spill = Spill {
        files: Arc::clone(index_files),
        recent_bytes_max: usize::try_from(key_bytes).unwrap_or(usize::MAX),
        changes_max: needles * CHANGES_KEPT,
    };
    let mut replay = Replayer::new(&**volumes, expected, index, checkpoint, spill);
    let log_options = log_options(options, newest)?;
    let (log, found) = Log::open(Arc::clone(volumes), log_options, &mut replay)?;
    replay.end()?;
    let survey = Survey::new(&mut replay, &log, found.damage.clone(), accepted)?;
    Ok(Replayed { log, found, replay, survey })
}

/// A replay records location changes up to this many times the changes between two checkpoints.
const CHANGES_KEPT: u64 = 8;

/// The number of volumes reserved for compaction: one for any volume's live needles, and one that
/// deletions may use in the meantime.
const COMPACTION_VOLUMES: u32 = 2;

/// The size of the first volume of a new store, if the longest needle fits into it. Each later
/// volume is twice as large, up to `volume_bytes`.
const FIRST_VOLUME_BYTES: u32 = 4 << 20;

fn log_options(options: &Options, numbers_after: u32) -> Result<log::Options> {
    let too_large = |_too_large| Error::Invalid { what: "volume_bytes is too large".to_owned() };
    let segment_bytes = u32::try_from(options.volume_bytes).map_err(too_large)?;
    let buffer_bytes = u32::try_from(options.record_bytes_max()).map_err(too_large)?;
    let with_reserve = !options.is_read_only;
    Ok(log::Options {
        on_damage: OnDamage::Report,
        idle_watermark_ms: options.idle_watermark_ms,
        numbers_after,
        reserve_bytes: if with_reserve { (1 << 20).min(segment_bytes / 8) } else { 0 },
        compaction_segments: if with_reserve { COMPACTION_VOLUMES } else { 0 },
        // The free space is for the indexes of volumes, which are written if space permits.
        free_bytes_min: options.free_bytes_min(),
        // Under constant overwrites and compaction, removed volumes are reused as the next ones.
        // Big objects get their space when they need it.
        spare_segments_max: 2,
        segment_bytes: segment_bytes.next_multiple_of(4096),
        first_segment_bytes: Some(FIRST_VOLUME_BYTES),
        buffer_bytes,
        // An object is often read soon after it is written, and is then in the page cache. Large
        // batches are written with direct I/O nevertheless.
        sync_method: Some(SyncMethod::Buffered),
        // Padding would belong to no object: a volume whose objects are all deleted would not count
        // as completely dead, and compaction would read it.
        pads_records: false,
        // Compaction removes any volume. The manifest lists those that must exist.
        removes_in_order: false,
        ..log::Options::default()
    })
}

/// Creates an empty index with a new secret.
fn empty_index(options: &Options) -> Result<Index> {
    let (one, other) = (random_bytes::<8>()?, random_bytes::<8>()?);
    let hash = KeyHash { secret: [u64::from_le_bytes(one), u64::from_le_bytes(other)] };
    Ok(Index::new(Keys::default(), hash, options.volume_bytes))
}

/// Opens the index directory, with unused numbers for new files.
///
/// A crash may restore a catalog that was removed or replaced. Newer files must not have the
/// numbers that it lists, so each opening skips a random number of numbers.
fn index_files_of(disk: &Arc<dyn Disk>, loaded: Option<&Loaded>) -> Result<Arc<IndexFiles>> {
    let catalog = loaded.map(|loaded| loaded.catalog.clone());
    let names = disk.list("")?;
    let numbers = names.iter().filter_map(|name| names::parse_index_file(name));
    let in_catalog = catalog.as_ref().map_or(0, |catalog| catalog.last_file);
    let skipped = u64::from(u32::from_le_bytes(random_bytes::<4>()?));
    let last = numbers.max().unwrap_or(0).max(in_catalog).saturating_add(skipped);
    Ok(Arc::new(IndexFiles::new(Arc::clone(disk), last, catalog)))
}

/// Removes index files that neither the catalog nor the open index uses.
///
/// A process that was killed may have renamed the catalog without syncing the directory. The new
/// name is made durable first; otherwise, after a power cut, the earlier catalog would list removed
/// files.
pub(super) fn remove_unlisted(disk: &dyn Disk, index: &Index, files: &IndexFiles) -> Result<()> {
    let catalog = files.catalog.lock();
    let mut used: Vec<u64> = catalog.iter().flat_map(Catalog::files).collect();
    used.extend(index.keys.runs().iter().map(|run| run.info().id));
    disk.sync_dir("")?;
    for name in disk.list("")? {
        let is_unused = names::parse_index_file(&name).is_some_and(|file| !used.contains(&file));
        if is_unused || name == names::unfinished(names::CATALOG) {
            disk.remove(&name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use haul_disk::Disk;
    use haul_disk_sim::{Medium, MemoryDisk, Survival};
    use haul_testing::eventually;

    use crate::checkpoint::write::checkpoint;
    use crate::{Attributes, Options, Precondition, RecoveryReport, Store, names};

    fn open_on(disk: &MemoryDisk) -> (Store, RecoveryReport) {
        let options = Options {
            volume_bytes: 4 << 20,
            big_object_bytes: 64 << 10,
            idle_watermark_ms: 0,
            ..Options::default()
        };
        Store::open_on(Arc::new(disk.clone()), options).unwrap()
    }

    fn put(store: &Store, key: &str) {
        let none = Attributes::new();
        drop(store.put("bucket", key, b"bytes", &none, &Precondition::None).unwrap());
    }

    /// A crash can restore the earlier catalog if its removal was not durable.
    #[test]
    fn rebuilt_index_reuses_no_name_of_an_earlier_file() {
        let disk = MemoryDisk::default();
        let index_files = || {
            let names = disk.list(names::INDEX).unwrap().into_iter();
            names.filter(|name| name != names::CATALOG).collect::<BTreeSet<String>>()
        };
        let (store, _) = open_on(&disk);
        store.create_bucket("bucket").unwrap();
        put(&store, "first");
        checkpoint(&store.inner).unwrap();
        store.close().unwrap();
        let earlier = index_files();
        for name in disk.list(names::INDEX).unwrap() {
            disk.remove(&format!("{}/{name}", names::INDEX)).unwrap();
        }
        let (store, _) = open_on(&disk);
        put(&store, "second");
        checkpoint(&store.inner).unwrap();
        assert!(store.get("bucket", "first").is_ok());
        store.close().unwrap();
        assert!(index_files().len() >= 2 && earlier.is_disjoint(&index_files()), "{earlier:?}");
    }

    /// A process that was killed may have renamed a catalog without syncing the directory. The
    /// files of the earlier catalog must stay until the new one is durable.
    #[test]
    fn index_survives_a_kill_and_then_a_power_cut() {
        let disk = MemoryDisk::default();
        let (store, _) = open_on(&disk);
        store.create_bucket("bucket").unwrap();
        for number in 0..10 {
            put(&store, &number.to_string());
            checkpoint(&store.inner).unwrap();
        }
        let runs = || store.inner.keyspace.index.read().keys.runs().len();
        eventually("runs are merged, and their inputs are removed", || runs() < 5);
        store.close().unwrap();
        let mut medium = Medium::default();
        for step in disk.steps() {
            medium.apply_step(&step);
            let killed = MemoryDisk::on(&medium);
            let (store, recovered) = open_on(&killed);
            assert_eq!(recovered.index_rebuilt, None, "killed after {step:?}");
            let (disks, medium) = ((0..8), killed.medium());
            let disks = disks.map(|seed| MemoryDisk::on(&medium.cut(Survival::Half { seed })));
            let disks: Vec<MemoryDisk> = disks.collect();
            drop(store);
            for disk in disks {
                let (_, recovered) = open_on(&disk);
                assert_eq!(recovered.index_rebuilt, None, "killed after {step:?}, then power cut");
            }
        }
    }
}
