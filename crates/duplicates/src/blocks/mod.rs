//! Shares equal blocks of files on file systems with reflinks (btrfs, xfs), also of files that are
//! equal only in part.
//!
//! All files are read once. Digests of 8 bytes select the ranges that may be equal; the kernel
//! compares each range under the locks of both files before it shares the blocks
//! (`FIDEDUPERANGE`), so neither a collision of digests nor a concurrent change alters content.

mod events;
mod plan;
mod scan;
mod share;

use std::path::PathBuf;

use haul_bulk_read::{ReadOptions, WalkOptions, walk};

pub use events::{Events, SharedRange, Stats};
use share::Sharing;

use crate::search::{Phase, WalkForwarder};

/// The default of [`Options::block_bytes`], as in duperemove.
pub const BLOCK_BYTES: u64 = 128 << 10;

/// Options of [`share_blocks`].
#[derive(Clone)]
pub struct Options<'a> {
    /// The length of a block in bytes: a multiple of the block size of the file system. Blocks are
    /// compared if their offsets are multiples of it. Smaller blocks find more equal ranges, and
    /// need more memory and time. Default: [`BLOCK_BYTES`].
    pub block_bytes: u64,
    /// `true` to report the ranges with equal digests, and to share nothing.
    pub dry_run: bool,
    /// Options for reading files. By default, the files stay in the page cache, because the kernel
    /// compares ranges through it.
    pub read: ReadOptions<'a>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { block_bytes: BLOCK_BYTES, dry_run: false, read: ReadOptions::default() }
    }
}

/// Makes the files below `roots` share their equal blocks.
///
/// Of equal blocks, the first one in the order of the paths is kept. The blocks of a file are
/// shared with blocks of other files on the same file system, or of the same file. Neither contents
/// nor timestamps change. A file that cannot be read, or changes meanwhile, is reported and left
/// out.
///
/// A block takes 16 bytes of memory, and 40 bytes more if another block has the same digest.
pub fn share_blocks(
    roots: &[PathBuf],
    walk_options: &WalkOptions<'_>,
    options: &Options<'_>,
    events: &dyn Events,
) -> Stats {
    events.phase(Phase::Walking, 0, 0);
    let walk_options = WalkOptions { sort: true, ..walk_options.clone() };
    let tree = walk(roots, &walk_options, &WalkForwarder(events));
    let block_bytes = options.block_bytes.max(1);
    let scan = scan::scan(&tree, block_bytes, &options.read, events);
    let (files, bytes) = (scan.files, scan.bytes);
    let runs = plan::runs(scan.blocks);
    let blocks: u64 = runs.iter().map(|run| u64::from(run.blocks)).sum();
    events.phase(Phase::Sharing, runs.len() as u64, blocks * block_bytes);
    let mut sharing = Sharing::new(&tree, block_bytes, options.dry_run, events);
    let mut done = 0;
    for (number, run) in (1..).zip(&runs) {
        sharing.process(run);
        done += u64::from(run.blocks) * block_bytes;
        events.progress(number, done);
    }
    Stats { files, bytes, ..sharing.finish() }
}
