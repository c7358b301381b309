//! Limits the memory that a long replay uses.

use std::sync::Arc;

use crate::catalog::files::{IndexFiles, choose_runs};
use crate::error::{Error, Result};
use crate::index::Index;

/// Writes recent keys to runs during the replay. No catalog lists these runs until the replay is
/// complete.
#[derive(Debug)]
pub(crate) struct Spill {
    pub(crate) files: Arc<IndexFiles>,
    /// The maximum memory for recent keys.
    pub(crate) recent_bytes_max: usize,
    /// The maximum number of needles for which changes to the location table are recorded.
    pub(crate) changes_max: u64,
}

impl Spill {
    /// Writes the recent keys to a run if they use too much memory, and discards the location
    /// changes if there are too many: the next checkpoint then contains the whole table.
    ///
    /// # Errors
    /// A failed system call; [`Error::Damaged`] if a run is damaged.
    pub(crate) fn spill(&mut self, index: &mut Index) -> Result<()> {
        if index.change_count > self.changes_max {
            index.location_changes = None;
        }
        if index.keys.recent_bytes() < self.recent_bytes_max {
            return Ok(());
        }
        let recent = index.keys.freeze();
        match self.files.write_run(&recent) {
            Ok(run) => index.keys.thaw_into(Some(run)),
            Err(Error::Full { .. }) => {
                // Opening a store needs no space, but more memory without it.
                index.keys.unfreeze();
                self.recent_bytes_max = index.keys.recent_bytes() * 2;
                return Ok(());
            }
            Err(other) => return Err(other),
        }
        index.location_changes = None;
        while let Some((inputs, with_oldest)) = choose_runs(index.keys.runs(), index.objects()) {
            match self.files.merge(&inputs, with_oldest, &mut |_| true) {
                Ok(Some(run)) => index.keys.replace_runs(&inputs, run),
                Ok(None) | Err(Error::Full { .. }) => break,
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }
}
