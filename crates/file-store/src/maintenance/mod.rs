//! Compaction decisions, without I/O: which volume is compacted, at what rate, and how writers are
//! admitted meanwhile; and the volume states that they need.

pub(crate) mod admission;
mod hot_volumes;
mod pacer;
pub(crate) mod plan;
#[cfg(test)]
mod plan_simulation;
pub(crate) mod volume_states;

use std::sync::Arc;

use haul_sync::Mutex;

use crate::failures::OngoingFailures;
use crate::lifecycle::state::LifecycleState;
use crate::maintenance::admission::Admission;
use crate::maintenance::volume_states::VolumeStates;

/// The state of background maintenance: admission of writers, compaction, lifecycle and failures.
#[derive(Debug)]
pub(crate) struct Maintenance {
    /// Delays writers while compaction falls behind.
    pub(crate) admission: Arc<Admission>,
    pub(crate) volume_states: Mutex<VolumeStates>,
    pub(crate) lifecycle: LifecycleState,
    pub(crate) failures: Arc<OngoingFailures>,
}
