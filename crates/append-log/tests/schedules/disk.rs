//! Simulates a small disk in memory. It records which bytes are durable, and can make the n-th sync
//! fail. The tests of several crates include this file.
//!
//! It uses the locks of the standard library instead of those of the model, which decides when
//! threads switch. While such a lock is held, no call of the model is made, so no thread switch can
//! happen. Threads switch before each read, write and sync.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use haul_disk::{Allocation, Disk, Durability, Error, File, Lock, Locked, Op, Open, Result};
use haul_sync::shuttle::thread::yield_now;

const PAGE: usize = 4096;
const ZEROS: [u8; PAGE] = [0; PAGE];

/// The number of times a sync yields to other threads, because a real log spends most of its time
/// in syncs.
const SYNC_STEPS: usize = 4;

/// The pages of a file. Copies of a disk share pages until they are written.
type Pages = HashMap<u64, Arc<[u8; PAGE]>>;

/// The content of a file. Pages of zeros are not stored.
#[derive(Debug, Default, Clone)]
struct Content {
    bytes: u64,
    cached: Pages,
    /// The numbers of the pages that were written and are not synced yet.
    dirty: Vec<u64>,
    durable: Pages,
}

#[derive(Debug, Default)]
struct Inner {
    dirs: BTreeSet<String>,
    files: BTreeMap<String, Arc<Mutex<Content>>>,
    /// The next sync fails if this is 1, the one after it if 2, and so on; no sync fails if it is
    /// 0.
    syncs_until_failure: u64,
}

/// The simulated disk. Clones share the same files. Names of files are durable at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct TinyDisk(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct TinyFile {
    disk: TinyDisk,
    content: Arc<Mutex<Content>>,
}

fn error(op: Op, name: &str, kind: ErrorKind) -> Error {
    Error::new(op, name, std::io::Error::from(kind))
}

impl TinyDisk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// Makes the `count`-th sync from now on fail.
    pub(crate) fn fail_sync(&self, count: u64) {
        self.inner().syncs_until_failure = count;
    }

    /// `true` if the file would contain these bytes after a power cut now.
    pub(crate) fn has_durable(&self, name: &str, offset: u64, bytes: &[u8]) -> bool {
        let Some(file) = self.inner().files.get(name).cloned() else { return false };
        let mut found = vec![0; bytes.len()];
        copy(&file.lock().unwrap().durable, &mut found, offset);
        found == bytes
    }

    /// Returns a copy of the disk as a power cut would leave it now.
    pub(crate) fn after_power_cut(&self) -> Self {
        let inner = self.inner();
        let cut = |file: &Arc<Mutex<Content>>| {
            let Content { bytes, durable, .. } = file.lock().unwrap().clone();
            let content = Content { bytes, cached: durable.clone(), dirty: Vec::new(), durable };
            Arc::new(Mutex::new(content))
        };
        let files = inner.files.iter().map(|(name, file)| (name.clone(), cut(file))).collect();
        let dirs = inner.dirs.clone();
        Self(Arc::new(Mutex::new(Inner { dirs, files, syncs_until_failure: 0 })))
    }

    fn file(&self, content: &Arc<Mutex<Content>>) -> Arc<dyn File> {
        Arc::new(TinyFile { disk: self.clone(), content: Arc::clone(content) })
    }
}

/// Splits a range of `bytes` bytes at file offset `offset` at page boundaries. Returns for each
/// part the page number, the offset in the page, and its range within the bytes.
fn by_page(
    bytes: usize,
    offset: u64,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let place = offset + at as u64;
        let within = usize::try_from(place % PAGE as u64).unwrap();
        let length = (PAGE - within).min(bytes - at);
        let part = (place / PAGE as u64, within, at..at + length);
        at += length;
        (length > 0).then_some(part)
    })
}

fn copy(pages: &Pages, buffer: &mut [u8], offset: u64) {
    for (number, within, range) in by_page(buffer.len(), offset) {
        let length = range.len();
        match pages.get(&number) {
            Some(page) => buffer[range].copy_from_slice(&page[within..within + length]),
            None => buffer[range].fill(0),
        }
    }
}

