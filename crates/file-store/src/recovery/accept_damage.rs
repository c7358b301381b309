//! Reports damage, and accepts losses that cannot be restored.

use crate::damage::report::Damage;
use crate::error::{Error, Result};
use crate::index::hidden::Hidden;
use crate::manifest::format::AcceptedLoss;
use crate::store::Store;

impl Store {
    /// Returns the damage found at opening and since then, sorted by bucket, key and position; at
    /// most 10,000 reports.
    #[must_use]
    pub fn damage(&self) -> Vec<Damage> {
        self.inner.volumes.damage.reports()
    }

    /// Accepts that the content of hidden ranges is lost, and returns these ranges: from now on the
    /// store responds with the data that it has. Keys whose newest state was in such a range return
    /// to their previous state or disappear.
    ///
    /// Requests for objects that are known to be damaged fail until these are overwritten or
    /// deleted.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Invalid`] in a store that has lost its manifest and had no
    /// space for another one; a failed system call.
    ///
    /// # Durability
    /// The acceptance survives a power cut when this returns.
    pub fn accept_damage(&self) -> Result<Vec<Damage>> {
        let inner = &self.inner;
        inner.check_writable()?;
        let Some(manifest) = &inner.volumes.manifest else {
            let what = "the store has no manifest yet: free space and reopen it".to_owned();
            return Err(Error::Invalid { what });
        };
        let losses: Vec<AcceptedLoss> = {
            let index = inner.keyspace.index.read();
            let loss = |range: &crate::index::hidden::HiddenRange| AcceptedLoss {
                volume: range.volume,
                from: range.from,
                to: range.to,
            };
            index.hidden.ranges().iter().map(loss).collect()
        };
        manifest.accept(&losses)?;
        inner.keyspace.index.write().hidden = Hidden::default();
        Ok(inner.volumes.damage.accept_hidden())
    }
}
