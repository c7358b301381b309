//! Compares the time to open a log with the time to read the files of the log with direct I/O.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use haul_disk::{AlignedBuf, Disk, File, LOCK_NAME, Open, OsDisk};
use haul_measure::Watcher;

use super::contender::Failure;
use super::ours::Ours;
use crate::report::Samples;
use crate::test_file::evict_all;

/// The length in bytes of a segment.
const SEGMENT_BYTES: u32 = 128 << 20;
const RECORD_BYTES: usize = 64 << 10;
/// The length in bytes of a direct read.
const READ_BYTES: usize = 4 << 20;

/// Fills a log with `bytes` bytes of records, closes it, and opens it `rounds` times with cold
/// caches. Each round also reads all files of the log with direct I/O. Returns the seconds of both.
pub(super) fn recovery(
    dir: &Path,
    bytes: u64,
    rounds: usize,
    watcher: &dyn Watcher,
) -> Result<[Samples; 2], Failure> {
    let (ours, _) = Ours::open(dir, SEGMENT_BYTES)?;
    ours.fill_and_close(bytes, &vec![7; RECORD_BYTES])?;
    let records = bytes.div_ceil(RECORD_BYTES as u64);
    let (mut open_s, mut read_s) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        watcher.check()?;
        // The order of opening and reading alternates from round to round.
        for open in [round % 2 == 0, round % 2 == 1] {
            let files = files(dir)?;
            rustix::fs::sync();
            evict_all(&files.iter().map(|file| &**file).collect::<Vec<_>>(), 0)?;
            let began = Instant::now();
            if open {
                let (_ours, recovered) = Ours::open(dir, SEGMENT_BYTES)?;
                open_s.push(began.elapsed().as_secs_f64());
                if recovered.records != records {
                    let found = recovered.records;
                    return Err(format!("recovered {found} of {records} records").into());
                }
            } else {
                read(&files)?;
                read_s.push(began.elapsed().as_secs_f64());
            }
        }
    }
    Ok([Samples::new("open", open_s), Samples::new("direct read", read_s)])
}

/// Opens all files of the log in `dir` for direct reads.
fn files(dir: &Path) -> Result<Vec<Arc<dyn File>>, Failure> {
    let disk = OsDisk::open(dir)?;
    let flags = Open { direct: true, read_only: true, ..Open::default() };
    let mut names = disk.list("")?;
    names.retain(|name| name != LOCK_NAME);
    Ok(names.iter().map(|name| disk.open(name, flags)).collect::<haul_disk::Result<_>>()?)
}

fn read(files: &[Arc<dyn File>]) -> Result<(), Failure> {
    let mut buffer = AlignedBuf::zeroed(READ_BYTES);
    for file in files {
        let mut offset = 0;
        loop {
            match file.read_some(&mut buffer, offset)? {
                0 => break,
                read => offset += read as u64,
            }
        }
    }
    Ok(())
}
