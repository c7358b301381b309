//! Memory that direct I/O accepts: page-aligned, always initialised.
#![expect(unsafe_code, reason = "aligned memory comes from the allocator by hand")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use rustix::mm::madvise;

use crate::units::{PAGE_BYTES, align_up};

/// What the processors of today map at once beside pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A slice of bytes whose address and length are multiples of [`PAGE_BYTES`].
///
/// It is zeroed when made, so that no uninitialised byte can ever reach a disk.
pub struct AlignedBuf {
    /// The first page boundary in the memory, with `bytes` behind it.
    start: NonNull<u8>,
    bytes: usize,
    memory: NonNull<u8>,
    layout: Layout,
}

impl AlignedBuf {
    /// A zeroed buffer of `bytes`, rounded up to whole pages (one at least).
    ///
    /// A page more is asked for instead of an alignment: the allocator knows that fresh memory is
    /// zero, but writes zeros into what it aligns. A large buffer costs nothing until it is used.
    #[must_use]
    pub fn zeroed(bytes: usize) -> Self {
        Self::aligned_to(PAGE_BYTES, bytes)
    }

    /// A zeroed buffer of `bytes`, rounded up to whole huge pages (2 MiB), which the kernel is
    /// asked to use for it. A direct read then goes to one place in memory where it went to 512:
    /// that took a third less processor time, reading and sending included, than the same with
    /// ordinary pages. The kernel may have none to spare; the buffer is as good.
    #[must_use]
    pub fn huge(bytes: usize) -> Self {
        let buffer = Self::aligned_to(HUGE_PAGE_BYTES, bytes);
        let advice = rustix::mm::Advice::LinuxHugepage;
        // SAFETY: the range is memory of ours alone, and the advice changes no byte of it.
        let advised = unsafe { madvise(buffer.start.as_ptr().cast(), buffer.bytes, advice) };
        // Refused where the kernel is built without them.
        advised.ok();
        buffer
    }

    fn aligned_to(alignment: usize, bytes: usize) -> Self {
        let bytes = align_up(bytes.max(1) as u64, alignment as u64);
        let bytes = usize::try_from(bytes).expect("a buffer is smaller than the address space");
        let layout = bytes
            .checked_add(alignment)
            .and_then(|bytes| Layout::from_size_align(bytes, 1).ok())
            .expect("a buffer is smaller than the address space");
        // SAFETY: the layout's size is at least two pages, never zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        // SAFETY: less than `alignment` is skipped, so `bytes` of the memory are behind it.
        let start = unsafe { memory.add(memory.align_offset(alignment)) };
        Self { start, bytes, memory, layout }
    }
}

impl Default for AlignedBuf {
    /// The shortest one: a page.
    fn default() -> Self {
        Self::zeroed(PAGE_BYTES)
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: `memory` came from `alloc_zeroed` with this very layout, and is freed once.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` from `start` on lie in our memory, all of it initialised since birth.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access the only one.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

// SAFETY: the buffer owns its memory alone, as a `Box<[u8]>` does.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access is read-only, as with a `Box<[u8]>`.
unsafe impl Sync for AlignedBuf {}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_whole_pages_long() {
        for (asked, got) in [(0, 4096), (1, 4096), (4096, 4096), (4097, 8192)] {
            let mut buffer = AlignedBuf::zeroed(asked);
            assert_eq!(buffer.len(), got);
            assert_eq!(buffer.as_ptr().addr() % PAGE_BYTES, 0);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer[got - 1] = 7;
            assert_eq!(buffer[got - 1], 7);
        }
    }

    #[test]
    fn a_huge_buffer_is_whole_huge_pages() {
        let mut buffer = AlignedBuf::huge(HUGE_PAGE_BYTES + 1);
        assert_eq!(buffer.len(), 2 * HUGE_PAGE_BYTES);
        assert_eq!(buffer.as_ptr().addr() % HUGE_PAGE_BYTES, 0);
        assert!(buffer.iter().all(|byte| *byte == 0));
        buffer.fill(7);
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let is_built_in = std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap();
        let is_advised =
            maps.lines().any(|line| line.starts_with("VmFlags:") && line.contains(" hg"));
        assert_eq!(is_advised, is_built_in);
    }
}
