//! Recovers a log: opens its files, delivers its records and determines where appends continue.

mod deliver;
mod directory;
mod resume;

use std::sync::Arc;

use haul_disk::{Disk, link_count};

use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::names;
use crate::options::{OnDamage, Options};
use crate::read::scan::{EndState, Scan, SegmentState, has_durable_records};
use crate::recover::deliver::{ReplayContext, deliver};
use crate::recover::directory::{list, reload_links, remove_detached, split_off_unused};
use crate::recover::resume::Resume;
use crate::replay::{Damage, Recovered, Replay};
use crate::segments::chain::Chain;
use crate::segments::pool::Pool;
use crate::segments::{Segment, Segments, lost_segments};
use crate::strategy::WriteStrategy;

/// A recovered log, ready for appends.
pub(crate) struct RecoveredLog {
    pub(crate) segments: Segments,
    pub(crate) pool: Pool,
    pub(crate) current: Arc<Segment>,
    pub(crate) end: u32,
    /// The next segment, if one was prepared before the log was closed or crashed.
    pub(crate) next: Option<Arc<Segment>>,
    /// `true` if the last record is a close record or a watermark, which prove that all records
    /// before them were synced, or if the log is new.
    pub(crate) is_proven: bool,
    pub(crate) recovered: Recovered,
}

/// Opens the segments in the root of `disk`, delivers their records, and finds the end of the log.
///
/// 1. Removes unfinished segments, which contain no records. Syncs the directory, because a killed
///    process may have left names that are not durable.
/// 2. Completes a truncation that a crash interrupted: syncs the header that declares where the
///    earlier log ends, then removes the segments that are no longer part of the log.
/// 3. Syncs the segments whose records `replay` does not know, and reads them bypassing the page
///    cache or after evicting their pages. Every record delivered is then durable, even if an
///    earlier sync failed and left its pages in the page cache.
/// 4. Overwrites the torn tail (what an interrupted write left) with zeros and syncs them. A crash
///    during this step leaves a part of the torn tail, which contains no acknowledged record. If an
///    earlier write or sync failed, or a copy of the log shares the segment's file, the log
///    continues in another segment instead, whose header declares where the earlier log ends.
/// 5. Gives the first unused segment a new nonce and keeps it as the next segment. Makes the other
///    unused segments spare files or removes them.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    options: &Options,
    strategy: &WriteStrategy,
    replay: &mut dyn Replay,
) -> Result<RecoveredLog> {
    let mut recovered = Recovered::default();
    let mut directory = list(&**disk, options, &mut recovered)?;
    let reuse = (strategy.prefills, strategy.recycles);
    let highest = directory.highest.max(options.numbers_after);
    let pool = Pool::new(Arc::clone(disk), options.clone(), reuse, highest);
    let is_new = directory.segments.is_empty();
    directory.segments.values().for_each(|segment| pool.found_segment(segment.bytes));
    reload_links(&**disk, strategy, &mut directory.segments)?;
    let chain = remove_detached(&**disk, &pool, &mut directory.segments)?;

    let mut unused = unused_segments(&**disk, &mut directory.segments, replay)?;
    if options.removes_in_order {
        let lost = lost_segments(disk.root(), &directory.segments, &recovered.damage);
        recovered.damage.extend(lost);
    }
    let mut context =
        ReplayContext { disk: &**disk, strategy, options, replay, recovered: &mut recovered };
    let mut tail = read_all(&mut context, &directory.segments, &chain)?;
    // If a later header declares the end of a segment, the segment has ended even if its seal (the
    // record that ends a segment) is not durable: truncated records may follow the declared end.
    let has_ended = |segment: &Segment, scan: &Scan| {
        scan.end_state == EndState::Sealed || chain.ends.contains_key(&segment.number)
    };
    // A segment that seems unused because its first page is zero may contain records and have lost
    // that page.
    let is_sealed = tail.as_ref().is_none_or(|(segment, scan)| has_ended(segment, scan));
    if is_sealed && let Some(first) = unused.first_entry() {
        let file = context.open_durable(first.get())?;
        if has_durable_records(first.get(), &file)? {
            let segment = first.remove();
            let durable_end = context.replay.durable_end(segment.info());
            let state = SegmentState::Last { durable_end };
            tail = deliver(&mut context, vec![(Arc::clone(&segment), state)])?.pop();
            directory.segments.insert(segment.number, segment);
        }
    }
    check_damage(options, &recovered)?;

    let bytes = directory.segments.values().map(|segment| u64::from(segment.bytes)).sum::<u64>();
    let spare_bytes = directory.spares.len() as u64 * pool.whole_bytes();
    let open = tail.filter(|(segment, scan)| !has_ended(segment, scan) && !scan.is_shortened);
    let sealed = directory.segments.len() - usize::from(open.is_some());
    pool.fit_reserve(sealed, bytes + spare_bytes)?;
    for number in directory.spares {
        pool.adopt(number)?;
    }
    recovered.closed = is_new;
    let mut is_proven = is_new;
    if let Some((_, scan)) = &open {
        is_proven = matches!(scan.end_state, EndState::Closed | EndState::Watermark);
        recovered.closed = scan.end_state == EndState::Closed && scan.torn_bytes == 0;
        recovered.torn_bytes = u64::from(scan.torn_bytes);
    }
    retire_unused_reserve(&pool, &mut unused)?;
    pool.set_previous(directory.segments.last_key_value().map_or(0, |(number, _)| *number));
    let is_shared = open.as_ref().map_or(Ok(false), |(segment, _)| is_shared(segment))?;
    let mut resume = Resume { disk: &**disk, pool: &pool, unused, is_shared };
    // If the caller knows of a later segment that cannot be read, no record may be appended to an
    // earlier segment, because records must be in LSN order.
    let is_outdated = |(segment, _): &(Arc<Segment>, Scan)| segment.number < options.numbers_after;
    let needs_new_segment =
        directory.is_latched || is_shared || open.as_ref().is_some_and(is_outdated);
    let (current, end) = resume.resume(open, needs_new_segment)?;
    let next = next_segment(&pool, resume.unused, current.number)?;
    if directory.is_latched {
        remove_mark(&**disk)?;
    }
    pool.fill_short_reserve()?;
    directory.segments.insert(current.number, Arc::clone(&current));
    Ok(RecoveredLog {
        segments: directory.segments,
        pool,
        current,
        end,
        next,
        is_proven,
        recovered,
    })
}

