//! Tests the writer and the page file against models, with faults and power cuts, and counts their
//! requests.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, which may fail and print like them"
)]

mod fixture;
mod in_use;
mod kill;
mod page_file;
mod page_file_crash;
mod plan;
mod power_cut;
mod releases;
mod writer;
