//! The disk and its names.

use std::any::Any;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_disk::{Disk, Error, File, Op, Open, PAGE_BYTES, Result};
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use crate::memory::content::Content;
use crate::memory::device::Survival;
use crate::memory::faults::Faults;
use crate::memory::file::MemoryFile;
use crate::memory::medium::{Medium, apply_bytes};
use crate::memory::step::{Names, Node, Note, Step, parent};

/// A disk in memory. Its clones are the same disk; it derefs to its [`Faults`].
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    root: PathBuf,
    state: Arc<Mutex<State>>,
    pub(crate) faults: Faults,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) medium: Medium,
    /// What programs see: the medium with all that is on its way there, and what a failed sync
    /// left in the page cache.
    names: Names,
    pub(crate) files: Vec<Content>,
    steps: Vec<Step>,
    bytes_max: Option<u64>,
    after_a_failed_sync: Survival,
}

impl State {
    pub(crate) fn record(&mut self, step: Step) {
        self.medium.take(&step);
        self.steps.push(step);
    }

    /// Does something to the bytes of a file, and records it.
    pub(crate) fn change(&mut self, file: usize, step: Step) {
        apply_bytes(&mut self.files[file], &step);
        self.record(step);
    }

    pub(crate) fn fail_sync(&mut self, file: usize) {
        let survival = self.after_a_failed_sync;
        self.record(Step::FailedSync { file, survival });
    }

    fn used_bytes(&self) -> u64 {
        let pages = self.names.values().map(|node| match node {
            Node::File(file) => self.files[*file].pages(),
            Node::Dir => 1,
        });
        pages.sum::<u64>() * PAGE_BYTES as u64
    }

    pub(crate) fn is_full_for(&self, more_pages: u64) -> bool {
        more_pages > 0
            && self.bytes_max.is_some_and(|bytes_max| {
                self.used_bytes() + more_pages * PAGE_BYTES as u64 > bytes_max
            })
    }
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::on(&Medium::default())
    }
}

impl Deref for MemoryDisk {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        &self.faults
    }
}

impl MemoryDisk {
    /// A machine on this medium: after a power cut nothing is pending, after a mere kill of the
    /// process what was pending still is.
    #[must_use]
    pub fn on(medium: &Medium) -> Self {
        let (names, files) = medium.visible();
        let state = State {
            medium: medium.clone(),
            names,
            files,
            steps: Vec::new(),
            bytes_max: None,
            after_a_failed_sync: Survival::Nothing,
        };
        let state = Arc::new(Mutex::new(state));
        Self { root: "memory".into(), state, faults: Faults::default() }
    }

    /// The medium as it is now.
    #[must_use]
    pub fn medium(&self) -> Medium {
        self.lock().medium.clone()
    }

    /// What was done so far.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.lock().steps.clone()
    }

    /// Puts a note between the steps, such as that something was acknowledged.
    pub fn note(&self, note: impl Any + Send + Sync) {
        self.lock().record(Step::Note(Note::new(note)));
    }

    /// Says how much of what was not synced is on the medium when a sync fails; at first nothing.
    /// In any case the pages count as clean afterwards, as on Linux: programs still see what they
    /// wrote until the page cache forgets it, and the next sync succeeds without it.
    pub fn after_a_failed_sync(&self, survival: Survival) {
        self.lock().after_a_failed_sync = survival;
    }

    /// Drops what was written and not synced, as after a failed sync that nobody was told of.
    pub fn drop_unsynced(&self) {
        let mut state = self.lock();
        for file in 0..state.files.len() {
            state.record(Step::FailedSync { file, survival: Survival::Nothing });
        }
    }

    /// Makes the disk this small: what would need more is refused as on a full disk.
    pub fn limit(&self, bytes_max: Option<u64>) {
        self.lock().bytes_max = bytes_max;
    }

    /// What its files and directories take.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock().used_bytes()
    }

    /// Lets one bit of a file rot, behind everybody's back: the next read finds it.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn rot(&self, name: &str, offset: u64, bit: u8) {
        let mut state = self.lock();
        let Some(Node::File(file)) = state.names.get(name).copied() else {
            unreachable!("there is no file {name}");
        };
        state.files[file].flip(offset, bit);
        state.record(Step::Rot { file, offset, bit });
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn fail_with(&self, op: Op, name: &str, errno: Errno) -> Error {
        Error::new(op, self.root.join(name), errno)
    }

    fn file(&self, name: &str, file: usize, how: Open) -> Arc<dyn File> {
        Arc::new(MemoryFile { disk: self.clone(), name: name.to_owned(), file, how })
    }

    fn check_parent(&self, state: &State, op: Op, name: &str) -> Result<()> {
        let dir = parent(name);
        if dir.is_empty() || state.names.get(dir) == Some(&Node::Dir) {
            return Ok(());
        }
        Err(self.fail_with(op, name, Errno::NOENT))
    }
}