/// Removes the marker of a failed write or sync: the log continues in another segment.
fn remove_mark(disk: &dyn Disk) -> Result<()> {
    disk.remove(names::LATCHED)?;
    Ok(disk.sync_dir("")?)
}

/// `true` if a segment's file has another name (a hard link). A copy of the log, such as one made
/// by `cp -l`, then shares the file, so it is no longer written.
fn is_shared(segment: &Segment) -> Result<bool> {
    Ok(link_count(&*segment.file)? > 1)
}

/// Splits off the segments without records. Removes the names of those whose files a copy of the
/// log shares.
fn unused_segments(
    disk: &dyn Disk,
    segments: &mut Segments,
    replay: &mut dyn Replay,
) -> Result<Segments> {
    let mut unused = split_off_unused(disk, segments, replay)?;
    let numbers: Vec<u32> = unused.keys().copied().collect();
    for number in numbers {
        if is_shared(&unused[&number])? {
            disk.remove(&names::segment(number))?;
            unused.remove(&number);
        }
    }
    Ok(unused)
}

/// Gives the first unused segment a new nonce and returns it, as the segment after `current`. Makes
/// the others spare files or removes them.
fn next_segment(pool: &Pool, mut unused: Segments, current: u32) -> Result<Option<Arc<Segment>>> {
    pool.set_previous(current);
    let first = unused.pop_first();
    debug_assert!(first.as_ref().is_none_or(|(number, _)| *number > current));
    let next = first.map(|(_, segment)| pool.renew_recycled(&segment, Lsn(0))).transpose()?;
    unused.into_values().try_for_each(|extra| pool.retire(extra))?;
    Ok(next.map(Arc::new))
}

fn check_damage(options: &Options, recovered: &Recovered) -> Result<()> {
    match recovered.damage.first() {
        Some(damage) if options.on_damage == OnDamage::Refuse => {
            let Damage { file, offset, what, .. } = damage.clone();
            Err(Error::Damaged { file, offset, what })
        }
        _ => Ok(()),
    }
}

/// Turns unused segments that were taken from the reserve, the files kept for a full disk, into
/// spare files again.
fn retire_unused_reserve(pool: &Pool, unused: &mut Segments) -> Result<()> {
    let is_reserve =
        |_: &u32, segment: &mut Arc<Segment>| segment.is_reserve && segment.follows == Lsn(0);
    for (_, segment) in unused.extract_if(.., is_reserve) {
        pool.retire(segment)?;
    }
    Ok(())
}

/// Delivers all segments' records in order. Reads only the segments whose records `replay` does not
/// know. Returns the last segment and its scan if it was read.
fn read_all(
    context: &mut ReplayContext<'_>,
    segments: &Segments,
    chain: &Chain,
) -> Result<Option<(Arc<Segment>, Scan)>> {
    let last = segments.keys().next_back().copied();
    let mut all = Vec::new();
    for (number, segment) in segments {
        let state = match chain.ends.get(number) {
            Some(end) => SegmentState::SyncedTo(*end),
            None if Some(*number) == last => {
                let durable_end = context.replay.durable_end(segment.info());
                SegmentState::Last { durable_end }
            }
            None => SegmentState::Sealed,
        };
        let is_known = context.replay.is_known(segment.info());
        all.push((Arc::clone(segment), state, is_known));
    }
    let mut scans = Vec::new();
    for run in all.chunk_by(|a, b| a.2 == b.2) {
        let mut to_read = Vec::new();
        for (segment, state, is_known) in run {
            if !is_known || !context.replay.apply_known(segment.info()) {
                to_read.push((Arc::clone(segment), *state));
            }
            if *is_known {
                scans.extend(deliver(context, std::mem::take(&mut to_read))?);
            }
        }
        scans.extend(deliver(context, to_read)?);
    }
    let is_last = |scan: &(Arc<Segment>, Scan)| Some(scan.0.number) == last;
    Ok(scans.into_iter().next_back().filter(is_last))
}
