//! A big object's file: the object's bytes, a checksum for each block, and a footer.
//!
//! The file is written and read with direct I/O in whole aligned megabytes, because a huge file
//! that passes through the page cache evicts its hot pages.

use std::sync::Arc;

use bytes::Bytes;
use haul_disk::{
    AlignedBuf, Allocation, Durability, File, HUGE_PAGE_BYTES, Map, PAGE_BYTES, align_down,
    align_up, read_full, write_full,
};

use crate::big_files::directory::Objects;
use crate::big_files::read_buffers::ReadBuffers;
use crate::big_files::writer_thread::{BUFFER_BYTES, WriterThread, failed_before};
use crate::error::{Error, Result};
use crate::format::FilePart;
use crate::names;

/// The bytes that one checksum covers, and the minimum size of a read.
const BLOCK_BYTES: usize = 128 << 10;

const MAGIC: [u8; 8] = *b"HAUL-BIG";
const VERSION: u32 = 1;

/// Offsets in a file that holds `bytes` object bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    blocks: usize,
    table_at: u64,
    footer_at: u64,
    file_bytes: u64,
}

impl Layout {
    fn of(bytes: u64) -> Self {
        let page = PAGE_BYTES as u64;
        let blocks = bytes.div_ceil(BLOCK_BYTES as u64);
        let table_at = align_up(bytes, page);
        let footer_at = table_at + align_up(4 * blocks, page);
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        Self { blocks, table_at, footer_at, file_bytes: footer_at + page }
    }
}

fn footer(part: FilePart, table: &[u8]) -> [u8; 48] {
    let mut footer = [0; 48];
    footer[..8].copy_from_slice(&MAGIC);
    footer[12..16].copy_from_slice(&VERSION.to_le_bytes());
    footer[16..32].copy_from_slice(&part.id.to_le_bytes());
    footer[32..40].copy_from_slice(&part.bytes.to_le_bytes());
    footer[40..44].copy_from_slice(&haul_crc::crc32c(table).to_le_bytes());
    let checksum = haul_crc::crc32c(&footer[12..]);
    footer[8..12].copy_from_slice(&checksum.to_le_bytes());
    footer
}

/// A file that is being written. Dropping it before it is finished removes it.
#[derive(Debug)]
pub(crate) struct BigWriter {
    objects: Arc<Objects>,
    id: u128,
    file: Arc<dyn File>,
    /// `None` after a failed write: all later calls fail.
    thread: Option<WriterThread>,
    buffer: AlignedBuf,
    used: usize,
    bytes: u64,
    table: Vec<u8>,
    block_checksum: u32,
    is_published: bool,
}

impl BigWriter {
    /// Creates the file `id`, and allocates its space if the length is known.
    pub(crate) fn create(objects: Arc<Objects>, id: u128, expected: Option<u64>) -> Result<Self> {
        let file = objects.create(id)?;
        let mut writer = Self {
            objects,
            id,
            file: Arc::clone(&file),
            thread: None,
            buffer: AlignedBuf::zeroed(BUFFER_BYTES),
            used: 0,
            bytes: 0,
            table: Vec::new(),
            block_checksum: 0,
            is_published: false,
        };
        if let Some(bytes) = expected {
            // Detects a full disk before the first byte is written. If the file system cannot
            // allocate, the writes detect it.
            match file.allocate(Allocation::Reserve, 0, Layout::of(bytes).file_bytes) {
                Err(error) if error.is_full() => return Err(error.into()),
                Err(_) | Ok(()) => {}
            }
        }
        writer.thread = Some(WriterThread::start(file)?);
        Ok(writer)
    }

