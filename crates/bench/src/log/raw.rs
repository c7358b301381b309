//! The floor: what the disk itself takes for one durable write after the other, and what it takes
//! when the file grows with each.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use haul_disk::{
    AlignedBuf, Disk, Durability, File, Open, OsDisk, PAGE_BYTES, align_up, fill, write_full,
};

use crate::log::contender::{Contender, Failure};

/// The file that is overwritten: long enough that no device holds it in a small buffer of its
/// own, short enough to be filled in a moment.
const FILE_BYTES: u64 = 128 << 20;
const FILE_NAME: &str = "raw";

/// How a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Direct overwriting of blocks that were written before, then `fdatasync`.
    DirectThenSync,
    /// The same with `O_DSYNC` in place of the second call.
    DirectDsync,
    /// Buffered writing behind the end of the file, then `fdatasync`.
    Growing,
}

/// A plain file as a contender. Its writers take turns.
#[derive(Debug)]
pub(crate) struct Raw {
    file: Arc<dyn File>,
    way: Way,
    next: Mutex<Next>,
}

#[derive(Debug)]
struct Next {
    offset: u64,
    block: AlignedBuf,
}

impl Raw {
    pub(crate) fn open(dir: &Path, way: Way, record_bytes: usize) -> Result<Self, Failure> {
        let disk = OsDisk::open(dir)?;
        let direct = way != Way::Growing;
        let open = Open { direct, dsync: way == Way::DirectDsync, ..Open::default() };
        let file = disk.create(FILE_NAME, Open::default())?;
        if direct {
            fill(&*file, FILE_BYTES)?;
        }
        let file = disk.open(FILE_NAME, open)?;
        disk.sync_dir("")?;
        let block = AlignedBuf::zeroed(record_bytes);
        Ok(Self { file, way, next: Mutex::new(Next { offset: 0, block }) })
    }
}

impl Contender for Raw {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Next { offset, block } = &mut *next;
        if self.way == Way::Growing {
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
        if self.way != Way::DirectDsync {
            self.file.sync(Durability::Data)?;
        }
        Ok(())
    }
}
