//! The relay between real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which may fail like them"
)]

mod endpoint;
mod http;
mod hostile;
mod streams;
mod world;
