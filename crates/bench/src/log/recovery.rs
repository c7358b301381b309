//! Compares the time to open a log with the time to read the files of the log with direct I/O.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use haul_disk::{AlignedBuf, Disk, File, LOCK_NAME, Open, OsDisk, evict};

use super::contender::Failure;
use super::ours::Ours;
use super::scratch::Scratch;
use crate::report::{Ratio, Samples};
use haul_measure::{Error, Result, Watcher};

/// The length in bytes of a segment.
const SEGMENT_BYTES: u32 = 128 << 20;
const RECORD_BYTES: usize = 64 << 10;
/// The length in bytes of a direct read.
const READ_BYTES: usize = 4 << 20;

/// The length of the log, and the times of each round in seconds.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// The total length of the log's files in bytes.
    pub(crate) bytes: u64,
    pub(crate) open: Vec<f64>,
    pub(crate) direct_read: Vec<f64>,
}

impl Recovery {
    /// Returns the speed of opening the log divided by the speed of direct reads.
    pub(crate) fn ratio(&self) -> Option<Ratio> {
        let samples = |name, seconds: &[f64]| Samples::new(name, seconds.iter().copied());
        Ratio::of(samples("direct read", &self.direct_read), samples("open", &self.open))
    }
}

/// Fills a log with `bytes` bytes of records, closes it, and opens it `rounds` times with cold
/// caches. Each round also reads all files of the log with direct I/O.
pub(crate) fn recovery(
    scratch: &Scratch,
    bytes: u64,
    rounds: usize,
    watcher: &dyn Watcher,
) -> Result<Recovery> {
    measure(scratch.path(), bytes, rounds, watcher).map_err(|failure| {
        if watcher.is_cancelled() {
            return Error::Cancelled;
        }
        Error::other("measure the recovery of a log")(io::Error::other(failure))
    })
}

fn measure(
    dir: &Path,
    bytes: u64,
    rounds: usize,
    watcher: &dyn Watcher,
) -> Result<Recovery, Failure> {
    let (ours, _) = Ours::open(dir, SEGMENT_BYTES)?;
    ours.fill_and_close(bytes, &vec![7; RECORD_BYTES])?;
    let records = bytes.div_ceil(RECORD_BYTES as u64);
    let mut recovery = Recovery::default();
    for round in 0..rounds {
        watcher.check()?;
        // The order of opening and reading alternates from round to round.
        for open in [round % 2 == 0, round % 2 == 1] {
            let files = files(dir)?;
            evict_all(&files)?;
            let began = Instant::now();
            if open {
                let (ours, recovered) = Ours::open(dir, SEGMENT_BYTES)?;
                recovery.open.push(began.elapsed().as_secs_f64());
                drop(ours);
                if recovered.records != records {
                    let found = recovered.records;
                    return Err(format!("recovered {found} of {records} records").into());
                }
            } else {
                recovery.bytes = read(&files)?;
                recovery.direct_read.push(began.elapsed().as_secs_f64());
            }
        }
    }
    Ok(recovery)
}

type Files = Vec<std::sync::Arc<dyn File>>;

/// Opens all non-empty files of the log in `dir` for direct reads.
fn files(dir: &Path) -> Result<Files, Failure> {
    let disk = OsDisk::open(dir)?;
    let flags = Open { direct: true, read_only: true, ..Open::default() };
    let mut files = Files::new();
    for name in disk.list("")? {
        if name != LOCK_NAME && fs::metadata(dir.join(&name))?.len() > 0 {
            files.push(disk.open(&name, flags)?);
        }
    }
    Ok(files)
}

/// Writes back dirty pages and evicts the files from the page cache.
fn evict_all(files: &Files) -> Result<(), Failure> {
    rustix::fs::sync();
    for file in files {
        evict(&**file, 0, u64::MAX)?;
        let left = haul_disk::resident(&**file, 0, u64::MAX)?.resident_bytes;
        if left > 0 {
            return Err(format!("{left} bytes are still in the page cache").into());
        }
    }
    Ok(())
}

fn read(files: &Files) -> Result<u64, Failure> {
    let mut buffer = AlignedBuf::zeroed(READ_BYTES);
    let mut all = 0;
    for file in files {
        let mut offset = 0;
        loop {
            match file.read_some(&mut buffer, offset)? {
                0 => break,
                read => offset += read as u64,
            }
        }
        all += offset;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_of_speeds() {
        let recovery =
            Recovery { bytes: 1, open: vec![2.0, 2.5, 9.0], direct_read: vec![1.0, 2.0, 9.0] };
        assert_eq!(recovery.ratio().map(|ratio| ratio.value), Some(0.8));
        assert_eq!(Recovery::default().ratio(), None);
    }
}
