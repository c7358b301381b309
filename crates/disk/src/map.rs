//! A file written or read through memory (`mmap`), to be measured against doing it by calls.
#![expect(unsafe_code, reason = "mappings are made and removed by raw kernel calls")]

use std::fmt;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};

use crate::error::{Error, Op, Result};
use crate::file::File;
use crate::has_fd::path_of;
use crate::units::{align_down, align_up};

/// A shared mapping of the beginning of a file, for writing alone or for reading alone.
///
/// Nothing of it is ever lent out as a slice: other mappings of the file may change it at any time.
///
/// # Limits
/// Where the file has no blocks yet, the kernel gets them when memory is first written; on a full
/// disk it ends the process then (SIGBUS), and so it does when somebody else cuts the file. Set
/// blocks aside first, and share the file with nobody. What cannot be read from the medium ends
/// it too.
pub struct Map {
    start: NonNull<u8>,
    bytes: usize,
    /// How far the file goes: memory beyond must not be touched.
    end: u64,
    is_read_only: bool,
    file: Arc<dyn File>,
}

impl Map {
    /// Maps the first `bytes` of a file. The file may be shorter; what is beyond its end can be
    /// written once [`Map::grow`] made it part of the file.
    ///
    /// # Errors
    /// As the kernel says; `Unsupported` for a simulated file.
    pub fn of(file: Arc<dyn File>, bytes: usize) -> Result<Self> {
        Self::new(file, bytes, false)
    }

    /// Maps the first `bytes` of a file, to be read alone.
    ///
    /// # Errors
    /// As [`Map::of`].
    pub fn for_reading(file: Arc<dyn File>, bytes: usize) -> Result<Self> {
        Self::new(file, bytes, true)
    }

    fn new(file: Arc<dyn File>, bytes: usize, is_read_only: bool) -> Result<Self> {
        let fail = |source: io::Error| Error::new(Op::Map, path_of(&*file), source);
        let end = file.bytes()?;
        let fd = file.descriptor().ok_or_else(|| fail(io::ErrorKind::Unsupported.into()))?;
        let access =
            ProtFlags::READ | if is_read_only { ProtFlags::empty() } else { ProtFlags::WRITE };
        // SAFETY: the kernel picks the place, so no memory of ours is mapped over.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, fd, 0) }
            .map_err(|errno| fail(errno.into()))?;
        let start = NonNull::new(start.cast())
            .ok_or_else(|| fail(io::Error::other("the kernel mapped it at address 0")))?;
        Ok(Self { start, bytes, end, is_read_only, file })
    }

    /// Extends the file to `bytes` (with a hole), so that as much can be written.
    ///
    /// # Errors
    /// As [`File::resize`].
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        self.file.resize(bytes)?;
        self.end = bytes;
        Ok(())
    }

    /// How long the file is, as far as this knows: what may be written ends there.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Copies `bytes` into the mapping.
    ///
    /// # Errors
    /// `InvalidInput` when they do not fit into the mapping or go beyond the end of the file;
    /// `PermissionDenied` when it is mapped for reading.
    ///
    /// # Durability
    /// None; see [`Map::sync`].
    pub fn write(&mut self, bytes: &[u8], offset: usize) -> Result<()> {
        if self.is_read_only {
            let source = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(Error::new(Op::Write, path_of(&*self.file), source));
        }
        self.check(Op::Write, offset, bytes.len())?;
        // SAFETY: `offset` and what follows lie within the mapping, as was just checked.
        let to = unsafe { self.start.add(offset) };
        // SAFETY: both ranges are valid for that many bytes, the target by the check above; and
        // nothing else in this process points into the mapping, so they cannot overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies bytes out of the mapping.
    ///
    /// # Errors
    /// `InvalidInput` when they are not all in the mapping and the file.
    pub fn read(&self, buffer: &mut [u8], offset: usize) -> Result<()> {
        self.check(Op::Read, offset, buffer.len())?;
        // SAFETY: `offset` and what follows lie within the mapping, as was just checked.
        let from = unsafe { self.start.add(offset) };
        // SAFETY: both ranges are valid for that many bytes, the source by the check above; and
        // nothing else in this process points into the mapping, so they cannot overlap.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), buffer.as_mut_ptr(), buffer.len()) };
        Ok(())
    }

    /// Tells the kernel that the whole mapping is read from its beginning to its end.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn will_be_read_in_order(&self) -> Result<()> {
        self.advise(0, self.bytes, Advice::Sequential)
    }

    /// Has the kernel start to read a range, whose beginning it rounds down to a page. It does not
    /// wait for it.
    ///
    /// # Errors
    /// `InvalidInput` when it is not all in the mapping; else as the kernel says.
    pub fn fetch(&self, offset: usize, bytes: usize) -> Result<()> {
        self.check(Op::Cache, offset, bytes)?;
        self.advise(offset, bytes, Advice::WillNeed)
    }

    fn advise(&self, offset: usize, bytes: usize, advice: Advice) -> Result<()> {
        let page = rustix::param::page_size();
        let skipped = offset % page;
        // SAFETY: the caller saw to it that the range lies within the mapping.
        let from = unsafe { self.start.add(offset - skipped) };
        // SAFETY: a range within the mapping; such advice changes none of its bytes.
        unsafe { madvise(from.as_ptr().cast(), bytes + skipped, advice) }
            .map_err(|errno| Error::new(Op::Cache, path_of(&*self.file), errno))
    }

    /// Whether a range lies within the mapping and the file.
    fn check(&self, op: Op, offset: usize, bytes: usize) -> Result<()> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes);
        if end.is_some_and(|end| end as u64 <= self.end) {
            return Ok(());
        }
        let source = io::Error::from(io::ErrorKind::InvalidInput);
        Err(Error::new(op, path_of(&*self.file), source).at(offset as u64, bytes))
    }

    /// Waits until the pages of a range are on the medium (`msync(MS_SYNC)`).
    ///
    /// # Errors
    /// As the kernel says. A failed sync is final, as with [`File::sync`].
    pub fn sync(&self, offset: usize, bytes: usize) -> Result<()> {
        let page = rustix::param::page_size() as u64;
        let end = align_up(offset.saturating_add(bytes).min(self.bytes) as u64, page);
        let start = align_down(offset as u64, page).min(end);
        let fail = |source: io::Error| Error::new(Op::Sync, path_of(&*self.file), source);
        let whole = |bytes: u64| usize::try_from(bytes).map_err(|why| fail(io::Error::other(why)));
        let (from, length) = (whole(start)?, whole(end - start)?);
        // SAFETY: `from` is at most the end of the mapping, which was mapped in whole pages.
        let from = unsafe { self.start.add(from) };
        // SAFETY: a range of whole pages within the mapping; its bytes are only read.
        unsafe { msync(from.as_ptr().cast(), length, MsyncFlags::SYNC) }
            .map_err(|errno| fail(errno.into()))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nobody else has the address.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping can be removed");
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} bytes of {})", self.bytes, path_of(&*self.file).display())
    }
}
