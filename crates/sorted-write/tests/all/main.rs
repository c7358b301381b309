//! The writer and the page file against models, faults and power cuts, and what they cost.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, which may fail and speak like them"
)]

mod helper;
mod kill;
mod page_file;
mod page_file_crash;
mod planning;
mod power;
mod writing;
