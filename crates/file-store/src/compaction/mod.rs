//! Compaction: the choice of volumes, its time and rate, and the admission of writers.

pub(crate) mod admission;
pub(crate) mod compact;
mod hot_volumes;
pub(crate) mod mover;
pub(crate) mod pacer;
pub(crate) mod plan;
#[cfg(test)]
mod plan_simulation;
pub(crate) mod space;
pub(crate) mod upkeep;
pub(crate) mod volume_map;