    /// Writes bytes. Blocks while both buffers are being written.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        if self.thread.is_none() {
            return Err(failed_before());
        }
        while !bytes.is_empty() {
            let block_left = BLOCK_BYTES - self.used % BLOCK_BYTES;
            debug_assert!(self.used < BUFFER_BYTES && block_left > 0);
            let (now, later) = bytes.split_at(bytes.len().min(block_left));
            self.buffer[self.used..self.used + now.len()].copy_from_slice(now);
            self.block_checksum = haul_crc::crc32c_append(self.block_checksum, now);
            self.used += now.len();
            self.bytes += now.len() as u64;
            if self.used.is_multiple_of(BLOCK_BYTES) {
                self.end_block();
            }
            if self.used == BUFFER_BYTES {
                self.pass_on(self.bytes - BUFFER_BYTES as u64, BUFFER_BYTES)?;
                self.used = 0;
            }
            bytes = later;
        }
        Ok(())
    }

    fn end_block(&mut self) {
        self.table.extend_from_slice(&self.block_checksum.to_le_bytes());
        self.block_checksum = 0;
    }

    /// Passes the first `bytes` bytes of the buffer to the writer thread, and takes the other
    /// buffer.
    fn pass_on(&mut self, offset: u64, bytes: usize) -> Result<()> {
        let thread = self.thread.take().ok_or_else(failed_before)?;
        self.buffer = thread.exchange(std::mem::take(&mut self.buffer), offset, bytes)?;
        self.thread = Some(thread);
        Ok(())
    }

    /// Completes and publishes the file.
    ///
    /// 1. Writes the remaining bytes, the checksums and the footer, and syncs the file. After a
    ///    crash the file has its temporary name, and opening the store removes it.
    /// 2. Renames the file and syncs the directory. After a crash the file exists, and opening the
    ///    store removes it unless a needle references it.
    pub(crate) fn finish(mut self) -> Result<FilePart> {
        if self.thread.is_none() {
            return Err(failed_before());
        }
        if !self.used.is_multiple_of(BLOCK_BYTES) {
            self.end_block();
        }
        let part = FilePart { id: self.id, bytes: self.bytes };
        let layout = Layout::of(self.bytes);
        debug_assert_eq!(self.table.len(), 4 * layout.blocks, "each block has a checksum");
        debug_assert!(self.used < BUFFER_BYTES);
        if self.used > 0 {
            let offset = self.bytes - self.used as u64;
            let padded = self.used.next_multiple_of(PAGE_BYTES);
            self.buffer[self.used..padded].fill(0);
            self.pass_on(offset, padded)?;
        }
        self.thread.take().ok_or_else(failed_before)?.finish()?;
        let end_bytes = usize::try_from(layout.file_bytes - layout.table_at).unwrap_or(usize::MAX);
        let mut end = AlignedBuf::zeroed(end_bytes);
        end[..self.table.len()].copy_from_slice(&self.table);
        let footer = footer(part, &self.table);
        end[end_bytes - PAGE_BYTES..][..footer.len()].copy_from_slice(&footer);
        write_full(&*self.file, &end, layout.table_at)?;
        self.file.resize(layout.file_bytes)?;
        self.file.sync(Durability::Everything)?;

        self.objects.publish(self.id)?;
        self.is_published = true;
        Ok(part)
    }
}

impl Drop for BigWriter {
    fn drop(&mut self) {
        if !self.is_published {
            drop(self.thread.take());
            self.objects.remove_unfinished(self.id);
        }
    }
}

#[derive(Debug)]
pub(crate) struct BigReader {
    file: Arc<dyn File>,
    path: std::path::PathBuf,
    part: FilePart,
    table: Vec<u8>,
    buffers: Arc<ReadBuffers>,
}

impl BigReader {
    /// Opens the file and reads its checksum table with one request.
    pub(crate) fn open(objects: &Objects, part: FilePart) -> Result<Self> {
        let path = objects.disk.root().join(names::big_file(part.id));
        let file = objects.open(part.id).map_err(|error| match error {
            error if error.is_not_found() => Error::Damaged {
                file: error.path,
                offset: 0,
                what: "the file of the object is missing".to_owned(),
            },
            other => other.into(),
        })?;
        let layout = Layout::of(part.bytes);
        let end_bytes = usize::try_from(layout.file_bytes - layout.table_at).unwrap_or(usize::MAX);
        let mut end = AlignedBuf::zeroed(end_bytes);
        let read = read_pages(&*file, &mut end, layout.table_at)?;
        let table = end[..4 * layout.blocks].to_vec();
        let expected = footer(part, &table);
        if read < end_bytes || end[end_bytes - PAGE_BYTES..][..expected.len()] != expected {
            let what = "the checksum table at the end of the file is damaged".to_owned();
            return Err(Error::Damaged { file: path, offset: layout.table_at, what });
        }
        Ok(Self { file, path, part, table, buffers: Arc::clone(&objects.buffers) })
    }

