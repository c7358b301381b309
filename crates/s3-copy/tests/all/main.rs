//! Tests of copies between two servers in this process.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers fail by panics, like tests")]

mod engines;
mod faults;
mod passes;
mod server;
mod versions;
