//! A few reads past the page cache that tell what kind of device it is.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, PAGE_BYTES, ReadRing, RingRead, first_extent};
use rustix::io::pread;

use super::kind::{ALONE, Decided, Kind, SPAN_BYTES_MIN, verdict};
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
    // Every third alone, so that both kinds go over the same range.
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for (index, sample) in all.into_iter().enumerate() {
        if index % 3 == 0 { alone.push(sample) } else { together.push(sample) }
    }
    let alone_us = alone.iter().filter_map(time_alone).map(us).collect();
    let count = together.len() as u64;
    let together_us = time_together(together).map(|time| us(time) / count.max(1));
    Some(verdict(alone_us, together_us))
}

fn time_alone(sample: &Sample) -> Option<Duration> {
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    let begun = Instant::now();
    pread(&sample.fd, &mut page[..], sample.offset).ok()?;
    Some(begun.elapsed())
}

/// How long all take at once.
fn time_together(samples: Vec<Sample>) -> Option<Duration> {
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
    Some(begun.elapsed())
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
