//! System calls that no library wraps safely.
#![expect(unsafe_code, reason = "raw system calls")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::ioctl::{Getter, Opcode, Updater, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// `cachestat`'s system call number (Linux 6.5), equal on every architecture that Rust supports.
const SYS_CACHESTAT: libc::c_long = 451;

/// The maximum number of bytes per `mincore` call. The call fills one byte per page, so a call
/// needs a buffer of at most 64 KiB.
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

/// Counts the cached pages in a file range. The kernel takes a `bytes` of 0 for "up to the end".
pub(crate) fn cachestat(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<CachePages> {
    let range = CacheRange { offset, bytes };
    let mut pages = CachePages::default();
    // SAFETY: both pointers are to live values of the layout the kernel reads and writes
    // (their sizes are asserted above); the descriptor is open for as long as it is borrowed.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            fd.as_raw_fd(),
            ptr::from_ref(&range),
            ptr::from_mut(&mut pages),
            0_u32,
        )
    };
    if result == 0 { Ok(pages) } else { Err(io::Error::last_os_error()) }
}

/// Writes a range's dirty pages to the device and waits for completion (`sync_file_range`).
pub(crate) fn write_out(fd: BorrowedFd<'_>, offset: i64, bytes: i64) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(fd, offset, bytes, flags)
}

/// Starts writing a range's dirty pages to the device. Waits for nothing except room in the
/// device's queue.
pub(crate) fn start_write_out(fd: BorrowedFd<'_>, offset: i64, bytes: i64) -> io::Result<()> {
    sync_file_range(fd, offset, bytes, libc::SYNC_FILE_RANGE_WRITE)
}

