//! Writes to a file with system calls, with direct I/O, or through a mapping.

use std::sync::Arc;

use haul_disk::{
    AlignedBuf, Disk, Durability, File, Map, Open, OsDisk, PAGE_BYTES, align_down, align_up,
    read_full, write_full,
};
use haul_measure::{Error, Result};

use super::method::Method;

/// A file that is open for the writes of a method.
pub(super) enum Output {
    /// `pwrite` through the page cache.
    Calls(Arc<dyn File>),
    /// `pwrite` of whole pages with `O_DIRECT`, and the memory of these pages.
    Direct(Arc<dyn File>, AlignedBuf),
    /// Copies into a mapping.
    Mapped(Map),
}

impl Output {
    /// Opens a file for the writes of `method`.
    pub(super) fn open(disk: &OsDisk, name: &str, method: Method) -> Result<Self> {
        let direct = matches!(method, Method::Direct | Method::SortedDirect);
        let file = disk.open(name, Open { direct, random: !direct, ..Open::default() })?;
        if direct {
            return Ok(Self::Direct(file, AlignedBuf::zeroed(2 * PAGE_BYTES)));
        }
        if method.is_mapped() {
            let bytes = place(file.bytes()?)?;
            return Ok(Self::Mapped(Map::of(file, bytes)?));
        }
        Ok(Self::Calls(file))
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        match self {
            Self::Calls(file) => write_full(&**file, bytes, offset)?,
            Self::Direct(file, pages) => write_pages(&**file, pages, bytes, offset)?,
            Self::Mapped(map) => map.write(bytes, place(offset)?)?,
        }
        Ok(())
    }

    /// Makes all writes so far durable.
    pub(super) fn sync(&self) -> Result<()> {
        match self {
            Self::Calls(file) | Self::Direct(file, _) => file.sync(Durability::Data)?,
            Self::Mapped(map) => map.sync(0, place(map.end())?)?,
        }
        Ok(())
    }
}

fn place(bytes: u64) -> Result<usize> {
    let failed = Error::other("map the file");
    usize::try_from(bytes).map_err(|error| failed(std::io::Error::other(error)))
}

/// Writes `bytes` as whole pages; first reads the pages of which `bytes` covers only a part.
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
