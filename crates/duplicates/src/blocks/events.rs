//! Defines the results of sharing blocks, and the events that report them.

use std::path::Path;

use crate::act::{SkipReason, dedupe_command};
use crate::search;

/// A range of a file, and an equal range of another or of the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedRange<'a> {
    /// The file whose blocks are shared.
    pub from: &'a Path,
    /// The offset of the range in `from`, in bytes.
    pub from_offset: u64,
    /// The file whose blocks are replaced.
    pub to: &'a Path,
    /// The offset of the range in `to`, in bytes.
    pub to_offset: u64,
    /// The length, in bytes.
    pub bytes: u64,
}

impl SharedRange<'_> {
    /// Returns a command for any POSIX shell that shares the range.
    #[must_use]
    pub fn command(&self) -> Vec<u8> {
        dedupe_command(self.from, self.from_offset, self.to, self.to_offset, self.bytes)
    }
}

/// The totals of [`share_blocks`](super::share_blocks).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of files read.
    pub files: u64,
    /// The number of bytes read.
    pub bytes: u64,
    /// The number of ranges whose blocks are now shared; in a dry run, of those with equal digests.
    pub ranges: u64,
    /// The length of these ranges, in bytes.
    pub shared_bytes: u64,
    /// The length of the ranges whose blocks were shared before, in bytes.
    pub already_shared_bytes: u64,
    /// The number of ranges skipped because they changed or an operation failed.
    pub skipped: u64,
}

/// A receiver of the events of [`share_blocks`](super::share_blocks).
pub trait Events: search::Events {
    /// Reports that the file `to` shares the blocks of a range of `from` now, or would do so
    /// without [`Options::dry_run`](super::Options::dry_run).
    fn shared(&self, range: &SharedRange<'_>);

    /// Reports that a range was not shared.
    fn range_skipped(&self, range: &SharedRange<'_>, reason: &SkipReason);
}
