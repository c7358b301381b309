//! Measures random reads by one thread that keeps many of them in flight with one io_uring.

use std::time::Instant;

use haul_disk::{AlignedBuf, Open, Ring, RingOp, RingRequest};
use haul_measure::{Error, Latencies, Result};

use crate::reads::{Load, Offsets, Reads};
use crate::test_file::{TestFile, check};

/// Keeps `depth` reads in flight until the time of `load` has passed, and measures each; returns
/// `None` if io_uring is not available.
pub(super) fn read(
    file: &TestFile,
    direct: bool,
    depth: usize,
    load: &Load,
) -> Result<Option<Reads>> {
    let file = file.open(Open { direct, random: true, ..Open::default() })?;
    let Some(fd) = file.descriptor() else { return Ok(None) };
    let mut ring = match Ring::new(u32::try_from(depth).unwrap_or(u32::MAX)) {
        Ok(ring) => ring,
        Err(error) if error.is_unsupported() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let bytes = usize::try_from(load.read_bytes).unwrap_or(usize::MAX);
    let mut buffers: Vec<_> = (0..depth).map(|_| AlignedBuf::zeroed(bytes)).collect();
    // The start time of each read in flight, by its tag.
    let mut begun = vec![Instant::now(); depth];
    let mut tags: Vec<usize> = (0..depth).collect();
    let mut offsets = Offsets::new(load.read_bytes, load.data_bytes, 1);
    let mut latencies = Latencies::default();
    let started = Instant::now();
    loop {
        let is_over = started.elapsed() >= load.time;
        while !is_over && let (Some(tag), false) = (tags.last().copied(), ring.is_full()) {
            let Some(buffer) = buffers.pop() else { break };
            let offset = offsets.next();
            begun[tag] = Instant::now();
            let read =
                RingRequest { file: fd, offset, buffer, bytes, op: RingOp::Read, tag: tag as u64 };
            if ring.push(read).is_err() {
                break;
            }
            tags.pop();
        }
        let Some(done) = ring.wait()? else { break };
        let tag = usize::try_from(done.request.tag).unwrap_or(0);
        latencies.record(begun[tag].elapsed());
        let read = done.outcome.map_err(Error::other("read the file"))?;
        check(&done.request.buffer[..read.min(bytes)], done.request.offset)?;
        tags.push(tag);
        buffers.push(done.request.buffer);
    }
    Ok(Some(Reads { time: started.elapsed(), latencies, device_reads: None }))
}
