//! What storage is below a path, and the files on it.
//!
//! # What it is
//! The ground floor: the only crate that talks to the kernel about files.
//! - [`probe`] finds out what the storage is: [`Storage`].
//! - [`Disk`] and [`File`] are the two seams everything above stands on; the kernel implements
//!   them as [`OsDisk`], a test may put a disk of its own underneath.
//! - [`AlignedBuf`] is memory that direct I/O accepts, [`fill`] writes blocks before they are
//!   needed, [`write_durable`], [`read_uncached`] and [`write_out`] are about a single call.
//! - [`Pacer`] keeps what bulk data leaves dirty in the page cache bounded.
//! - [`ReadRing`] has many reads under way from one thread.
//! - [`resident`], [`evict`] and [`warm`] ask for and change what the page cache holds;
//!   [`DeviceCounters`] tell what the disk was really asked to do.
//! - [`first_extent`] and [`extents`] tell where on the device a file is; [`same_blocks`] whether
//!   two are at the same place.
//! - [`KernelFiles`] tell what becomes of writes nobody syncs: how much may be dirty, who waits,
//!   how the disks below take it.
//! - [`Map`] writes or reads a file through memory, to be measured against the calls.
//! - [`DirLock`] keeps a second process out of a directory.
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
//! file.sync(Durability::Data)?; // the bytes survive a power cut,
//! disk.sync_dir("")?; //           and now their name does too
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - A failed call says what was tried on which path and keeps the kernel's reason.
//! - Names cannot leave the root of their [`Disk`], neither by `..` nor by a symbolic link.
//! - Interrupted reads and writes are repeated; a sync never is, nor a write that syncs.
//! - What the probe cannot find out is unknown, never a guess.
//!
//! # Cost
//! A read, a write or a sync is one kernel call and no allocation. A file that was filled is
//! written in place and synced with one device write and one emptying of the write cache, no
//! journal write; a direct read of a page is one device read. The tests count these requests on a
//! real ext4. A probe is some 20 small reads of `/sys` and `/proc`: made once, not per file.
//!
//! # What it is not
//! No cache, no threads, no retries, no opinion: plans are made upstairs. Linux only, 5.6 or
//! newer; later kernels answer more.
//!
//! # Sources
//! The manual pages of the calls, the kernel's `Documentation/ABI/stable/sysfs-block` and
//! `Documentation/block/stat.rst`; Rebello et al., "Can Applications Recover from fsync
//! Failures?", ATC '20, for what a failed sync means; each technique names its own.

mod buffer;
mod counters;
mod error;
mod extents;
mod file;
mod fill;
mod has_fd;
mod lease;
mod lock;
mod map;
mod os;
mod pace;
mod per_call;
mod probe;
mod residency;
mod ring;
mod share;
mod subdir;
mod sys;
mod unconfirmed;
mod units;
mod writeback;

pub use buffer::AlignedBuf;
pub use counters::DeviceCounters;
pub use error::{Error, Op, Result};
pub use extents::{Extent, ExtentFlags, ExtentMap, Unplaced, extents, first_extent, same_blocks};
pub use file::{Allocation, Disk, Durability, File, Open, read_full, write_full};
pub use fill::{FILL_STEP_BYTES, Filled, fill, fill_paced, has_holes};
pub use has_fd::HasFd;
pub use lease::{Lease, Leased};
pub use lock::{DirLock, LOCK_NAME, Locked};
pub use map::Map;
pub use os::OsDisk;
pub use pace::{NotPaced, Pace, Pacer, WINDOW_BYTES, WINDOW_BYTES_MAX, WINDOW_BYTES_MIN};
pub use per_call::{read_uncached, read_uncached_fd, write_durable, write_out};
pub use probe::{Device, DirectIo, FileSystem, Mount, Queue, Storage, probe};
pub use residency::{Residency, evict, resident, warm};
pub use ring::{ReadRing, RingDone, RingRead};
pub use share::{Shared, share_blocks};
pub use subdir::Subdir;
pub use unconfirmed::unconfirmed;
pub use units::{PAGE_BYTES, align_down, align_up};
pub use writeback::{
    Amount, DeviceShare, DirtyLimits, DirtySettings, DiskFacts, DiskKind, GroupMemory, JournalInfo,
    KernelFiles, Machine, Memory, MountFacts, Oddity,
};
