//! The usage that counts against quotas, computed from the index totals. Pure.

use std::collections::BTreeMap;

use haul_sync::{ShardedRwLock, ShardedRwLockReadGuard};

use crate::index::Index;
use crate::index::quotas::{LockTotals, Totals};
use crate::index::uploads::{Upload, UploadName};
use crate::index::version_names::versions_bucket;
use crate::index::volumes::subtract;
use crate::object::Usage;

impl LockTotals for ShardedRwLock<Index> {
    fn lock(&self) -> Box<dyn Totals + '_> {
        Box::new(self.read())
    }
}

impl Totals for ShardedRwLockReadGuard<'_, Index> {
    fn usage(&self, bucket: &str) -> Usage {
        (**self).usage(bucket)
    }
}

impl Totals for Index {
    /// Returns a bucket's usage: its objects, their older versions and delete markers, and the
    /// parts of its unfinished uploads. Costs three lookups.
    fn usage(&self, bucket: &str) -> Usage {
        let total = |name: &str| {
            let found = self.buckets.get(name);
            found.map_or(Usage::default(), |it| Usage { bytes: it.bytes, objects: it.objects })
        };
        let parts = self.part_bytes.get(bucket).copied().unwrap_or(0);
        let older = total(&versions_bucket(bucket));
        total(bucket).plus(older).plus(Usage { bytes: parts, objects: 0 })
    }
}

impl Index {
    /// Adds a checkpoint's upload, with its parts.
    pub(crate) fn restore_upload(&mut self, name: UploadName, upload: Upload) {
        let bytes = upload.part_bytes();
        self.add_part_bytes(name.bucket_and_key().0, bytes);
        self.uploads.insert(name, upload);
    }

    pub(super) fn add_part_bytes(&mut self, bucket: &str, bytes: u64) {
        if bytes > 0 {
            *self.part_bytes.entry(bucket.into()).or_default() += bytes;
        }
    }

    pub(super) fn subtract_part_bytes(&mut self, bucket: &str, bytes: u64) {
        let Some(total) = self.part_bytes.get_mut(bucket) else {
            debug_assert_eq!(bytes, 0, "the parts of {bucket} have bytes");
            return;
        };
        subtract(total, bytes, "bytes of parts");
        if *total == 0 {
            self.part_bytes.remove(bucket);
        }
    }

    /// Computes the expected [`Self::part_bytes`] from the uploads.
    pub(super) fn count_part_bytes(&self) -> BTreeMap<Box<str>, u64> {
        let mut counted = BTreeMap::new();
        for (name, upload) in &self.uploads {
            let bytes = upload.part_bytes();
            if bytes > 0 {
                *counted.entry(name.bucket_and_key().0.into()).or_default() += bytes;
            }
        }
        counted
    }
}
