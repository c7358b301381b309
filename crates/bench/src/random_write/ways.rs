//! The ways of bringing records to their places, each as durable as the others: all of a batch is on
//! the medium before the next one begins.

use std::path::Path;
use std::str::FromStr;

use haul_disk::{
    AlignedBuf, Disk, Durability, File, Open, OsDisk, PAGE_BYTES, align_down, align_up, read_full,
    write_full,
};
use haul_sorted_write::plan::{Costs, Entry, Piece, Rules, plan};
use haul_sorted_write::{FileId, Options as SortedOptions, Role, SortedWriter};

use super::records::{ENTRY_BYTES, RECORD_BYTES, Record, standing};
use crate::error::{Error, Result};
use crate::watch::Watcher;

/// The names of the files in the directory of a bench.
pub(super) const BIG: &str = "big";
pub(super) const INDEX: &str = "index";

/// How many records are looked at afterwards.
const LOOKED_AT: usize = 100;

/// How records come to their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `pwrite` in the order they come, and one `fdatasync` for the batch: the kernel sorts what it
    /// writes, and reads the pages that are written in part one by one, as they come.
    Random,
    /// The same past the page cache, where the program reads the pages.
    Direct,
    /// The batch is sorted first, without what later ones of it are over; then as [`Way::Random`].
    Sorted,
    /// The batch is sorted, then as [`Way::Direct`].
    SortedDirect,
    /// `SortedWriter`, and a barrier for the batch.
    Merged,
}

/// What is written for each record into a small file beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// Nothing.
    None,
    /// Its entry, where and when it comes: right behind the record, or with the records as bulk.
    Mixed,
    /// Its entry, in a queue of its own.
    Apart,
}

impl FromStr for Way {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|way| way.name() == name).ok_or(format!("there are {names}"))
    }
}

impl Way {
    /// All there are.
    pub const ALL: [Self; 5] =
        [Self::Random, Self::Direct, Self::Sorted, Self::SortedDirect, Self::Merged];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Direct => "random-direct",
            Self::Sorted => "sorted",
            Self::SortedDirect => "sorted-direct",
            Self::Merged => "sorted-merged",
        }
    }
}

impl Index {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "no",
            Self::Mixed => "mixed",
            Self::Apart => "apart",
        }
    }
}

/// One combination that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) way: Way,
    pub(super) index: Index,
    /// Records between syncs.
    pub(super) batch: usize,
}

/// All combinations, by batch: each way alone and with an index.
pub(super) fn cells(ways: &[Way], batches: &[usize], with_index: bool) -> Vec<Cell> {
    let with = |index: Index| ways.iter().map(move |way| (*way, index));
    let apart = with(Index::Apart).filter(|(way, _)| *way == Way::Merged);
    let indexed = with(Index::Mixed).chain(apart).filter(|_| with_index);
    let all: Vec<_> = with(Index::None).chain(indexed).collect();
    let of =
        |batch: usize| all.iter().map(move |(way, index)| Cell { way: *way, index: *index, batch });
    batches.iter().flat_map(|batch| of(*batch)).collect()
}

/// The two files in a directory, each as long as it will be and written once.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) disk: OsDisk,
}

impl Files {
    /// Makes them, on the medium. They hold zeros.
    pub(super) fn make(
        dir: &Path,
        big_bytes: u64,
        index_bytes: u64,
        watcher: &dyn Watcher,
    ) -> Result<Self> {
        let disk = OsDisk::open(dir)?;
        let chunk = AlignedBuf::zeroed(1 << 20);
        // The index lies behind the bulk, as what is made later often does.
        for (name, bytes) in [(BIG, big_bytes), (INDEX, index_bytes)] {
            let file = disk.create(name, Open { direct: true, ..Open::default() })?;
            let mut at = 0;
            while at < bytes {
                watcher.check()?;
                let length = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(chunk.len());
                write_full(&*file, &chunk[..length], at)?;
                at += length as u64;
            }
            file.sync(Durability::Everything)?;
        }
        disk.sync_dir("")?;
        Ok(Self { disk })
    }

