//! Puts that occupy no thread while they wait for the sync of the log.
//!
//! [`start`] appends the needle and queues the put in [`queue`]. The completing thread ([`thread`])
//! waits for the log, applies durable needles to the index, and resolves the futures ([`future`]).
//! A put is completed even if its future is never polled or is dropped.

pub(crate) mod future;
pub(crate) mod queue;
mod start;
pub(crate) mod thread;
