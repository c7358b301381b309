//! What storage is below a path, and the files on it.
//!
//! # What it is
//! The ground floor: the only crate that talks to the kernel about files. It finds out what the
//! storage is, hands out aligned memory, and offers files and names through two small traits,
//! [`File`] and [`Disk`], which the kernel ([`OsDisk`]) or a test implements.
//!
//! # Example
//! ```
//! use haul_disk::{Disk, Durability, Open, OsDisk, write_full};
//!
//! # fn main() -> haul_disk::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path();
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
//! A failed call says what was tried on which path and keeps the kernel's reason. Names cannot
//! leave the root of their [`Disk`]. Interrupted reads and writes are repeated; a sync never is.

mod buffer;
mod error;
mod file;
mod fill;
mod lock;
mod os;
mod units;

pub use buffer::AlignedBuf;
pub use error::{Error, Op, Result};
pub use file::{Allocation, Disk, Durability, File, Open, read_full, write_full};
pub use fill::{Filled, fill};
pub use lock::{DirLock, LOCK_NAME, Locked};
pub use os::OsDisk;
pub use units::{PAGE_BYTES, align_down, align_up};
