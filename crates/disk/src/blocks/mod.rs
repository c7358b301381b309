//! Allocates the blocks of files ahead of use, locates them on the device, and makes files share
//! them.

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
