//! How whole pages come to the medium, in each of the ways there are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Disk, Durability, File, Open, PAGE_BYTES, write_durable, write_full};

use crate::error::Result;
use crate::names;
use crate::segments::Segment;
use crate::ways::{SyncMethod, Ways};

/// An open segment that is written to.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    file: Arc<dyn File>,
    method: SyncMethod,
}

impl Writer {
    pub(crate) fn open(disk: &dyn Disk, segment: &Segment, method: SyncMethod) -> Result<Self> {
        let file = match method {
            SyncMethod::Buffered => Arc::clone(&segment.file),
            SyncMethod::Direct | SyncMethod::DirectDsync => {
                let how = Open { direct: true, ..Open::default() };
                disk.open(&names::segment(segment.number), how)?
            }
        };
        Ok(Self { file, method })
    }

    /// Writes whole pages from aligned memory and returns how long it took when they are on the
    /// medium.
    pub(crate) fn write_and_sync(&self, pages: &[u8], offset: u64) -> haul_disk::Result<Duration> {
        let began = Instant::now();
        match self.method {
            SyncMethod::Buffered | SyncMethod::Direct => {
                write_full(&*self.file, pages, offset)?;
                self.file.sync(Durability::Data)?;
            }
            SyncMethod::DirectDsync => write_durable(&*self.file, pages, offset)?,
        }
        Ok(began.elapsed())
    }
}

/// How often each method is tried, and when that is enough.
const TRIES: usize = 12;
const TRYING_MAX: Duration = Duration::from_millis(200);

/// Tries the methods on pages of `segment` from `from` on, where there is no record, in turn, and
/// takes the fastest. What is there becomes zeros.
pub(crate) fn choose(
    disk: &dyn Disk,
    segment: &Segment,
    from: u32,
    wanted: Option<SyncMethod>,
    ways: &mut Ways,
) -> Result<()> {
    if let Some(method) = wanted {
        (ways.sync_method, ways.sync_why) = (method, "the owner chose it".to_owned());
        return Ok(());
    }
    let page = u32::try_from(PAGE_BYTES).unwrap_or(u32::MAX);
    let offset = segment.bytes - page;
    let candidates = ways.candidates();
    if candidates.len() > 1 && offset >= from.next_multiple_of(page) {
        ways.sync_us = medians(disk, segment, offset.into(), candidates)?;
    }
    if let Some((method, why)) = SyncMethod::best(&ways.sync_us) {
        (ways.sync_method, ways.sync_why) = (method, why);
    }
    Ok(())
}

fn medians(
    disk: &dyn Disk,
    segment: &Segment,
    offset: u64,
    candidates: &[SyncMethod],
) -> Result<Vec<(SyncMethod, u64)>> {
    let writers = candidates
        .iter()
        .map(|method| Writer::open(disk, segment, *method))
        .collect::<Result<Vec<_>>>()?;
    let zeros = AlignedBuf::zeroed(PAGE_BYTES);
    let mut times = vec![Vec::with_capacity(TRIES); writers.len()];
    let began = Instant::now();
    // Once for all without looking: the first write may have something to wait for.
    for writer in &writers {
        writer.write_and_sync(&zeros, offset)?;
    }
    for round in 0..TRIES {
        if round > 0 && began.elapsed() > TRYING_MAX {
            break;
        }
        for (writer, times) in writers.iter().zip(&mut times) {
            times.push(writer.write_and_sync(&zeros, offset)?);
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        u64::try_from(times[times.len() / 2].as_micros()).unwrap_or(u64::MAX)
    };
    Ok(candidates.iter().copied().zip(times.iter_mut().map(median)).collect())
}
