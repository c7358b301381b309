//! Reading: wants are grouped by device, put in the order it likes best, and read by a few
//! threads that hand the bytes to the consumer as they come.

mod kind;
mod open;
pub(crate) mod plan;
mod team;
mod worker;

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

pub use kind::{DeviceRead, Kind};
pub use plan::Order;

use crate::error::Error;
use crate::tree::{FileId, Tree};

/// A piece of a file somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// The file.
    pub file: FileId,
    /// Where the piece begins.
    pub offset: u64,
    /// How long it is; `u64::MAX` means to the end. A piece is never longer than the file.
    pub bytes: u64,
}

impl Want {
    /// The whole file.
    #[must_use]
    pub fn whole(file: FileId) -> Self {
        Self { file, offset: 0, bytes: u64::MAX }
    }
}

/// What the kernel said of the file once it was open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The number of its file system (`st_dev`).
    pub device: u64,
    /// Its number in the file system.
    pub inode: u64,
    /// Its length: as much is read, even if it grows meanwhile.
    pub bytes: u64,
    /// When its bytes were last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// When anything of it was last changed, in nanoseconds since 1970.
    pub changed_ns: i64,
    /// How many names it has.
    pub links: u32,
}

/// What is known when all of a want was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// How many bytes were read.
    pub bytes: u64,
    /// The file is longer than when it was opened; only what it had then was read.
    pub grew: bool,
}

/// Takes what is read. It is called from several threads, but for one want by one at a time:
/// `begin`, then its pieces in order, then `end`, which is called once for every want.
pub trait Consumer: Sync {
    /// What belongs to one want, such as a hasher.
    type State: Send;

    /// The file of the want is open; its bytes follow.
    fn begin(&self, want: usize, opened: &Opened) -> Self::State;

    /// The next bytes of the want. With `Break` no more are read of it, and it ends well.
    fn piece(&self, state: &mut Self::State, want: usize, bytes: &[u8]) -> ControlFlow<()>;

    /// The want is over; without a state where its file could not be opened.
    fn end(&self, state: Option<Self::State>, want: usize, outcome: Result<Finished, Error>);

    /// How many wants are over so far, and how many bytes were read. Called now and then.
    fn progress(&self, _wants: u64, _bytes: u64) {}
}

/// What happens to the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cache {
    /// What is read stays in memory, as usual.
    #[default]
    Keep,
    /// What was not in memory before does not stay there, so that what others use is not pushed
    /// out.
    Spare,
}

/// How it is read. The default decides everything by the device.
#[derive(Clone)]
pub struct ReadOptions<'a> {
    /// In which order.
    pub order: Order,
    /// The kind of every device that is not in [`ReadOptions::kinds`].
    pub kind: Option<Kind>,
    /// The kind of some, by their number (`st_dev`).
    pub kinds: &'a [(u64, Kind)],
    /// How many threads read from each device.
    pub threads: Option<usize>,
    /// How many reads each thread has under way at a time, where data is not in memory.
    pub depth: Option<usize>,
    /// How much memory all buffers take together, at most; 1 MiB for each thread is the least.
    pub memory_bytes_max: usize,
    /// What happens to the page cache.
    pub cache: Cache,
    /// Ends the run soon once it is true: what is not read then ends with [`Error::Stopped`].
    pub stop: Option<&'a AtomicBool>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self {
            order: Order::Auto,
            kind: None,
            kinds: &[],
            threads: None,
            depth: None,
            memory_bytes_max: 64 << 20,
            cache: Cache::Keep,
            stop: None,
        }
    }
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadStats {
    /// How many wants ended well.
    pub wants: u64,
    /// How many failed.
    pub failed: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// How each device was read.
    pub devices: Vec<DeviceRead>,
}

/// Reads all `wants`, each once, and hands the bytes to `consumer`.
///
/// It returns when every want has ended. A file that fails is told in its `end` and stops nothing.
/// A file is never waited for: pipes and devices that took the place of a file are an error.
pub fn read<C: Consumer>(
    tree: &Tree,
    wants: &[Want],
    options: &ReadOptions<'_>,
    consumer: &C,
) -> ReadStats {
    team::read(tree, wants, options, consumer)
}
