//! The kernel calls no library offers safely yet.
#![expect(unsafe_code, reason = "raw kernel calls")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::extents::{Extent, ExtentFlags};

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

/// Has the device given the bytes of a range, and waits until it took them (`sync_file_range`).
pub(crate) fn write_out(fd: BorrowedFd<'_>, offset: i64, bytes: i64) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(fd, offset, bytes, flags)
}

/// As [`write_out`], without waiting for more than room in the device's queue.
pub(crate) fn start_write_out(fd: BorrowedFd<'_>, offset: i64, bytes: i64) -> io::Result<()> {
    sync_file_range(fd, offset, bytes, libc::SYNC_FILE_RANGE_WRITE)
}

fn sync_file_range(fd: BorrowedFd<'_>, offset: i64, bytes: i64, flags: u32) -> io::Result<()> {
    // SAFETY: no memory of ours is involved; the descriptor is open for as long as it is borrowed.
    let answer = unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, bytes, flags) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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

/// The kernel's `struct fiemap`, without the extents that follow it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct FiemapHead {
    offset: u64,
    bytes: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    _reserved: u32,
}

/// The kernel's `struct fiemap_extent`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    bytes: u64,
    _reserved: [u64; 2],
    flags: u32,
    _reserved_too: [u32; 3],
}

/// A request for extents, and room for `N` of them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fiemap<const N: usize> {
    head: FiemapHead,
    extents: [FiemapExtent; N],
}

const _: () = assert!(size_of::<FiemapHead>() == 32 && size_of::<FiemapExtent>() == 56);
const _: () = assert!(size_of::<Fiemap<3>>() == 32 + 3 * 56);

/// `FS_IOC_FIEMAP`: its number knows the size of the head alone.
const FIEMAP: Opcode = opcode::read_write::<FiemapHead>(b'f', 11);

/// `FIEMAP_FLAG_SYNC`: writes what is dirty before it answers.
const FIEMAP_SYNC: u32 = 1;

impl<const N: usize> Fiemap<N> {
    pub(crate) fn new(offset: u64, bytes: u64, sync: bool) -> Self {
        let flags = if sync { FIEMAP_SYNC } else { 0 };
        let room = u32::try_from(N).unwrap_or(u32::MAX);
        let head = FiemapHead { offset, bytes, flags, mapped: 0, room, _reserved: 0 };
        Self { head, extents: [FiemapExtent::default(); N] }
    }

    /// What the kernel answered.
    pub(crate) fn extents(&self) -> impl Iterator<Item = Extent> {
        self.extents.iter().take(self.head.mapped as usize).map(|extent| {
            let FiemapExtent { logical, physical, bytes, flags, .. } = *extent;
            Extent { logical, physical, bytes, flags: extent_flags(flags) }
        })
    }
}

/// The kernel's bits, by the names of `linux/fiemap.h`.
fn extent_flags(bits: u32) -> ExtentFlags {
    const LAST: u32 = 0x1;
    const UNKNOWN: u32 = 0x2;
    const DELALLOC: u32 = 0x4;
    const ENCODED: u32 = 0x8 | 0x80; // ... and DATA_ENCRYPTED
    const INLINE: u32 = 0x100 | 0x200 | 0x400; // NOT_ALIGNED, DATA_INLINE, DATA_TAIL
    const UNWRITTEN: u32 = 0x800;
    const MERGED: u32 = 0x1000; // has no extents and made this one of blocks: of no interest
    const SHARED: u32 = 0x2000;
    const KNOWN: u32 = LAST | UNKNOWN | DELALLOC | ENCODED | INLINE | UNWRITTEN | MERGED | SHARED;
    let has = |mask: u32| bits & mask != 0;
    ExtentFlags {
        last: has(LAST),
        unknown: has(UNKNOWN),
        delayed: has(DELALLOC),
        encoded: has(ENCODED),
        inline: has(INLINE),
        unwritten: has(UNWRITTEN),
        shared: has(SHARED),
        other: has(!KNOWN),
    }
}

/// Asks for the extents of a file.
pub(crate) fn fiemap<const N: usize>(
    fd: BorrowedFd<'_>,
    request: &mut Fiemap<N>,
) -> io::Result<()> {
    // SAFETY: the number goes with this layout (its sizes are asserted above), and `room` says how
    // many extents the kernel may write behind the head.
    let update = unsafe { Updater::<FIEMAP, _>::new(request) };
    // SAFETY: as above; the descriptor is open for as long as it is borrowed.
    unsafe { ioctl(fd, update) }.map_err(io::Error::from)
}

/// `fcntl` with a number: what rustix lacks is asked for with these alone.
pub(crate) fn fcntl(fd: BorrowedFd<'_>, command: i32, argument: i32) -> io::Result<i32> {
    // SAFETY: the commands below take a number or nothing, never an address, and the descriptor
    // is open for as long as it is borrowed.
    let answer = unsafe { libc::fcntl(fd.as_raw_fd(), command, argument) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// How much of what was written to a socket its peer has not confirmed (`SIOCOUTQ`).
pub(crate) fn unconfirmed(fd: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    let mut bytes = 0;
    // SAFETY: the kernel writes one number to a live one of this size; what is no socket or
    // terminal is refused. The descriptor is open for as long as it is borrowed.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, ptr::from_mut(&mut bytes)) };
    if answer == 0 { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's `struct file_dedupe_range` with one `struct file_dedupe_range_info`.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct DedupeRange {
    pub(crate) from_offset: u64,
    pub(crate) bytes: u64,
    pub(crate) count: u16,
    pub(crate) _reserved: u16,
    pub(crate) _reserved_too: u32,
    pub(crate) to: i64,
    pub(crate) to_offset: u64,
    pub(crate) bytes_shared: u64,
    pub(crate) status: i32,
    pub(crate) _reserved_last: u32,
}

/// What the number of `FIDEDUPERANGE` knows: the part before the destinations.
#[repr(C)]
struct DedupeHead([u64; 3]);

const _: () = assert!(size_of::<DedupeHead>() == 24 && size_of::<DedupeRange>() == 56);

/// `FIDEDUPERANGE`.
const DEDUPE: Opcode = opcode::read_write::<DedupeHead>(0x94, 54);

/// Asks the file system of `fd` to share blocks that hold the same bytes.
pub(crate) fn dedupe(fd: BorrowedFd<'_>, range: &mut DedupeRange) -> io::Result<()> {
    range.count = 1;
    // SAFETY: the number goes with this layout (its sizes are asserted above), and the kernel reads
    // and writes as many destinations as `count` says: the one there is room for.
    let update = unsafe { Updater::<DEDUPE, _>::new(range) };
    // SAFETY: as above; the descriptor is open for as long as it is borrowed.
    unsafe { ioctl(fd, update) }.map_err(io::Error::from)
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
