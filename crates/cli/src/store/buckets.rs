//! `haul store mb` and `haul store rb`: create and remove a bucket.

use crate::report::{OrFail, Result};
use haul_store_pool::Pool;

pub(super) fn create(store: &Pool, bucket: &str) -> Result {
    store.create_bucket(bucket).or_fail(|| format!("cannot create the bucket \"{bucket}\""))
}

pub(super) fn remove(store: &Pool, bucket: &str) -> Result {
    store.delete_bucket(bucket).or_fail(|| format!("cannot remove the bucket \"{bucket}\""))
}
