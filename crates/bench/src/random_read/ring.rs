//! Random reads by one thread through one ring.

use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Open, ReadRing, RingRead};

use super::Options;
use super::ways::{Cache, Cell};
use crate::error::{Error, Result};
use crate::places::Places;
use crate::stats::Latencies;
use crate::test_file::{TestFile, check};

/// Keeps as many reads under way as the cell has readers, until the time is over; `None` where
/// there is no io_uring.
pub(super) fn read(
    file: &TestFile,
    cell: &Cell,
    options: &Options,
) -> Result<Option<(Latencies, Duration)>> {
    let direct = cell.cache == Cache::Cold;
    let file = file.open(Open { direct, random: true, read_only: true, ..Open::default() })?;
    let Some(fd) = file.descriptor() else { return Ok(None) };
    let mut ring = match ReadRing::new(u32::try_from(cell.readers).unwrap_or(u32::MAX)) {
        Ok(ring) => ring,
        Err(error) if error.is_unsupported() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let bytes = usize::try_from(options.read_bytes).unwrap_or(usize::MAX);
    let mut spare: Vec<_> = (0..cell.readers).map(|_| AlignedBuf::zeroed(bytes)).collect();
    // When the read of that number was begun: each has the number of its buffer.
    let mut begun = vec![Instant::now(); cell.readers];
    let mut numbers: Vec<usize> = (0..cell.readers).collect();
    let (mut places, mut latencies) =
        (Places::new(options.read_bytes, options.file_bytes, 1), Latencies::default());
    let started = Instant::now();
    loop {
        let is_over = started.elapsed() >= options.time;
        while !is_over && let (Some(number), false) = (numbers.last().copied(), ring.is_full()) {
            let Some(buffer) = spare.pop() else { break };
            let (offset, tag) = (places.next(), number as u64);
            begun[number] = Instant::now();
            let read = RingRead { file: fd, offset, buffer, bytes, uncached: false, tag };
            if ring.push(read).is_err() {
                break;
            }
            numbers.pop();
        }
        let Some(done) = ring.wait()? else { break };
        let number = usize::try_from(done.read.tag).unwrap_or(0);
        latencies.record(begun[number].elapsed());
        let read = done.outcome.map_err(Error::other("read the file"))?;
        check(&done.read.buffer[..read.min(bytes)], done.read.offset)?;
        numbers.push(number);
        spare.push(done.read.buffer);
    }
    Ok(Some((latencies, started.elapsed())))
}
