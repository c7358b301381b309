//! From the files of a log to a log that can go on.

pub(crate) mod chain;
pub(crate) mod deliver;
pub(crate) mod replay;

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk::{Disk, Durability, write_full};

use crate::append::batch::{Batch, Tail};
use crate::append::writer::Writer;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind};
use crate::lsn::Lsn;
use crate::names::{self, Name};
use crate::options::{OnDamage, Options};
use crate::read::scan::{Ending, Known, Scan, is_begun, is_first_page_zero};
use crate::read::segment_reader::SegmentReader;
use crate::recover::chain::{Chain, chain};
use crate::recover::deliver::{Reading, deliver, settled};
use crate::recover::replay::{Damage, Recovered, Replay, SegmentInfo};
use crate::segments::Segment;
use crate::segments::pool::Pool;
use crate::stats::Counters;
use crate::ways::{SyncMethod, Ways};

/// Segments by number.
pub(crate) type Segments = BTreeMap<u32, Arc<Segment>>;

/// The segments of a log and where it goes on.
pub(crate) struct Opened {
    pub(crate) segments: Segments,
    pub(crate) pool: Pool,
    pub(crate) current: Arc<Segment>,
    pub(crate) end: u32,
    /// A segment prepared and not begun.
    pub(crate) next: Option<Arc<Segment>>,
    pub(crate) recovered: Recovered,
}

/// What the directory of a log holds.
#[derive(Default)]
struct Found {
    segments: Segments,
    spares: Vec<u32>,
    /// An earlier write or sync failed.
    is_latched: bool,
    highest: u32,
}

/// Opens the segments in the root of `disk`, delivers their records, and finds where to go on.
///
/// 1. Unfinished segments are removed: a crash before or after changes nothing. The names that
///    are left are synced: a process that was killed may have left one that is not.
/// 2. What a truncation cut off is taken out, in case it was stopped half-way; the header that
///    says so is on the medium before.
/// 3. Segments not known as sealed are synced, then read past the page cache or after emptying
///    it: what is delivered is on the medium, also after a failed sync whose pages stayed in
///    memory.
/// 4. The torn tail is overwritten with zeros and synced. A crash in between leaves less of a
///    torn tail, and nothing acknowledged was in it. After a failed write or sync another segment
///    is begun instead, whose header says where the log before it ends.
/// 5. Segments made ready and never begun are kept for use, with fresh nonces.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    options: &Options,
    ways: &Ways,
    replay: &mut dyn Replay,
) -> Result<Opened> {
    let mut recovered = Recovered::default();
    let mut found = list(&**disk, options, &mut recovered)?;
    let reuse = (ways.prefills, ways.recycles);
    let pool = Pool::new(Arc::clone(disk), options.clone(), reuse, found.highest);
    let is_new = found.segments.is_empty();
    settle_links(&**disk, ways, &mut found.segments)?;
    let chain = cut_off_truncated(&**disk, &pool, &mut found.segments)?;

    let mut not_begun = split_off_not_begun(&**disk, &mut found.segments)?;
    let mut reading = Reading { disk: &**disk, ways, options, replay, recovered: &mut recovered };
    let mut tail = read_all(&mut reading, &found.segments, &chain)?;
    // Where a later header says that a segment ends, it has ended, whether its seal came to the
    // medium or not: behind its end may lie records that were taken back.
    let has_ended = |segment: &Segment, scan: &Scan| {
        scan.ending == Ending::Sealed || chain.ends.contains_key(&segment.number)
    };
    // The next one may have been begun, and its first page lost since.
    let is_sealed = tail.as_ref().is_none_or(|(segment, scan)| has_ended(segment, scan));
    if is_sealed && let Some(first) = not_begun.first_entry() {
        let file = reading.settled(first.get())?;
        if is_begun(first.get(), &file)? {
            let segment = first.remove();
            tail = deliver(&mut reading, vec![(Arc::clone(&segment), Known::Last)])?.pop();
            found.segments.insert(segment.number, segment);
        }
    }
    if let (OnDamage::Refuse, Some(damage)) = (options.on_damage, recovered.damage.first()) {
        let Damage { file, offset, what } = damage.clone();
        return Err(Error::Damaged { file, offset, what });
    }

    for number in found.spares {
        pool.adopt(number)?;
    }
    let open = tail.filter(|(segment, scan)| !has_ended(segment, scan) && !scan.is_cut);
    recovered.closed = is_new;
    if let Some((_, scan)) = &open {
        recovered.closed = scan.ending == Ending::Closed && scan.torn_bytes == 0;
        recovered.torn_bytes = u64::from(scan.torn_bytes);
    }
    // The reserve that was made ready and not used is set aside anew.
    let is_unused =
        |_: &u32, segment: &mut Arc<Segment>| segment.is_reserve && segment.follows == Lsn(0);
    for (_, segment) in not_begun.extract_if(.., is_unused) {
        pool.retire(segment)?;
    }
    let mut resume = Resume { disk: &**disk, pool: &pool, not_begun };
    let (current, end) = resume.resume(open, found.is_latched)?;
    let next = match resume.not_begun.pop_first() {
        Some((_, segment)) => Some(Arc::new(pool.renew_found(&segment, Lsn(0))?)),
        None => None,
    };
    for (_, extra) in resume.not_begun {
        pool.retire(extra)?;
    }
    if found.is_latched {
        disk.remove(names::LATCHED)?;
        disk.sync_dir("")?;
    }
    pool.keep_reserve()?;
    found.segments.insert(current.number, Arc::clone(&current));
    Ok(Opened { segments: found.segments, pool, current, end, next, recovered })
}

