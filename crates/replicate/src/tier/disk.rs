//! The disk for a store with parts that are only in the copy.
//!
//! A segment that is only in the copy has a *stub* in place of its file: a sparse file with its
//! header pages, and one more page, which contains the end of the bytes in the copy. The directory
//! therefore always shows which segments the log has, and removing a segment needs no other step
//! than before. A big object that is only in the copy has no file.
//!
//! The marker [`haul_file_store::REMOTE_MARKER`] exists while parts of the store may be only in the
//! copy. Without the copy, the store does not open with it.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use haul_disk::{Disk, Durability, File, Locked, Op, Open, write_full};
use haul_file_store::REMOTE_MARKER;

use crate::error::Result;
use crate::follow::exists;
use crate::manifest::HEADER_PAGE_BYTES;
use crate::manifest::names::{self, BIG_FILES, VOLUMES};
use crate::remote::Remote;
use crate::tier::catalog::Catalog;
use crate::tier::file::{Content, RemoteFile};
use crate::tier::lazy_cache::{CACHE, LazyCache};
use crate::tier::stub;

/// The marker's text, for people.
const MARKER_TEXT: &str = "Parts of this store are only in its remote copy.\n";

/// The directory for files that are being fetched.
pub(crate) const INCOMPLETE: &str = "REMOTE.incomplete";

/// A local disk with a store that has parts only in the copy: reads fetch them.
#[derive(Debug)]
pub struct TieredDisk {
    pub(super) local: Arc<dyn Disk>,
    pub(super) catalog: Arc<Catalog>,
    cache: Arc<LazyCache>,
}

impl TieredDisk {
    /// `true` if parts of the store on a disk may be only in its copy.
    ///
    /// # Errors
    /// A failed system call.
    pub fn is_needed(local: &dyn Disk) -> haul_disk::Result<bool> {
        exists(local, REMOTE_MARKER)
    }

    /// Returns the disk for a store with a copy. Makes no request, and changes nothing until the
    /// store locks the disk: another process may still use it. The first read of something that is
    /// only in the copy creates the cache, a file of up to `cache_bytes` on the local disk.
    #[must_use]
    pub fn new(local: Arc<dyn Disk>, remote: &Remote, cache_bytes: u64) -> Self {
        let cache = Arc::new(LazyCache::new(&local, cache_bytes));
        Self::with_cache(local, Arc::new(Catalog::new(remote)), cache)
    }

    /// Returns a disk like [`Self::new`] with a catalog that may be filled, and a cache that it may
    /// share with other states of the same store.
    pub(crate) fn with_cache(
        local: Arc<dyn Disk>,
        catalog: Arc<Catalog>,
        cache: Arc<LazyCache>,
    ) -> Self {
        Self { local, catalog, cache }
    }

    /// Removes the remains of an interrupted exchange: unfinished files, and stubs of segments that
    /// are also on the local disk.
    fn clean(&self) -> haul_disk::Result<()> {
        let local = &*self.local;
        // It is created before anything else.
        if !Self::is_needed(local)? {
            return Ok(());
        }
        local.create_dir(INCOMPLETE)?;
        for name in local.list(INCOMPLETE)? {
            local.remove(&format!("{INCOMPLETE}/{name}"))?;
        }
        let volumes: HashSet<String> = local.list(VOLUMES)?.into_iter().collect();
        for name in volumes.iter().filter(|name| volumes.contains(&stub::name(name))) {
            local.remove(&stub::name(&format!("{VOLUMES}/{name}")))?;
        }
        local.sync_dir(VOLUMES)
    }

    /// Opens a segment's file if the segment has a stub.
    fn open_segment(&self, name: &str, how: Open) -> haul_disk::Result<Option<Arc<dyn File>>> {
        let read_only = Open { read_only: true, ..Open::default() };
        let stub = match self.local.open(&stub::name(name), read_only) {
            Err(error) if error.is_not_found() => return Ok(None),
            opened => opened?,
        };
        let path = self.local.root().join(name);
        let Some(read) = stub::read(&*stub)? else {
            let source = io::Error::new(io::ErrorKind::InvalidData, "its stub is damaged");
            return Err(haul_disk::Error::new(Op::Open, path, source));
        };
        Ok(Some(Arc::new(RemoteFile {
            path,
            content: Content::Segment { number: read.info.number, nonce: read.info.nonce },
            bytes: read.info.bytes.into(),
            range: HEADER_PAGE_BYTES.into()..read.copied_end,
            stub: Some(stub),
            catalog: Arc::clone(&self.catalog),
            // Whole segments are read once.
            cache: how.random.then(|| self.cache.get()).transpose()?,
        })))
    }

