//! Measures by timed `O_DIRECT` reads whether a device is rotational.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, PAGE_BYTES, ReadRing, RingRead, first_extent};
use rustix::io::pread;

use super::kind::{DeviceKind, KindSource, Measurements, SINGLE_READS, SPAN_BYTES_MIN, Step};
use crate::read::open::Opener;
use crate::tree::{FileId, Tree};

/// A place to read from.
struct Sample {
    fd: OwnedFd,
    offset: u64,
}

/// Measures the kind of a device with reads at the places `at`. Returns `None` if the places are
/// too few or too close to each other, or if the file system does not support direct reads.
pub(in crate::read) fn measure(
    tree: &Tree,
    at: &[(FileId, u64)],
) -> Option<(DeviceKind, KindSource)> {
    let mut opener = Opener::new(tree);
    let mut places = Vec::new();
    let mut all = Vec::new();
    for (file, offset) in at.iter().copied() {
        let Some((fd, _)) = opener.open_direct(file) else { continue };
        let Some(extent) = first_extent(&fd).ok().flatten() else { continue };
        places.extend(extent.device_offset().map(|place| place.saturating_add(offset)));
        all.push(Sample { fd, offset });
    }
    let span = places.iter().max()?.saturating_sub(*places.iter().min()?);
    if all.len() < SINGLE_READS || span < SPAN_BYTES_MIN {
        return None;
    }
    // Every fourth sample is for a single read, the others are for concurrent reads. Both kinds of
    // reads thus cover the whole range.
    let (mut single, mut concurrent) = (Vec::new(), Vec::new());
    for (index, sample) in all.into_iter().enumerate() {
        if index % 4 == 0 { single.push(sample) } else { concurrent.push(sample) }
    }
    Some(classify(single, concurrent))
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
                measured.repeat_us = Some(last.as_ref().and_then(time_single).unwrap_or(u64::MAX));
            }
            Step::ReadConcurrently => {
                let mean_us = concurrent.take().and_then(time_concurrent);
                measured.concurrent_us = Some(mean_us.unwrap_or(u64::MAX));
            }
        }
    }
}

/// Returns the latency of a single read, in microseconds.
fn time_single(sample: &Sample) -> Option<u64> {
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    let started = Instant::now();
    pread(&sample.fd, &mut page[..], sample.offset).ok()?;
    Some(us(started.elapsed()))
}

/// Returns the mean time per read of concurrent reads, in microseconds.
fn time_concurrent(samples: Vec<Sample>) -> Option<u64> {
    let count = samples.len().max(1) as u64;
    let mut ring = ReadRing::new(u32::try_from(samples.len()).ok()?).ok()?;
    let started = Instant::now();
    for Sample { fd, offset } in samples {
        let buffer = AlignedBuf::zeroed(PAGE_BYTES);
        let file = Rc::new(fd);
        let read = RingRead { file, offset, buffer, bytes: PAGE_BYTES, uncached: false, tag: 0 };
        ring.push(read).ok()?;
    }
    while let Some(done) = ring.wait().ok()? {
        done.outcome.ok()?;
    }
    Some(us(started.elapsed()) / count)
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
