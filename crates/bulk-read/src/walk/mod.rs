//! Lists the files below the roots of a walk. Several threads share the directories as jobs. A
//! thread first lists a whole directory and then examines the entries in inode order.

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
