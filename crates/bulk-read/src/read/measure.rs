//! A few reads past the page cache that tell what kind of device it is.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, PAGE_BYTES, ReadRing, RingRead, first_extent};
use rustix::io::pread;

use super::kind::{ALONE, Decided, Kind, Next, SPAN_BYTES_MIN, Seen};
use super::open::Opener;
use crate::tree::{FileId, Tree};

/// A place to read from.
struct Sample {
    fd: OwnedFd,
    offset: u64,
}

/// Measures at these places of files; `None` where they cannot tell: too few, too near each other,
/// or not to be read past the cache.
pub(super) fn measure(tree: &Tree, at: &[(FileId, u64)]) -> Option<(Kind, Decided)> {
    let mut opener = Opener::new(tree);
    let mut places = Vec::new();
    let mut all = Vec::new();
    for (file, offset) in at.iter().copied() {
        let Some((fd, _)) = opener.open_direct(file) else { continue };
        let Some(extent) = first_extent(&fd).ok().flatten() else { continue };
        places.extend(extent.place().map(|place| place.saturating_add(offset)));
        all.push(Sample { fd, offset });
    }
    let span = places.iter().max()?.saturating_sub(*places.iter().min()?);
    if all.len() < ALONE || span < SPAN_BYTES_MIN {
        return None;
    }
    // Spread, so that both kinds of reads go over the whole range.
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for (index, sample) in all.into_iter().enumerate() {
        if index % 4 == 0 { alone.push(sample) } else { together.push(sample) }
    }
    Some(find_out(alone, together))
}

/// Makes one read after the other until the kind is known. What cannot be read tells nothing.
fn find_out(alone: Vec<Sample>, together: Vec<Sample>) -> (Kind, Decided) {
    let mut seen = Seen::default();
    let (mut alone, mut together) = (alone.into_iter(), Some(together));
    let mut last = None;
    loop {
        match seen.next() {
            Next::Known(kind) => return (kind, seen.decided()),
            Next::ReadAlone => {
                last = alone.next();
                let Some(sample) = &last else { return (Kind::Rotating, seen.decided()) };
                seen.alone_us.extend(time_alone(sample));
            }
            Next::ReadAgain => {
                seen.again_us = Some(last.as_ref().and_then(time_alone).unwrap_or(u64::MAX));
            }
            Next::ReadTogether => {
                let told = together.take().and_then(time_together);
                seen.together_us = Some(told.unwrap_or(u64::MAX));
            }
        }
    }
}

/// How long one takes, in microseconds.
fn time_alone(sample: &Sample) -> Option<u64> {
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    let begun = Instant::now();
    pread(&sample.fd, &mut page[..], sample.offset).ok()?;
    Some(us(begun.elapsed()))
}

/// How long each takes on the average when all are asked for at once, in microseconds.
fn time_together(samples: Vec<Sample>) -> Option<u64> {
    let count = samples.len().max(1) as u64;
    let mut ring = ReadRing::new(u32::try_from(samples.len()).ok()?).ok()?;
    let begun = Instant::now();
    for Sample { fd, offset } in samples {
        let buffer = AlignedBuf::zeroed(PAGE_BYTES);
        let file = Rc::new(fd);
        let read = RingRead { file, offset, buffer, bytes: PAGE_BYTES, uncached: false, tag: 0 };
        ring.push(read).ok()?;
    }
    while let Some(done) = ring.wait().ok()? {
        done.outcome.ok()?;
    }
    Some(us(begun.elapsed()) / count)
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
