//! Measures by timed `O_DIRECT` reads whether a device is rotational.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::pread;

use super::kind::{CONCURRENT_READS, DeviceKind, KindSource, Measurements, SPAN_BYTES_MIN, Step};
use super::timer::Timer;
use crate::access::{AlignedBuf, Ring, RingOp, RingRequest};
use crate::blocks::{DelayedAllocation, extents};
use crate::units::PAGE_BYTES;

/// The minimum number of samples.
const SINGLES_MIN: usize = 3;

/// The minimum distance in bytes between two samples: more than a track, which the drive may read
/// as a whole.
const DISTANCE_BYTES_MIN: u64 = 2 << 20;

/// A place to read from, for a measurement of the device below it.
#[derive(Debug)]
pub struct ReadSample {
    fd: OwnedFd,
    offset: u64,
    /// The position on the device.
    place: u64,
}

impl ReadSample {
    /// Creates a sample for the page at `offset` in a file opened with `O_DIRECT`. Returns `None`
    /// if a read would not fetch this page from the device. Such a read, for example in a hole,
    /// would be as fast as on a solid-state device.
    #[must_use]
    pub fn new(fd: OwnedFd, offset: u64) -> Option<Self> {
        let map = extents(&fd, offset, 1, DelayedAllocation::Report).ok()?;
        let extent = map.extents.first()?;
        let within = offset.checked_sub(extent.logical).filter(|within| *within < extent.bytes)?;
        let start = extent.device_offset().filter(|_| !extent.flags.unwritten)?;
        Some(Self { fd, offset, place: start.saturating_add(within) })
    }
}

/// Measures the device kind by reading samples. Returns `None` if these are too few or too close to
/// each other. [`KIND_SAMPLES`](crate::KIND_SAMPLES) samples suffice.
///
/// A measurement reads two pages of a rotational disk, and one page again.
#[must_use]
pub fn measure_kind(mut samples: Vec<ReadSample>) -> Option<(DeviceKind, KindSource)> {
    // Against the direction of the drive's readahead, so that no sample is in the drive's cache.
    samples.sort_unstable_by_key(|sample| std::cmp::Reverse(sample.place));
    samples.dedup_by(|later, earlier| earlier.place - later.place < DISTANCE_BYTES_MIN);
    let span = samples.first()?.place - samples.last()?.place;
    if samples.len() < SINGLES_MIN || span < SPAN_BYTES_MIN {
        return None;
    }
    // Every third sample is for a single read, the others are for concurrent reads. Both kinds of
    // reads thus cover the whole range.
    let (mut single, mut concurrent) = (Vec::new(), Vec::new());
    for (index, sample) in samples.into_iter().enumerate() {
        if index % 3 == 0 { single.push(sample) } else { concurrent.push(sample) }
    }
    Some(classify(single, concurrent))
}

/// Reads until the kind is known. Failed reads are ignored; if the samples run out, the device
/// counts as rotational.
fn classify(single: Vec<ReadSample>, concurrent: Vec<ReadSample>) -> (DeviceKind, KindSource) {
    let mut measured = Measurements::default();
    let (mut single, mut concurrent) = (single.into_iter(), Some(concurrent));
    let mut last = None;
    loop {
        match measured.next_step() {
            Step::Done(kind) => return (kind, measured.source()),
            Step::ReadSingle => {
                last = single.next();
                let Some(sample) = &last else {
                    return (DeviceKind::Rotational, measured.source());
                };
                measured.single_us.extend(time_single(sample));
            }
            Step::RepeatLast => {
                measured.repeat_us.push(last.as_ref().and_then(time_single).unwrap_or(u64::MAX));
            }
            Step::ReadConcurrently => {
                let total_us = concurrent.take().and_then(time_concurrent);
                measured.concurrent_us = Some(total_us.unwrap_or(u64::MAX));
            }
        }
    }
}

/// Returns a single read's latency, in microseconds.
fn time_single(sample: &ReadSample) -> Option<u64> {
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    let timer = Timer::start();
    pread(&sample.fd, &mut page[..], sample.offset).ok()?;
    Some(timer.elapsed_us())
}

/// Returns the time in which concurrent reads complete, in microseconds; `None` if there are too
/// few places for a comparison with single reads.
fn time_concurrent(samples: Vec<ReadSample>) -> Option<u64> {
    if samples.len() < CONCURRENT_READS / 2 {
        return None;
    }
    let mut ring = Ring::new(u32::try_from(samples.len()).ok()?).ok()?;
    let timer = Timer::start();
    for ReadSample { fd, offset, .. } in samples {
        let buffer = AlignedBuf::zeroed(PAGE_BYTES);
        let file = Rc::new(fd);
        let read =
            RingRequest { file, offset, buffer, bytes: PAGE_BYTES, op: RingOp::Read, tag: 0 };
        ring.push(read).ok()?;
    }
    while let Some(done) = ring.wait().ok()? {
        done.outcome.ok()?;
    }
    Some(timer.elapsed_us())
}
