//! Writes records with several methods of equal durability: each method syncs a batch of records
//! before it begins the next batch.

use std::collections::BTreeMap;
use std::path::Path;

use haul_disk::{DeviceKind, Disk, Open, OsDisk, read_full};
use haul_measure::{Error, Result, Watcher};
use haul_sorted_write::plan::{Costs, Entry, Piece, Rules, plan};
use haul_sorted_write::{FileId, Options as SortedOptions, SortedWriter};

use super::method::{Cell, Index, Method};
use super::output::Output;
use super::records::{ENTRY_BYTES, RECORD_BYTES, Record, not_overwritten};
use crate::test_file::fill;

/// The names of the file of records and of its index.
pub(super) const BIG: &str = "big";
const INDEX: &str = "index";

/// The maximum number of records that are verified.
const VERIFIED: usize = 100;

/// A directory with the file of records and the index. Both files have their final length, and all
/// their blocks were written once.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) disk: OsDisk,
    /// The kind of the device; `None` lets the sorted writer measure it.
    pub(super) kind: Option<DeviceKind>,
}

impl Files {
    /// Creates both files, fills them with zeros, and syncs them.
    pub(super) fn create(
        dir: &Path,
        big_bytes: u64,
        index_bytes: u64,
        watcher: &dyn Watcher,
    ) -> Result<Self> {
        let disk = OsDisk::open(dir)?;
        // The index is created second, so that it is allocated after the file of records.
        for (name, bytes) in [(BIG, big_bytes), (INDEX, index_bytes)] {
            let file = disk.create(name, Open { direct: true, ..Open::default() })?;
            fill(&*file, bytes, watcher, |_, _| {})?;
        }
        disk.sync_dir("")?;
        Ok(Self { disk, kind: None })
    }

    /// Opens a directory on a simulated drive that contains both files. The kind of the drive is
    /// given, because the drive does not really wait, so that timed reads would mistake it.
    pub(super) fn on_drive(dir: &Path) -> Result<Self> {
        Ok(Self { disk: OsDisk::open(dir)?, kind: Some(DeviceKind::Rotational) })
    }

    /// Evicts both files from the page cache.
    pub(super) fn evict(&self) -> Result<()> {
        for name in [BIG, INDEX] {
            haul_disk::evict(&*self.disk.open(name, Open::default())?, 0, u64::MAX)?;
        }
        Ok(())
    }

    /// Writes all records with the method of `cell`.
    pub(super) fn write(
        &self,
        cell: Cell,
        records: &[Record],
        watcher: &dyn Watcher,
    ) -> Result<()> {
        match cell.method {
            Method::Merged => self.write_sorted(cell, records, watcher),
            _ => self.write_calls(cell, records, watcher),
        }
    }

    fn write_calls(&self, cell: Cell, records: &[Record], watcher: &dyn Watcher) -> Result<()> {
        let Cell { method, index: mode, .. } = cell;
        let mut big = Output::open(&self.disk, BIG, method)?;
        // The index is written by calls even if the file of records is mapped.
        let index_method = if method.is_mapped() { Method::Random } else { method };
        let mut index = Output::open(&self.disk, INDEX, index_method)?;
        let with_index = matches!(mode, Index::Mixed | Index::Separate | Index::Alone);
        let mut buffer = vec![0; usize::try_from(*RECORD_BYTES.end()).unwrap_or(0)];
        for batch in records.chunks(cell.batch) {
            let pieces = match (mode, method) {
                (Index::Alone, _) => Vec::new(),
                (_, Method::Random | Method::Direct | Method::Mapped) => as_given(batch),
                _ => sorted(batch),
            };
            // Index entries are written in the order in which the records arrived. Several records
            // may have the same place in the index, which must contain the newest entry.
            let mut entries = batch.iter().filter(|_| with_index).peekable();
            for piece in pieces {
                watcher.check()?;
                let (number, from) = (piece.number as usize, piece.from as usize);
                let bytes = &batch[number].fill(&mut buffer)[from..][..piece.bytes as usize];
                big.write(bytes, piece.offset)?;
                if let Some(record) = entries.next_if(|_| mode == Index::Mixed) {
                    index.write(&record.entry(), record.entry_at)?;
                }
            }
            for record in entries {
                watcher.check()?;
                index.write(&record.entry(), record.entry_at)?;
            }
            if mode != Index::Alone {
                big.sync()?;
            }
            if with_index {
                index.sync()?;
            }
        }
        if mode == Index::InMemory {
            for record in newest_entries(records) {
                watcher.check()?;
                index.write(&record.entry(), record.entry_at)?;
            }
            index.sync()?;
        }
        Ok(())
    }

