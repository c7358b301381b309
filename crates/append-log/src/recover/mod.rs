//! From the files of a log to a log that can go on.

pub(crate) mod chain;
pub(crate) mod deliver;
mod found;
pub(crate) mod replay;
mod resume;

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::names;
use crate::options::{OnDamage, Options};
use crate::read::scan::{Ending, Known, Scan, is_begun};
use crate::recover::chain::Chain;
use crate::recover::deliver::{Reading, deliver};
use crate::recover::found::{cut_off_truncated, list, settle_links, split_off_not_begun};
use crate::recover::replay::{Damage, Recovered, Replay, SegmentInfo};
use crate::recover::resume::Resume;
use crate::segments::Segment;
use crate::segments::pool::Pool;
use crate::ways::Ways;

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

/// Delivers all segments in order, those that are not known by reading them, and returns what was
/// found of the last if it was read.
fn read_all(
    reading: &mut Reading<'_>,
    segments: &Segments,
    chain: &Chain,
) -> Result<Option<(Arc<Segment>, Scan)>> {
    let last = segments.keys().next_back().copied();
    let mut all = Vec::new();
    for (number, segment) in segments {
        let known = match chain.ends.get(number) {
            Some(end) => Known::SyncedTo(*end),
            None if Some(*number) == last => Known::Last,
            None => Known::Sealed,
        };
        let is_known = reading.replay.knows(SegmentInfo::of(segment));
        all.push((Arc::clone(segment), known, is_known));
    }
    let mut found = Vec::new();
    for run in all.chunk_by(|a, b| a.2 == b.2) {
        let mut to_read = Vec::new();
        for (segment, known, is_known) in run {
            if !is_known || !reading.replay.take_known(SegmentInfo::of(segment)) {
                to_read.push((Arc::clone(segment), *known));
            }
            if *is_known {
                found.extend(deliver(reading, std::mem::take(&mut to_read))?);
            }
        }
        found.extend(deliver(reading, to_read)?);
    }
    let is_last = |found: &(Arc<Segment>, Scan)| Some(found.0.number) == last;
    Ok(found.into_iter().next_back().filter(is_last))
}
