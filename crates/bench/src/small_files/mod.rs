//! Compares durable puts of small files into a file store with files, with a plain group commit, and
//! with databases.
//!
//! Every put is durable when its call returns. The floor is the least that a batch of puts can
//! cost: their bytes, collected from all writers, are written to blocks that were written before,
//! with one write and one sync for each batch.

mod contenders;
mod haystack;
mod objects;
mod puts;
mod spinning_store;

pub use haystack::HaystackBench;
pub use objects::key;
pub use puts::SmallFilesBench;
pub use spinning_store::SpinningStoreBench;
