//! Implements [`Contender`], the interface of the benchmark, for the append log of Haul.

use std::path::Path;
use std::sync::Arc;

use haul_append_log::{Log, Options, Position, SpacePriority, Stats};
use haul_disk::OsDisk;

use super::contender::{Contender, Failure};

/// The number of segments (files of the log) to retain, including the current segment. Older
/// segments are removed, as a database does after a checkpoint.
const RETAINED: usize = 2;
/// The number of segments that the warm-up writes, so that later segments reuse files that were
/// written before.
const WARM_UP_SEGMENTS: u64 = 4;
const WARM_UP_BYTES: u32 = 1 << 20;

/// The append log under test.
#[derive(Debug)]
pub(crate) struct Ours {
    log: Log,
    segment_bytes: u64,
}

impl Ours {
    /// Opens the log in `dir`, or creates it.
    pub(crate) fn open(dir: &Path, segment_bytes: u32) -> Result<Self, Failure> {
        let reserve_bytes = Options::default().reserve_bytes.min(segment_bytes / 16);
        let buffer_bytes = Options::default().buffer_bytes.min(segment_bytes / 2);
        let options = Options { segment_bytes, reserve_bytes, buffer_bytes, ..Options::default() };
        let disk = Arc::new(OsDisk::open(dir)?);
        let (log, _recovered) = Log::open(disk, options, &mut |_: Position, _: &[u8]| {})?;
        Ok(Self { log, segment_bytes: segment_bytes.into() })
    }

    /// Appends a record, and returns the number of its segment.
    pub(crate) fn append_to_segment(&self, record: &[u8]) -> Result<u32, Failure> {
        Ok(self.log.append(&[record], SpacePriority::Ordinary)?.wait()?.lsn.segment())
    }

    pub(crate) fn stats(&self) -> Stats {
        self.log.stats()
    }
}

impl Contender for Ours {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        self.append_to_segment(record).map(drop)
    }

    fn warm_up(&self) -> Result<(), Failure> {
        let record_bytes = u64::from(WARM_UP_BYTES).min(self.segment_bytes / 8);
        let record = vec![0; usize::try_from(record_bytes)?];
        for _ in 0..(WARM_UP_SEGMENTS * self.segment_bytes).div_ceil(record_bytes) {
            self.append_to_segment(&record)?;
            self.housekeep()?;
        }
        Ok(())
    }

    fn housekeep(&self) -> Result<(), Failure> {
        let segments = self.log.segments();
        let superfluous = segments.len().saturating_sub(RETAINED);
        segments[..superfluous]
            .iter()
            .try_for_each(|segment| self.log.remove_segment(segment.number).map_err(Failure::from))
    }
}
