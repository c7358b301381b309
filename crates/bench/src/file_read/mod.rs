//! Contains the benchmarks that read one file: at random offsets, or from its beginning to its end.

pub mod random_read;
mod ring;
pub mod sequential_read;

const NO_DIRECT_IO: &str = "no direct I/O here";
