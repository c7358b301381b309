//! File I/O on Linux, and the storage below a path.
//!
//! # What it is
//! The lowest layer of the workspace: the traits and functions through which the other crates do
//! most of their file I/O.
//! - [`probe`] identifies the storage below a path: [`Storage`].
//! - [`Disk`] (names) and [`File`] (bytes) are the two traits of storage code. [`OsDisk`]
//!   implements them with system calls; a test may substitute a simulated disk.
//! - [`AlignedBuf`] is memory aligned for direct I/O; [`fill`] writes zeros to a file ahead of use,
//!   so that later writes allocate no blocks; [`write_durable`], [`read_uncached`] and
//!   [`write_out`] set options for a single call.
//! - [`Pacer`] bounds the number of dirty pages during bulk writes.
//! - [`ReadRing`] keeps many reads in flight from one thread.
//! - [`resident`], [`evict`] and [`warm`] query and change the content of the page cache;
//!   [`DeviceCounters`] count the requests the device served.
//! - [`first_extent`] and [`extents`] return the physical location of a file; [`same_blocks`]
//!   compares the locations of two files.
//! - [`KernelFiles`] reads the kernel's writeback settings: the limits of dirty memory, the
//!   thresholds at which writers are throttled, and the disks below a file system.
//! - [`Map`] reads or writes a file through `mmap`, for comparison with system calls.
//! - [`Disk::lock`] locks a directory or a file exclusively.
//!
//! # Example
//! ```
//! use haul_disk::{Disk, Durability, Open, OsDisk, probe, write_full};
//!
//! # fn main() -> haul_disk::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path();
//! let storage = probe(path)?;
//! println!("{storage}"); // file system, journal, device, write cache, alignment, ...
//! let aligned = storage.write_unit_bytes(); // 4096 or more
//! # assert!(aligned >= 4096);
//!
//! let disk = OsDisk::open(path)?;
//! let file = disk.create("greeting", Open::default())?;
//! write_full(&*file, b"hello", 0)?;
//! file.sync(Durability::Data)?; // the bytes are durable,
//! disk.sync_dir("")?; //           and now the name is, too
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - An error names the operation and the path, and carries the error of the system call.
//! - Names cannot leave the root of their [`Disk`], by `..` or by a symbolic link.
//! - Interrupted reads and writes are retried; a sync or a synchronous write never is.
//! - A property that the probe cannot determine is `None`, never a guess.
//!
//! # Cost
//! A read, a write or a sync is one system call without an allocation. Writing and syncing bytes
//! inside a filled file costs the device one write request and one flush request, and no journal
//! write; a direct read of a page is one device read. The tests count these requests on ext4. A
//! probe is about 20 small reads of `/sys` and `/proc`: probe once, not per file.
//!
//! # What it is not
//! The crate has no cache, no threads and no policy: those belong to its callers. It needs Linux
//! 5.6 or newer; on newer kernels it reports more properties.
//!
//! # Sources
//! The manual pages of the calls, the kernel's `Documentation/ABI/stable/sysfs-block` and
//! `Documentation/block/stat.rst`; Rebello et al., "Can Applications Recover from fsync Failures?",
//! ATC '20, on failed syncs. Individual items name further sources.

mod access;
mod blocks;
mod device;
mod disk;
mod error;
mod has_fd;
mod lease;
mod os;
mod pace;
mod probe;
mod residency;
mod send_queue;
mod sys;
mod units;
mod writeback;

pub use access::{
    AlignedBuf, Map, ReadRing, RingCompletion, RingRead, read_uncached, read_uncached_fd,
    write_durable, write_out,
};
pub use blocks::{
    DedupeOutcome, DelayedAllocation, Extent, ExtentFlags, ExtentMap, FILL_STEP_BYTES, FillMethod,
    dedupe_range, extents, fill, fill_paced, first_extent, has_holes, same_blocks,
};
pub use device::{Device, DeviceCounters, Queue};
pub use disk::{
    Allocation, Disk, Durability, File, LOCK_NAME, Lock, Locked, Open, Subdir, read_full,
    this_process, write_full,
};
pub use error::{Error, Op, Result, append_sources, error_chain};
pub use has_fd::HasFd;
pub use lease::{Lease, LeaseOutcome};
pub use os::OsDisk;
pub use pace::{NotPaced, Pace, Pacer, WINDOW_BYTES, WINDOW_BYTES_MAX, WINDOW_BYTES_MIN};
pub use probe::{DirectIo, FileSystem, Mount, Storage, probe};
pub use residency::{Residency, evict, resident, warm};
pub use send_queue::send_queue_bytes;
pub use units::{PAGE_BYTES, align_down, align_up};
pub use writeback::{
    Amount, Anomaly, DeviceShare, DirtyLimits, DirtySettings, DiskFacts, DiskKind, GroupMemory,
    JournalInfo, KernelFiles, Machine, Memory, MountFacts,
};
