//! The relay between real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests, which may fail like them"
)]

mod admin;
mod bounds;
mod breaking;
mod endpoint;
mod fair;
mod hostile;
mod http;
mod marks;
mod proxy;
mod streams;
mod targets;
mod world;
