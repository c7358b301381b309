//! A disk in memory that remembers what is on the medium and what is not, and can lose power.
//!
//! The model is as harsh as a disk may be: of what was written since the last sync of a file, any
//! subset of 512-byte sectors may be there after a power cut; of what was done to names since the
//! last sync of the directory, any subset too.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use haul_disk::{Allocation, Disk, Durability, Error, File, Op, Open, Result, align_down};
use rustix::io::Errno;

use crate::payload::Random;

const SECTOR_BYTES: u64 = 512;

/// Something done to a disk.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create {
        name: String,
        file: usize,
    },
    Rename {
        from: String,
        to: String,
        file: usize,
    },
    Remove {
        name: String,
    },
    SyncDir,
    Write {
        file: usize,
        offset: u64,
        bytes: Arc<Vec<u8>>,
    },
    Resize {
        file: usize,
        bytes: u64,
    },
    Sync {
        file: usize,
    },
    /// Nothing was done; the test was told something.
    Note(u64),
}

/// Which of the unsynced steps survive a power cut.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Survival {
    Nothing,
    Everything,
    /// Each sector and each name with one chance in two.
    Half {
        seed: u64,
    },
    /// Nearly all.
    Most {
        seed: u64,
    },
}

impl Survival {
    fn chooser(self) -> impl FnMut() -> bool {
        let (seed, of_16) = match self {
            Self::Nothing => (0, 0),
            Self::Everything => (0, 16),
            Self::Half { seed } => (seed, 8),
            Self::Most { seed } => (seed, 15),
        };
        let mut random = Random(seed);
        move || random.below(16) < of_16
    }
}

/// The state of the medium, and what is on its way there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Medium {
    names: BTreeMap<String, usize>,
    pending_names: Vec<Step>,
    files: Vec<Arc<Vec<u8>>>,
    pending: Vec<Vec<Step>>,
}

impl Medium {
    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Create { file, .. } => {
                self.files.resize(self.files.len().max(file + 1), Arc::default());
                self.pending.resize(self.files.len(), Vec::new());
                self.pending_names.push(step.clone());
            }
            Step::Rename { .. } | Step::Remove { .. } => self.pending_names.push(step.clone()),
            Step::SyncDir => {
                for step in std::mem::take(&mut self.pending_names) {
                    apply_name(&mut self.names, &step);
                }
            }
            Step::Write { file, .. } | Step::Resize { file, .. } => {
                self.pending[*file].push(step.clone());
            }
            Step::Sync { file } => {
                for step in std::mem::take(&mut self.pending[*file]) {
                    apply_bytes(Arc::make_mut(&mut self.files[*file]), &step, &mut || true);
                }
            }
            Step::Note(_) => {}
        }
    }

    /// What a power cut leaves.
    pub(crate) fn cut(&self, survival: Survival) -> Self {
        let mut survives = survival.chooser();
        let mut left =
            Self { names: self.names.clone(), files: self.files.clone(), ..Self::default() };
        for step in &self.pending_names {
            if survives() {
                apply_name(&mut left.names, step);
            }
        }
        for (file, steps) in left.files.iter_mut().zip(&self.pending) {
            for step in steps {
                apply_bytes(Arc::make_mut(file), step, &mut survives);
            }
        }
        left.pending.resize(left.files.len(), Vec::new());
        left
    }

    /// The bytes of a file, to be changed behind everybody's back.
    pub(crate) fn file(&mut self, name: &str) -> &mut Vec<u8> {
        Arc::make_mut(&mut self.files[self.names[name]])
    }

    /// Forgets what was not synced, as a kernel may do whose sync failed.
    fn drop_unsynced(&mut self) {
        self.pending.iter_mut().for_each(Vec::clear);
    }
}

fn apply_name(names: &mut BTreeMap<String, usize>, step: &Step) {
    match step {
        Step::Create { name, file } => {
            names.insert(name.clone(), *file);
        }
        Step::Rename { from, to, file } => {
            if names.get(from) == Some(file) {
                names.remove(from);
            }
            names.insert(to.clone(), *file);
        }
        Step::Remove { name } => {
            names.remove(name);
        }
        _ => unreachable!("not about names"),
    }
}

