//! Implements a disk in memory: the operations on names, and the settings for tests.

use std::any::Any;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_disk::{Disk, Error, File, Locked, Op, Open, Result};
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use crate::memory::content::Content;
use crate::memory::faults::Faults;
use crate::memory::file::MemoryFile;
use crate::memory::locks::{LockedNode, Locks};
use crate::memory::medium::Medium;
use crate::memory::state::State;
use crate::memory::step::{Node, Note, Step, parent};
use crate::memory::survival::Survival;

/// A disk in memory for tests. Clones share the same disk. The type dereferences to its [`Faults`].
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    root: PathBuf,
    state: Arc<Mutex<State>>,
    /// The locks held on this simulated machine. A machine restarted on the medium has no locks.
    locks: Locks,
    faults: Faults,
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
    /// Starts a simulated machine on a medium. A medium after a power cut has no pending (unsynced)
    /// steps; after the process was killed, the pending steps remain, as in the page cache.
    #[must_use]
    pub fn on(medium: &Medium) -> Self {
        let state = Arc::new(Mutex::new(State::on(medium)));
        let (locks, faults) = (Locks::default(), Faults::default());
        Self { root: "memory".into(), state, locks, faults }
    }

    /// Returns a copy of the medium's current state, pending steps included.
    #[must_use]
    pub fn medium(&self) -> Medium {
        self.lock().medium.clone()
    }

    /// Returns the steps recorded since this machine was started.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.lock().steps.clone()
    }

    /// Records a note, such as an acknowledgement, among the steps.
    pub fn note(&self, note: impl Any + Send + Sync) {
        self.lock().record(Step::Note(Note::new(note)));
    }

    /// Sets how much unsynced data becomes durable when a sync fails; initially nothing. After the
    /// failure the pages count as clean, as on Linux: programs read the written data until the page
    /// cache drops it, and the next sync succeeds without writing it.
    pub fn after_a_failed_sync(&self, survival: Survival) {
        self.lock().failed_sync_survival = survival;
    }

    /// Drops all files' unsynced data, as after a failed sync that was never reported.
    pub fn drop_unsynced(&self) {
        let mut state = self.lock();
        for file in 0..state.files.len() {
            state.record(Step::FailedSync { file, survival: Survival::Nothing });
        }
    }

    /// Limits the disk size to `bytes_max` bytes: calls that would exceed it fail as on a full
    /// disk. `None` removes the limit.
    pub fn limit(&self, bytes_max: Option<u64>) {
        self.lock().bytes_max = bytes_max;
    }

    /// Returns the bytes used by files and directories, in whole pages.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock().used_bytes()
    }

    /// Flips one bit in a file on the medium and in the page cache (bit rot), so that the next read
    /// returns the flipped bit. `offset` is in bytes; `bit` counts from the least significant bit.
    ///
    /// # Panics
    /// If the file does not exist.
    pub fn rot(&self, name: &str, offset: u64, bit: u8) {
        let mut state = self.lock();
        let Some(Node::File(file)) = state.names.get(name).copied() else {
            unreachable!("no file {name}");
        };
        state.files[file].flip(offset, bit);
        state.record(Step::Rot { file, offset, bit });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn error(&self, op: Op, name: &str, errno: Errno) -> Error {
        Error::new(op, self.root.join(name), errno)
    }

    fn file(&self, name: &str, file: usize, options: Open) -> Arc<dyn File> {
        Arc::new(MemoryFile {
            state: Arc::clone(&self.state),
            faults: self.faults.clone(),
            path: self.root.join(name),
            name: name.to_owned(),
            file,
            options,
        })
    }

    fn check_parent(&self, state: &State, op: Op, name: &str) -> Result<()> {
        let dir = parent(name);
        if dir.is_empty() || state.names.get(dir) == Some(&Node::Dir) {
            return Ok(());
        }
        Err(self.error(op, name, Errno::NOENT))
    }
}

impl Disk for MemoryDisk {
    fn open(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Open, name)?;
        let mut state = self.lock();
        match state.names.get(name).copied() {
            Some(Node::File(file)) => {
                // The page cache may drop clean pages at any time. This model drops them when a
                // file is opened read-only, so that a reader that verifies durable data does not
                // read a failed sync's data.
                if options.read_only {
                    state.files[file] = state.medium.visible_file(file);
                }
                Ok(self.file(name, file, options))
            }
            Some(Node::Dir) => Err(self.error(Op::Open, name, Errno::ISDIR)),
            None => Err(self.error(Op::Open, name, Errno::NOENT)),
        }
    }

    fn create(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Create, name)?;
        let mut state = self.lock();
        self.check_parent(&state, Op::Create, name)?;
        if state.names.contains_key(name) {
            return Err(self.error(Op::Create, name, Errno::EXIST));
        }
        let file = state.files.len();
        state.files.push(Content::default());
        state.names.insert(name.to_owned(), Node::File(file));
        state.record(Step::Create { name: name.to_owned(), file });
        drop(state);
        Ok(self.file(name, file, options))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.faults.pass(Op::Create, name)?;
        let mut state = self.lock();
        self.check_parent(&state, Op::Create, name)?;
        match state.names.get(name) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(self.error(Op::Create, name, Errno::NOTDIR)),
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
            return Err(self.error(Op::Rename, from, Errno::NOENT));
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
            return Err(self.error(Op::Remove, name, Errno::NOENT));
        };
        state.names.remove(name);
        state.record(Step::Remove { name: name.to_owned() });
        Ok(())
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.faults.pass(Op::List, dir)?;
        let state = self.lock();
        if !dir.is_empty() && state.names.get(dir) != Some(&Node::Dir) {
            return Err(self.error(Op::List, dir, Errno::NOENT));
        }
        let children = state.names.keys().filter(|name| parent(name) == dir);
        Ok(children.map(|name| name[dir.len()..].trim_start_matches('/').to_owned()).collect())
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.faults.pass(Op::SyncDir, dir)?;
        self.lock().record(Step::SyncDir { dir: dir.to_owned() });
        Ok(())
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Locked> {
        let node = match self.lock().names.get(name) {
            _ if name.is_empty() => LockedNode::Dir(String::new()),
            Some(Node::Dir) => LockedNode::Dir(name.to_owned()),
            Some(Node::File(file)) => LockedNode::File(*file),
            None => return Err(self.error(Op::Lock, name, Errno::NOENT)),
        };
        Ok(self.locks.take(node, holder))
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        let state = self.lock();
        Ok(state.bytes_max.map(|bytes_max| bytes_max.saturating_sub(state.used_bytes())))
    }

    fn root(&self) -> &Path {
        &self.root
    }
}
