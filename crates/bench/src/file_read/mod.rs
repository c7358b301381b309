//! Benchmarks that read one file.

pub mod random_read;
mod ring;
pub mod sequential_read;

const NO_DIRECT_IO: &str = "no direct I/O here";
