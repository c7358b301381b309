//! Implements [`Contender`], the interface of the benchmark, for a plain file: with durable
//! overwrites, whose rate is the floor, or with appends to a growing file.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use haul_disk::{
    AlignedBuf, Disk, Durability, File, Open, OsDisk, PAGE_BYTES, align_up, fill, write_full,
};

use super::contender::{Contender, Failure};

/// The length in bytes of the overwritten file: larger than small device caches, and small enough
/// to be filled quickly.
const FILE_BYTES: u64 = 128 << 20;
const FILE_NAME: &str = "raw";

/// The mode of the durable writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RawMode {
    /// A direct overwrite of blocks that were written before, then `fdatasync`.
    DirectFdatasync,
    /// A direct overwrite of blocks that were written before, to a file opened with `O_DSYNC`,
    /// which makes each write durable without a separate sync.
    DirectDsync,
    /// A buffered append, then `fdatasync`.
    Growing,
}

/// A plain file as a contender; a lock serializes its writers.
#[derive(Debug)]
pub(crate) struct Raw {
    file: Arc<dyn File>,
    mode: RawMode,
    next: Mutex<Next>,
}

#[derive(Debug)]
struct Next {
    offset: u64,
    block: AlignedBuf,
}

impl Raw {
    pub(crate) fn open(dir: &Path, mode: RawMode, record_bytes: usize) -> Result<Self, Failure> {
        let disk = OsDisk::open(dir)?;
        let direct = mode != RawMode::Growing;
        let open = Open { direct, dsync: mode == RawMode::DirectDsync, ..Open::default() };
        let file = disk.create(FILE_NAME, Open::default())?;
        if direct {
            fill(&*file, FILE_BYTES)?;
        }
        let file = disk.open(FILE_NAME, open)?;
        disk.sync_dir("")?;
        let block = AlignedBuf::zeroed(record_bytes);
        Ok(Self { file, mode, next: Mutex::new(Next { offset: 0, block }) })
    }
}

impl Contender for Raw {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Next { offset, block } = &mut *next;
        if self.mode == RawMode::Growing {
            write_full(&*self.file, record, *offset)?;
            *offset += record.len() as u64;
        } else {
            block[..record.len()].copy_from_slice(record);
            let block_bytes = align_up(record.len() as u64, PAGE_BYTES as u64);
            if *offset + block_bytes > FILE_BYTES {
                *offset = 0;
            }
            write_full(&*self.file, block, *offset)?;
            *offset += block_bytes;
        }
        if self.mode != RawMode::DirectDsync {
            self.file.sync(Durability::Data)?;
        }
        Ok(())
    }
}