    /// Those that were made there.
    pub(super) fn on(dir: &Path) -> Result<Self> {
        Ok(Self { disk: OsDisk::open(dir)? })
    }

    /// Takes both out of memory.
    pub(super) fn make_cold(&self) -> Result<()> {
        for name in [BIG, INDEX] {
            haul_disk::evict(&*self.disk.open(name, Open::default())?, 0, u64::MAX)?;
        }
        Ok(())
    }

    /// Brings all records to their places.
    pub(super) fn write(
        &self,
        cell: Cell,
        records: &[Record],
        watcher: &dyn Watcher,
    ) -> Result<()> {
        match cell.way {
            Way::Merged => self.by_writer(cell, records, watcher),
            _ => self.by_hand(cell, records, watcher),
        }
    }

    fn by_hand(&self, cell: Cell, records: &[Record], watcher: &dyn Watcher) -> Result<()> {
        let direct = matches!(cell.way, Way::Direct | Way::SortedDirect);
        let how = Open { direct, random: !direct, ..Open::default() };
        let (big, index) = (self.disk.open(BIG, how)?, self.disk.open(INDEX, how)?);
        let with_index = cell.index != Index::None;
        let mut buffer = vec![0; usize::try_from(*RECORD_BYTES.end()).unwrap_or(0)];
        let mut pages = AlignedBuf::zeroed(2 * PAGE_BYTES);
        let mut write = |file: &dyn File, bytes: &[u8], offset: u64| match direct {
            true => write_pages(file, &mut pages, bytes, offset),
            false => write_full(file, bytes, offset),
        };
        for batch in records.chunks(cell.batch) {
            watcher.check()?;
            let pieces = match cell.way {
                Way::Sorted | Way::SortedDirect => sorted(batch),
                _ => as_given(batch),
            };
            // Entries go in the order of the records, so that of one slot the last stands.
            let mut entries = batch.iter().filter(|_| with_index);
            for piece in pieces {
                let (number, from) = (piece.number as usize, piece.from as usize);
                let bytes = &batch[number].fill(&mut buffer)[from..][..piece.bytes as usize];
                write(&*big, bytes, piece.offset)?;
                if let Some(record) = entries.next() {
                    write(&*index, &record.entry(), record.entry_at)?;
                }
            }
            for record in entries {
                write(&*index, &record.entry(), record.entry_at)?;
            }
            big.sync(Durability::Data)?;
            if with_index {
                index.sync(Durability::Data)?;
            }
        }
        Ok(())
    }

    fn by_writer(&self, cell: Cell, records: &[Record], watcher: &dyn Watcher) -> Result<()> {
        let writer = SortedWriter::start(sorted_options()).map_err(failed)?;
        let open = |name, role| writer.open(&self.disk, name, role).map_err(failed);
        let index = match cell.index {
            Index::None => None,
            Index::Mixed => Some(open(INDEX, Role::Bulk)?),
            Index::Apart => Some(open(INDEX, Role::Index)?),
        };
        let big = open(BIG, Role::Bulk)?;
        let mut buffer = vec![0; usize::try_from(*RECORD_BYTES.end()).unwrap_or(0)];
        let write = |file: FileId, offset, bytes: &[u8]| writer.write(file, offset, bytes);
        for batch in records.chunks(cell.batch) {
            watcher.check()?;
            for record in batch {
                write(big, record.offset, record.fill(&mut buffer)).map_err(failed)?;
                if let Some(index) = index {
                    write(index, record.entry_at, &record.entry()).map_err(failed)?;
                }
            }
            writer.barrier().map_err(failed)?;
        }
        writer.close().map_err(failed)
    }

