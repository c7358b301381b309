//! How long a log takes to open, beside reading the same bytes and doing nothing with them.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use haul_disk::{AlignedBuf, Disk, File, Open, OsDisk, evict};

use crate::error::{Error, Result};
use crate::log::contender::Failure;
use crate::log::ours::Ours;
use crate::log::scratch::Scratch;
use crate::stats::Spread;
use crate::watch::Watcher;

/// As a log is when nobody says otherwise.
const SEGMENT_BYTES: u32 = 128 << 20;
const RECORD_BYTES: usize = 64 << 10;
/// A direct read asks for so much at a time.
const READ_BYTES: usize = 4 << 20;

/// Seconds of each round.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// The length of all files of the log.
    pub(crate) bytes: u64,
    pub(crate) open: Vec<f64>,
    pub(crate) direct_read: Vec<f64>,
}

impl Recovery {
    /// The speed of opening over that of reading.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(Spread::of(&self.direct_read)?.median / Spread::of(&self.open)?.median)
    }
}

/// Fills a log with `bytes` of records, closes it, and opens it cold, `rounds` times, each time
/// beside a direct read of all its files.
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
        Error::other("measure how long a log takes to open")(io::Error::other(failure))
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
        // Who comes first changes, as in all rounds.
        for open in [round % 2 == 0, round % 2 == 1] {
            let files = files(dir)?;
            forget(&files)?;
            let began = Instant::now();
            if open {
                let (ours, recovered) = Ours::open(dir, SEGMENT_BYTES)?;
                recovery.open.push(began.elapsed().as_secs_f64());
                drop(ours);
                if recovered.records != records {
                    let found = recovered.records;
                    return Err(format!("{found} of {records} records came back").into());
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

/// All files in `dir` with bytes in them, open for direct reading.
fn files(dir: &Path) -> Result<Files, Failure> {
    let disk = OsDisk::open(dir)?;
    let how = Open { direct: true, read_only: true, ..Open::default() };
    let mut files = Files::new();
    for name in disk.list("")? {
        if fs::metadata(dir.join(&name))?.len() > 0 {
            files.push(disk.open(&name, how)?);
        }
    }
    Ok(files)
}

/// Takes all of it out of the page cache.
fn forget(files: &Files) -> Result<(), Failure> {
    rustix::fs::sync();
    for file in files {
        evict(&**file, 0, u64::MAX)?;
        let left = haul_disk::resident(&**file, 0, u64::MAX)?.resident_bytes;
        if left > 0 {
            return Err(format!("{left} bytes stay in the page cache").into());
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
    fn the_ratio_is_of_speeds() {
        let recovery =
            Recovery { bytes: 1, open: vec![2.0, 2.5, 9.0], direct_read: vec![2.0, 1.0, 2.0] };
        assert_eq!(recovery.ratio(), Some(0.8));
        assert_eq!(Recovery::default().ratio(), None);
    }
}
