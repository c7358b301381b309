//! Plans the requests that execute random writes in ascending order. Performs no I/O.

mod costs;
mod entry;
mod extent;
mod overlap;
mod radix_sort;
mod requests;

pub use costs::Costs;
pub use entry::{Entry, Piece};
pub use extent::{Extent, seek_bytes};
pub(crate) use requests::Planner;
pub use requests::{Plan, Request, Rules, plan};
