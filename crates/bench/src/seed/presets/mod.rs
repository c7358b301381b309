//! Experiments that other benchmarks measure: each is a command line of such a benchmark.

pub mod crossover;
pub mod order;
pub mod stall;
pub mod threads;
