//! Tests the endpoint over real sockets.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod clients;
mod harness;
mod responses;
