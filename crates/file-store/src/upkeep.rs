//! What those who look after the volumes share.

use std::collections::BTreeSet;

use haul_append_log::SegmentInfo;

use crate::error::Result;
use crate::names;
use crate::store::Inner;

/// What is known of the volumes beside what is in them; locked by whoever indexes or compacts.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// Volumes with bytes that do not check out or cannot be read. They stay as they are: what is
    /// in them may be what somebody will want to rescue.
    pub(crate) damaged: BTreeSet<u32>,
    /// A volume was removed, or not: a crash may bring it back. No volume is removed any more,
    /// since with it would go the tombstones that may still be needed.
    pub(crate) removal_failed: bool,
}

impl Inner {
    /// The volumes nothing is appended to any more, oldest first; the index has taken in all that
    /// is in them. The caller holds [`Upkeep`], so that no compaction appends meanwhile.
    pub(crate) fn sealed_volumes(&self) -> Vec<SegmentInfo> {
        let mut volumes = self.log.segments();
        volumes.pop();
        self.wait_for_writers();
        volumes
    }

    /// The number of the oldest volume that has a file, be it one that cannot be opened.
    pub(crate) fn oldest_volume(&self) -> Result<Option<u32>> {
        Ok(self.volumes.list("")?.iter().filter_map(|name| names::parse_volume(name)).min())
    }
}