/// The files of the log, and of the segments those whose header can be read.
fn list(disk: &dyn Disk, options: &Options, recovered: &mut Recovered) -> Result<Found> {
    let mut found = Found::default();
    for name in disk.list("")? {
        match names::parse(&name) {
            Name::Segment(number) => {
                found.highest = found.highest.max(number);
                match Segment::open(disk, number) {
                    Ok(segment) => {
                        found.segments.insert(number, Arc::new(segment));
                    }
                    Err(Error::Damaged { file, offset, what })
                        if options.on_damage == OnDamage::Report =>
                    {
                        recovered.damage.push(Damage { file, offset, what });
                    }
                    Err(other) => return Err(other),
                }
            }
            Name::Spare(number) => {
                found.highest = found.highest.max(number);
                found.spares.push(number);
            }
            Name::Latched => found.is_latched = true,
            Name::Unfinished => disk.remove(&name)?,
            Name::Other => {}
        }
    }
    disk.sync_dir("")?;
    Ok(found)
}

/// Reads those headers again from the medium that say where the log before them ends: whoever
/// acts on one that is only in memory destroys, after a power cut, what still counts.
fn settle_links(disk: &dyn Disk, ways: &Ways, segments: &mut Segments) -> Result<()> {
    for segment in segments.values_mut().filter(|segment| segment.follows != Lsn(0)) {
        let file = settled(disk, ways, segment)?;
        *segment = Arc::new(segment.reopened(disk, &*file)?);
    }
    Ok(())
}

/// Takes the segments out that a truncation left behind, and tells where the others end.
fn cut_off_truncated(disk: &dyn Disk, pool: &Pool, segments: &mut Segments) -> Result<Chain> {
    let links: Vec<_> = segments.values().map(|s| (s.number, s.follows)).collect();
    let chain = chain(&links);
    for number in &chain.cut_off {
        if let Some(segment) = segments.remove(number) {
            pool.retire(segment)?;
        }
    }
    for (number, end) in &chain.ends {
        if let Some(segment) = segments.get(number) {
            segment.end_at(*end);
            // The end stands in a later segment's header; now it stands here too. A medium that
            // refuses is no reason not to open: the header still says it.
            drop(seal(disk, segment, *end));
        }
    }
    Ok(chain)
}

