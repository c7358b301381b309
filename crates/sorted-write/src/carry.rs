//! Carries out a plan on a file: a window at a time is read, filled and written.

use std::ops::Range;

use haul_disk::{AlignedBuf, read_full, write_full};

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::lanes::each;
use crate::options::Options;
use crate::plan::{Extent, Plan, Request, plan, travel_bytes};
use crate::stats::{Counters, count};
use crate::target::Target;

/// Writes the batch to the file in one sweep upward.
///
/// Within a window all is read before anything is written: a spinning disk that wrote each unit
/// directly after reading it would wait a whole turn for it to come round again. There a window is
/// also synced before the next one is read, so that the drive's write cache does not send the head
/// back from there.
///
/// # Durability
/// None, until the file is synced.
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
    if options.is_rehearsal {
        rehearse(target, &plan, counters);
        return Ok(());
    }
    let mut rest = 0;
    while rest < plan.requests.len() {
        let window = window(&plan.requests, rest, target.ways.window_bytes);
        rest = window.end;
        write_window(target, batch, &plan, &plan.requests[window], counters)?;
        let reads_on = plan.requests[rest..].iter().any(|request| !request.reads.is_empty());
        let is_due = target.unsynced_bytes() >= options.sync_bytes;
        if is_due || (target.ways.sync_windows && reads_on) {
            count(&counters.syncs, 1);
            target.sync()?;
        }
    }
    Ok(())
}

/// Counts what would be asked.
fn rehearse(target: &Target, plan: &Plan, counters: &Counters) {
    let bytes = |extents: &mut dyn Iterator<Item = &Extent>| extents.map(|e| e.bytes).sum::<u64>();
    count(&counters.reads, plan.reads.len() as u64);
    count(&counters.read_bytes, bytes(&mut plan.reads.iter()));
    count(&counters.writes, plan.requests.len() as u64);
    count(&counters.written_bytes, bytes(&mut plan.requests.iter().map(|r| &r.extent)));
    target.reaches(plan.requests.last().map_or(0, |request| request.extent.end()));
}

/// The requests from `first` on that fit into a window together, at least one.
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
        each(&plan.reads[reads], target.ways.lanes, |extent| read(target, extent, counters))?;
    target.will_write(requests.iter().map(|request| request.extent.bytes).sum());
    each(requests, target.ways.lanes, |request| {
        let read = &read[request.reads.start - first_read..request.reads.end - first_read];
        let buffer = compose(batch, plan, request, read);
        let bytes = &buffer[..length(request.extent.bytes)];
        let file = if request.is_units { &target.direct } else { &target.buffered };
        write_full(&**file, bytes, request.extent.offset)?;
        target.reaches(request.extent.end());
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
        return Err(Error::Invalid("the file became shorter while it was written"));
    }
    count(&counters.reads, 1);
    count(&counters.read_bytes, extent.bytes);
    Ok(buffer)
}

/// The bytes of a request: what was read of it, and over that its pieces.
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

/// A length in memory.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
