//! Writes runs: ascending entries, in a new file.

use std::sync::Arc;

use haul_disk::{Disk, Durability, File, Open, write_full};

use crate::error::{Error, Result};
use crate::index::runs::block::Block;
use crate::index::runs::format::{
    BLOCK_BYTES, CHECKSUM_BYTES, Footer, KEY_BYTES_MAX, VALUE_BYTES_MAX, push_index_entry,
    seal_block, separator, shared_prefix,
};
use crate::index::runs::packed::Packer;

/// The number of bytes that are buffered for one write.
pub(crate) const WRITE_BYTES: usize = 512 << 10;

/// A complete run's properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunInfo {
    /// The file's name.
    pub(crate) name: String,
    /// The ID that the caller chose. A new run with the name of a removed run must have another ID,
    /// so that stale bytes on the disk are never accepted as the new run.
    pub(crate) id: u64,
    /// The number of entries, including tombstones.
    pub(crate) entries: u64,
    /// The number of tombstones.
    pub(crate) deletions: u64,
    /// The file's length, in bytes.
    pub(crate) bytes: u64,
}

/// A run that is being written.
///
/// After an error, all later calls fail, and the caller removes the file. Dropping a writer leaves
/// an incomplete file, which the caller also removes.
#[derive(Debug)]
pub(crate) struct RunWriter {
    file: Arc<dyn File>,
    name: String,
    id: u64,
    /// Packed blocks that are not yet written.
    buffer: Vec<u8>,
    /// The buffer's offset in the file.
    buffer_offset: u64,
    /// The block that is being filled.
    block: Block,
    packer: Packer,
    /// The separator of the block that is being filled.
    separator: Vec<u8>,
    /// The last key.
    key: Vec<u8>,
    index: Vec<u8>,
    blocks: u32,
    entries: u64,
    deletions: u64,
    has_failed: bool,
}

impl RunWriter {
    pub(crate) fn create(disk: &dyn Disk, name: &str, id: u64) -> Result<Self> {
        Ok(Self {
            file: disk.create(name, Open::default())?,
            name: name.to_owned(),
            id,
            buffer: Vec::new(),
            buffer_offset: 0,
            block: Block::default(),
            packer: Packer::new(),
            separator: Vec::new(),
            key: Vec::new(),
            index: Vec::new(),
            blocks: 0,
            entries: 0,
            deletions: 0,
            has_failed: false,
        })
    }

    /// Appends an entry; `None` is a tombstone. The key must be greater than the previous one.
    ///
    /// # Errors
    /// A failed write, which is final; `Invalid` for an entry that exceeds the format's limits.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.check_usable()?;
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(invalid(format!("a key of {} bytes in a run", key.len())));
        }
        let value_bytes = value.map_or(0, <[u8]>::len);
        if value_bytes > VALUE_BYTES_MAX {
            return Err(invalid(format!("a value of {value_bytes} bytes in a run")));
        }
        if key <= &self.key[..] {
            return Err(invalid("keys of a run that are not in ascending order".to_owned()));
        }
        let suffix_bytes = key.len() - shared_prefix(&self.key, key);
        let bytes = self.block.bytes_with(suffix_bytes, value_bytes);
        if !self.block.is_empty() && bytes > BLOCK_BYTES {
            self.end_block()?;
        }
        if self.block.is_empty() {
            self.separator.clear();
            if self.blocks > 0 {
                self.separator.extend_from_slice(separator(&self.key, key));
            }
            self.key.clear();
        }
        self.block.push(&self.key, key, value);
        self.key.clear();
        self.key.extend_from_slice(key);
        self.entries += 1;
        self.deletions += u64::from(value.is_none());
        Ok(())
    }

    /// Returns the number of bytes written to the file.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.buffer_offset
    }

    /// Writes the rest of the run and syncs the file.
    ///
    /// # Errors
    /// A failed write or sync, which is final.
    ///
    /// # Durability
    /// The run survives a power cut if the caller syncs the directory, too.
    pub(crate) fn finish(mut self) -> Result<RunInfo> {
        self.check_usable()?;
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let footer = Footer {
            id: self.id,
            entries: self.entries,
            deletions: self.deletions,
            blocks: self.blocks,
            index_checksum: haul_crc::crc32c(&self.index),
            index_offset: self.buffer_offset + self.buffer.len() as u64,
            index_bytes: self.index.len() as u64,
        };
        for part in std::mem::take(&mut self.index).chunks(WRITE_BYTES) {
            self.buffer.extend_from_slice(part);
            self.write_if_full()?;
        }
        self.buffer.extend_from_slice(&footer.encode());
        self.write()?;
        self.file.sync(Durability::Data)?;
        Ok(RunInfo {
            name: self.name,
            id: self.id,
            entries: self.entries,
            deletions: self.deletions,
            bytes: self.buffer_offset,
        })
    }

    fn end_block(&mut self) -> Result<()> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; CHECKSUM_BYTES]);
        self.packer.pack(&self.block, &mut self.buffer);
        self.block.clear();
        seal_block(&mut self.buffer[start..], self.id, self.buffer_offset + start as u64);
        let bytes = self.buffer.len() - start;
        push_index_entry(&mut self.index, &self.separator, bytes);
        if u32::try_from(self.index.len()).is_err() {
            self.has_failed = true;
            return Err(invalid("a run with a block index of more than 4 GiB".to_owned()));
        }
        self.blocks += 1;
        self.write_if_full()
    }

    fn write_if_full(&mut self) -> Result<()> {
        if self.buffer.len() < WRITE_BYTES { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<()> {
        self.has_failed = true;
        write_full(&*self.file, &self.buffer, self.buffer_offset)?;
        self.has_failed = false;
        self.buffer_offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn check_usable(&self) -> Result<()> {
        if self.has_failed {
            return Err(invalid("an earlier write of this run failed".to_owned()));
        }
        Ok(())
    }
}

fn invalid(what: String) -> Error {
    Error::Invalid { what }
}