fn sync_file_range(fd: BorrowedFd<'_>, offset: i64, bytes: i64, flags: u32) -> io::Result<()> {
    // SAFETY: no memory is passed; the descriptor is open for as long as it is borrowed.
    let result = unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, bytes, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Counts the cached pages in a range that starts on a page boundary, for kernels without
/// `cachestat`.
pub(crate) fn mincore(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<u64> {
    let page_bytes = rustix::param::page_size();
    let (end, mut at, mut resident) = (offset.saturating_add(bytes), offset, 0);
    while at < end {
        let window = usize::try_from((end - at).min(WINDOW_BYTES)).map_err(io::Error::other)?;
        // SAFETY: the kernel picks the address, so no existing mapping is replaced; the mapping is
        // never read, so concurrent changes to the file are harmless.
        let map =
            unsafe { mmap(ptr::null_mut(), window, ProtFlags::READ, MapFlags::SHARED, fd, at)? };
        let mut pages = vec![0_u8; window.div_ceil(page_bytes)];
        // SAFETY: `map` starts a mapping of `window` bytes, and `pages` has a byte for each page.
        let result = unsafe { libc::mincore(map, window, pages.as_mut_ptr()) };
        let error = io::Error::last_os_error();
        // SAFETY: this is exactly the mapping made above; its address is not used elsewhere.
        unsafe { munmap(map, window)? };
        if result != 0 {
            return Err(error);
        }
        // Only the lowest bit of each byte is defined.
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
    capacity: u32,
    _reserved: u32,
}

/// The kernel's `struct fiemap_extent`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FiemapExtent {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) bytes: u64,
    _reserved: [u64; 2],
    pub(crate) flags: u32,
    _reserved_too: [u32; 3],
}

/// A request for a file's extents, with space for `N` extents in the answer.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fiemap<const N: usize> {
    head: FiemapHead,
    extents: [FiemapExtent; N],
}

const _: () = assert!(size_of::<FiemapHead>() == 32 && size_of::<FiemapExtent>() == 56);
const _: () = assert!(size_of::<Fiemap<3>>() == 32 + 3 * 56);

/// The ioctl `FS_IOC_FIEMAP`, whose number encodes the head's size without extents.
const FIEMAP: Opcode = opcode::read_write::<FiemapHead>(b'f', 11);

/// The flag `FIEMAP_FLAG_SYNC`: the kernel writes dirty pages before it maps the extents.
const FIEMAP_SYNC: u32 = 1;

impl<const N: usize> Fiemap<N> {
    pub(crate) fn new(offset: u64, bytes: u64, sync: bool) -> Self {
        let flags = if sync { FIEMAP_SYNC } else { 0 };
        let capacity = u32::try_from(N).unwrap_or(u32::MAX);
        let head = FiemapHead { offset, bytes, flags, mapped: 0, capacity, _reserved: 0 };
        Self { head, extents: [FiemapExtent::default(); N] }
    }

    /// Returns the extents the kernel filled in.
    pub(crate) fn extents(&self) -> impl Iterator<Item = &FiemapExtent> {
        self.extents.iter().take(self.head.mapped as usize)
    }
}

pub(crate) fn fiemap<const N: usize>(
    fd: BorrowedFd<'_>,
    request: &mut Fiemap<N>,
) -> io::Result<()> {
    // SAFETY: the ioctl number matches the layout of `request` (sizes asserted above), and
    // `capacity` limits how many extents the kernel writes after the head.
    let update = unsafe { Updater::<FIEMAP, _>::new(request) };
    // SAFETY: as above; the descriptor is open for as long as it is borrowed.
    unsafe { ioctl(fd, update) }.map_err(io::Error::from)
}

/// Calls `fcntl` with an integer argument, for commands that rustix lacks.
pub(crate) fn fcntl(fd: BorrowedFd<'_>, command: i32, argument: i32) -> io::Result<i32> {
    // SAFETY: the commands that this crate passes take an integer or nothing, never an address, and
    // the descriptor is open for as long as it is borrowed.
    let result = unsafe { libc::fcntl(fd.as_raw_fd(), command, argument) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns the bytes in a socket's send queue that the peer has not acknowledged (`SIOCOUTQ`).
pub(crate) fn send_queue_bytes(fd: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    let mut bytes = 0;
    // SAFETY: the kernel writes one integer of this size to a live variable, and rejects
    // descriptors other than sockets and terminals. The descriptor is open for as long as it is
    // borrowed.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, ptr::from_mut(&mut bytes)) };
    if result == 0 { Ok(bytes) } else { Err(io::Error::last_os_error()) }
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

/// The part of `struct file_dedupe_range` before the destinations. The ioctl number encodes its
/// size.
#[repr(C)]
struct DedupeHead([u64; 3]);

const _: () = assert!(size_of::<DedupeHead>() == 24 && size_of::<DedupeRange>() == 56);

/// The ioctl `FIDEDUPERANGE`.
const DEDUPE: Opcode = opcode::read_write::<DedupeHead>(0x94, 54);

/// Makes two files share a range's blocks if the bytes are equal (`FIDEDUPERANGE`).
pub(crate) fn dedupe(fd: BorrowedFd<'_>, range: &mut DedupeRange) -> io::Result<()> {
    range.count = 1;
    // SAFETY: the ioctl number matches the layout of `range` (sizes asserted above), and the kernel
    // accesses only the `count` destinations, of which there is one.
    let update = unsafe { Updater::<DEDUPE, _>::new(range) };
    // SAFETY: as above; the descriptor is open for as long as it is borrowed.
    unsafe { ioctl(fd, update) }.map_err(io::Error::from)
}

/// The kernel's `struct fsxattr`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct InodeSettings {
    pub(crate) flags: u32,
    pub(crate) extent_bytes: u32,
    pub(crate) extents: u32,
    pub(crate) project: u32,
    pub(crate) copied_extent_bytes: u32,
    pub(crate) _reserved: [u8; 8],
}

const _: () = assert!(size_of::<InodeSettings>() == 28);

/// The ioctl `FS_IOC_FSGETXATTR`.
const GET_SETTINGS: Opcode = opcode::read::<InodeSettings>(b'X', 31);

/// Returns a file's settings beside its flags (`FS_IOC_FSGETXATTR`).
pub(crate) fn inode_settings(fd: BorrowedFd<'_>) -> io::Result<InodeSettings> {
    // SAFETY: the ioctl number matches the layout of the result (size asserted above), of which
    // each bit pattern is valid.
    let get = unsafe { Getter::<GET_SETTINGS, InodeSettings>::new() };
    // SAFETY: as above; the descriptor is open for as long as it is borrowed.
    unsafe { ioctl(fd, get) }.map_err(io::Error::from)
}

/// Returns the allocator's free memory to the system.
#[cfg(target_env = "gnu")]
pub(crate) fn malloc_trim() {
    // SAFETY: the function takes no memory from the caller, and locks the allocator itself.
    unsafe { libc::malloc_trim(0) };
}

/// Sets the size at or above which the allocator maps memory, and how many arenas it uses.
#[cfg(target_env = "gnu")]
pub(crate) fn set_malloc_options(mmap_threshold_bytes: i32, arenas_max: i32) {
    // SAFETY: the function takes no memory from the caller, and locks the allocator itself.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, mmap_threshold_bytes) };
    // SAFETY: as above.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas_max) };
}

/// The standard descriptors 0 to 2 that were closed when the process started, as bits.
static CLOSED_AT_START: AtomicU8 = AtomicU8::new(0);

extern "C" fn find_closed() {
    for descriptor in 0..3 {
        // SAFETY: the call takes no pointer, and any number may be passed as a descriptor.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED_AT_START.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

/// The C library calls the functions of this section before `main`. Later is too late: Rust's
/// runtime opens `/dev/null` in place of closed standard descriptors.
// SAFETY: the section holds pointers to functions with this ABI. This function only makes system
// calls and stores a number, and needs nothing that is initialized later.
#[used]
#[unsafe(link_section = ".init_array")]
static FIND_CLOSED: extern "C" fn() = find_closed;

/// `true` if this standard descriptor (0 to 2) was closed when the process started.
pub(crate) fn was_closed_at_start(descriptor: u8) -> bool {
    // The reference keeps the linker from dropping the function.
    std::hint::black_box(FIND_CLOSED);
    CLOSED_AT_START.load(Ordering::Relaxed) & (1 << descriptor) != 0
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn mincore_and_cachestat_agree() {
        let page = rustix::param::page_size() as u64;
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(64 * page).unwrap();
        file.write_all(&[7; 10]).unwrap();
        for (offset, bytes, pages) in
            [(0, 64 * page, 1), (0, page, 1), (page, 63 * page, 0), (0, 0, 0)]
        {
            assert_eq!(mincore(file.as_fd(), offset, bytes).unwrap(), pages);
            match cachestat(file.as_fd(), offset, bytes) {
                // `cachestat` takes a zero length for "up to the end".
                Ok(stat) => assert_eq!(stat.resident, if bytes == 0 { 1 } else { pages }),
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS)),
            }
        }
    }
}
