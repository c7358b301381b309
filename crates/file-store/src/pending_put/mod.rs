//! Puts that occupy no thread while they wait for the log's sync.
//!
//! A started put waits in [`queue`], until the completing thread has applied its needle to the
//! index, and resolves its future ([`future`]). A put is completed even if its future is never
//! polled or is dropped.

pub(crate) mod future;
pub(crate) mod queue;
