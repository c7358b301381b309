//! From the files of a log to a log that can go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk::{Disk, Durability, File, evict, write_full};

use crate::error::{Error, Result};
use crate::format::HEADER_BYTES;
use crate::names::{self, Name};
use crate::options::{OnDamage, Options};
use crate::replay::{Damage, Recovered, Replay, SegmentInfo};
use crate::scan::{Ending, Known, Scan, is_begun, scan};
use crate::segment::Segment;

/// Segments by number.
pub(crate) type Segments = BTreeMap<u32, Arc<Segment>>;

/// The segments of a log and where it goes on.
pub(crate) struct Opened {
    pub(crate) segments: Segments,
    pub(crate) current: Arc<Segment>,
    pub(crate) end: u32,
    /// A segment prepared and not begun.
    pub(crate) next: Option<Arc<Segment>>,
    pub(crate) recovered: Recovered,
}

/// Opens the segments in the root of `disk`, delivers their records, and cuts the torn tail.
///
/// 1. Unfinished segments are removed: a crash before or after changes nothing. The names that
///    are left are synced: a process that was killed may have left one that is not.
/// 2. Segments not known as sealed are synced and dropped from the page cache, then read: what
///    is delivered is on the medium, also after a failed sync whose pages stayed in memory.
/// 3. The torn tail is overwritten with zeros and synced. A crash in between leaves less of a
///    torn tail, and nothing acknowledged was in it.
/// 4. Segments made ready and never begun are kept for use (one) or removed.
pub(crate) fn recover(
    disk: &dyn Disk,
    options: &Options,
    replay: &mut dyn Replay,
) -> Result<Opened> {
    let mut recovered = Recovered::default();
    let mut segments = open_all(disk, options, &mut recovered)?;
    let is_new = segments.is_empty();
    let mut not_begun = split_off_not_begun(disk, &mut segments)?;

    let mut tail = None;
    for segment in segments.values() {
        tail = None;
        if !replay.knows(SegmentInfo::of(segment)) {
            let is_last =
                segments.last_key_value().is_some_and(|(last, _)| *last == segment.number);
            let known = if is_last { Known::Last } else { Known::Sealed };
            let mut found = scan(segment, &*settled(disk, segment)?, known, replay)?;
            recovered.records += found.records;
            recovered.damage.append(&mut found.damage);
            tail = Some((Arc::clone(segment), found));
        }
    }
    if let (OnDamage::Refuse, Some(damage)) = (options.on_damage, recovered.damage.first()) {
        let Damage { file, offset, what } = damage.clone();
        return Err(Error::Damaged { file, offset, what });
    }

    let (current, end) = match tail {
        // A file that was cut stays as it is, so that its damage is told for as long as it lasts.
        Some((segment, found)) if found.ending != Ending::Sealed && !found.is_cut => {
            recovered.closed = found.ending == Ending::Closed && found.torn_bytes == 0;
            recovered.torn_bytes = u64::from(found.torn_bytes);
            cut(&segment, &found)?;
            (segment, found.end)
        }
        _ => {
            recovered.closed = is_new;
            let prepared = not_begun.pop_first().map(|(_, segment)| segment);
            let make = || Segment::create_next(disk, options).map(Arc::new);
            (prepared.map_or_else(make, Ok)?, HEADER_BYTES)
        }
    };
    let next = not_begun.pop_first().map(|(_, segment)| segment);
    for extra in not_begun.into_keys() {
        disk.remove(&names::segment(extra))?;
    }
    segments.insert(current.number, Arc::clone(&current));
    Ok(Opened { segments, current, end, next, recovered })
}

/// The segments whose header can be read, by number.
fn open_all(disk: &dyn Disk, options: &Options, recovered: &mut Recovered) -> Result<Segments> {
    let mut segments = Segments::new();
    for name in disk.list("")? {
        match names::parse(&name) {
            Name::Segment(number) => match Segment::open(disk, number) {
                Ok(segment) => {
                    segments.insert(number, Arc::new(segment));
                }
                Err(Error::Damaged { file, offset, what })
                    if options.on_damage == OnDamage::Report =>
                {
                    recovered.damage.push(Damage { file, offset, what });
                }
                Err(other) => return Err(other),
            },
            Name::Unfinished => disk.remove(&name)?,
            Name::Other => {}
        }
    }
    disk.sync_dir("")?;
    Ok(segments)
}

/// Takes the segments behind the last one that was ever written to out of `segments`.
fn split_off_not_begun(disk: &dyn Disk, segments: &mut Segments) -> Result<Segments> {
    let mut not_begun = Segments::new();
    while let Some(last) = segments.last_entry() {
        if is_begun(last.get(), &*settled(disk, last.get())?)? {
            break;
        }
        let (number, segment) = last.remove_entry();
        not_begun.insert(number, segment);
    }
    Ok(not_begun)
}

/// The file of a segment, for reading it from the medium.
fn settled(disk: &dyn Disk, segment: &Segment) -> Result<Arc<dyn File>> {
    let file = segment.sequential(disk)?;
    segment.file.sync(Durability::Data)?;
    // A file without a descriptor is simulated, and has no page cache.
    if file.descriptor().is_some() {
        evict(&*file, 0, u64::MAX)?;
    }
    Ok(file)
}

/// Overwrites the torn tail with zeros.
fn cut(segment: &Segment, found: &Scan) -> Result<()> {
    if found.torn_bytes > 0 {
        let zeros = vec![0; found.torn_bytes as usize];
        write_full(&*segment.file, &zeros, u64::from(found.end))?;
        segment.file.sync(Durability::Data)?;
    }
    Ok(())
}
