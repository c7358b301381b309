//! From a directory to a store.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use haul_append_log::{self as log, Log, OnDamage, Position, Replay, SegmentInfo, SyncMethod};
use haul_disk::{Disk, Durability, LOCK_NAME, Open, Subdir, read_full, write_full};

use crate::error::{Error, Result};
use crate::format::{MARKER_TEXT, NotANeedle, decode_index, needles};
use crate::index::Index;
use crate::names;
use crate::options::Options;

/// What a fresh file system has.
const LOST_AND_FOUND: &str = "lost+found";

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
    /// Damage found on the way; everything else in the store works.
    pub damage: Vec<Damage>,
    /// How long it took.
    pub seconds: f64,
}

/// Bytes that are not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The bucket of the object they belong to, where that is known.
    pub bucket: Option<String>,
    /// Its key, where that is known.
    pub key: Option<String>,
    /// The file they are in.
    pub file: PathBuf,
    /// Where in the file.
    pub offset: u64,
    /// What does not fit.
    pub what: String,
}

impl From<log::Damage> for Damage {
    fn from(damage: log::Damage) -> Self {
        let log::Damage { file, offset, what } = damage;
        Self { bucket: None, key: None, file, offset, what }
    }
}

/// The parts of a store that was opened.
pub(crate) struct Opened {
    pub(crate) volumes: Arc<dyn Disk>,
    pub(crate) objects: Arc<dyn Disk>,
    pub(crate) log: Log,
    pub(crate) index: Index,
    pub(crate) damaged_volumes: BTreeSet<u32>,
    pub(crate) recovered: Recovered,
}

/// Opens the directory.
///
/// 1. The marker: a directory with anything else in it is refused before it is touched; an empty
///    one gets its marker last, so that a crash on the way leaves an empty one.
/// 2. The volumes: sealed ones from their indexes, the others from their needles.
/// 3. The big files: those no object refers to were written and never acknowledged, or deleted
///    and not yet removed. A crash in between leaves some for the next time. With damage in the
///    volumes nobody can tell, and all of them stay.
pub(crate) fn recover(disk: &Arc<dyn Disk>, options: &Options) -> Result<Opened> {
    let began = Instant::now();
    if is_new(&**disk)? {
        make(&**disk)?;
    } else {
        // Whoever made it may have been killed before this: the names are there for who looks, and
        // gone after a power cut, which would leave volumes where there is no store.
        disk.sync_dir("")?;
    }
    let volumes: Arc<dyn Disk> = Arc::new(Subdir::new(Arc::clone(disk), names::VOLUMES));
    let objects: Arc<dyn Disk> = Arc::new(Subdir::new(Arc::clone(disk), names::OBJECTS));
    refuse_lost_volumes(&**disk)?;

    let mut replay = Replayer::new(&*volumes);
    let (log, found) = Log::open(Arc::clone(&volumes), log_options(options)?, &mut replay)?;
    let (index, mut damage) = replay.end(found.damage);
    damage.extend(missing_volumes(&*volumes)?);
    let orphans_removed = if damage.is_empty() { remove_orphans(&*objects, &index)? } else { 0 };
    remove_unfinished(&*objects, names::is_unfinished_big_file)?;
    remove_unfinished(&*volumes, names::is_unfinished_index)?;
    let damaged_volumes = damage
        .iter()
        .filter_map(|damage| names::parse_volume(damage.file.file_name()?.to_str()?))
        .collect();

    let recovered = Recovered {
        after_crash: !found.closed,
        objects: index.objects,
        object_bytes: index.bytes,
        torn_bytes: found.torn_bytes,
        orphans_removed,
        damage,
        seconds: began.elapsed().as_secs_f64(),
    };
    Ok(Opened { volumes, objects, log, index, damaged_volumes, recovered })
}

fn log_options(options: &Options) -> Result<log::Options> {
    let too_large = |_too_large| Error::Invalid { what: "volume_bytes is too large".to_owned() };
    let segment_bytes = u32::try_from(options.volume_bytes).map_err(too_large)?;
    let buffer_bytes = u32::try_from(2 * options.big_object_bytes).map_err(too_large)?;
    Ok(log::Options {
        on_damage: OnDamage::Report,
        reserve_bytes: (1 << 20).min(segment_bytes / 8),
        // Volumes come back one at a time, and the space of the others is for big objects too.
        spare_segments_max: 1,
        segment_bytes: segment_bytes.next_multiple_of(4096),
        buffer_bytes: buffer_bytes.next_multiple_of(4096).max(1 << 20),
        // What was just put is what is read next: it stays in the page cache.
        sync_method: Some(SyncMethod::Buffered),
        ..log::Options::default()
    })
}

