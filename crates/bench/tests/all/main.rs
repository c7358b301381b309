//! The benches, run short on real file systems.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which may fail like them"
)]

mod read_order;
mod write_modes;
