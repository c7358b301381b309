//! Space: which volumes are compacted, when, how fast, and how writers are delayed meanwhile.

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
