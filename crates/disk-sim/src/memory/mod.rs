//! Implements a disk in memory with power cuts and injected faults, for tests.
//!
//! [`MemoryDisk`] is a [`haul_disk::Disk`] that records every step that changes it. [`Medium`]
//! applies the steps one by one: it holds the durable state and the pending (unsynced) steps, in
//! order. [`Device`] defines which states a power cut may leave on several device kinds, and
//! [`Medium::states`] counts, numbers and draws these states. [`crash_everywhere`] runs a workload
//! and tests the states that a power cut may leave after each of its steps.
//!
//! The disk model has the following properties:
//!
//! - A file sync makes the file's bytes and its length durable. A directory sync makes the names
//!   created, changed and removed in it durable; a rename belongs to the directory of the new name.
//! - At a power cut, the device kind decides which unsynced data survives. The smallest unit of
//!   survival is a 512-byte sector.
//! - After a failed sync the file's pages in the page cache count as clean, so the next sync
//!   succeeds without writing them. The page cache drops these pages when the file is next opened
//!   read-only.
//! - A lock lasts until it is dropped or the simulated machine stops.
//! - A file opened for direct I/O rejects unaligned access. There are no links, timestamps or
//!   permissions.

mod atoms;
mod content;
mod crash;
mod device;
mod disk;
mod faults;
mod faulty_disk;
mod file;
#[cfg(target_env = "gnu")]
mod heap;
mod locks;
mod medium;
mod state;
mod step;
mod survival;

pub use crash::{Crash, Crashes, crash_everywhere, crash_until, print_count};
pub use device::{Device, States};
pub use disk::MemoryDisk;
pub use faults::{CALLS, Faults};
pub use faulty_disk::FaultyDisk;
pub use medium::{FileBytes, Medium};
pub use step::{Bytes, Note, Step};
pub use survival::Survival;
