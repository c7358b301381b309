//! A disk in memory that loses power and fails when it is told to, for tests.
//!
//! [`MemoryDisk`] is a [`haul_disk::Disk`]. It writes down every step that changes something.
//! [`Medium`] takes the steps one by one: it knows what is synced and, in order, what is not.
//! What a power cut may leave of that, [`Device`] says for several kinds of devices, and
//! [`Medium::states`] counts, numbers and draws. [`crash_everywhere`] puts all this to work.
//!
//! What is below the names is modelled so:
//!
//! - A sync of a file puts its bytes and its length on the medium, whole; a sync of a directory
//!   the names made, changed and removed in it. A rename counts for the directory it goes to.
//! - What was not synced survives as the device has it, in sectors of 512 bytes at the smallest.
//! - After a failed sync the pages are clean: the next sync says nothing about them. The page
//!   cache forgets them when the file is next opened for reading alone.
//! - A direct file refuses what is not aligned. There are no links, no times, and nobody is
//!   forbidden anything.

mod content;
mod crash;
mod device;
mod disk;
mod faults;
mod faulty;
mod file;
mod medium;
mod step;

pub use crash::{Crash, Crashes, crash_everywhere, crash_until, replay_command, seed, tell_count};
pub use device::{Device, States, Survival};
pub use disk::MemoryDisk;
pub use faults::{CALLS, Faults};
pub use faulty::FaultyDisk;
pub use medium::{FileBytes, Medium};
pub use step::{Bytes, Note, Step};
