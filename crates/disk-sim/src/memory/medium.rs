//! Holds the durable state and the unsynced steps of a disk in memory, and derives the states after
//! a power cut.

use std::ops::{Deref, DerefMut, Range};

use crate::memory::atoms::{Atom, Part, torn_atoms};
use crate::memory::content::Content;
use crate::memory::step::{Names, Node, Step, parent};
use crate::memory::survival::{Fate, LOST, STALE, Survival};

/// A disk's durable state, and the pending (unsynced) steps.
#[derive(Debug, Clone, Default)]
pub struct Medium {
    pub(crate) names: Names,
    pub(crate) files: Vec<Content>,
    /// The unsynced steps, in execution order.
    pub(crate) pending: Vec<Step>,
}

impl Medium {
    /// Applies one step: a change becomes pending, a sync makes its file's or directory's pending
    /// changes durable.
    pub fn apply_step(&mut self, step: &Step) {
        match step {
            Step::Create { file, .. } => {
                let files = self.files.len().max(file + 1);
                self.files.resize(files, Content::default());
                self.pending.push(step.clone());
            }
            Step::CreateDir { .. }
            | Step::Rename { .. }
            | Step::Remove { .. }
            | Step::Write { .. }
            | Step::Reserve { .. }
            | Step::Resize { .. } => self.pending.push(step.clone()),
            Step::SyncDir { dir } => {
                let is_in_dir =
                    |step: &mut Step| step.name().is_some_and(|name| parent(name) == dir);
                for step in self.pending.extract_if(.., is_in_dir) {
                    step.apply_to(&mut self.names);
                }
            }
            Step::Sync { file } => {
                let is_to_file = |step: &mut Step| step.file() == Some(*file);
                for step in self.pending.extract_if(.., is_to_file) {
                    apply_bytes(&mut self.files[*file], &step);
                }
            }
            Step::FailedSync { file, survival } => self.fail_sync(*file, *survival),
            Step::Rot { file, offset, bit } => self.files[*file].flip(*offset, *bit),
            Step::Note(_) => {}
        }
    }

    /// Removes all of a file's pending steps. The parts that survive become durable.
    fn fail_sync(&mut self, file: usize, survival: Survival) {
        let is_to_file = |step: &mut Step| step.file() == Some(file);
        let steps: Vec<Step> = self.pending.extract_if(.., is_to_file).collect();
        let mut fates = survival.fates();
        for atom in torn_atoms(&steps) {
            self.apply(&steps[atom.step], &atom.part, fates());
        }
    }

    /// Returns the state after a power cut in which each unsynced sector and each unsynced name may
    /// be lost, as `survival` decides.
    #[must_use]
    pub fn cut(&self, survival: Survival) -> Self {
        let mut fates = survival.fates();
        self.with_fates(&torn_atoms(&self.pending), |_| fates())
    }

    /// Returns the state in which each atom (independently surviving part of a pending step) has
    /// the fate that `fate` returns for its index.
    pub(crate) fn with_fates(&self, atoms: &[Atom], mut fate: impl FnMut(usize) -> Fate) -> Self {
        let (names, files) = (self.names.clone(), self.files.clone());
        let mut left = Self { names, files, pending: Vec::new() };
        for (number, atom) in atoms.iter().enumerate() {
            left.apply(&self.pending[atom.step], &atom.part, fate(number));
        }
        // A lost directory's files are lost, too.
        let all = left.names.clone();
        left.names
            .retain(|name, _| parent(name).is_empty() || all.get(parent(name)) == Some(&Node::Dir));
        left
    }

    fn apply(&mut self, step: &Step, part: &Part, fate: Fate) {
        if fate == LOST {
            return;
        }
        match (part, step.file()) {
            (Part::Length, Some(file)) => self.lengthen(step, file, fate == STALE),
            (Part::Bytes(range), Some(file)) => apply_part(&mut self.files[file], step, range),
            (_, Some(file)) => apply_bytes(&mut self.files[file], step),
            (_, None) => step.apply_to(&mut self.names),
        }
    }

    /// Extends a file to the length that it has after a step, without writing the step's bytes.
    fn lengthen(&mut self, step: &Step, file: usize, is_stale: bool) {
        let (from, to) = (self.files[file].bytes(), step.end());
        if to <= from {
            return;
        }
        self.files[file].resize(to);
        // The blocks' previous content is imitated by another file's bytes at the same offset. If
        // no other file is long enough, it is zeros.
        let donor = (0..file).rev().chain(file + 1..self.files.len());
        let donor = donor.map(|number| &self.files[number]).find(|other| other.bytes() > from);
        if let Some(donor) = donor.filter(|_| is_stale) {
            let stale = donor.range(from..to.min(donor.bytes()));
            self.files[file].write(&stale, from);
        }
    }

    /// Returns the state that programs see, with the pending steps applied.
    pub(crate) fn visible(&self) -> (Names, Vec<Content>) {
        let whole = self.cut(Survival::Everything);
        (whole.names, whole.files)
    }

    /// Returns one file's content as programs see it if the page cache has dropped its clean pages.
    pub(crate) fn visible_file(&self, file: usize) -> Content {
        let mut content = self.files[file].clone();
        for step in self.pending.iter().filter(|step| step.file() == Some(file)) {
            apply_bytes(&mut content, step);
        }
        content
    }

    /// Returns a file's durable bytes. A test can change the bytes without recording a step.
    ///
    /// # Panics
    /// If `name` is not a file's durable name.
    pub fn file(&mut self, name: &str) -> FileBytes<'_> {
        let Some(Node::File(file)) = self.names.get(name).copied() else {
            unreachable!("no file {name}");
        };
        let content = &mut self.files[file];
        FileBytes { bytes: content.range(0..content.bytes()), content, is_changed: false }
    }

    /// Returns the files' durable names.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        let files = self.names.iter().filter(|(_, node)| matches!(node, Node::File(_)));
        files.map(|(name, _)| name.as_str())
    }
}

/// Applies a step to its file's content.
pub(crate) fn apply_bytes(file: &mut Content, step: &Step) {
    match step {
        Step::Write { offset, bytes, .. } => file.write(&bytes.0, *offset),
        Step::Reserve { offset, bytes, .. } => file.reserve(*offset, *bytes),
        Step::Resize { bytes, .. } => file.resize(*bytes),
        _ => {}
    }
}

fn apply_part(file: &mut Content, step: &Step, range: &Range<usize>) {
    if let Step::Write { offset, bytes, .. } = step {
        file.write(&bytes.0[range.clone()], offset + range.start as u64);
    }
}

/// A file's durable bytes, which are written to the medium on drop if they were changed.
#[derive(Debug)]
pub struct FileBytes<'a> {
    content: &'a mut Content,
    bytes: Vec<u8>,
    is_changed: bool,
}

impl Deref for FileBytes<'_> {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for FileBytes<'_> {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        self.is_changed = true;
        &mut self.bytes
    }
}

impl Drop for FileBytes<'_> {
    fn drop(&mut self) {
        if self.is_changed {
            self.content.resize(self.bytes.len() as u64);
            self.content.write(&self.bytes, 0);
        }
    }
}