/// Puts a seal where a segment ends, if there is none.
pub(crate) fn seal(disk: &dyn Disk, segment: &Arc<Segment>, end: u32) -> Result<()> {
    let file = segment.sequential(disk, false)?;
    let mut reader = SegmentReader::new(segment, &file, segment.bytes, 2 * HEADER_BYTES as usize);
    let there = reader.record_at(end)?.map(|(header, _)| header.kind);
    if there == Some(Kind::Seal) || end > segment.records_end() {
        return Ok(());
    }
    let writer = Writer::open(disk, segment, SyncMethod::Buffered)?;
    let tail = Tail { segment: Arc::clone(segment), writer };
    let mut batch = Batch::resume(tail, end, 2 * HEADER_BYTES as usize)?;
    batch.push(Kind::Seal, &[], 0);
    batch.carry_out(&Counters::default())?;
    Ok(())
}

/// Takes the segments behind the last one that was ever written to out of `segments`.
fn split_off_not_begun(disk: &dyn Disk, segments: &mut Segments) -> Result<Segments> {
    let mut not_begun = Segments::new();
    while let Some(last) = segments.last_entry() {
        if !is_first_page_zero(last.get(), &last.get().sequential(disk, false)?)? {
            break;
        }
        let (number, segment) = last.remove_entry();
        not_begun.insert(number, segment);
    }
    Ok(not_begun)
}

/// Reads the segments that are not known, and returns what was found of the last if that was one.
fn read_all(
    reading: &mut Reading<'_>,
    segments: &Segments,
    chain: &Chain,
) -> Result<Option<(Arc<Segment>, Scan)>> {
    let last = segments.keys().next_back().copied();
    let mut unknown = Vec::new();
    for (number, segment) in segments {
        if !reading.replay.knows(SegmentInfo::of(segment)) {
            let known = match chain.ends.get(number) {
                Some(end) => Known::SyncedTo(*end),
                None if Some(*number) == last => Known::Last,
                None => Known::Sealed,
            };
            unknown.push((Arc::clone(segment), known));
        }
    }
    let scans = deliver(reading, unknown)?;
    let is_last = |found: &(Arc<Segment>, Scan)| Some(found.0.number) == last;
    Ok(scans.into_iter().next_back().filter(is_last))
}

/// Where the log goes on.
struct Resume<'a> {
    disk: &'a dyn Disk,
    pool: &'a Pool,
    not_begun: Segments,
}

impl Resume<'_> {
    fn resume(
        &mut self,
        open: Option<(Arc<Segment>, Scan)>,
        is_latched: bool,
    ) -> Result<(Arc<Segment>, u32)> {
        let Some((segment, scan)) = open else { return self.begin(Lsn(0)) };
        if is_latched {
            let follows = Lsn::new(segment.number, scan.end);
            match self.begin(follows) {
                Ok(begun) => {
                    segment.end_at(scan.end);
                    drop(seal(self.disk, &segment, scan.end));
                    return Ok(begun);
                }
                // Better to go on where it failed than not at all.
                Err(Error::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        cut(&segment, &scan)?;
        Ok((segment, scan.end))
    }

    /// The first record of a segment: one that is ready, or a new one, or the reserve.
    fn begin(&mut self, follows: Lsn) -> Result<(Arc<Segment>, u32)> {
        let segment = match self.not_begun.pop_first() {
            Some((_, ready)) => {
                let follows = if follows == Lsn(0) { ready.follows } else { follows };
                self.pool.renew_found(&ready, follows)?
            }
            None => match self.pool.make(follows, &mut |_| true) {
                Ok(made) => made.expect("nobody ended it"),
                Err(full @ Error::Full { .. }) => {
                    self.pool.make_of_reserve(follows)?.ok_or(full)?
                }
                Err(error) => return Err(error),
            },
        };
        Ok((Arc::new(segment), HEADER_BYTES))
    }
}

/// Overwrites the torn tail with zeros.
fn cut(segment: &Segment, found: &Scan) -> Result<()> {
    if found.torn_bytes > 0 {
        // To the end of the page: what memory may still have there, of a batch whose sync
        // failed, must not come to the medium along with the zeros.
        let to = (found.end + found.torn_bytes).next_multiple_of(HEADER_BYTES);
        let zeros = vec![0; (to - found.end) as usize];
        write_full(&*segment.file, &zeros, u64::from(found.end))?;
        segment.file.sync(Durability::Data)?;
    }
    Ok(())
}
