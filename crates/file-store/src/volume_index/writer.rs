//! Writes volume indexes, and never delays a commit.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use haul_append_log::Position;
use haul_disk::{Disk, Durability, File, Open, link_count, write_full};
use haul_sync::{Condvar, Mutex, now};

use crate::error::Result;
use crate::format::Head;
use crate::index::entry::{Change, DurableRecord, Predecessor};
use crate::names;
use crate::volume_index::format::{
    Block, BlockKind, FIRST_RECORD, VolumeId, WATERMARK_BYTES, push_entry,
};
use crate::volume_index::pending::{Pending, Record, Run};

/// The index thread is woken at once when this many bytes of heads are pending.
const WAKE_BYTES: usize = 64 << 10;

/// The heads to be written, and their files.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    volumes: Arc<dyn Disk>,
    state: Mutex<State>,
    /// Locked while blocks are written, so that the blocks of a volume stay in order.
    files: Mutex<BTreeMap<u32, IndexFile>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pending: BTreeMap<u32, Pending>,
    /// Events since the thread last checked.
    has_new_volume: bool,
    has_heads: bool,
    is_woken: bool,
    is_stopping: bool,
}

/// An index that is being written.
#[derive(Debug)]
struct IndexFile {
    file: Arc<dyn File>,
    /// The offset of the next block.
    end: u64,
    is_synced: bool,
    /// `true` if its name survives a power cut.
    is_published: bool,
}

/// The reason why the index thread was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakeReason {
    pub(crate) has_new_volume: bool,
    pub(crate) is_stopping: bool,
}

impl IndexWriter {
    pub(crate) fn new(volumes: Arc<dyn Disk>) -> Self {
        let (state, files) = (Mutex::default(), Mutex::default());
        Self { volumes, state, files, changed: Condvar::new() }
    }