/// Whether the directory is empty and ours to take; an error if it holds something else.
pub(crate) fn is_new(root: &dyn Disk) -> Result<bool> {
    let refuse = |why: String| Err(Error::NotAStore { dir: root.root().to_path_buf(), why });
    match root.open(names::MARKER, Open { read_only: true, ..Open::default() }) {
        Ok(marker) => {
            let mut text = vec![0; 256];
            let read = read_full(&*marker, &mut text, 0)?;
            if &text[..read] == MARKER_TEXT.as_bytes() {
                return Ok(false);
            }
            let first = String::from_utf8_lossy(&text[..read]);
            let first = first.lines().next().unwrap_or("nothing").to_owned();
            refuse(format!("its {} file says \"{first}\"", names::MARKER))
        }
        Err(error) if error.is_not_found() => {
            // What a crash between here and the marker leaves behind, and what a fresh file
            // system has.
            let ours = [LOCK_NAME, names::VOLUMES, names::OBJECTS, LOST_AND_FOUND];
            let unfinished = names::unfinished(names::MARKER);
            let names = root.list("")?;
            let foreign = |name: &&String| !ours.contains(&name.as_str()) && **name != unfinished;
            let mut foreign: Option<String> = names.iter().find(foreign).cloned();
            // Their names are not proof of anything: there may be somebody's files in them.
            for dir in [names::VOLUMES, names::OBJECTS] {
                if foreign.is_none() && names.iter().any(|name| name == dir) {
                    let mut inside = root.list(dir)?.into_iter();
                    let first = inside.find(|name| name != LOST_AND_FOUND);
                    foreign = first.map(|name| format!("{dir}/{name}"));
                }
            }
            match foreign {
                None => Ok(true),
                Some(name) => refuse(format!("it is not empty (it holds {name}) and is no store")),
            }
        }
        Err(other) => Err(other.into()),
    }
}

