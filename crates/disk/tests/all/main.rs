//! The crate against the real kernel.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod counting;
mod extents;
mod filling;
mod leases;
mod mapping;
mod names;
mod pacing;
mod page_cache;
mod per_call;
mod probing;
mod ring;
mod sharing;
mod simulated;
mod writeback;

use tempfile::TempDir;

/// A directory on a disk: the usual temporary directory may well be in memory.
fn disk_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
