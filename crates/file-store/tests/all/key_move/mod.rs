//! Moves of keys between two stores of a pool.

mod acts;
mod behaviour;
mod crash;
mod faults;
mod random;
mod visible;

use std::sync::Arc;

use haul_disk::{Disk, Subdir};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, NewBucket, Options, Quota, SharedQuotas, Store, Versioning};

use crate::{BUCKET, small};

/// The kind of a bucket, which decides what its keys may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Versions,
    Locked,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Versions, Kind::Locked];

/// Two stores of a pool, on one disk that loses its power at once.
struct Pair {
    stores: [Store; 2],
}

impl Pair {
    /// Opens both stores in directories of one disk. Damage is a failure.
    fn open(disk: &MemoryDisk) -> Self {
        let subdir = |dir| Arc::new(Subdir::new(Arc::new(disk.clone()), dir)) as Arc<dyn Disk>;
        Self::open_on(["one", "other"].map(subdir), [small(), small()])
    }

    fn open_on(disks: [Arc<dyn Disk>; 2], options: [Options; 2]) -> Self {
        let quotas = SharedQuotas::new(true);
        let open = |(disk, options): (Arc<dyn Disk>, Options)| {
            let options = Options { shared_quotas: Some(quotas.clone()), ..options };
            let (store, recovered) = Store::open_on(disk, options).unwrap();
            let is_damage = |what: &str| !what.contains("this copy of the manifest");
            assert!(recovered.damage.iter().all(|it| !is_damage(&it.what)), "{recovered:?}");
            store
        };
        let [one, other] = disks;
        let [first, second] = options;
        Self { stores: [open((one, first)), open((other, second))] }
    }

    /// Creates both stores in directories of one disk, and their bucket.
    fn create(disk: &MemoryDisk, kind: Kind) -> Self {
        for dir in ["one", "other"] {
            disk.create_dir(dir).unwrap();
        }
        disk.sync_dir("").unwrap();
        let pair = Self::open(disk);
        pair.create_bucket(kind);
        pair
    }

    /// Creates both stores on disks of their own, and their bucket.
    fn create_on(disks: [&MemoryDisk; 2], kind: Kind, options: [Options; 2]) -> Self {
        let disks = disks.map(|disk| Arc::new(disk.clone()) as Arc<dyn Disk>);
        let pair = Self::open_on(disks, options);
        pair.create_bucket(kind);
        pair
    }

    fn create_bucket(&self, kind: Kind) {
        let [one, other] = &self.stores;
        let mut new = NewBucket::from(Attributes::from_iter([("setting", "value")]));
        new.has_object_lock = kind == Kind::Locked;
        one.create_bucket_with(BUCKET, &new).unwrap();
        new.id = Some(one.bucket_id(BUCKET).unwrap());
        other.create_bucket_with(BUCKET, &new).unwrap();
        self.stores.iter().for_each(|store| {
            store.set_quota(BUCKET, Quota { bytes: Some(1 << 30), objects: None }).unwrap();
        });
    }

    fn set_versioning(&self, versioning: Versioning) {
        self.stores.iter().for_each(|store| store.set_versioning(BUCKET, versioning).unwrap());
    }

    fn close(self) {
        for store in self.stores {
            store.close().unwrap();
        }
    }
}
