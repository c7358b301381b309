//! The relay between real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which may fail like them"
)]

mod endpoint;
mod hostile;
mod http;
mod streams;
mod world;