    fn write_sorted(&self, cell: Cell, records: &[Record], watcher: &dyn Watcher) -> Result<()> {
        let writer =
            SortedWriter::start(SortedOptions { kind: self.kind, ..SortedOptions::default() })
                .map_err(failed)?;
        let open = |name| writer.open(&self.disk, name).map_err(failed);
        let index = (cell.index != Index::None).then(|| open(INDEX)).transpose()?;
        let big = open(BIG)?;
        let mut buffer = vec![0; usize::try_from(*RECORD_BYTES.end()).unwrap_or(0)];
        let write = |file: FileId, offset, bytes: &[u8]| writer.write(file, offset, bytes);
        for batch in records.chunks(cell.batch) {
            for record in batch {
                watcher.check()?;
                write(big, record.offset, record.fill(&mut buffer)).map_err(failed)?;
                if let Some(index) = index {
                    write(index, record.entry_at, &record.entry()).map_err(failed)?;
                }
            }
            writer.barrier().map_err(failed)?;
        }
        writer.close().map_err(failed)
    }

    /// Reads some records that no later record overwrites, and their index entries, from the device
    /// and compares those that were written with the bytes written.
    pub(super) fn verify(&self, records: &[Record], written: Index) -> Result<()> {
        self.evict()?;
        let (big, index) =
            (self.disk.open(BIG, Open::default())?, self.disk.open(INDEX, Open::default())?);
        let mut expected = vec![0; usize::try_from(*RECORD_BYTES.end()).unwrap_or(0)];
        let mut found = expected.clone();
        for record in not_overwritten(records, VERIFIED) {
            read_full(&*big, &mut found[..record.bytes], record.offset)?;
            let is_written = found[..record.bytes] == *record.fill(&mut expected);
            let last = records.iter().rfind(|other| other.entry_at == record.entry_at);
            let mut entry = [0; ENTRY_BYTES];
            read_full(&*index, &mut entry, record.entry_at)?;
            let is_indexed = last.is_some_and(|last| last.entry() == entry);
            let is_complete = match written {
                Index::None => is_written,
                Index::Alone => is_indexed,
                Index::Mixed | Index::Separate | Index::InMemory => is_written && is_indexed,
            };
            if !is_complete {
                let why = std::io::Error::other(format!("wrong bytes at offset {}", record.offset));
                return Err(Error::other("verify the bytes written")(why));
            }
        }
        Ok(())
    }
}

/// Returns all records of a batch, whole and in arrival order.
fn as_given(batch: &[Record]) -> Vec<Piece> {
    let whole = |(number, record): (u32, &Record)| {
        let Entry { offset, number, bytes } = record.as_entry(number);
        Piece { offset, bytes, number, from: 0 }
    };
    (0..).zip(batch).map(whole).collect()
}

/// Returns the parts of a batch that no later record overwrites, in ascending order.
fn sorted(batch: &[Record]) -> Vec<Piece> {
    let mut entries: Vec<_> = (0..).zip(batch).map(|(number, it)| it.as_entry(number)).collect();
    let costs = Costs { request_us: 0, bytes_per_second: 0 };
    let rules = Rules { unit_bytes: 1, units_end: 0, request_bytes_max: 1 << 20, costs };
    plan(&mut entries, &rules).pieces
}

fn failed(error: haul_sorted_write::Error) -> Error {
    Error::other("write sorted")(std::io::Error::other(error))
}

/// Returns the records whose index entries no later record overwrites, in the order of their
/// places.
fn newest_entries(records: &[Record]) -> impl Iterator<Item = &Record> {
    let newest: BTreeMap<_, _> = records.iter().map(|record| (record.entry_at, record)).collect();
    newest.into_values()
}

#[cfg(test)]
mod tests {
    use super::super::method::cells;
    use super::super::records::{Shape, records};
    use super::*;
    use haul_measure::Silent;

    #[test]
    fn all_methods_write_the_same_bytes() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let files = Files::create(dir.path(), 2 << 20, 64 << 10, &Silent).unwrap();
        let mut contents = Vec::new();
        let all = cells(Shape::Records, &Method::ALL, &[1, 100, 1 << 20], &Index::ALL);
        for cell in all.into_iter().filter(|cell| cell.index != Index::Alone) {
            let count = if cell.batch == 1 { 20 } else { 300 };
            let all = records(cell.shape, None, count, 2 << 20, 64 << 10, 1);
            std::fs::write(dir.path().join(BIG), vec![0; 2 << 20]).unwrap();
            std::fs::write(dir.path().join(INDEX), vec![0; 64 << 10]).unwrap();
            assert!(files.verify(&all, cell.index).is_err(), "the file has zeros");
            files.write(cell, &all, &Silent).unwrap();
            files.verify(&all, cell.index).unwrap();
            let read = |name| std::fs::read(dir.path().join(name)).unwrap();
            contents.push((count, cell.index != Index::None, read(BIG), read(INDEX)));
        }
        for some in [(20, false), (20, true), (300, false), (300, true)] {
            let same: Vec<_> = contents.iter().filter(|it| (it.0, it.1) == some).collect();
            assert!(same.windows(2).all(|two| two[0] == two[1]), "{some:?}");
            assert!(same.len() >= 4);
        }
    }
}
