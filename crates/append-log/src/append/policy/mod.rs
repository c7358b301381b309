//! Decides when a batch is written and how. Performs no I/O and does not read the clock.

pub(super) mod batch_sizes;
pub(super) mod gather;
pub(super) mod padding;
