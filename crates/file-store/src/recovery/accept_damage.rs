//! The report of damage, and the acceptance of what cannot be restored.

use crate::error::{Error, Result};
use crate::index::hidden::Hidden;
use crate::manifest::format::AcceptedLoss;
use crate::recovery::damage::Damage;
use crate::store::Store;

impl Store {
    /// Returns the damage found when the store was opened and since, in the order of buckets, keys
    /// and places; at most 10,000 places.
    #[must_use]
    pub fn damage(&self) -> Vec<Damage> {
        self.inner.damage.places()
    }

    /// Accepts that what hidden places held is lost, and returns these places: from now on the
    /// store answers with what it has. Keys whose newest state was there are back in the state
    /// before, or gone.
    ///
    /// Objects that are known to be damaged go on answering with errors until they are stored or
    /// deleted.
    ///
    /// # Errors
    /// [`Error::Invalid`] in a store of an earlier version that has found no space for its
    /// manifest; the kernel's refusals.
    ///
    /// # Durability
    /// The acceptance survives a power cut when this returns.
    pub fn accept_damage(&self) -> Result<Vec<Damage>> {
        let inner = &self.inner;
        let Some(manifest) = &inner.manifest else {
            let what = "the store has no manifest yet: free space and open it again".to_owned();
            return Err(Error::Invalid { what });
        };
        let losses: Vec<AcceptedLoss> = {
            let index = inner.index.read();
            let loss = |range: &crate::index::hidden::HiddenRange| AcceptedLoss {
                volume: range.volume,
                from: range.from,
                to: range.to,
            };
            index.hidden.ranges().iter().map(loss).collect()
        };
        manifest.accept(&losses)?;
        inner.index.write().hidden = Hidden::default();
        Ok(inner.damage.accept_hidden())
    }
}
