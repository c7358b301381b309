//! Measures by timed `O_DIRECT` reads whether a device is rotational.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use haul_disk::{AlignedBuf, DelayedAllocation, PAGE_BYTES, ReadRing, RingRead, extents};
use rustix::io::pread;

use super::kind::{CONCURRENT_READS, DeviceKind, KindSource, Measurements, SPAN_BYTES_MIN, Step};
use super::timer::Timer;
use crate::read::open::Opener;
use crate::tree::{FileId, Tree};

/// The minimum number of samples.
const SINGLES_MIN: usize = 3;

/// The minimum distance in bytes between two samples: more than a track, which the drive may read
/// as a whole.
const DISTANCE_BYTES_MIN: u64 = 2 << 20;

/// A place to read from.
struct Sample {
    fd: OwnedFd,
    offset: u64,
    /// The position on the device.
    place: u64,
}

/// Measures the kind of a device with reads at the places `at`. Returns `None` if the places are
/// too few or too close to each other, or if the file system does not support direct reads.
pub(in crate::read) fn measure(
    tree: &Tree,
    at: &[(FileId, u64)],
) -> Option<(DeviceKind, KindSource)> {
    let mut opener = Opener::new(tree);
    let mut all = Vec::new();
    for (file, offset) in at.iter().copied() {
        let Some((fd, _)) = opener.open_direct(file) else { continue };
        all.extend(place(&fd, offset).map(|place| Sample { fd, offset, place }));
    }
    // Against the direction of the drive's readahead, so that no sample is in the drive's cache.
    all.sort_unstable_by_key(|sample| std::cmp::Reverse(sample.place));
    all.dedup_by(|later, earlier| earlier.place - later.place < DISTANCE_BYTES_MIN);
    let span = all.first()?.place - all.last()?.place;
    if all.len() < SINGLES_MIN || span < SPAN_BYTES_MIN {
        return None;
    }
    // Every third sample is for a single read, the others are for concurrent reads. Both kinds of
    // reads thus cover the whole range.
    let (mut single, mut concurrent) = (Vec::new(), Vec::new());
    for (index, sample) in all.into_iter().enumerate() {
        if index % 3 == 0 { single.push(sample) } else { concurrent.push(sample) }
    }
    Some(classify(single, concurrent))
}

/// Returns the position on the device of a byte of a file; `None` for a byte that a read would not
/// fetch from there, such as one in a hole, whose fast read would look like that of a solid-state
/// device.
fn place(fd: &OwnedFd, offset: u64) -> Option<u64> {
    let map = extents(fd, offset, 1, DelayedAllocation::Report).ok()?;
    let extent = map.extents.first()?;
    let within = offset.checked_sub(extent.logical).filter(|within| *within < extent.bytes)?;
    let start = extent.device_offset().filter(|_| !extent.flags.unwritten)?;
    Some(start.saturating_add(within))
}

/// Reads until the kind is known. Failed reads are ignored; if the samples run out, the device
/// counts as rotational.
fn classify(single: Vec<Sample>, concurrent: Vec<Sample>) -> (DeviceKind, KindSource) {
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

/// Returns the latency of a single read, in microseconds.
fn time_single(sample: &Sample) -> Option<u64> {
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    let timer = Timer::start();
    pread(&sample.fd, &mut page[..], sample.offset).ok()?;
    Some(timer.elapsed_us())
}

/// Returns the time in which concurrent reads complete, in microseconds; `None` if there are too
/// few places for a comparison with single reads.
fn time_concurrent(samples: Vec<Sample>) -> Option<u64> {
    if samples.len() < CONCURRENT_READS / 2 {
        return None;
    }
    let mut ring = ReadRing::new(u32::try_from(samples.len()).ok()?).ok()?;
    let timer = Timer::start();
    for Sample { fd, offset, .. } in samples {
        let buffer = AlignedBuf::zeroed(PAGE_BYTES);
        let file = Rc::new(fd);
        let read = RingRead { file, offset, buffer, bytes: PAGE_BYTES, uncached: false, tag: 0 };
        ring.push(read).ok()?;
    }
    while let Some(done) = ring.wait().ok()? {
        done.outcome.ok()?;
    }
    Some(timer.elapsed_us())
}
