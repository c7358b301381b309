//! Puts that hold no thread while they wait for the sync of the log.
//!
//! [`start`] appends the needle and queues the put ([`queue`]). A thread of the store ([`thread`])
//! waits for the log, applies durable needles to the index, and resolves the futures ([`future`]).
//! A put is completed whether or not its future is polled or exists.

pub(crate) mod future;
pub(crate) mod queue;
mod start;
pub(crate) mod thread;
