//! The sorted keys of all objects: recent changes in memory, all others in sorted runs on disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use haul_sync::RwLock;

use crate::error::{Error, Result};
use crate::index::entry::{Entry, full_key, split_key};
use crate::index::runs::cursor::Cursor;
use crate::index::runs::merge::{Deletions, Merged};
use crate::index::runs::run::{Buffers, Run};
use crate::index::runs::source::Source;

/// The memory that an entry uses in addition to its key: value, two allocations, and its share of a
/// node.
const ENTRY_BYTES: usize = 150;

/// The number of entries that a listing first copies from memory; it grows if the listing
/// continues.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 1024;

/// The bytes that a scan of all keys reads ahead from each run.
const SCAN_READAHEAD_BYTES: usize = 256 << 10;

type Value = Option<Box<[u8]>>;

/// Changes of keys that no run contains: values or tombstones.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    entries: RwLock<BTreeMap<Box<[u8]>, Value>>,
}

#[derive(Debug, Default)]
pub(crate) struct Keys {
    active: Arc<Memtable>,
    active_bytes: usize,
    /// The number of changes since the store was opened.
    changes: u64,
    /// Changes that are being written to a run.
    frozen: Option<Arc<Memtable>>,
    /// From newest to oldest.
    runs: Vec<Arc<Run>>,
}

/// A snapshot of the keys. Later changes may be visible or not.
#[derive(Debug, Clone)]
pub(crate) struct KeysSnapshot {
    /// From newest to oldest.
    memtables: Vec<Arc<Memtable>>,
    runs: Vec<Arc<Run>>,
}

impl Memtable {
    fn get(&self, name: &[u8]) -> Option<Value> {
        self.entries.read().get(name).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.read().len()
    }

    /// Calls `take` with all entries in order.
    pub(crate) fn for_each<E>(
        &self,
        mut take: impl FnMut(&[u8], Option<&[u8]>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.entries.read().iter().try_for_each(|(name, value)| take(name, value.as_deref()))
    }
}

impl Keys {
    pub(crate) fn new(runs: Vec<Arc<Run>>) -> Self {
        Self { runs, ..Self::default() }
    }

    /// Sets a key's entry, or deletes it if `entry` is `None`.
    pub(crate) fn insert(&mut self, bucket: &str, key: &str, entry: Option<&Entry>) {
        let name = full_key(bucket, key).into_boxed_slice();
        let bytes = name.len() + ENTRY_BYTES;
        let old = self.active.entries.write().insert(name, entry.map(Entry::encode));
        if old.is_none() {
            self.active_bytes += bytes;
        }
        self.changes += 1;
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns a key's entry if it changed recently: `Some(None)` if it was deleted, `None` if it
    /// must be looked up in the runs.
    pub(crate) fn recent(&self, bucket: &str, key: &str) -> Option<Option<Entry>> {
        let name = full_key(bucket, key);
        let value = self
            .active
            .get(&name)
            .or_else(|| self.frozen.as_ref().and_then(|frozen| frozen.get(&name)))?;
        match value {
            Some(value) => Entry::decode(&value).map(Some),
            None => Some(None),
        }
    }

    /// Returns the approximate number of bytes in memory that the recent changes use.
    pub(crate) fn recent_bytes(&self) -> usize {
        self.active_bytes
    }

    /// Returns the number of bytes in memory that the runs use, mostly for their block indexes.
    pub(crate) fn run_memory_bytes(&self) -> usize {
        self.runs.iter().map(|run| run.memory_bytes()).sum()
    }

    pub(crate) fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    pub(crate) fn snapshot(&self) -> KeysSnapshot {
        let memtables = std::iter::once(&self.active).chain(&self.frozen).cloned().collect();
        KeysSnapshot { memtables, runs: self.runs.clone() }
    }

    /// Freezes the recent changes, so that they can be written to a run while new changes are
    /// added.
    pub(crate) fn freeze(&mut self) -> Arc<Memtable> {
        debug_assert!(self.frozen.is_none(), "one checkpoint at a time");
        self.active_bytes = 0;
        let frozen = std::mem::take(&mut self.active);
        self.frozen = Some(Arc::clone(&frozen));
        frozen
    }

    /// Makes the frozen changes recent ones again after they could not be written.
    pub(crate) fn unfreeze(&mut self) {
        let Some(frozen) = self.frozen.take() else { return };
        let mut active = self.active.entries.write();
        for (name, value) in frozen.entries.read().iter() {
            if !active.contains_key(name) {
                self.active_bytes += name.len() + ENTRY_BYTES;
                active.insert(name.clone(), value.clone());
            }
        }
    }

    /// Replaces the frozen changes by a run.
    pub(crate) fn thaw_into(&mut self, run: Option<Arc<Run>>) {
        debug_assert!(self.frozen.is_some(), "the run has the frozen keys");
        self.frozen = None;
        self.runs.splice(0..0, run);
    }

    /// Replaces runs by the run into which they were merged.
    pub(crate) fn replace_runs(&mut self, merged: &[Arc<Run>], run: Arc<Run>) {
        let is_merged = |run: &Arc<Run>| merged.iter().any(|merged| Arc::ptr_eq(merged, run));
        let at = self.runs.iter().position(is_merged).unwrap_or(self.runs.len());
        debug_assert!(
            merged.iter().zip(&self.runs[at..]).all(|(one, other)| Arc::ptr_eq(one, other)),
            "merged runs follow one another: a newer entry hides older ones"
        );
        self.runs.retain(|run| !is_merged(run));
        self.runs.insert(at, run);
    }
}

impl KeysSnapshot {
    /// Returns a key's entry.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a run is damaged; [`Error::Disk`] if a read fails.
    pub(crate) fn get(&self, bucket: &str, key: &str) -> Result<Option<Entry>> {
        let name = full_key(bucket, key);
        for memtable in &self.memtables {
            if let Some(value) = memtable.get(&name) {
                return Ok(value.and_then(|value| Entry::decode(&value)));
            }
        }
        let mut buffers = Buffers::default();
        for run in &self.runs {
            if let Some(value) = run.get(&name, &mut buffers)? {
                let decode = |value| Entry::decode(value).ok_or_else(not_an_entry);
                return value.map(decode).transpose();
            }
        }
        Ok(None)
    }