impl File for TinyFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        yield_now();
        let content = self.content.lock().unwrap();
        let bytes = content.bytes.saturating_sub(offset).min(buffer.len() as u64);
        let bytes = usize::try_from(bytes).unwrap();
        copy(&content.cached, &mut buffer[..bytes], offset);
        Ok(bytes)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        yield_now();
        let mut content = self.content.lock().unwrap();
        content.bytes = content.bytes.max(offset + bytes.len() as u64);
        for (number, within, range) in by_page(bytes.len(), offset) {
            let (part, length) = (&bytes[range.clone()], range.len());
            if !content.cached.contains_key(&number) && *part == ZEROS[..length] {
                continue;
            }
            let page = content.cached.entry(number).or_insert_with(|| Arc::new(ZEROS));
            Arc::make_mut(page)[within..within + length].copy_from_slice(part);
            content.dirty.push(number);
        }
        Ok(bytes.len())
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.content.lock().unwrap().bytes)
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        let mut content = self.content.lock().unwrap();
        let first = bytes.div_ceil(PAGE as u64);
        content.cached.retain(|number, _| *number < first);
        content.durable.retain(|number, _| *number < first);
        content.dirty.retain(|number| *number < first);
        let tail = usize::try_from(bytes % PAGE as u64).unwrap();
        if let Some(page) = content.cached.get_mut(&(bytes / PAGE as u64)) {
            Arc::make_mut(page)[tail..].fill(0);
        }
        content.bytes = bytes;
        Ok(())
    }

    fn allocate(&self, _how: Allocation, _offset: u64, _bytes: u64) -> Result<()> {
        Err(error(Op::Allocate, "", ErrorKind::Unsupported))
    }

    fn sync(&self, _what: Durability) -> Result<()> {
        (0..SYNC_STEPS).for_each(|_| yield_now());
        let mut inner = self.disk.inner();
        if inner.syncs_until_failure == 1 {
            inner.syncs_until_failure = 0;
            return Err(error(Op::Sync, "", ErrorKind::Other));
        }
        inner.syncs_until_failure = inner.syncs_until_failure.saturating_sub(1);
        drop(inner);
        let mut content = self.content.lock().unwrap();
        let content = &mut *content;
        for number in content.dirty.drain(..) {
            content.durable.insert(number, Arc::clone(&content.cached[&number]));
        }
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Disk for TinyDisk {
    fn open(&self, name: &str, _how: Open) -> Result<Arc<dyn File>> {
        let missing = || error(Op::Open, name, ErrorKind::NotFound);
        Ok(self.file(self.inner().files.get(name).ok_or_else(missing)?))
    }

    fn create(&self, name: &str, _how: Open) -> Result<Arc<dyn File>> {
        let mut inner = self.inner();
        if inner.files.contains_key(name) {
            return Err(error(Op::Create, name, ErrorKind::AlreadyExists));
        }
        Ok(self.file(inner.files.entry(name.to_owned()).or_default()))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.inner().dirs.insert(name.to_owned());
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut inner = self.inner();
        let missing = || error(Op::Rename, from, ErrorKind::NotFound);
        let file = inner.files.remove(from).ok_or_else(missing)?;
        inner.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let missing = || error(Op::Remove, name, ErrorKind::NotFound);
        self.inner().files.remove(name).map(drop).ok_or_else(missing)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let inner = self.inner();
        if !dir.is_empty() && !inner.dirs.contains(dir) {
            return Err(error(Op::List, dir, ErrorKind::NotFound));
        }
        let within = |name: &String| {
            let name =
                if dir.is_empty() { name } else { name.strip_prefix(dir)?.strip_prefix('/')? };
            (!name.contains('/')).then(|| name.to_owned())
        };
        let names: BTreeSet<_> = inner.files.keys().chain(&inner.dirs).filter_map(within).collect();
        Ok(names.into_iter().collect())
    }

    fn sync_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }

    /// Grants every lock, because a schedule opens each log or store once at a time.
    fn lock(&self, _name: &str, _holder: &str) -> Result<Locked> {
        Ok(Locked::Acquired(Lock::new(())))
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn root(&self) -> &Path {
        Path::new("/nonexistent")
    }
}
