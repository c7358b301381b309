//! A disk in memory that loses power and fails when it is told to, for tests.
//!
//! # What it is
//! [`TestDisk`] is a [`haul_disk::Disk`]. It notes every step that changes something, so that a
//! test can cut the power after any of them: [`Medium`] takes the steps one by one, and
//! [`Medium::cut`] says what a power cut leaves. It fails calls on demand, is full when it is
//! told to be, and counts what it is asked.
//!
//! The model is as harsh as a disk may be: of what was written to a file since its last sync any
//! subset of 512-byte sectors may survive, and of what was done to the names in a directory since
//! the last sync of it any subset, too. Direct files refuse what is not aligned.
//!
//! # Example
//! ```
//! use haul_disk::{Disk, Durability, Open, write_full};
//! use haul_test_disk::{Survival, TestDisk};
//!
//! # fn main() -> haul_disk::Result<()> {
//! let disk = TestDisk::default();
//! let file = disk.create("greeting", Open::default())?;
//! write_full(&*file, b"hello", 0)?;
//! file.sync(Durability::Data)?;
//! let after = |survival| TestDisk::on(&disk.medium().cut(survival)).list("");
//! assert!(after(Survival::Nothing)?.is_empty(), "its name was not synced");
//! assert_eq!(after(Survival::Everything)?, ["greeting"]);
//! disk.sync_dir("")?;
//! assert_eq!(after(Survival::Nothing)?, ["greeting"]);
//! # Ok(())
//! # }
//! ```
//!
//! # What it is not
//! A file system: it has no links, no times, and no memory of who may do what.

mod content;
mod disk;
mod faults;
mod file;
mod medium;
mod random;

pub use disk::TestDisk;
pub use medium::{Medium, Step, Survival};
pub use random::Random;
