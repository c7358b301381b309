//! Writes numbered records until the power is cut, and finds those that survived.

use std::sync::Arc;

use haul_disk::{Allocation, Disk, Durability, File, Open, evict, read_full, write_full};
use haul_measure::Result;
use haul_testing::noise;

use super::options::{Preparation, Sync};

/// The length of a record in bytes: a page.
pub(super) const RECORD_BYTES: usize = 4096;

const NAME: &str = "log";

/// The file that is written after the power cut.
const LATER: &str = "later";

/// The content of the place of a record after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The record.
    Record,
    /// Zeros.
    Zeros,
    /// The file ends before it.
    Missing,
    /// A part of the record, other bytes, or none because of an error of the file system.
    Other,
}

/// Returns record `number`, which differs for each seed.
fn record(seed: u64, number: usize) -> Vec<u8> {
    noise(seed << 32 ^ number as u64, RECORD_BYTES)
}

fn offset(number: usize) -> u64 {
    (number * RECORD_BYTES) as u64
}

/// Creates the file for `records` records. It and its name are durable when this returns.
pub(super) fn prepare(
    disk: &dyn Disk,
    preparation: Preparation,
    records: usize,
) -> Result<Arc<dyn File>> {
    let file = disk.create(NAME, Open::default())?;
    match preparation {
        Preparation::Append => {}
        Preparation::Fallocate => file.allocate(Allocation::Reserve, 0, offset(records))?,
        Preparation::Filled => write_full(&*file, &vec![0; records * RECORD_BYTES], 0)?,
    }
    file.sync(Durability::Everything)?;
    disk.sync_dir("")?;
    Ok(file)
}

/// Writes and syncs records until all are written or a call fails, because the power is cut.
/// Returns the number of records that are durable.
pub(super) fn write(file: &dyn File, sync: Sync, seed: u64, records: usize) -> usize {
    let mut durable = 0;
    for number in 0..records {
        let written = write_full(file, &record(seed, number), offset(number));
        let is_due = sync == Sync::Each || number + 1 == records;
        if written.is_err() || is_due && file.sync(Durability::Data).is_err() {
            return durable;
        }
        if is_due {
            durable = number + 1;
        }
    }
    durable
}

/// Reads the places of all records from the disk.
pub(super) fn find(disk: &dyn Disk, seed: u64, records: usize) -> Result<Vec<Found>> {
    let file = match disk.open(NAME, Open { read_only: true, ..Open::default() }) {
        Err(error) if error.is_not_found() => return Ok(vec![Found::Missing; records]),
        opened => opened?,
    };
    evict(&*file, 0, u64::MAX)?;
    let found = |number| {
        let mut bytes = vec![0; RECORD_BYTES];
        let Ok(read) = read_full(&*file, &mut bytes, offset(number)) else {
            return Found::Other;
        };
        match &bytes[..read] {
            [] => Found::Missing,
            bytes if bytes == record(seed, number) => Found::Record,
            bytes if bytes.iter().all(|byte| *byte == 0) => Found::Zeros,
            _ => Found::Other,
        }
    };
    Ok((0..records).map(found).collect())
}

/// Writes a second file of `bytes` bytes, which takes free space.
pub(super) fn write_later(disk: &dyn Disk, bytes: usize) -> Result<()> {
    let file = disk.create(LATER, Open::default())?;
    write_full(&*file, &vec![b'l'; bytes], 0)?;
    Ok(file.sync(Durability::Everything)?)
}
