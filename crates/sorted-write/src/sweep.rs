//! Executes a plan on a file in windows, which are groups of successive requests: reads the ranges
//! that a window needs, composes its requests' bytes, and writes them.

use std::ops::Range;

use haul_disk::AlignedBuf;

use crate::batch::Batch;
use crate::engine::{Engine, length};
use crate::error::Result;
use crate::options::Options;
use crate::plan::{Extent, Plan, Planner, Request, seek_bytes};
use crate::stats::{Counters, count};
use crate::target::Target;

/// The state that the writing thread keeps from sweep to sweep, so that a sweep allocates little.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    planner: Planner,
    engine: Engine,
}

impl Sweeper {
    /// Writes a batch to its file in one sweep in ascending order.
    ///
    /// All of a window's reads precede its writes. A rotational disk that wrote each unit directly
    /// after reading it would wait a full revolution for each unit. On a rotational disk a window
    /// is also synced before the next one is read. Otherwise the drive would hold the writes in its
    /// write cache and seek back for them later.
    ///
    /// # Durability
    /// None until the file is synced after the sweep.
    pub(crate) fn sweep(
        &mut self,
        target: &Target,
        batch: &Batch,
        options: &Options,
        counters: &Counters,
    ) -> Result<()> {
        let plan = self.planner.plan(batch.entries(), &target.rules());
        count(&counters.seek_bytes, seek_bytes(plan.requests.iter().map(|r| r.extent)));
        if options.is_dry_run {
            count_only(target, plan, counters);
            return Ok(());
        }
        let io = target.io();
        let mut rest = 0;
        while rest < plan.requests.len() {
            let window = window(&plan.requests, rest, io.window_bytes);
            debug_assert!(!window.is_empty(), "a window has a request");
            rest = window.end;
            write_window(&mut self.engine, target, batch, plan, window, counters)?;
            let has_more_reads =
                plan.requests[rest..].iter().any(|request| !request.reads.is_empty());
            let is_due = target.unsynced_bytes() >= options.sync_bytes;
            if is_due || (io.sync_windows && has_more_reads) {
                count(&counters.syncs, 1);
                target.sync()?;
            }
        }
        Ok(())
    }
}

/// Counts a plan's requests as if they were made, for a dry run.
fn count_only(target: &Target, plan: &Plan, counters: &Counters) {
    count(&counters.reads, plan.reads.len() as u64);
    count(&counters.read_bytes, bytes(plan.reads.iter()));
    count(&counters.writes, plan.requests.len() as u64);
    count(&counters.written_bytes, bytes(plan.requests.iter().map(|request| &request.extent)));
    target.extend_to(plan.requests.last().map_or(0, |request| request.extent.end()));
}

/// Returns the extents' total length, in bytes.
fn bytes<'a>(extents: impl Iterator<Item = &'a Extent>) -> u64 {
    extents.map(|extent| extent.bytes).sum()
}

/// Returns the range of requests, beginning at `first`, that fit into one window: at least one
/// request.
fn window(requests: &[Request], first: usize, window_bytes: u64) -> Range<usize> {
    let mut bytes = 0_u64;
    let fits = requests[first..].iter().take_while(|request| {
        bytes += request.extent.bytes;
        bytes <= window_bytes
    });
    first..first + fits.count().max(1)
}

fn write_window(
    engine: &mut Engine,
    target: &Target,
    batch: &Batch,
    plan: &Plan,
    window: Range<usize>,
    counters: &Counters,
) -> Result<()> {
    let requests = &plan.requests[window];
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return Ok(()) };
    let first_read = first.reads.start;
    let extents = &plan.reads[first_read..last.reads.end];
    let read = engine.read(target, extents)?;
    let written_bytes = bytes(requests.iter().map(|request| &request.extent));
    count(&counters.reads, extents.len() as u64);
    count(&counters.read_bytes, bytes(extents.iter()));
    target.add_unsynced(written_bytes);
    engine.write(target, requests, &|request, buffer| {
        let read = &read[request.reads.start - first_read..request.reads.end - first_read];
        compose(batch, plan, request, read, buffer);
    })?;
    count(&counters.writes, requests.len() as u64);
    count(&counters.written_bytes, written_bytes);
    engine.reuse(read);
    Ok(())
}

/// Fills the buffer with the bytes that a request writes: the bytes read for the request,
/// overwritten by its pieces. Together they cover the whole request.
fn compose(batch: &Batch, plan: &Plan, request: &Request, read: &[AlignedBuf], buffer: &mut [u8]) {
    debug_assert_eq!(buffer.len() as u64, request.extent.bytes);
    debug_assert_eq!(read.len(), request.reads.len());
    let within = |offset: u64| length(offset - request.extent.offset);
    for (extent, bytes) in plan.reads[request.reads.clone()].iter().zip(read) {
        buffer[within(extent.offset)..within(extent.end())]
            .copy_from_slice(&bytes[..length(extent.bytes)]);
    }
    for piece in &plan.pieces[request.pieces.clone()] {
        let from = piece.from as usize;
        let bytes = &batch.bytes_of(piece.number)[from..from + piece.bytes as usize];
        buffer[within(piece.offset)..within(piece.end())].copy_from_slice(bytes);
    }
}
