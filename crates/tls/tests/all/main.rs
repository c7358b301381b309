//! Streams over real sockets, with a client of the crate `rustls`.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod certificates;
mod echo;
mod sessions;
mod transports;
