//! The engine as clients see it: over TCP, with a handler whose responses are futures.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which may fail like them"
)]

mod bodies;
mod connections;
mod hostile;
mod inline;
mod log;
mod pieces;
mod server;
mod tls;
