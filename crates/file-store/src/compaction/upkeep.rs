//! What those who look after the volumes share.

use std::collections::BTreeSet;

use crate::compaction::hot_volumes::HotVolumes;

/// What is known of the volumes beside what is in them; locked by whoever indexes or compacts.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// Volumes with bytes that do not check out or cannot be read. They stay as they are: what is
    /// in them may be what somebody will want to rescue.
    pub(crate) damaged: BTreeSet<u32>,
    /// Volumes that compaction could not empty. The background thread leaves them alone; they are
    /// tried again on request.
    pub(crate) stuck: BTreeSet<u32>,
    /// Volumes that the background thread compacts later.
    pub(crate) hot: HotVolumes,
    /// Sealed volumes whose index is complete.
    pub(crate) indexed: BTreeSet<u32>,
    /// The indexes of volumes before this one were removed: a checkpoint has their needles.
    pub(crate) covered_before: u32,
    /// A volume was removed, or not: a crash may bring it back. No volume is removed any more,
    /// since with it would go the tombstones that may still be needed.
    pub(crate) removal_failed: bool,
}
