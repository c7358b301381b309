//! Contains the benchmarks that read one file: at random offsets, or from its beginning to its end.

mod random_read;
mod sequential_read;

pub use random_read::RandomReadBench;
pub use sequential_read::SequentialReadBench;