    /// Whether the bytes are there, past the page cache: of some records no later one is over.
    pub(super) fn check(&self, records: &[Record], with_index: bool) -> Result<()> {
        self.make_cold()?;
        let (big, index) =
            (self.disk.open(BIG, Open::default())?, self.disk.open(INDEX, Open::default())?);
        let mut expected = vec![0; usize::try_from(*RECORD_BYTES.end()).unwrap_or(0)];
        let mut found = expected.clone();
        for record in standing(records, LOOKED_AT) {
            read_full(&*big, &mut found[..record.bytes], record.offset)?;
            let is_there = found[..record.bytes] == *record.fill(&mut expected);
            let last = records.iter().rfind(|other| other.entry_at == record.entry_at);
            let mut entry = [0; ENTRY_BYTES];
            read_full(&*index, &mut entry, record.entry_at)?;
            let is_indexed = last.is_some_and(|last| last.entry() == entry);
            if !is_there || (with_index && !is_indexed) {
                let why = std::io::Error::other(format!("at {} are other bytes", record.offset));
                return Err(Error::other("trust what was written")(why));
            }
        }
        Ok(())
    }
}

/// Each record whole, as they come.
fn as_given(batch: &[Record]) -> Vec<Piece> {
    let whole = |(number, record): (u32, &Record)| {
        let Entry { offset, number, bytes } = record.as_entry(number);
        Piece { offset, bytes, number, from: 0 }
    };
    (0..).zip(batch).map(whole).collect()
}

/// What stands of each record of a batch, upward.
fn sorted(batch: &[Record]) -> Vec<Piece> {
    let mut entries: Vec<_> = (0..).zip(batch).map(|(number, it)| it.as_entry(number)).collect();
    let costs = Costs { request_us: 0, bytes_per_second: 0 };
    let rules = Rules { unit_bytes: 1, units_end: 0, request_bytes_max: 1 << 20, costs };
    plan(&mut entries, &rules).pieces
}

/// Memory enough for the longest batch: barriers alone begin rounds.
fn sorted_options() -> SortedOptions {
    SortedOptions {
        generation_bytes: usize::MAX,
        index_bytes: usize::MAX,
        ..SortedOptions::default()
    }
}

fn failed(error: haul_sorted_write::Error) -> Error {
    Error::other("write sorted")(std::io::Error::other(error))
}

/// Whole pages around the bytes are read as far as they are not written whole, and written.
fn write_pages(
    file: &dyn File,
    pages: &mut AlignedBuf,
    bytes: &[u8],
    offset: u64,
) -> haul_disk::Result<()> {
    let page = PAGE_BYTES as u64;
    let (from, to) = (align_down(offset, page), align_up(offset + bytes.len() as u64, page));
    let length = usize::try_from(to - from).unwrap_or(0);
    let within = usize::try_from(offset - from).unwrap_or(0);
    if length > bytes.len() {
        read_full(file, &mut pages[..length], from)?;
    }
    pages[within..within + bytes.len()].copy_from_slice(bytes);
    write_full(file, &pages[..length], from)
}

#[cfg(test)]
mod tests {
    use super::super::records::records;
    use super::*;
    use crate::watch::Silent;

    #[test]
    fn every_way_brings_all_records_to_their_places_and_nothing_elsewhere() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let files = Files::make(dir.path(), 2 << 20, 64 << 10, &Silent).unwrap();
        let mut contents = Vec::new();
        for cell in cells(&Way::ALL, &[1, 100, 1 << 20], true) {
            let count = if cell.batch == 1 { 20 } else { 300 };
            let all = records(count, 2 << 20, 64 << 10, 3, 1);
            std::fs::write(dir.path().join(BIG), vec![0; 2 << 20]).unwrap();
            std::fs::write(dir.path().join(INDEX), vec![0; 64 << 10]).unwrap();
            assert!(files.check(&all, false).is_err(), "nothing is there yet");
            files.write(cell, &all, &Silent).unwrap();
            files.check(&all, cell.index != Index::None).unwrap();
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
