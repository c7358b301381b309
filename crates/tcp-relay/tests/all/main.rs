//! Tests of the relay with real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test helpers may panic, and print what failed tests need"
)]

mod admin;
mod fairness;
mod hostile;
mod http;
mod limits;
mod peers;
mod proxy;
mod resets;
mod scripted_peer;
mod streams;
mod support;
mod targets;
mod tls;
mod urgent_data;
