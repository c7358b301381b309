//! The quotas that the stores of a pool share: a bucket's usage is the sum over all of them.

use std::sync::Arc;

use haul_sync::RwLock;

use crate::index::quotas::{LockTotals, Quotas, Totals};
use crate::object::Usage;

/// The quotas of a pool of stores, which each of them gets with
/// [`Options::shared_quotas`](crate::Options::shared_quotas): usage counts in all of them, and a
/// write to one of them reserves against the sum.
#[derive(Debug, Clone)]
pub struct SharedQuotas(Arc<Group>);

#[derive(Debug)]
struct Group {
    quotas: Arc<Quotas>,
    indexes: RwLock<Vec<Arc<dyn LockTotals>>>,
}

/// The totals of all stores of a group, whose indexes are locked.
pub(crate) struct GroupTotals<'a>(Vec<Box<dyn Totals + 'a>>);

impl Totals for GroupTotals<'_> {
    fn usage(&self, bucket: &str) -> Usage {
        let usages = self.0.iter().map(|index| index.usage(bucket));
        usages.fold(Usage::default(), Usage::plus)
    }
}

impl SharedQuotas {
    /// Creates the quotas of stores that are not open yet. `are_enforced` has the meaning of
    /// [`Options::enforces_quotas`](crate::Options::enforces_quotas), which then has no effect.
    #[must_use]
    pub fn new(are_enforced: bool) -> Self {
        let quotas = Arc::new(Quotas::new(are_enforced));
        Self(Arc::new(Group { quotas, indexes: RwLock::default() }))
    }

    /// Adds the index of a store that is being opened.
    pub(crate) fn join(&self, index: Arc<dyn LockTotals>) {
        self.0.indexes.write().push(index);
    }

    /// Removes the index of a store that is closed.
    pub(crate) fn leave(&self, index: *const ()) {
        self.0.indexes.write().retain(|other| Arc::as_ptr(other).cast() != index);
    }

    pub(crate) fn quotas(&self) -> &Arc<Quotas> {
        &self.0.quotas
    }

    /// Calls `work` with the totals of all stores, which do not change meanwhile. The caller has
    /// locked no index.
    pub(crate) fn with_totals<T>(&self, work: impl FnOnce(&GroupTotals<'_>) -> T) -> T {
        let indexes = self.0.indexes.read();
        // Each store's changes lock one index only, so that no order among them can be wrong.
        work(&GroupTotals(indexes.iter().map(|index| index.lock()).collect()))
    }
}
