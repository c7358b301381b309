//! Simulates a small disk in memory. It records which bytes are durable, and can make the n-th sync
//! fail.
//!
//! It uses the locks of the standard library instead of those of the model, which decides when
//! threads switch. While such a lock is held, no call of the model is made, so no thread switch can
//! happen.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use haul_append_log::{Position, segment_name};
use haul_disk::{Allocation, Disk, Durability, Error, File, Lock, Locked, Op, Open, Result};

const PAGE: usize = 4096;

/// The number of times a sync yields to other threads, because a real log spends most of its time
/// in syncs.
const SYNC_STEPS: usize = 4;

type Pages = HashMap<u64, Box<[u8; PAGE]>>;

/// The content of a file. Pages of zeros are not stored.
#[derive(Debug, Default)]
struct Content {
    bytes: u64,
    cached: Pages,
    /// The numbers of the pages that were written and are not synced yet.
    dirty: Vec<u64>,
    durable: Pages,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<String, Arc<Mutex<Content>>>,
    /// The next sync fails if this is 1, the one after it if 2, and so on; no sync fails if it is
    /// 0.
    syncs_until_failure: u64,
}

/// The simulated disk. Clones share the same files.
#[derive(Debug, Clone, Default)]
pub(crate) struct TinyDisk(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct TinyFile {
    disk: TinyDisk,
    content: Arc<Mutex<Content>>,
}

fn error(op: Op, name: &str, kind: std::io::ErrorKind) -> Error {
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

    /// `true` if this record would survive a power cut now.
    pub(crate) fn is_durable(&self, at: Position, payload: &[u8]) -> bool {
        let Some(file) = self.inner().files.get(&segment_name(at.lsn.segment())).cloned() else {
            return false;
        };
        let mut found = vec![0; payload.len()];
        copy(&file.lock().unwrap().durable, &mut found, u64::from(at.lsn.offset()) + 32);
        found == payload
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
        let content = self.content.lock().unwrap();
        let bytes = content.bytes.saturating_sub(offset).min(buffer.len() as u64);
        let bytes = usize::try_from(bytes).unwrap();
        copy(&content.cached, &mut buffer[..bytes], offset);
        Ok(bytes)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        let mut content = self.content.lock().unwrap();
        content.bytes = content.bytes.max(offset + bytes.len() as u64);
        for (number, within, range) in by_page(bytes.len(), offset) {
            let (part, length) = (&bytes[range.clone()], range.len());
            if !content.cached.contains_key(&number) && part.iter().all(|byte| *byte == 0) {
                continue;
            }
            let page = content.cached.entry(number).or_insert_with(|| Box::new([0; PAGE]));
            page[within..within + length].copy_from_slice(part);
            content.dirty.push(number);
        }
        Ok(bytes.len())
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.content.lock().unwrap().bytes)
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        self.content.lock().unwrap().bytes = bytes;
        Ok(())
    }

    fn allocate(&self, _how: Allocation, _offset: u64, _bytes: u64) -> Result<()> {
        Err(error(Op::Allocate, "", std::io::ErrorKind::Unsupported))
    }

    fn sync(&self, _what: Durability) -> Result<()> {
        (0..SYNC_STEPS).for_each(|_| shuttle::thread::yield_now());
        let mut inner = self.disk.inner();
        if inner.syncs_until_failure == 1 {
            inner.syncs_until_failure = 0;
            return Err(error(Op::Sync, "", std::io::ErrorKind::Other));
        }
        inner.syncs_until_failure = inner.syncs_until_failure.saturating_sub(1);
        drop(inner);
        let mut content = self.content.lock().unwrap();
        let content = &mut *content;
        for number in content.dirty.drain(..) {
            content.durable.insert(number, content.cached[&number].clone());
        }
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Disk for TinyDisk {
    fn open(&self, name: &str, _how: Open) -> Result<Arc<dyn File>> {
        let missing = || error(Op::Open, name, std::io::ErrorKind::NotFound);
        Ok(self.file(self.inner().files.get(name).ok_or_else(missing)?))
    }

    fn create(&self, name: &str, _how: Open) -> Result<Arc<dyn File>> {
        let mut inner = self.inner();
        if inner.files.contains_key(name) {
            return Err(error(Op::Create, name, std::io::ErrorKind::AlreadyExists));
        }
        Ok(self.file(inner.files.entry(name.to_owned()).or_default()))
    }

    fn create_dir(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut inner = self.inner();
        let missing = || error(Op::Rename, from, std::io::ErrorKind::NotFound);
        let file = inner.files.remove(from).ok_or_else(missing)?;
        inner.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let missing = || error(Op::Remove, name, std::io::ErrorKind::NotFound);
        self.inner().files.remove(name).map(drop).ok_or_else(missing)
    }

    fn list(&self, _dir: &str) -> Result<Vec<String>> {
        Ok(self.inner().files.keys().cloned().collect())
    }

    fn sync_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }

    /// Grants every lock, because each schedule opens a single log on a new disk.
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
