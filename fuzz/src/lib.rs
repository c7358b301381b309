//! The parts of the fuzz targets in `fuzz_targets`: inputs before they are edited, edits, checksums
//! that are set after edits, and the properties that the targets check.
//!
//! A target gets arbitrary bytes from libFuzzer, which prefers inputs that reach new code. It
//! parses them, or edits the files of a log or store as they describe. It panics if a promise of
//! the crate under test does not hold, and libFuzzer then stores the input.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Serebryany16\] for fuzzing guided by coverage.

pub mod archive;
pub mod chunked;
pub mod edit;
pub mod glob;
pub mod http;
pub mod input;
pub mod log;
pub mod page_file;
pub mod proxy;
pub mod report;
pub mod segment;
pub mod store;
pub mod store_files;
