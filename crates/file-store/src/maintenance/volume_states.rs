//! The volume states that indexing and compaction share.

use std::collections::BTreeSet;

use crate::maintenance::hot_volumes::HotVolumes;

/// The volume states. The thread that indexes or compacts holds their lock.
#[derive(Debug, Default)]
pub(crate) struct VolumeStates {
    /// Volumes with damaged or unreadable bytes. They are never removed, because an operator may
    /// want to recover their content.
    pub(crate) damaged: BTreeSet<u32>,
    /// Volumes that compaction could not empty. The background thread ignores them; a requested
    /// compaction tries them again.
    pub(crate) stuck: BTreeSet<u32>,
    /// Volumes whose compaction is postponed because they still lose live bytes.
    pub(crate) hot: HotVolumes,
    /// Sealed volumes whose index is complete.
    pub(crate) indexed: BTreeSet<u32>,
    /// The volume before which all volume indexes were removed, because a checkpoint has the
    /// needles.
    pub(crate) covered_before: u32,
    /// `true` after a failed removal of a volume: a crash may restore the volume. No other volume
    /// is removed, because its tombstones may still be needed.
    pub(crate) removal_failed: bool,
}
