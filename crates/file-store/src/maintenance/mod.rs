//! What compaction decides, without I/O: which volume is compacted, at what rate, and how writers are
//! admitted meanwhile; and the state of the volumes that it keeps.

pub(crate) mod admission;
mod hot_volumes;
mod pacer;
pub(crate) mod plan;
#[cfg(test)]
mod plan_simulation;
pub(crate) mod upkeep;
