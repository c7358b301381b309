//! Maps files into memory: to lock their pages in the page cache, and to let benchmarks compare
//! reads and writes through `mmap` with system calls.
#![expect(unsafe_code, reason = "mappings are created and removed by raw system calls")]

use std::fmt;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mlock, mmap, msync, munmap};

use crate::disk::File;
use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;
use crate::units::{align_down, align_up};

/// A shared memory mapping of a file. [`Map::of`] creates a mapping for reading and writing,
/// [`Map::for_reading`] a read-only one, and [`Map::range_for_reading`] one that does not begin at
/// the first byte.
///
/// The methods copy bytes and return no slices of the memory, because another mapping of the same
/// file may change the memory at any time.
///
/// # Limits
/// The kernel allocates a missing block of the file when the memory mapped to the block is first
/// written. If the disk is full at that moment, or another process has truncated the file, or the
/// device fails a read, the kernel kills the process with SIGBUS. Allocate the blocks first, and do
/// not share the file with other processes.
pub struct Map {
    start: NonNull<u8>,
    bytes: usize,
    /// The file length in bytes: access to a page beyond this length raises SIGBUS.
    end: u64,
    is_read_only: bool,
    file: Arc<dyn File>,
}

// SAFETY: the mapping belongs to no thread, and munmap may be called on any.
unsafe impl Send for Map {}