impl Disk for MemoryDisk {
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Open, name)?;
        let mut state = self.lock();
        match state.names.get(name).copied() {
            Some(Node::File(file)) => {
                // The page cache may forget what is clean at any time, and does so when a file is
                // opened to be read: whoever looks for what is on the medium reads past it.
                if how.read_only {
                    state.files[file] = state.medium.visible_file(file);
                }
                Ok(self.file(name, file, how))
            }
            Some(Node::Dir) => Err(self.fail_with(Op::Open, name, Errno::ISDIR)),
            None => Err(self.fail_with(Op::Open, name, Errno::NOENT)),
        }
    }

    fn create(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Create, name)?;
        let mut state = self.lock();
        self.check_parent(&state, Op::Create, name)?;
        if state.names.contains_key(name) {
            return Err(self.fail_with(Op::Create, name, Errno::EXIST));
        }
        let file = state.files.len();
        state.files.push(Content::default());
        state.names.insert(name.to_owned(), Node::File(file));
        state.record(Step::Create { name: name.to_owned(), file });
        drop(state);
        Ok(self.file(name, file, how))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.faults.pass(Op::Create, name)?;
        let mut state = self.lock();
        self.check_parent(&state, Op::Create, name)?;
        match state.names.get(name) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(self.fail_with(Op::Create, name, Errno::NOTDIR)),
            None => {
                state.names.insert(name.to_owned(), Node::Dir);
                state.record(Step::CreateDir { name: name.to_owned() });
                Ok(())
            }
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.faults.pass(Op::Rename, from)?;
        let mut state = self.lock();
        self.check_parent(&state, Op::Rename, to)?;
        let Some(Node::File(file)) = state.names.get(from).copied() else {
            return Err(self.fail_with(Op::Rename, from, Errno::NOENT));
        };
        state.names.remove(from);
        state.names.insert(to.to_owned(), Node::File(file));
        state.record(Step::Rename { from: from.to_owned(), to: to.to_owned(), file });
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.faults.pass(Op::Remove, name)?;
        let mut state = self.lock();
        let Some(Node::File(_)) = state.names.get(name) else {
            return Err(self.fail_with(Op::Remove, name, Errno::NOENT));
        };
        state.names.remove(name);
        state.record(Step::Remove { name: name.to_owned() });
        Ok(())
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.faults.pass(Op::List, dir)?;
        let state = self.lock();
        if !dir.is_empty() && state.names.get(dir) != Some(&Node::Dir) {
            return Err(self.fail_with(Op::List, dir, Errno::NOENT));
        }
        let here = state.names.keys().filter(|name| parent(name) == dir);
        Ok(here.map(|name| name[dir.len()..].trim_start_matches('/').to_owned()).collect())
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.faults.pass(Op::SyncDir, dir)?;
        self.lock().record(Step::SyncDir { dir: dir.to_owned() });
        Ok(())
    }

    fn root(&self) -> &Path {
        &self.root
    }
}
