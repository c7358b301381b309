//! What compaction decides, without I/O: which volume is compacted, at what rate, and how writers
//! are admitted meanwhile; and the volume state that it keeps.

pub(crate) mod admission;
mod hot_volumes;
mod pacer;
pub(crate) mod plan;
#[cfg(test)]
mod plan_simulation;
pub(crate) mod upkeep;

use std::sync::Arc;

use haul_sync::Mutex;

use crate::lifecycle::state::LifecycleState;
use crate::maintenance::admission::Admission;
use crate::maintenance::upkeep::Upkeep;
use crate::troubles::Troubles;

/// What a store's threads keep up.
#[derive(Debug)]
pub(crate) struct Maintenance {
    /// Delays writers while compaction falls behind.
    pub(crate) admission: Arc<Admission>,
    pub(crate) upkeep: Mutex<Upkeep>,
    pub(crate) lifecycle: LifecycleState,
    pub(crate) troubles: Arc<Troubles>,
}