// SAFETY: methods that take `&self` write no byte of the mapping.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `bytes` of a file for reading and writing. The file may be shorter;
    /// [`Map::grow`] must extend it before the memory beyond its end can be written.
    ///
    /// # Errors
    /// Returns the system call's error; `Unsupported` for a simulated file.
    pub fn of(file: Arc<dyn File>, bytes: usize) -> Result<Self> {
        Self::new(file, 0, bytes, false)
    }

    /// Maps the first `bytes` of a file read-only.
    ///
    /// # Errors
    /// Fails like [`Map::of`].
    pub fn for_reading(file: Arc<dyn File>, bytes: usize) -> Result<Self> {
        Self::new(file, 0, bytes, true)
    }

    /// Maps `bytes` of a file read-only, from `offset` on, which is the start of a page. Offsets in
    /// the mapping, and [`Map::end`], count from there.
    ///
    /// # Errors
    /// Fails like [`Map::of`], and with `InvalidInput` if `offset` is not the start of a page.
    pub fn range_for_reading(file: Arc<dyn File>, offset: u64, bytes: usize) -> Result<Self> {
        Self::new(file, offset, bytes, true)
    }

    fn new(file: Arc<dyn File>, offset: u64, bytes: usize, is_read_only: bool) -> Result<Self> {
        let fail = |source: io::Error| Error::new(Op::Map, path_of(&*file), source);
        let end = file.bytes()?.saturating_sub(offset);
        let fd = file.descriptor().ok_or_else(|| fail(io::ErrorKind::Unsupported.into()))?;
        let access =
            ProtFlags::READ | if is_read_only { ProtFlags::empty() } else { ProtFlags::WRITE };
        // SAFETY: the kernel picks the address, so no existing mapping is replaced.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, fd, offset) }
            .map_err(|errno| fail(errno.into()))?;
        let start = NonNull::new(start.cast())
            .ok_or_else(|| fail(io::Error::other("the kernel mapped the file at address 0")))?;
        Ok(Self { start, bytes, end, is_read_only, file })
    }

    /// Extends the file to `bytes` with a hole, so that the memory up to `bytes` can be written.
    ///
    /// # Errors
    /// Fails like [`File::resize`].
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        self.file.resize(bytes)?;
        self.end = bytes;
        Ok(())
    }

    /// Returns the end of the accessible memory: the file length in bytes when the file was mapped,
    /// or the length set by the last [`Map::grow`].
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Copies `bytes` into the mapping.
    ///
    /// # Errors
    /// `InvalidInput` if the range exceeds the mapping or the file; `PermissionDenied` if the
    /// mapping is read-only.
    ///
    /// # Durability
    /// None; see [`Map::sync`].
    pub fn write(&mut self, bytes: &[u8], offset: usize) -> Result<()> {
        if self.is_read_only {
            let source = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(Error::new(Op::Write, path_of(&*self.file), source));
        }
        self.check(Op::Write, offset, bytes.len())?;
        // SAFETY: the range starting at `offset` lies within the mapping, as checked above.
        let to = unsafe { self.start.add(offset) };
        // SAFETY: both ranges are valid for `bytes.len()` bytes, the target by the check above.
        // Nothing else in this process points into the mapping, so the ranges cannot overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies bytes out of the mapping.
    ///
    /// # Errors
    /// `InvalidInput` if the range exceeds the mapping or the file.
    pub fn read(&self, buffer: &mut [u8], offset: usize) -> Result<()> {
        self.check(Op::Read, offset, buffer.len())?;
        // SAFETY: the range starting at `offset` lies within the mapping, as checked above.
        let from = unsafe { self.start.add(offset) };
        // SAFETY: both ranges are valid for `buffer.len()` bytes, the source by the check above.
        // Nothing else in this process points into the mapping, so the ranges cannot overlap.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), buffer.as_mut_ptr(), buffer.len()) };
        Ok(())
    }

    /// Locks the mapping's pages in memory (`mlock`), and reads those that are missing. The page
    /// cache cannot drop them until the mapping is dropped. They count against the limit
    /// `RLIMIT_MEMLOCK` in a process without `CAP_IPC_LOCK`.
    ///
    /// # Errors
    /// Returns the system call's error: the limit, a lack of memory, or a page that cannot be read.
    pub fn lock(&self) -> Result<()> {
        // SAFETY: the range is this mapping, and locking changes none of its bytes.
        unsafe { mlock(self.start.as_ptr().cast(), self.bytes) }
            .map_err(|errno| Error::new(Op::Cache, path_of(&*self.file), errno))
    }

    /// Advises the kernel that the mapping is read sequentially (`MADV_SEQUENTIAL`).
    ///
    /// # Errors
    /// Returns the system call's error.
    pub fn advise_sequential(&self) -> Result<()> {
        self.advise(0, self.bytes, Advice::Sequential)
    }

    /// Starts reading a range, whose start is rounded down to a page, without waiting
    /// (`MADV_WILLNEED`).
    ///
    /// # Errors
    /// `InvalidInput` if the range exceeds the mapping or the file. Otherwise returns the system
    /// call's error.
    pub fn prefetch(&self, offset: usize, bytes: usize) -> Result<()> {
        self.check(Op::Cache, offset, bytes)?;
        self.advise(offset, bytes, Advice::WillNeed)
    }

    fn advise(&self, offset: usize, bytes: usize, advice: Advice) -> Result<()> {
        let page = rustix::param::page_size();
        let skipped = offset % page;
        // SAFETY: the caller ensures that the range lies within the mapping.
        let from = unsafe { self.start.add(offset - skipped) };
        // SAFETY: the range lies within the mapping, and the advice used changes none of its bytes.
        unsafe { madvise(from.as_ptr().cast(), bytes + skipped, advice) }
            .map_err(|errno| Error::new(Op::Cache, path_of(&*self.file), errno))
    }

    /// Fails unless a range lies within the mapping and the file.
    fn check(&self, op: Op, offset: usize, bytes: usize) -> Result<()> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes);
        if end.is_some_and(|end| end as u64 <= self.end) {
            return Ok(());
        }
        let source = io::Error::from(io::ErrorKind::InvalidInput);
        Err(Error::new(op, path_of(&*self.file), source).at(offset as u64, bytes))
    }

    /// Makes a range's pages durable (`msync(MS_SYNC)`).
    ///
    /// # Errors
    /// Returns the system call's error. A failed sync is final, as with [`File::sync`].
    pub fn sync(&self, offset: usize, bytes: usize) -> Result<()> {
        let page = rustix::param::page_size() as u64;
        let end = align_up(offset.saturating_add(bytes).min(self.bytes) as u64, page);
        let start = align_down(offset as u64, page).min(end);
        let fail = |source: io::Error| Error::new(Op::Sync, path_of(&*self.file), source);
        let whole = |bytes: u64| usize::try_from(bytes).map_err(|why| fail(io::Error::other(why)));
        let (from, length) = (whole(start)?, whole(end - start)?);
        // SAFETY: `from` is at most the end of the mapping, which consists of whole pages.
        let from = unsafe { self.start.add(from) };
        // SAFETY: the range consists of whole pages within the mapping; its bytes are only read.
        unsafe { msync(from.as_ptr().cast(), length, MsyncFlags::SYNC) }
            .map_err(|errno| fail(errno.into()))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this is exactly the mapping made in `new`; no copy of its address remains in use.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping can be removed");
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} bytes of {})", self.bytes, path_of(&*self.file).display())
    }
}