fn apply_bytes(file: &mut Vec<u8>, step: &Step, survives: &mut dyn FnMut() -> bool) {
    match step {
        Step::Write { offset, bytes, .. } => {
            let (mut at, end) = (*offset, offset + bytes.len() as u64);
            while at < end {
                let next = end.min(align_down(at, SECTOR_BYTES) + SECTOR_BYTES);
                if survives() {
                    let (from, to) = (index(at), index(next));
                    if file.len() < to {
                        // Not resize(), which goes byte by byte without optimisation.
                        file.append(&mut vec![0; index(end) - file.len()]);
                    }
                    let start = index(*offset);
                    file[from..to].copy_from_slice(&bytes[from - start..to - start]);
                }
                at = next;
            }
        }
        Step::Resize { bytes, .. } => {
            if survives() {
                file.resize(index(*bytes), 0);
            }
        }
        _ => unreachable!("not about bytes"),
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

#[derive(Debug, Default)]
struct State {
    medium: Medium,
    /// What programs see: the medium with all that is pending, and what a failed sync forgot.
    names: BTreeMap<String, usize>,
    cache: Vec<Arc<Vec<u8>>>,
    steps: Vec<Step>,
}

impl State {
    fn record(&mut self, step: Step) {
        self.medium.take(&step);
        self.steps.push(step);
    }
}

/// The disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

impl MemoryDisk {
    /// A machine on this medium: after a power cut nothing is pending, after a mere kill of the
    /// process what was pending still is.
    pub(crate) fn on(medium: &Medium) -> Self {
        let whole = medium.cut(Survival::Everything);
        let state = State {
            medium: medium.clone(),
            names: whole.names,
            cache: whole.files,
            steps: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn medium(&self) -> Medium {
        self.lock().medium.clone()
    }

    /// What was done so far.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.lock().steps.clone()
    }

    pub(crate) fn note(&self, note: u64) {
        self.lock().record(Step::Note(note));
    }

    pub(crate) fn drop_unsynced(&self) {
        self.lock().medium.drop_unsynced();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn file(&self, file: usize) -> Arc<dyn File> {
        Arc::new(MemoryFile { disk: self.clone(), file })
    }
}

fn fail(op: Op, name: &str, errno: Errno) -> Error {
    Error::new(op, name, errno)
}

impl Disk for MemoryDisk {
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        let mut state = self.lock();
        let file = *state.names.get(name).ok_or_else(|| fail(Op::Open, name, Errno::NOENT))?;
        if how.read_only {
            // Whoever reads a file from end to end drops it from the cache before.
            let whole = state.medium.cut(Survival::Everything);
            state.cache[file] = Arc::clone(&whole.files[file]);
        }
        drop(state);
        Ok(self.file(file))
    }

    fn create(&self, name: &str, _how: Open) -> Result<Arc<dyn File>> {
        let mut state = self.lock();
        if state.names.contains_key(name) {
            return Err(fail(Op::Create, name, Errno::EXIST));
        }
        let file = state.cache.len();
        state.cache.push(Arc::default());
        state.names.insert(name.to_owned(), file);
        state.record(Step::Create { name: name.to_owned(), file });
        drop(state);
        Ok(self.file(file))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        Err(fail(Op::Create, name, Errno::OPNOTSUPP))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.lock();
        let file = state.names.remove(from).ok_or_else(|| fail(Op::Rename, from, Errno::NOENT))?;
        state.names.insert(to.to_owned(), file);
        state.record(Step::Rename { from: from.to_owned(), to: to.to_owned(), file });
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut state = self.lock();
        state.names.remove(name).ok_or_else(|| fail(Op::Remove, name, Errno::NOENT))?;
        state.record(Step::Remove { name: name.to_owned() });
        Ok(())
    }

    fn list(&self, _dir: &str) -> Result<Vec<String>> {
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn sync_dir(&self, _dir: &str) -> Result<()> {
        self.lock().record(Step::SyncDir);
        Ok(())
    }

    fn root(&self) -> &Path {
        Path::new("memory")
    }
}

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryDisk,
    file: usize,
}

impl File for MemoryFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let state = self.disk.lock();
        let bytes = state.cache[self.file].get(index(offset)..).unwrap_or(&[]);
        let read = bytes.len().min(buffer.len());
        buffer[..read].copy_from_slice(&bytes[..read]);
        Ok(read)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        let mut state = self.disk.lock();
        let step = Step::Write { file: self.file, offset, bytes: Arc::new(bytes.to_vec()) };
        apply_bytes(Arc::make_mut(&mut state.cache[self.file]), &step, &mut || true);
        state.record(step);
        Ok(bytes.len())
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.disk.lock().cache[self.file].len() as u64)
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        let mut state = self.disk.lock();
        let step = Step::Resize { file: self.file, bytes };
        apply_bytes(Arc::make_mut(&mut state.cache[self.file]), &step, &mut || true);
        state.record(step);
        Ok(())
    }

    fn allocate(&self, _how: Allocation, _offset: u64, _bytes: u64) -> Result<()> {
        Err(fail(Op::Allocate, "memory", Errno::OPNOTSUPP))
    }

    fn sync(&self, _what: Durability) -> Result<()> {
        self.disk.lock().record(Step::Sync { file: self.file });
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
