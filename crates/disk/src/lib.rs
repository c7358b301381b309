//! Reads, writes and syncs files on Linux, and identifies the storage below a path.
//!
//! # What it is
//! The workspace's lowest layer: the traits and functions through which the other crates do most of
//! their file I/O.
//! - [`probe`] identifies the storage below a path and returns its properties as [`Storage`].
//! - [`Disk`] (names) and [`File`] (bytes) are the two traits that storage code uses. [`OsDisk`]
//!   implements them with system calls; a test may substitute a simulated disk.
//! - [`AlignedBuf`] is memory aligned for direct I/O.
//! - [`fill`] writes zeros to a file ahead of use, so that later writes allocate no blocks.
//! - [`write_durable`] writes bytes and makes them durable in one call, [`read_uncached`] reads
//!   without adding pages to the page cache, and [`write_out`] writes dirty pages to the device
//!   without making them durable.
//! - [`scheduled`] orders the random reads of a rotational disk, and lets them take turns with syncs
//!   ([`SeekScheduler`]).
//! - [`Pacer`] bounds the number of dirty pages during bulk writes.
//! - [`Ring`] keeps many reads and writes in flight from one thread.
//! - [`resident`] counts a file's pages in the page cache, [`warm`] loads pages into the page
//!   cache, and [`evict`] drops them.
//! - [`DeviceCounters`] count the requests that a device has completed.
//! - [`first_extent`] and [`extents`] return a file's physical location; [`same_blocks`] compares
//!   two files' locations.
//! - [`KernelFiles`] reads and changes the kernel's writeback settings, and finds the disks below a
//!   file system. [`DirtyLimits`] are the amounts of dirty memory at which writeback starts and
//!   writers block.
//! - [`Map`] reads or writes a file through `mmap`; benchmarks compare this with system calls.
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
//! - An error names the operation and the path, and carries the system call's error.
//! - A name never refers to a file outside the root of its [`Disk`], neither by `..` nor by a
//!   symbolic link.
//! - [`File`] retries interrupted reads and writes. A failed or interrupted sync or
//!   [`write_durable`] is never retried.
//! - A property that the probe cannot determine is `None`, never a guess.
//!
//! # Cost
//! A read, a write or a sync is one system call without an allocation. In a file zeroed by
//! [`fill`], writing and syncing a page costs the device one write request and one flush request,
//! and no journal write. A direct read of a page is one device read. The tests count these requests
//! on ext4. A probe makes about 20 small reads of `/sys` and `/proc`: probe once, not per file.
//!
//! # What it is not
//! The crate has no cache, starts no threads, and does not decide which method suits a file: its
//! callers do. It needs Linux 5.6 or newer. Newer kernels report more properties to the probe.
//!
//! # Sources
//! The calls' manual pages, and the kernel's `Documentation/ABI/stable/sysfs-block` and
//! `Documentation/block/stat.rst`. On failed syncs: Rebello et al., "Can Applications Recover from
//! fsync Failures?", ATC '20. Individual items name further sources.

mod access;
mod blocks;
mod device;
mod disk;
mod error;
mod has_fd;
mod lease;
mod links;
mod memory;
mod os;
mod pace;
mod probe;
mod project;
mod random;
mod residency;
mod scheduled;
mod send_queue;
mod standard_streams;
mod sys;
mod units;
mod writeback;

pub use access::{
    AlignedBuf, HUGE_PAGE_BYTES, Map, Ring, RingCompletion, RingOp, RingRequest, read_uncached,
    read_uncached_fd, write_durable, write_out,
};
pub use blocks::{
    DedupeOutcome, DelayedAllocation, Extent, ExtentFlags, ExtentMap, FILL_STEP_BYTES, FillMethod,
    dedupe_range, dedupe_range_at, extents, fill, fill_paced, first_extent, has_holes, next_hole,
    same_blocks, same_blocks_at,
};
pub use device::{
    Device, DeviceCounters, DeviceKind, KIND_SAMPLES, KindSource, Queue, ReadSample, measure_kind,
    sample_places,
};
pub use disk::{
    Allocation, Disk, Durability, File, LOCK_NAME, Lock, Locked, Open, SeekScheduler, Subdir,
    SyncTurn, read_full, this_process, write_full,
};
pub use error::{Error, Op, Result, append_sources, error_chain};
pub use has_fd::HasFd;
pub use lease::{Lease, LeaseOutcome};
pub use links::link_count;
pub use memory::{keep_little_free_memory, release_free_memory};
pub use os::{OsDisk, sync_parent};
pub use pace::{
    NotPaced, Pace, PaceBudget, Pacer, WINDOW_BYTES, WINDOW_BYTES_MAX, WINDOW_BYTES_MIN,
};
pub use probe::{DirectIo, FileSystem, Mount, Storage, Superblock, file_system_type, probe};
pub use project::project;
pub use random::random_bytes;
pub use residency::{Residency, evict, resident, warm};
pub use scheduled::scheduled;
pub use send_queue::send_queue_bytes;
pub use standard_streams::replace_unusable_streams;
pub use units::{PAGE_BYTES, align_down, align_up};
pub use writeback::{
    Amount, Anomaly, DeviceShare, DirtyLimits, DirtySettings, DiskFacts, DiskKind, GroupMemory,
    JournalInfo, KernelFiles, Machine, Memory, MountFacts,
};