    /// Resumes the index of the volume that was the newest one when the store was closed or
    /// stopped. Keeps the first `kept_bytes` of its file: the bytes after them are torn, damaged,
    /// or the mark of a closed store, which must be removed before anything is appended.
    ///
    /// # Errors
    /// The file cannot be truncated or synced.
    pub(crate) fn resume(&self, volume: u32, kept_bytes: u64, mut pending: Pending) -> Result<()> {
        match self.volumes.open(&names::index(volume), Open::default()) {
            // The file belongs to a copy of the store, too: it is written again from the volume.
            Ok(file) if link_count(&*file)? > 1 => {
                self.volumes.remove(&names::index(volume))?;
                pending.has_gap = true;
            }
            Ok(file) => {
                if file.bytes()? > kept_bytes {
                    file.resize(kept_bytes)?;
                    file.sync(Durability::Data)?;
                }
                let file =
                    IndexFile { file, end: kept_bytes, is_synced: true, is_published: false };
                self.files.lock().insert(volume, file);
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        let mut state = self.state.lock();
        state.has_heads = true;
        state.pending.insert(volume, pending);
        Ok(())
    }

    /// Adds a durable record's needles.
    pub(crate) fn push(&self, at: Position, changes: &[Change]) {
        self.push_heads([(at, Record::new(at, changes))].into_iter());
    }

    /// Adds durable records' needles.
    pub(crate) fn push_records(&self, records: &[DurableRecord]) {
        let record = |record: &DurableRecord| {
            let changes = std::iter::once(&record.change).chain(&record.others);
            (record.at, Record::new(record.at, changes))
        };
        let records: Vec<_> = records.iter().map(record).collect();
        self.push_heads(records.into_iter());
    }

    fn push_heads(&self, records: impl Iterator<Item = (Position, Record)>) {
        let (mut is_new, mut is_much) = (false, false);
        let mut state = self.state.lock();
        for (at, record) in records {
            let volume = at.lsn.segment();
            let new_volume = || {
                is_new = true;
                Pending::new_volume()
            };
            let pending = state.pending.entry(volume).or_insert_with(new_volume);
            pending.push(record);
            is_much |= pending.bytes() >= WAKE_BYTES;
        }
        let is_first = !std::mem::replace(&mut state.has_heads, true);
        state.has_new_volume |= is_new;
        drop(state);
        if is_new || is_much || is_first {
            self.changed.notify_one();
        }
    }

    /// Waits until there is a new volume or enough to write, until the store is closed, or until
    /// heads have been pending for `at_most`. With `must_return`, waits at most for `at_most` in
    /// any case.
    pub(crate) fn wait(&self, at_most: Duration, must_return: bool) -> WakeReason {
        let mut deadline = must_return.then(|| now() + at_most);
        let mut state = self.state.lock();
        loop {
            let is_much = state.pending.values().any(|pending| pending.bytes() >= WAKE_BYTES);
            if state.has_heads {
                deadline.get_or_insert_with(|| now() + at_most);
            }
            let is_late = deadline.is_some_and(|deadline| now() >= deadline);
            let is_woken = std::mem::take(&mut state.is_woken);
            if state.is_stopping || state.has_new_volume || is_much || is_late || is_woken {
                let has_new_volume = std::mem::take(&mut state.has_new_volume);
                state.has_heads = false;
                return WakeReason { has_new_volume, is_stopping: state.is_stopping };
            }
            match deadline {
                Some(deadline) => drop(self.changed.wait_until(&mut state, deadline)),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Wakes the index thread, which then also looks for other work.
    pub(crate) fn wake(&self) {
        let was_woken = std::mem::replace(&mut self.state.lock().is_woken, true);
        if !was_woken {
            self.changed.notify_one();
        }
    }

    /// Stops the index thread.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed.notify_all();
    }

    /// Writes all heads that are known without a gap. `volumes` are the existing volumes. After a
    /// failed write, the index of the volume is rewritten from the volume once that is sealed.
    pub(crate) fn write(&self, volumes: &[VolumeId]) {
        let mut files = self.files.lock();
        for volume in volumes {
            drop(self.write_volume(&mut files, *volume));
        }
    }

    fn write_volume(&self, files: &mut BTreeMap<u32, IndexFile>, volume: VolumeId) -> Result<()> {
        let mut state = self.state.lock();
        let Some(pending) = state.pending.get_mut(&volume.number) else { return Ok(()) };
        let runs = pending.take();
        drop(state);
        if runs.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for Run { from, to, needles, entries } in &runs {
            let (kind, from, to, needles) = (BlockKind::Heads, *from, *to, *needles);
            Block { kind, from, to, needles, entries }.encode(volume, &mut bytes);
        }
        let written = self.append(files, volume.number, &bytes);
        if written.is_err()
            && let Some(pending) = self.state.lock().pending.get_mut(&volume.number)
        {
            pending.has_gap = true;
        }
        written
    }

    fn append(
        &self,
        files: &mut BTreeMap<u32, IndexFile>,
        volume: u32,
        bytes: &[u8],
    ) -> Result<()> {
        let file = match files.entry(volume) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(place) => place.insert(self.create(volume)?),
        };
        debug_assert!(!bytes.is_empty());
        file.is_synced = false;
        write_full(&*file.file, bytes, file.end)?;
        file.end += bytes.len() as u64;
        Ok(())
    }

    /// Creates a new index, replacing a stale file.
    fn create(&self, volume: u32) -> Result<IndexFile> {
        let name = names::index(volume);
        let file = match self.volumes.create(&name, Open::default()) {
            Err(error) if error.is_already_exists() => {
                self.volumes.remove(&name)?;
                self.volumes.create(&name, Open::default())?
            }
            created => created?,
        };
        Ok(IndexFile { file, end: 0, is_synced: true, is_published: false })
    }

    /// Syncs the written blocks and the names of the files.
    ///
    /// # Errors
    /// A failed sync. The index is derived data, which is rewritten from the volumes.
    ///
    /// # Durability
    /// The blocks that [`Self::write`] wrote before survive a power cut when this returns.
    pub(crate) fn sync(&self) -> Result<()> {
        let mut files = self.files.lock();
        let mut is_new = false;
        for file in files.values_mut().filter(|file| !file.is_synced) {
            // A failed sync is never repeated.
            file.is_synced = true;
            file.file.sync(Durability::Data)?;
            is_new |= !std::mem::replace(&mut file.is_published, true);
        }
        if is_new {
            self.volumes.sync_dir("")?;
        }
        Ok(())
    }

    /// Completes a sealed volume's index. All needles in the volume were pushed before. Returns
    /// `false` if the index has gaps and must be written from the volume.
    ///
    /// # Errors
    /// A failed system call.
    pub(crate) fn complete(&self, volume: VolumeId) -> Result<bool> {
        let mut files = self.files.lock();
        let written = self.write_volume(&mut files, volume);
        let ended = self.state.lock().pending.remove(&volume.number);
        let ended = ended.and_then(|pending| Some((pending.end()?, pending.counted)));
        let Some((end, needles)) = ended.filter(|_| written.is_ok()) else {
            files.remove(&volume.number);
            return Ok(false);
        };
        let mut bytes = Vec::new();
        let (kind, entries) = (BlockKind::Complete, &[][..]);
        Block { kind, from: end, to: end, needles, entries }.encode(volume, &mut bytes);
        let appended = self.append(&mut files, volume.number, &bytes);
        drop(files);
        let synced = appended.and_then(|()| self.sync());
        self.files.lock().remove(&volume.number);
        synced.map(|()| true)
    }

    /// Stops writing the index of a volume that is about to be removed.
    pub(crate) fn forget(&self, volume: u32) {
        let mut files = self.files.lock();
        files.remove(&volume);
        self.state.lock().pending.remove(&volume);
    }

    /// Marks the newest volume's end in its index: nothing was appended after `end` when the store
    /// was closed.
    ///
    /// # Errors
    /// A failed system call. Opening the store then reads the volume.
    pub(crate) fn mark_closed(&self, volume: VolumeId, end: u32) -> Result<()> {
        let mut files = self.files.lock();
        self.write_volume(&mut files, volume)?;
        let state = self.state.lock();
        let known_to = match state.pending.get(&volume.number) {
            Some(pending) if pending.ahead_is_empty() => Some(pending.known_to()),
            Some(_) => None,
            None => Some(FIRST_RECORD),
        };
        drop(state);
        // The last record may be a watermark.
        if known_to
            .is_some_and(|known_to| (0..=WATERMARK_BYTES).contains(&end.saturating_sub(known_to)))
        {
            let mut bytes = Vec::new();
            let (kind, entries) = (BlockKind::Closed, &[][..]);
            Block { kind, from: end, to: end, needles: 0, entries }.encode(volume, &mut bytes);
            self.append(&mut files, volume.number, &bytes)?;
        }
        drop(files);
        self.sync()
    }

    /// Replaces an index by a new, complete one.
    ///
    /// It is derived data: its content is synced before it gets its name, but its name need not be
    /// durable.
    ///
    /// # Errors
    /// A failed system call.
    pub(crate) fn replace(
        &self,
        volume: VolumeId,
        end: u32,
        needles: &[(Position, Head)],
    ) -> Result<()> {
        let count = u32::try_from(needles.len()).unwrap_or(u32::MAX);
        let mut entries = Vec::new();
        needles
            .iter()
            .for_each(|(at, head)| push_entry(&mut entries, *at, head, &Predecessor::Unknown));
        let mut bytes = Vec::new();
        let heads = BlockKind::Heads;
        Block { kind: heads, from: FIRST_RECORD, to: end, needles: count, entries: &entries }
            .encode(volume, &mut bytes);
        let kind = BlockKind::Complete;
        Block { kind, from: end, to: end, needles: count, entries: &[] }.encode(volume, &mut bytes);
        let name = names::index(volume.number);
        let unfinished = names::unfinished(&name);
        let written = self.write_synced(&unfinished, &bytes);
        if written.is_err() {
            // On a full disk, the space is needed.
            drop(self.volumes.remove(&unfinished));
        }
        written?;
        Ok(self.volumes.rename(&unfinished, &name)?)
    }

    fn write_synced(&self, name: &str, bytes: &[u8]) -> haul_disk::Result<()> {
        // An unfinished file may exist.
        drop(self.volumes.remove(name));
        let file = self.volumes.create(name, Open::default())?;
        write_full(&*file, bytes, 0)?;
        file.sync(Durability::Data)
    }
}
