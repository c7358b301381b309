//! The server over real sockets, on real files.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod answers;
mod changes;
mod client;
mod connections;
mod counts;
mod helper;
mod hostile;
mod listing;
mod log;
mod peers;
mod pipelined;
mod ranges;
mod slow;
mod stuck;
mod tiers;
mod tls;