    /// Opens a big object's file in the copy.
    fn open_object(&self, name: &str) -> haul_disk::Result<Option<Arc<dyn File>>> {
        let remote_name = names::file(name);
        let id = name.strip_prefix(BIG_FILES).and_then(|name| name.strip_prefix('/'));
        let id = id.filter(|_| names::is_file(&remote_name));
        let Some(id) = id.and_then(|id| u128::from_str_radix(id, 16).ok()) else {
            return Ok(None);
        };
        let path = self.local.root().join(name);
        let found = self.catalog.remote().length(&remote_name);
        let found =
            found.map_err(|error| haul_disk::Error::new(Op::Open, &path, io::Error::other(error)));
        let Some(bytes) = found? else { return Ok(None) };
        Ok(Some(Arc::new(RemoteFile {
            path,
            content: Content::Object { name: name.to_owned(), id },
            bytes,
            range: 0..bytes,
            stub: None,
            catalog: Arc::clone(&self.catalog),
            cache: Some(self.cache.get()?),
        })))
    }

    fn open_remote(&self, name: &str, how: Open) -> haul_disk::Result<Option<Arc<dyn File>>> {
        match self.open_segment(name, how)? {
            Some(segment) => Ok(Some(segment)),
            None => self.open_object(name),
        }
    }
}

impl Disk for TieredDisk {
    fn open(&self, name: &str, options: Open) -> haul_disk::Result<Arc<dyn File>> {
        let missing = match self.local.open(name, options) {
            Err(error) if error.is_not_found() => error,
            opened => {
                // The store may be opened, because this disk has the missing parts.
                if name == REMOTE_MARKER {
                    let source = io::Error::from(io::ErrorKind::NotFound);
                    return Err(haul_disk::Error::new(Op::Open, name, source));
                }
                return opened;
            }
        };
        match self.open_remote(name, options)? {
            Some(file) => Ok(file),
            // The file may have been fetched meanwhile.
            None => self.local.open(name, options).map_err(|_missing| missing),
        }
    }

    fn create(&self, name: &str, options: Open) -> haul_disk::Result<Arc<dyn File>> {
        self.local.create(name, options)
    }

    fn create_dir(&self, name: &str) -> haul_disk::Result<()> {
        self.local.create_dir(name)
    }

    fn rename(&self, from: &str, to: &str) -> haul_disk::Result<()> {
        self.local.rename(from, to)
    }

    fn link(&self, file: &dyn File, name: &str) -> haul_disk::Result<()> {
        self.local.link(file, name)
    }

    /// Removes the file, or a segment's stub. The shipper removes a big object from the copy.
    fn remove(&self, name: &str) -> haul_disk::Result<()> {
        match self.local.remove(name) {
            Err(error) if error.is_not_found() => {
                self.local.remove(&stub::name(name)).map_err(|_missing| error)
            }
            removed => removed,
        }
    }

    fn list(&self, dir: &str) -> haul_disk::Result<Vec<String>> {
        let mut names = self.local.list(dir)?;
        for name in &mut names {
            if let Some(segment) = stub::segment_of(name) {
                *name = segment.to_owned();
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn sync_dir(&self, dir: &str) -> haul_disk::Result<()> {
        self.local.sync_dir(dir)
    }

    fn lock(&self, name: &str, holder: &str) -> haul_disk::Result<Locked> {
        let locked = self.local.lock(name, holder)?;
        if name.is_empty() && matches!(locked, Locked::Acquired(_)) {
            self.clean()?;
        }
        Ok(locked)
    }

    fn free_bytes(&self) -> haul_disk::Result<Option<u64>> {
        self.local.free_bytes()
    }

    fn root(&self) -> &Path {
        self.local.root()
    }
}

/// Creates the marker, unless it exists.
///
/// # Durability
/// It survives a power cut when this returns.
pub(crate) fn create_marker(disk: &dyn Disk) -> Result<()> {
    match disk.create(REMOTE_MARKER, Open::default()) {
        Ok(marker) => {
            write_full(&*marker, MARKER_TEXT.as_bytes(), 0)?;
            marker.sync(Durability::Everything)?;
        }
        Err(error) if error.is_already_exists() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(disk.sync_dir("")?)
}

/// Removes the marker: all parts of the store are on this disk. Then removes the cache, which open
/// files may still use.
pub(crate) fn remove_marker(disk: &dyn Disk) -> Result<()> {
    for name in [REMOTE_MARKER, CACHE] {
        match disk.remove(name) {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => disk.sync_dir("")?,
        }
    }
    Ok(())
}
