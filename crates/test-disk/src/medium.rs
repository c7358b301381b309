//! What is on the medium, what is on its way there, and what a power cut leaves of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk::align_down;

use crate::content::Content;
use crate::random::Random;

const SECTOR_BYTES: u64 = 512;

/// Something done to a disk. Files are numbered in the order of their creation.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are the arguments of the call")]
pub enum Step {
    /// A directory was made.
    CreateDir { name: String },
    /// A file was made.
    Create { name: String, file: usize },
    /// A file got another name.
    Rename { from: String, to: String, file: usize },
    /// A name was removed.
    Remove { name: String },
    /// The names in a directory were synced.
    SyncDir { dir: String },
    /// Bytes were written.
    Write { file: usize, offset: u64, bytes: Arc<Vec<u8>> },
    /// Blocks were set aside.
    Reserve { file: usize, offset: u64, bytes: u64 },
    /// The length was changed.
    Resize { file: usize, bytes: u64 },
    /// A file was synced.
    Sync { file: usize },
    /// Nothing was done: the test was told something.
    Note(u64),
}

/// Which of the unsynced steps survive a power cut.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the field is the seed of the choice")]
pub enum Survival {
    /// None.
    Nothing,
    /// All.
    Everything,
    /// Each sector and each name with one chance in two.
    Half { seed: u64 },
    /// Nearly all.
    Most { seed: u64 },
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

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Dir,
    File(usize),
}

pub(crate) type Names = BTreeMap<String, Node>;

/// The directory a name is in.
pub(crate) fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// The state of the medium, and what is on its way there.
#[derive(Debug, Clone, Default)]
pub struct Medium {
    names: Names,
    pending_names: Vec<Step>,
    files: Vec<Content>,
    pending: Vec<Vec<Step>>,
}

impl Medium {
    /// Goes on by one step.
    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Create { file, .. } => {
                let files = self.files.len().max(file + 1);
                self.files.resize(files, Content::default());
                self.pending.resize(files, Vec::new());
                self.pending_names.push(step.clone());
            }
            Step::CreateDir { .. } | Step::Rename { .. } | Step::Remove { .. } => {
                self.pending_names.push(step.clone());
            }
            Step::SyncDir { dir } => {
                let is_here = |step: &mut Step| name_of(step).is_some_and(|n| parent(n) == dir);
                for step in self.pending_names.extract_if(.., is_here) {
                    apply_name(&mut self.names, &step);
                }
            }
            Step::Write { file, .. } | Step::Reserve { file, .. } | Step::Resize { file, .. } => {
                self.pending[*file].push(step.clone());
            }
            Step::Sync { file } => {
                for step in std::mem::take(&mut self.pending[*file]) {
                    apply_bytes(&mut self.files[*file], &step, &mut || true);
                }
            }
            Step::Note(_) => {}
        }
    }

    /// What a power cut leaves.
    #[must_use]
    pub fn cut(&self, survival: Survival) -> Self {
        let mut survives = survival.chooser();
        let mut left = Self {
            names: self.names.clone(),
            files: self.files.clone(),
            pending: vec![Vec::new(); self.files.len()],
            ..Self::default()
        };
        for step in &self.pending_names {
            if survives() {
                apply_name(&mut left.names, step);
            }
        }
        // With a directory goes what is in it.
        let all = left.names.clone();
        left.names
            .retain(|name, _| parent(name).is_empty() || all.get(parent(name)) == Some(&Node::Dir));
        for (file, steps) in left.files.iter_mut().zip(&self.pending) {
            for step in steps {
                apply_bytes(file, step, &mut survives);
            }
        }
        left
    }

    /// Forgets what was not synced of a file, as a kernel may whose sync failed.
    pub(crate) fn forget_unsynced(&mut self, file: usize) {
        self.pending[file].clear();
    }

    pub(crate) fn visible(&self) -> (Names, Vec<Content>) {
        let whole = self.cut(Survival::Everything);
        (whole.names, whole.files)
    }
}

fn name_of(step: &Step) -> Option<&str> {
    match step {
        Step::CreateDir { name } | Step::Create { name, .. } | Step::Remove { name } => Some(name),
        Step::Rename { to, .. } => Some(to),
        _ => None,
    }
}

fn apply_name(names: &mut Names, step: &Step) {
    match step {
        Step::CreateDir { name } => {
            names.insert(name.clone(), Node::Dir);
        }
        Step::Create { name, file } => {
            names.insert(name.clone(), Node::File(*file));
        }
        Step::Rename { from, to, file } => {
            if names.get(from) == Some(&Node::File(*file)) {
                names.remove(from);
            }
            names.insert(to.clone(), Node::File(*file));
        }
        Step::Remove { name } => {
            names.remove(name);
        }
        _ => unreachable!("not about names"),
    }
}

pub(crate) fn apply_bytes(file: &mut Content, step: &Step, survives: &mut dyn FnMut() -> bool) {
    match step {
        Step::Write { offset, bytes, .. } => {
            let (mut at, end) = (*offset, offset + bytes.len() as u64);
            let index = |at: u64| usize::try_from(at - offset).expect("it is within the bytes");
            while at < end {
                let next = end.min(align_down(at, SECTOR_BYTES) + SECTOR_BYTES);
                if survives() {
                    file.write(&bytes[index(at)..index(next)], at);
                }
                at = next;
            }
        }
        Step::Reserve { offset, bytes, .. } if survives() => file.reserve(*offset, *bytes),
        Step::Resize { bytes, .. } if survives() => file.resize(*bytes),
        _ => {}
    }
}
