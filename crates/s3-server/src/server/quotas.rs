//! Passes the users' quotas from the key file to the store, which knows the owners of buckets.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use haul_store_pool::Pool;
use tokio::task::spawn_blocking;

use crate::access::keys::key_ring::{AllKeys, Keys};
use crate::errors::chain;
use crate::served::ServedStore;

/// The interval at which the keys are checked for changes.
const INTERVAL: Duration = Duration::from_secs(1);

/// The keys whose quotas were passed to the store.
pub(super) struct UserQuotas {
    keys: AllKeys,
    applied: Option<Arc<Keys>>,
}

impl UserQuotas {
    /// Applies the quotas when a server starts. Blocks: with quotas, it reads the settings of all
    /// buckets.
    pub(super) fn start(keys: AllKeys, store: &Pool) -> Self {
        let applied = keys.file_keys();
        if let Some(keys) = &applied {
            apply(keys, store);
        }
        Self { keys, applied }
    }

    /// Applies quotas after each change of the keys. Never returns.
    pub(super) async fn watch(mut self, store: Arc<ServedStore>) -> Infallible {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(keys) = self.keys.file_keys() else { continue };
            if self.applied.as_ref().is_some_and(|applied| Arc::ptr_eq(applied, &keys)) {
                continue;
            }
            let (store, changed) = (store.get(), Arc::clone(&keys));
            if let Err(error) = spawn_blocking(move || apply(&changed, &store)).await {
                tracing::error!(%error, "the quotas of users were not applied");
            }
            self.applied = Some(keys);
        }
    }
}

fn apply(keys: &Keys, store: &Pool) {
    if let Err(error) = store.set_owner_quotas(&keys.quotas) {
        let error = chain(&error);
        tracing::error!(error, "a bucket counts against no quota: its owner is not known");
    }
}
