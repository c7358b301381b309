//! The targets: the file store, a file for each object that is replaced by rename, and slots of one
//! file that are overwritten in place.

use std::path::Path;
use std::sync::Arc;

use haul_disk::{AlignedBuf, Disk, Durability, File, Open, OsDisk, fill, read_full, write_full};
use haul_file_store::{
    Attributes, Error as StoreError, Options as StoreOptions, Precondition, Store,
};

use super::options::Options;
use crate::log::Failure;
use crate::named::named;
use crate::small_files::objects::key;

named! {
    /// The target of the puts and reads.
    pub(super) enum Kind {
        /// The file store of Haul.
        Store = "haul",
        /// A file for each object: written, synced, renamed over the old one, directory synced.
        Files = "files, rename",
        /// A slot for each object in one file: `pwrite` and `fdatasync`. A crash can tear an object.
        Slots = "slots in place",
    }
}

/// A place for numbered objects, whose puts are durable when they return.
pub(super) trait Target: Send + Sync {
    /// Stores an object, in place of the one that exists.
    fn put(&self, object: u64, bytes: &[u8]) -> Result<(), Failure>;
    /// Returns the bytes of an object; `None` if it was not stored yet.
    fn get(&self, object: u64) -> Result<Option<Vec<u8>>, Failure>;
    /// Returns `true` if a put failed only because the disk is full.
    fn is_refusal(&self, failure: &Failure) -> bool;
}

/// Creates a target below `root`, for `objects` objects.
pub(super) fn open(
    kind: Kind,
    root: &Path,
    objects: u64,
    options: &Options,
) -> Result<Box<dyn Target>, Failure> {
    Ok(match kind {
        Kind::Store => Box::new(Objects::open(root, options)?),
        Kind::Files => Box::new(Files::open(root)?),
        Kind::Slots => Box::new(Slots::open(root, objects, options.object)?),
    })
}

const BUCKET: &str = "churn";

struct Objects {
    store: Store,
    attributes: Attributes,
}

impl Objects {
    fn open(root: &Path, options: &Options) -> Result<Self, Failure> {
        let default = StoreOptions::default();
        let big_object_bytes = default.big_object_bytes.min(options.volume / 4);
        let options = StoreOptions { volume_bytes: options.volume, big_object_bytes, ..default };
        let (store, _recovered) = Store::open(&root.join("store"), options)?;
        store.create_bucket(BUCKET)?;
        Ok(Self { store, attributes: Attributes::new() })
    }
}

impl Target for Objects {
    fn put(&self, object: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.store.put(BUCKET, &key(object), bytes, &self.attributes, &Precondition::None)?;
        Ok(())
    }

    fn get(&self, object: u64) -> Result<Option<Vec<u8>>, Failure> {
        match self.store.get(BUCKET, &key(object)) {
            Ok(found) => Ok(Some(found.read(0, usize::MAX)?.to_vec())),
            Err(StoreError::NoSuchKey { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn is_refusal(&self, failure: &Failure) -> bool {
        let error = failure.downcast_ref::<StoreError>();
        matches!(error, Some(StoreError::Full { .. } | StoreError::Stalled { .. }))
    }
}

/// The directories of the files.
const DIRECTORIES: u64 = 256;

struct Files {
    disk: OsDisk,
}

impl Files {
    fn open(root: &Path) -> Result<Self, Failure> {
        let disk = OsDisk::open(root)?;
        (0..DIRECTORIES).try_for_each(|number| disk.create_dir(&number.to_string()))?;
        disk.sync_dir("")?;
        Ok(Self { disk })
    }
}

impl Target for Files {
    fn put(&self, object: u64, bytes: &[u8]) -> Result<(), Failure> {
        let directory = (object % DIRECTORIES).to_string();
        let name = format!("{directory}/{object}");
        // Two threads may replace the same object at the same time.
        let unfinished = format!("{name}.{:?}", std::thread::current().id());
        let file = self.disk.create(&unfinished, Open::default())?;
        write_full(&*file, bytes, 0)?;
        file.sync(Durability::Everything)?;
        self.disk.rename(&unfinished, &name)?;
        self.disk.sync_dir(&directory)?;
        Ok(())
    }

    fn get(&self, object: u64) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.disk.root().join(format!("{}/{object}", object % DIRECTORIES));
        match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            read => Ok(Some(read?)),
        }
    }

    fn is_refusal(&self, failure: &Failure) -> bool {
        is_full(failure)
    }
}

struct Slots {
    file: Arc<dyn File>,
    object_bytes: u64,
}

impl Slots {
    /// Creates a file of zeros with a slot for each object.
    fn open(root: &Path, objects: u64, object_bytes: u64) -> Result<Self, Failure> {
        let disk = OsDisk::open(root)?;
        let file = disk.create("slots", Open::default())?;
        fill(&*file, (objects * object_bytes).next_multiple_of(1 << 20))?;
        disk.sync_dir("")?;
        Ok(Self { file, object_bytes })
    }
}

impl Target for Slots {
    fn put(&self, object: u64, bytes: &[u8]) -> Result<(), Failure> {
        write_full(&*self.file, bytes, object * self.object_bytes)?;
        self.file.sync(Durability::Data)?;
        Ok(())
    }

    fn get(&self, object: u64) -> Result<Option<Vec<u8>>, Failure> {
        let mut bytes = AlignedBuf::zeroed(usize::try_from(self.object_bytes)?);
        read_full(&*self.file, &mut bytes, object * self.object_bytes)?;
        let is_empty = bytes.iter().all(|byte| *byte == 0);
        Ok((!is_empty).then(|| bytes.to_vec()))
    }

    fn is_refusal(&self, failure: &Failure) -> bool {
        is_full(failure)
    }
}

fn is_full(failure: &Failure) -> bool {
    let error = failure.downcast_ref::<haul_disk::Error>();
    error.is_some_and(haul_disk::Error::is_full)
}