    /// Returns all objects' keys in order. Reads at most `readahead_bytes` from a run at once.
    pub(crate) fn merged(&self, readahead_bytes: usize) -> Merged<KeySource> {
        let memtables =
            self.memtables.iter().map(|table| KeySource::Memory(MemtableCursor::new(table)));
        let run = |run| KeySource::Run(Cursor::new(Arc::clone(run), readahead_bytes));
        Merged::new(memtables.chain(self.runs.iter().map(run)).collect(), Deletions::Drop)
    }

    /// Calls `take` with every object's bucket, key and entry, in order, until it returns `false`.
    ///
    /// # Errors
    /// Fails like [`Self::get`].
    pub(crate) fn scan(&self, mut take: impl FnMut(&str, &str, Entry) -> bool) -> Result<()> {
        let mut merged = self.merged(SCAN_READAHEAD_BYTES);
        merged.advance()?;
        while let Some((name, value)) = merged.key().zip(merged.value()) {
            let found = split_key(name).zip(Entry::decode(value));
            let ((bucket, key), entry) = found.ok_or_else(not_an_entry)?;
            if !take(bucket, key, entry) {
                break;
            }
            merged.advance()?;
        }
        Ok(())
    }
}

/// Returns the error for a value that is not an entry although its checksum matches.
pub(crate) fn not_an_entry() -> Error {
    Error::Invalid { what: "the index of keys has an entry of unknown format".to_owned() }
}

/// A source of a merge: a memtable or a run.
#[derive(Debug)]
pub(crate) enum KeySource {
    Memory(MemtableCursor),
    Run(Cursor),
}

impl Source for KeySource {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.seek(key);
                Ok(())
            }
            Self::Run(cursor) => cursor.seek(key),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.advance();
                Ok(())
            }
            Self::Run(cursor) => cursor.advance(),
        }
    }

    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Memory(cursor) => cursor.current().map(|(name, _)| &**name),
            Self::Run(cursor) => cursor.key(),
        }
    }

    fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Memory(cursor) => cursor.current()?.1.as_deref(),
            Self::Run(cursor) => cursor.value(),
        }
    }
}

/// A position in a memtable that other threads change. Entries are copied in chunks.
#[derive(Debug)]
pub(crate) struct MemtableCursor {
    table: Arc<Memtable>,
    chunk: Vec<(Box<[u8]>, Value)>,
    position: usize,
    /// Zero before the first entry.
    chunk_max: usize,
}

impl MemtableCursor {
    fn new(table: &Arc<Memtable>) -> Self {
        let (table, chunk) = (Arc::clone(table), Vec::new());
        Self { table, chunk, position: 0, chunk_max: 0 }
    }

    fn seek(&mut self, key: &[u8]) {
        self.chunk_max = CHUNK_MIN;
        self.fill(Bound::Included(key));
    }

    fn fill(&mut self, from: Bound<&[u8]>) {
        let entries = self.table.entries.read();
        let range = entries.range::<[u8], _>((from, Bound::Unbounded));
        let chunk =
            range.take(self.chunk_max).map(|(name, value)| (name.clone(), value.clone())).collect();
        drop(entries);
        (self.chunk, self.position) = (chunk, 0);
    }

    fn advance(&mut self) {
        if self.chunk_max == 0 {
            return self.seek(&[]);
        }
        self.position += 1;
        if self.position == self.chunk.len()
            && let Some((last, _)) = self.chunk.pop()
        {
            self.chunk_max = (2 * self.chunk_max).min(CHUNK_MAX);
            self.fill(Bound::Excluded(&last));
        }
    }

    fn current(&self) -> Option<&(Box<[u8]>, Value)> {
        self.chunk.get(self.position)
    }
}
