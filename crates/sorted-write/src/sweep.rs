//! Executes a plan on a file in windows, which are groups of successive requests: reads the ranges
//! that a window needs, composes the bytes of its requests, and writes them.

use std::ops::Range;

use haul_disk::{AlignedBuf, read_full, write_full};

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::parallel::map;
use crate::plan::{Extent, Plan, Request, plan, travel_bytes};
use crate::stats::{Counters, count};
use crate::target::Target;

/// Writes a batch to its file in one sweep in ascending order.
///
/// All reads of a window precede its writes. A rotational disk that wrote each unit directly after
/// reading it would wait a full revolution for each unit. On a rotational disk a window is also
/// synced before the next one is read. Otherwise the drive would hold the writes in its write cache
/// and seek back for them later.
///
/// # Durability
/// None until the file is synced after the sweep.
pub(crate) fn sweep(
    target: &Target,
    batch: &Batch,
    options: &Options,
    counters: &Counters,
) -> Result<()> {
    let mut entries = batch.entries().to_vec();
    let plan = plan(&mut entries, &target.rules());
    drop(entries);
    count(&counters.travel_bytes, travel_bytes(plan.requests.iter().map(|r| r.extent)));
    if options.is_dry_run {
        count_only(target, &plan, counters);
        return Ok(());
    }
    let mut rest = 0;
    while rest < plan.requests.len() {
        let window = window(&plan.requests, rest, target.io.window_bytes);
        rest = window.end;
        write_window(target, batch, &plan, &plan.requests[window], counters)?;
        let has_more_reads = plan.requests[rest..].iter().any(|request| !request.reads.is_empty());
        let is_due = target.unsynced_bytes() >= options.sync_bytes;
        if is_due || (target.io.sync_windows && has_more_reads) {
            count(&counters.syncs, 1);
            target.sync()?;
        }
    }
    Ok(())
}

/// Counts the requests of a plan as if they were made, for a dry run.
fn count_only(target: &Target, plan: &Plan, counters: &Counters) {
    let bytes = |extents: &mut dyn Iterator<Item = &Extent>| extents.map(|e| e.bytes).sum::<u64>();
    count(&counters.reads, plan.reads.len() as u64);
    count(&counters.read_bytes, bytes(&mut plan.reads.iter()));
    count(&counters.writes, plan.requests.len() as u64);
    count(&counters.written_bytes, bytes(&mut plan.requests.iter().map(|r| &r.extent)));
    target.extend_to(plan.requests.last().map_or(0, |request| request.extent.end()));
}

/// Returns the range of requests from `first` on that fit into one window: at least one request.
fn window(requests: &[Request], first: usize, window_bytes: u64) -> Range<usize> {
    let mut bytes = 0_u64;
    let fits = requests[first..].iter().take_while(|request| {
        bytes += request.extent.bytes;
        bytes <= window_bytes
    });
    first..first + fits.count().max(1)
}

fn write_window(
    target: &Target,
    batch: &Batch,
    plan: &Plan,
    requests: &[Request],
    counters: &Counters,
) -> Result<()> {
    let reads = match (requests.first(), requests.last()) {
        (Some(first), Some(last)) => first.reads.start..last.reads.end,
        _ => return Ok(()),
    };
    let first_read = reads.start;
    let read =
        map(&plan.reads[reads], target.io.queue_depth, |extent| read(target, extent, counters))?;
    target.add_unsynced(requests.iter().map(|request| request.extent.bytes).sum());
    map(requests, target.io.queue_depth, |request| {
        let read = &read[request.reads.start - first_read..request.reads.end - first_read];
        let buffer = compose(batch, plan, request, read);
        let bytes = &buffer[..length(request.extent.bytes)];
        let file = if request.is_units { &target.direct } else { &target.buffered };
        write_full(&**file, bytes, request.extent.offset)?;
        target.extend_to(request.extent.end());
        count(&counters.writes, 1);
        count(&counters.written_bytes, request.extent.bytes);
        Ok(())
    })?;
    Ok(())
}

fn read(target: &Target, extent: &Extent, counters: &Counters) -> Result<AlignedBuf> {
    let mut buffer = AlignedBuf::zeroed(length(extent.bytes));
    let read = read_full(&*target.direct, &mut buffer, extent.offset)?;
    if read < length(extent.bytes) {
        return Err(Error::Invalid("the file was truncated while it was being written"));
    }
    count(&counters.reads, 1);
    count(&counters.read_bytes, extent.bytes);
    Ok(buffer)
}

/// Returns the bytes that a request writes: the bytes read for the request, overwritten by its
/// pieces.
fn compose(batch: &Batch, plan: &Plan, request: &Request, read: &[AlignedBuf]) -> AlignedBuf {
    let mut buffer = AlignedBuf::zeroed(length(request.extent.bytes));
    let within = |offset: u64| length(offset - request.extent.offset);
    for (extent, bytes) in plan.reads[request.reads.clone()].iter().zip(read) {
        buffer[within(extent.offset)..within(extent.end())].copy_from_slice(bytes);
    }
    for piece in &plan.pieces[request.pieces.clone()] {
        let from = piece.from as usize;
        let bytes = &batch.bytes_of(piece.number)[from..from + piece.bytes as usize];
        buffer[within(piece.offset)..within(piece.end())].copy_from_slice(bytes);
    }
    buffer
}

/// Converts a length to `usize`.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
