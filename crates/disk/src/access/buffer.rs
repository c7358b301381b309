//! Allocates page-aligned, zeroed memory for direct I/O.
#![expect(unsafe_code, reason = "aligned memory needs manual allocation")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use rustix::mm::madvise;

use crate::units::{PAGE_BYTES, align_up};

/// A huge page's size on x86-64, and on AArch64 with 4 KiB pages.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A slice of bytes whose address and length are multiples of [`PAGE_BYTES`].
///
/// The memory is zeroed on creation, so that no uninitialised byte can reach a disk.
pub struct AlignedBuf {
    /// The first address in `memory` with the requested alignment (a page or a huge page); `bytes`
    /// bytes follow.
    start: NonNull<u8>,
    bytes: usize,
    memory: NonNull<u8>,
    layout: Layout,
}

impl AlignedBuf {
    /// Allocates a zeroed buffer of `bytes`, rounded up to whole pages, at least one.
    ///
    /// The function allocates one page more and skips to a page boundary. An aligned allocation
    /// would be slower: the allocator writes zeros to it, so the kernel must provide all its pages
    /// at once. A large unaligned allocation is fresh memory, which is zero already, and the kernel
    /// provides each page when the page is first used.
    #[must_use]
    pub fn zeroed(bytes: usize) -> Self {
        Self::aligned_to(PAGE_BYTES, bytes)
    }

    /// Allocates a zeroed buffer of `bytes`, rounded up to whole huge pages (2 MiB), and advises
    /// the kernel to back the buffer with huge pages. A direct read of 2 MiB then transfers to one
    /// physical range instead of 512. In a measurement, reading and sending took a third less
    /// processor time with huge pages than with ordinary pages. If the kernel has no huge pages
    /// available, it uses ordinary pages.
    #[must_use]
    pub fn huge(bytes: usize) -> Self {
        let buffer = Self::aligned_to(HUGE_PAGE_BYTES, bytes);
        let advice = rustix::mm::Advice::LinuxHugepage;
        // SAFETY: the range is this buffer's memory, and the advice changes no byte of it.
        let advised = unsafe { madvise(buffer.start.as_ptr().cast(), buffer.bytes, advice) };
        // The error is ignored: a kernel built without huge pages rejects the advice.
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
        // SAFETY: the layout's size is at least twice the alignment, never zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        // SAFETY: less than `alignment` is skipped, so `bytes` bytes follow `start`.
        let start = unsafe { memory.add(memory.align_offset(alignment)) };
        Self { start, bytes, memory, layout }
    }
}

impl Default for AlignedBuf {
    /// Allocates one page.
    fn default() -> Self {
        Self::zeroed(PAGE_BYTES)
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: `memory` came from `alloc_zeroed` with this layout, and is freed once.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the `bytes` bytes at `start` lie in the allocation, which is initialised.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

// SAFETY: the buffer owns its memory, as a `Box<[u8]>` does.
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
    fn buffer_is_aligned_zeroed_and_whole_pages() {
        for (requested, allocated) in [(0, 4096), (1, 4096), (4096, 4096), (4097, 8192)] {
            let mut buffer = AlignedBuf::zeroed(requested);
            assert_eq!(buffer.len(), allocated);
            assert_eq!(buffer.as_ptr().addr() % PAGE_BYTES, 0);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer[allocated - 1] = 7;
            assert_eq!(buffer[allocated - 1], 7);
        }
    }

    #[test]
    fn huge_buffer_is_whole_huge_pages() {
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
