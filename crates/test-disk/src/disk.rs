//! The disk and its names.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul_disk::{Disk, Error, File, Op, Open, PAGE_BYTES, Result};
use rustix::io::Errno;

use crate::content::Content;
use crate::faults::Faults;
use crate::file::TestFile;
use crate::medium::{Medium, Names, Node, Step, apply_bytes, parent};

/// A disk in memory. Its clones are the same disk.
#[derive(Debug, Clone)]
pub struct TestDisk {
    root: PathBuf,
    state: Arc<Mutex<State>>,
    pub(crate) faults: Arc<Faults>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) medium: Medium,
    /// What programs see: the medium, with all that is on its way there.
    names: Names,
    pub(crate) files: Vec<Content>,
    steps: Vec<Step>,
    bytes_max: Option<u64>,
}

impl State {
    pub(crate) fn record(&mut self, step: Step) {
        self.medium.take(&step);
        self.steps.push(step);
    }

    /// Does something to the bytes of a file, and records it.
    pub(crate) fn change(&mut self, file: usize, step: Step) {
        apply_bytes(&mut self.files[file], &step, &mut || true);
        self.record(step);
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

impl Default for TestDisk {
    fn default() -> Self {
        Self::on(&Medium::default())
    }
}

impl TestDisk {
    /// A machine on this medium: after a power cut nothing is pending, after a mere kill of the
    /// process what was pending still is.
    #[must_use]
    pub fn on(medium: &Medium) -> Self {
        let (names, files) = medium.visible();
        let state = State { medium: medium.clone(), names, files, ..State::default() };
        Self { root: "memory".into(), state: Arc::new(Mutex::new(state)), faults: Arc::default() }
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
    pub fn note(&self, note: u64) {
        self.lock().record(Step::Note(note));
    }

    /// Lets `count` calls of a kind fail, beginning with the `n`-th from now on, counted from 1.
    pub fn fail(&self, op: Op, n: u64, count: u64, errno: Errno) {
        self.faults.set(op, n, count, errno);
    }

    /// Lets all calls succeed again.
    pub fn heal(&self) {
        self.faults.heal();
    }

    /// How many calls of a kind there were.
    #[must_use]
    pub fn calls(&self, op: Op) -> u64 {
        self.faults.calls(op)
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

    /// Changes one byte of a file behind everybody's back.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn flip(&self, name: &str, offset: u64) {
        let mut state = self.lock();
        let Some(Node::File(file)) = state.names.get(name).copied() else {
            unreachable!("there is no file {name}");
        };
        let mut byte = [0];
        state.files[file].read(&mut byte, offset);
        byte[0] ^= 1;
        state.change(file, Step::Write { file, offset, bytes: Arc::new(byte.to_vec()) });
        state.record(Step::Sync { file });
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fail_with(&self, op: Op, name: &str, errno: Errno) -> Error {
        Error::new(op, self.root.join(name), errno)
    }

    fn file(&self, name: &str, file: usize, how: Open) -> Arc<dyn File> {
        Arc::new(TestFile { disk: self.clone(), name: name.to_owned(), file, how })
    }

    fn check_parent(&self, state: &State, op: Op, name: &str) -> Result<()> {
        let dir = parent(name);
        if dir.is_empty() || state.names.get(dir) == Some(&Node::Dir) {
            return Ok(());
        }
        Err(self.fail_with(op, name, Errno::NOENT))
    }
}

impl Disk for TestDisk {
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.faults.pass(Op::Open, name)?;
        match self.lock().names.get(name) {
            Some(Node::File(file)) => Ok(self.file(name, *file, how)),
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