fn make(root: &dyn Disk) -> Result<()> {
    root.create_dir(names::VOLUMES)?;
    root.create_dir(names::OBJECTS)?;
    let unfinished = names::unfinished(names::MARKER);
    match root.remove(&unfinished) {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    let marker = root.create(&unfinished, Open::default())?;
    write_full(&*marker, MARKER_TEXT.as_bytes(), 0)?;
    marker.sync(Durability::Everything)?;
    // The marker must not survive a crash that the directories do not.
    root.sync_dir("")?;
    root.rename(&unfinished, names::MARKER)?;
    root.sync_dir("")?;
    Ok(())
}

/// Refuses a store with big objects or indexes and not one volume: somebody moved the volumes away,
/// or their file system is not mounted. Opened all the same, every big object would be an orphan.
fn refuse_lost_volumes(root: &dyn Disk) -> Result<()> {
    let volumes = root.list(names::VOLUMES)?;
    if volumes.iter().any(|name| names::parse_volume(name).is_some()) {
        return Ok(());
    }
    let has_indexes = volumes.iter().any(|name| names::parse_index(name).is_some());
    let has_objects =
        root.list(names::OBJECTS)?.iter().any(|name| names::parse_big_file(name).is_some());
    let there = match (has_indexes, has_objects) {
        (true, _) => format!("indexes of volumes in {}", names::VOLUMES),
        (false, true) => format!("big objects in {}", names::OBJECTS),
        (false, false) => return Ok(()),
    };
    let why = format!("there are {there}, and not one volume");
    Err(Error::NotAStore { dir: root.root().to_path_buf(), why })
}

/// Sealed volumes that somebody took away: compaction removes the index first, so that one whose
/// volume is not there is no trace of it. Told each time until the volume is back, or the index
/// deleted by who does without.
fn missing_volumes(volumes: &dyn Disk) -> Result<Vec<Damage>> {
    let names = volumes.list("")?;
    let present: BTreeSet<u32> =
        names.iter().filter_map(|name| names::parse_volume(name)).collect();
    let indexed = names.iter().filter_map(|name| names::parse_index(name));
    let missing = indexed.filter(|volume| !present.contains(volume)).map(|volume| Damage {
        bucket: None,
        key: None,
        file: volumes.root().join(log::segment_name(volume)),
        offset: 0,
        what: "the volume is missing, with all that was in it; put it back, or delete its index \
               to do without"
            .to_owned(),
    });
    Ok(missing.collect())
}

/// Removes the files of big objects that the index does not know.
fn remove_orphans(objects: &dyn Disk, index: &Index) -> Result<u64> {
    let mut removed = 0;
    for name in objects.list("")? {
        if names::parse_big_file(&name).is_some_and(|id| !index.files.contains_key(&id)) {
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

struct Replayer<'a> {
    volumes: &'a dyn Disk,
    index: Index,
    damage: Vec<Damage>,
    /// Where needles are whose head is good and whose data is not, and whose they are.
    damaged: Vec<((PathBuf, u64), String, String)>,
}

impl Replay for Replayer<'_> {
    /// A sealed volume is known by its index. The index is derived data: where it is not there,
    /// not whole or not of this volume, the volume itself is read.
    fn knows(&mut self, segment: SegmentInfo) -> bool {
        read_index(self.volumes, segment).is_some()
    }

    /// In the order of the volumes: a tombstone that came before what it deletes would be
    /// forgotten.
    fn take_known(&mut self, segment: SegmentInfo) -> bool {
        let Some(needles) = read_index(self.volumes, segment) else { return false };
        for (at, head) in needles {
            drop(self.index.apply(head, at));
        }
        true
    }

    fn record(&mut self, at: Position, payload: &[u8]) {
        for needle in needles(payload) {
            match needle {
                Ok((head, _)) => drop(self.index.apply(head, at)),
                Err(why) => self.damage.push(self.malformed(at, why)),
            }
        }
    }

    /// What a needle's own head tells is kept, so that the object is not forgotten: whoever asks
    /// for it hears of the damage.
    fn damaged(&mut self, at: Position, payload: &[u8]) {
        for (head, _) in needles(payload).flatten() {
            self.damaged.push((self.place(at), head.bucket.clone(), head.key.clone()));
            drop(self.index.apply(head, at));
        }
    }
}

impl<'a> Replayer<'a> {
    fn new(volumes: &'a dyn Disk) -> Self {
        let mut index = Index::default();
        index.replaying = true;
        Self { volumes, index, damage: Vec::new(), damaged: Vec::new() }
    }

    /// The index, and all damage, with the names of the objects it hit where they are known.
    fn end(self, found: Vec<log::Damage>) -> (Index, Vec<Damage>) {
        let Self { mut index, mut damage, damaged, .. } = self;
        index.end_replay();
        damage.extend(found.into_iter().map(|found| {
            let hit =
                damaged.iter().find(|(place, _, _)| *place == (found.file.clone(), found.offset));
            let mut damage = Damage::from(found);
            if let Some((_, bucket, key)) = hit {
                (damage.bucket, damage.key) = (Some(bucket.clone()), Some(key.clone()));
            }
            damage
        }));
        (index, damage)
    }

    fn malformed(&self, at: Position, why: NotANeedle) -> Damage {
        let what = match why {
            NotANeedle::Malformed(what) => what,
            NotANeedle::Needs(_) => "the needle is cut short",
        };
        let (file, offset) = self.place(at);
        Damage { bucket: None, key: None, file, offset, what: what.to_owned() }
    }

    fn place(&self, at: Position) -> (PathBuf, u64) {
        let file = self.volumes.root().join(log::segment_name(at.lsn.segment()));
        (file, u64::from(at.lsn.offset()))
    }
}

fn read_index(
    volumes: &dyn Disk,
    segment: SegmentInfo,
) -> Option<Vec<(Position, crate::format::Head)>> {
    let name = names::index(segment.number);
    let file = volumes.open(&name, Open { read_only: true, ..Open::default() }).ok()?;
    let mut bytes = vec![0; usize::try_from(file.bytes().ok()?).ok()?];
    let read = read_full(&*file, &mut bytes, 0).ok()?;
    decode_index(&bytes[..read], segment.number, segment.nonce)
}
