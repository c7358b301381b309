//! The directory walk. Several threads share the directories as jobs; a thread lists a whole
//! directory first and then examines its entries in inode order.

mod classify;
mod concurrency;
mod entry;
mod events;
mod ignore_rules;
mod job;
mod list;
mod options;
mod pool;
mod roots;
mod shared;
mod threads;
mod visited;

pub use events::{SkipReason, WalkEvents};
pub use options::{PathFilter, THREADS_WAITING_MAX, WalkOptions};
pub use threads::walk;
