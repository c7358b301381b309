//! The blocks of files: allocation ahead of use, location on the device, and sharing between files.

mod dedupe;
mod extent;
mod fiemap;
mod fill;
mod same;

pub use dedupe::{DedupeOutcome, dedupe_range};
pub use extent::{DelayedAllocation, Extent, ExtentFlags, ExtentMap};
pub use fiemap::{extents, first_extent};
pub use fill::{FILL_STEP_BYTES, FillMethod, fill, fill_paced, has_holes};
pub use same::same_blocks;
