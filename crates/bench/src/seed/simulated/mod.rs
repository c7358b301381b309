//! Experiments on a simulated spinning drive, by its own clock and counters.

pub mod haystack;
pub mod index;
pub mod mmap;
pub mod sorted;
