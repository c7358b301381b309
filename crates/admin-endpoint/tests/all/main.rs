//! The endpoint over real sockets.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod answers;
mod clients;
mod world;
