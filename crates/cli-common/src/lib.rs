//! Contains the code that the programs `haul` and `haul-bench` share.
//!
//! - [`report`] turns errors into messages and exit codes.
//! - [`output`] buffers and writes lines to stdout.
//! - [`signals`] turns termination signals into a graceful stop.
//! - [`progress`] shows the progress of long operations in items and bytes.
//! - [`console`] shows the progress of a measurement or benchmark, and cancels it on a signal.
//! - [`generate`] prints manual pages and shell completions.
//! - [`svg`] draws pictures of measurements and of stores.

#![expect(clippy::missing_errors_doc, reason = "failures are messages for the user")]

pub mod console;
pub mod generate;
pub mod output;
pub mod progress;
pub mod report;
pub mod signals;
pub mod svg;
