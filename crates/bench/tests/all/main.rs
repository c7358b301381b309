//! The benches, run short on real file systems.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which may fail like them"
)]

mod files;
mod pacing;
mod read_order;
mod relay;
mod storage;
mod write_modes;

use tempfile::TempDir;

/// A directory on a disk: the usual temporary directory may well be in memory.
fn disk_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
