//! The kernel calls no library offers safely yet.
#![expect(unsafe_code, reason = "raw kernel calls")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// `cachestat`'s number on every machine Rust runs on (Linux 6.5).
const SYS_CACHESTAT: libc::c_long = 451;

/// How much is mapped at a time to ask `mincore`: one byte of answer for each page.
const WINDOW_BYTES: u64 = 256 << 20;

#[repr(C)]
struct CacheRange {
    offset: u64,
    bytes: u64,
}

/// The kernel's `struct cachestat`, in pages.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CachePages {
    pub(crate) resident: u64,
    pub(crate) dirty: u64,
    pub(crate) writeback: u64,
    _evicted: u64,
    _recently_evicted: u64,
}

const _: () = assert!(size_of::<CacheRange>() == 16 && size_of::<CachePages>() == 40);

/// The cached pages of a range of a file. `bytes` of 0 would mean "to the end".
pub(crate) fn cachestat(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<CachePages> {
    let range = CacheRange { offset, bytes };
    let mut pages = CachePages::default();
    // SAFETY: both pointers are to live values with the layout the kernel reads and writes
    // (their sizes are asserted above); the descriptor is open for as long as it is borrowed.
    let answer = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            fd.as_raw_fd(),
            ptr::from_ref(&range),
            ptr::from_mut(&mut pages),
            0_u32,
        )
    };
    if answer == 0 { Ok(pages) } else { Err(io::Error::last_os_error()) }
}

/// The number of cached pages of a range that starts on a page, by the older `mincore`.
pub(crate) fn mincore(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<u64> {
    let page_bytes = rustix::param::page_size();
    let (end, mut at, mut resident) = (offset.saturating_add(bytes), offset, 0);
    while at < end {
        let window = usize::try_from((end - at).min(WINDOW_BYTES)).map_err(io::Error::other)?;
        // SAFETY: the kernel picks the place, so no memory of ours is mapped over; the mapping
        // is never read, so it does not matter when the file changes or shrinks.
        let map =
            unsafe { mmap(ptr::null_mut(), window, ProtFlags::READ, MapFlags::SHARED, fd, at)? };
        let mut pages = vec![0_u8; window.div_ceil(page_bytes)];
        // SAFETY: `map` starts a mapping of `window` bytes, and `pages` has a byte for each page.
        let answer = unsafe { libc::mincore(map, window, pages.as_mut_ptr()) };
        let error = io::Error::last_os_error();
        // SAFETY: exactly what was mapped above, and nobody else has the address.
        unsafe { munmap(map, window)? };
        if answer != 0 {
            return Err(error);
        }
        // Only the lowest bit has a meaning.
        resident += pages.iter().filter(|page| **page & 1 == 1).count() as u64;
        at += window as u64;
    }
    Ok(resident)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn both_ways_to_ask_agree() {
        let page = rustix::param::page_size() as u64;
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(64 * page).unwrap();
        file.write_all(&[7; 10]).unwrap();
        for (offset, bytes, pages) in
            [(0, 64 * page, 1), (0, page, 1), (page, 63 * page, 0), (0, 0, 0)]
        {
            assert_eq!(mincore(file.as_fd(), offset, bytes).unwrap(), pages);
            match cachestat(file.as_fd(), offset, bytes) {
                // No bytes mean "to the end" to it.
                Ok(stat) => assert_eq!(stat.resident, if bytes == 0 { 1 } else { pages }),
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS)),
            }
        }
    }
}
