//! Allocates files' blocks ahead of use, locates them on the device, locates holes, and makes files
//! share blocks.

mod dedupe;
mod extent;
mod fiemap;
mod fill;
mod holes;
mod same;

pub use dedupe::{DedupeOutcome, dedupe_range, dedupe_range_at};
pub use extent::{DelayedAllocation, Extent, ExtentFlags, ExtentMap};
pub use fiemap::{extents, first_extent};
pub use fill::{FILL_STEP_BYTES, FillMethod, fill, fill_paced, has_holes};
pub use holes::next_hole;
pub use same::{same_blocks, same_blocks_at};
