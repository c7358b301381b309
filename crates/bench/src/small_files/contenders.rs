//! The targets of puts: the file store, a group commit into a plain file, and a file for each put.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use haul_disk::{
    AlignedBuf, Allocation, Disk, Durability, File, Open, OsDisk, PAGE_BYTES, align_down, fill,
    write_full,
};
use haul_file_store::{Attributes, Options, Precondition, Store};

use super::objects::key;
use crate::log::{Contender, Failure};

const BUCKET: &str = "bench";

/// A file store with default options, except for the length of a big object.
pub(super) struct ObjectStore {
    store: Store,
    attributes: Attributes,
    next: AtomicU64,
    /// The number of different keys.
    keys: u64,
}

impl ObjectStore {
    /// Creates a store below `dir`, whose puts go to `keys` different keys in turn.
    pub(super) fn open(dir: &Path, keys: u64, big_object_bytes: u64) -> Result<Self, Failure> {
        let options = Options { big_object_bytes, ..Options::default() };
        let (store, _recovered) = Store::open(&dir.join("store"), options)?;
        store.create_bucket(BUCKET)?;
        Ok(Self { store, attributes: Attributes::new(), next: AtomicU64::new(0), keys })
    }
}

impl Contender for ObjectStore {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        let key = key(self.next.fetch_add(1, Ordering::Relaxed) % self.keys);
        self.store.put(BUCKET, &key, record, &self.attributes, &Precondition::None)?;
        Ok(())
    }
}

/// New files, in one directory for each writer.
pub(super) struct SyncedFiles {
    disk: OsDisk,
    next: AtomicU64,
}

impl SyncedFiles {
    /// Creates the directories of the writers in `dir`.
    pub(super) fn open(dir: &Path, writers: usize) -> Result<Self, Failure> {
        let disk = OsDisk::open(dir)?;
        (0..writers).try_for_each(|writer| disk.create_dir(&writer.to_string()))?;
        disk.sync_dir("")?;
        Ok(Self { disk, next: AtomicU64::new(0) })
    }
}

impl Contender for SyncedFiles {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let name = format!("{writer}/{:010}", self.next.fetch_add(1, Ordering::Relaxed));
        let file = self.disk.create(&name, Open::default())?;
        write_full(&*file, record, 0)?;
        file.sync(Durability::Everything)?;
        self.disk.sync_dir(&writer.to_string())?;
        Ok(())
    }
}

/// The length in bytes of a file whose blocks were written before.
pub(super) const FILE_BYTES: u64 = 256 << 20;

/// The greatest length in bytes of a file of new blocks: more than is written in a measurement of
/// the default duration.
const NEW_BYTES_MAX: u64 = 16 << 30;

/// A file with two buffers for batches. Batches continue at its beginning after its end.
pub(super) struct GroupCommit {
    file: Arc<dyn File>,
    file_bytes: u64,
    state: Mutex<State>,
    synced: Condvar,
}

struct State {
    /// The buffer of the batch that puts are added to, and the number of bytes in it.
    filling: AlignedBuf,
    used: usize,
    /// The other buffer; `None` while a thread writes it.
    spare: Option<AlignedBuf>,
    /// The number of the batch that puts are added to, and of the first one that is not synced.
    batch: u64,
    first_unsynced: u64,
    offset: u64,
    failed: Option<Arc<haul_disk::Error>>,
}

impl GroupCommit {
    /// Creates a file in `dir` with buffers for one put of `put_bytes` from each writer. Its blocks
    /// were written before; with `new_blocks`, they are only reserved. If all of these are written,
    /// batches continue in blocks that were written before.
    pub(super) fn open(
        dir: &Path,
        put_bytes: usize,
        writers: usize,
        new_blocks: bool,
    ) -> Result<Self, Failure> {
        let disk = OsDisk::open(dir)?;
        let file = disk.create("file", Open { direct: true, ..Open::default() })?;
        let mut file_bytes = FILE_BYTES;
        if new_blocks {
            let free_bytes = disk.free_bytes()?.unwrap_or(NEW_BYTES_MAX);
            file_bytes = align_down((free_bytes / 2).min(NEW_BYTES_MAX), PAGE_BYTES as u64);
            file.allocate(Allocation::Reserve, 0, file_bytes)?;
            file.sync(Durability::Everything)?;
        } else {
            fill(&*file, FILE_BYTES)?;
        }
        disk.sync_dir("")?;
        let buffer_bytes = (put_bytes * writers).next_multiple_of(PAGE_BYTES);
        let state = State {
            filling: AlignedBuf::zeroed(buffer_bytes),
            used: 0,
            spare: Some(AlignedBuf::zeroed(buffer_bytes)),
            batch: 0,
            first_unsynced: 0,
            offset: 0,
            failed: None,
        };
        Ok(Self { file, file_bytes, state: Mutex::new(state), synced: Condvar::new() })
    }
}

impl Contender for GroupCommit {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, mine) = (state.used, state.batch);
        // A writer has one put at a time, so those of all writers fit.
        state.filling[from..from + record.len()].copy_from_slice(record);
        state.used += record.len();
        while state.first_unsynced <= mine && state.failed.is_none() {
            let Some(spare) = state.spare.take() else {
                state = self.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let batch = std::mem::replace(&mut state.filling, spare);
            let bytes = std::mem::take(&mut state.used).next_multiple_of(PAGE_BYTES);
            if state.offset + bytes as u64 > self.file_bytes {
                state.offset = 0;
            }
            let offset = state.offset;
            state.offset += bytes as u64;
            state.batch += 1;
            drop(state);
            let written = write_full(&*self.file, &batch[..bytes], offset)
                .and_then(|()| self.file.sync(Durability::Data));
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.first_unsynced += 1;
            state.failed = written.err().map(Arc::new);
            state.spare = Some(batch);
            self.synced.notify_all();
        }
        state.failed.clone().map_or(Ok(()), |error| Err(Failure::from(error)))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn every_put_is_in_the_file_when_its_call_returns() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file_bytes = 4096;
        let target = GroupCommit::open(dir.path(), file_bytes, 4, false).unwrap();
        thread::scope(|scope| {
            for writer in 0..4_u8 {
                let target = &target;
                scope.spawn(move || {
                    for number in 0..25_u8 {
                        let record = vec![writer * 25 + number + 1; file_bytes];
                        target.append(writer.into(), &record).unwrap();
                    }
                });
            }
        });
        let content = std::fs::read(dir.path().join("file")).unwrap();
        let mut found: Vec<u8> = content.chunks(file_bytes).map(|put| put[0]).collect();
        found.retain(|byte| *byte > 0);
        found.sort_unstable();
        assert_eq!(found, (1..=100).collect::<Vec<u8>>());
    }
}
