//! `haul store mb` and `haul store rb`: create and remove a bucket.

use haul_file_store::Store;

use crate::report::{OrFail, Result};

pub(super) fn create(store: &Store, bucket: &str) -> Result {
    store.create_bucket(bucket).or_fail(|| format!("cannot create the bucket \"{bucket}\""))
}

pub(super) fn remove(store: &Store, bucket: &str) -> Result {
    store.delete_bucket(bucket).or_fail(|| format!("cannot remove the bucket \"{bucket}\""))
}