    /// Reads and verifies up to `bytes_max` bytes at `offset`, at most one buffer.
    pub(crate) fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        let block = BLOCK_BYTES as u64;
        let start = align_down(offset, block);
        let wanted = offset
            .saturating_add(bytes_max as u64)
            .min(self.part.bytes)
            .min(start + HUGE_PAGE_BYTES as u64);
        if wanted <= offset {
            return Ok(Bytes::new());
        }
        let end = align_up(wanted, block).min(self.part.bytes);
        let bytes = usize::try_from(end - start).unwrap_or(usize::MAX);
        // Direct reads need whole pages. Those after the end are zero, or contain the checksums.
        let pages = bytes.next_multiple_of(PAGE_BYTES);
        let mut buffer = self.buffers.take(pages);
        let read = read_pages(&*self.file, &mut buffer.as_mut()[..pages], start)?.min(bytes);
        self.verify(start, &buffer.as_ref()[..read])?;
        if read < bytes {
            return Err(self.damaged(start + read as u64, "the file ends within the object"));
        }
        let within = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
        Ok(buffer.into_bytes().slice(within(offset)..within(wanted)))
    }

    /// `true` if the file is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.file.is_local()
    }

    /// Opens the file for reading through the page cache, and maps the object's bytes.
    pub(crate) fn map(&self, objects: &Objects) -> Result<(Arc<dyn File>, Map)> {
        let FilePart { id, bytes } = self.part;
        let file = objects.open_cached(id)?;
        let map = Map::for_reading(Arc::clone(&file), usize::try_from(bytes).unwrap_or(0))?;
        Ok((file, map))
    }

    /// Verifies all object bytes in `file`, which [`Self::map`] opened.
    pub(crate) fn verify_all(&self, file: &dyn File) -> Result<()> {
        let bytes = self.part.bytes;
        let mut buffer = self.buffers.take(HUGE_PAGE_BYTES);
        for start in (0..bytes).step_by(HUGE_PAGE_BYTES) {
            let wanted = usize::try_from(bytes - start).unwrap_or(usize::MAX);
            let buffer = buffer.as_mut();
            let buffer = &mut buffer[..wanted.min(HUGE_PAGE_BYTES)];
            let read = read_full(file, buffer, start)?;
            self.verify(start, &buffer[..read])?;
            if read < buffer.len() {
                let end = start + read as u64;
                return Err(self.damaged(end, "the file ends within the object"));
            }
        }
        Ok(())
    }

    /// Verifies bytes that start at a block boundary.
    fn verify(&self, start: u64, bytes: &[u8]) -> Result<()> {
        debug_assert!(
            start.is_multiple_of(BLOCK_BYTES as u64),
            "a checksum is one of a whole block"
        );
        debug_assert!(start + bytes.len() as u64 <= self.part.bytes);
        let first = usize::try_from(start / BLOCK_BYTES as u64).unwrap_or(usize::MAX);
        for (index, data) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let checksum = haul_crc::crc32c(data).to_le_bytes();
            if self.table[4 * (first + index)..][..4] != checksum {
                return Err(self.damaged(
                    start + (index * BLOCK_BYTES) as u64,
                    "the checksum of this block does not match",
                ));
            }
        }
        Ok(())
    }

    fn damaged(&self, offset: u64, what: &str) -> Error {
        Error::Damaged { file: self.path.clone(), offset, what: what.to_owned() }
    }
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes read.
///
/// A truncated file may end within a page. A direct read that continued from there would be
/// unaligned, and the kernel would refuse it with an error that hides the damage.
fn read_pages(file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_some(&mut buffer[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
        if !done.is_multiple_of(PAGE_BYTES) && offset + done as u64 >= file.bytes()? {
            break;
        }
    }
    Ok(done)
}
