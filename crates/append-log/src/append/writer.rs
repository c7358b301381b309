//! Writes and syncs a segment's whole pages, and measures which sync method is best for its
//! storage.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Disk, Durability, File, Open, PAGE_BYTES, write_durable, write_full};
use haul_sync::{elapsed, now};

use crate::error::Result;
use crate::names;
use crate::segments::Segment;
use crate::strategy::{SyncMethod, WriteStrategy};

/// A segment's file, opened for the sync method with which it is written.
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

    /// Writes and syncs whole pages from page-aligned memory. Returns the time this took.
    pub(crate) fn write_and_sync(&self, pages: &[u8], offset: u64) -> haul_disk::Result<Duration> {
        let began = now();
        match self.method {
            SyncMethod::Buffered | SyncMethod::Direct => {
                write_full(&*self.file, pages, offset)?;
                self.file.sync(Durability::Data)?;
            }
            SyncMethod::DirectDsync => write_durable(&*self.file, pages, offset)?,
        }
        Ok(elapsed(began))
    }
}

/// The number of measurements of each method, and the total time after which no further round
/// starts. A round measures each method once.
const TRIES: usize = 12;
const TRYING_MAX: Duration = Duration::from_millis(200);

/// Sets the sync method in `strategy`: `wanted` if it is set, otherwise the best candidate in
/// `strategy.candidates()`. Measures these methods by writing zeros to the last page of `segment`
/// that is for records. Measures nothing if records may lie in that page; `from` is the offset at
/// which the log ends.
pub(crate) fn choose_sync_method(
    disk: &dyn Disk,
    segment: &Segment,
    from: u32,
    wanted: Option<SyncMethod>,
    strategy: &mut WriteStrategy,
) -> Result<()> {
    if let Some(method) = wanted {
        (strategy.sync_method, strategy.sync_reason) = (method, "set in the options".to_owned());
        return Ok(());
    }
    let page = u32::try_from(PAGE_BYTES).unwrap_or(u32::MAX);
    let offset = segment.limit - page;
    let candidates = strategy.candidates();
    if candidates.len() > 1 && offset >= from.next_multiple_of(page) {
        strategy.sync_us = medians(disk, segment, offset.into(), candidates)?;
    }
    if let Some((method, reason)) = SyncMethod::best(&strategy.sync_us) {
        (strategy.sync_method, strategy.sync_reason) = (method, reason);
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
    // Each method writes once without being measured, because the first write may have to wait for
    // earlier I/O.
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
