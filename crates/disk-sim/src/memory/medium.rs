//! What is on the medium, and what is on its way there.

use std::ops::{Deref, DerefMut, Range};

use crate::memory::content::Content;
use crate::memory::device::{Device, States, Survival, torn_atoms};
use crate::memory::step::{Names, Node, Step, parent};

/// Some of a pending step, which survives a power cut or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Atom {
    /// Which of the pending steps.
    pub(crate) step: usize,
    pub(crate) part: Part,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// Of a write, these bytes.
    Bytes(Range<usize>),
    /// Of what makes a file longer, the length alone.
    Length,
}

/// What becomes of an atom: it is lost, it survives, or, where a length survives without its
/// bytes, what was in those blocks before is there instead of zeros.
pub(crate) type Fate = u8;
pub(crate) const LOST: Fate = 0;
pub(crate) const SURVIVES: Fate = 1;
const STALE: Fate = 2;

/// The state of the medium, and what is on its way there.
#[derive(Debug, Clone, Default)]
pub struct Medium {
    pub(crate) names: Names,
    pub(crate) files: Vec<Content>,
    /// In the order of writing.
    pub(crate) pending: Vec<Step>,
}

impl Medium {
    /// Goes on by one step.
    pub fn take(&mut self, step: &Step) {
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
                let is_here = |step: &mut Step| step.name().is_some_and(|name| parent(name) == dir);
                for step in self.pending.extract_if(.., is_here) {
                    step.apply_to(&mut self.names);
                }
            }
            Step::Sync { file } => {
                let is_of = |step: &mut Step| step.file() == Some(*file);
                for step in self.pending.extract_if(.., is_of) {
                    apply_bytes(&mut self.files[*file], &step);
                }
            }
            Step::FailedSync { file, survival } => self.settle(*file, *survival),
            Step::Rot { file, offset, bit } => self.files[*file].flip(*offset, *bit),
            Step::Note(_) => {}
        }
    }

    /// Nothing of what was written to a file is on its way any more; this much arrived.
    fn settle(&mut self, file: usize, survival: Survival) {
        let is_of = |step: &mut Step| step.file() == Some(file);
        let steps: Vec<Step> = self.pending.extract_if(.., is_of).collect();
        let mut fates = survival.fates();
        for atom in torn_atoms(&steps) {
            self.apply(&steps[atom.step], &atom.part, fates());
        }
    }

    /// What a power cut leaves where any sector and any name may be lost: see [`Survival`].
    #[must_use]
    pub fn cut(&self, survival: Survival) -> Self {
        let mut fates = survival.fates();
        self.left(&torn_atoms(&self.pending), |_| fates())
    }

    /// All that a power cut may leave of a device of some kind.
    #[must_use]
    pub fn states(&self, device: Device) -> States<'_> {
        States::new(self, device)
    }

    /// What is left when each atom has this fate.
    pub(crate) fn left(&self, atoms: &[Atom], mut fate: impl FnMut(usize) -> Fate) -> Self {
        let (names, files) = (self.names.clone(), self.files.clone());
        let mut left = Self { names, files, pending: Vec::new() };
        for (number, atom) in atoms.iter().enumerate() {
            left.apply(&self.pending[atom.step], &atom.part, fate(number));
        }
        // With a directory goes what is in it.
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

    /// A file has the length a write gives it, without its bytes.
    fn lengthen(&mut self, step: &Step, file: usize, is_stale: bool) {
        let (from, to) = (self.files[file].bytes(), end_of(step));
        if to <= from {
            return;
        }
        self.files[file].resize(to);
        // What was in the blocks: where there is another file, what it has at the same place.
        let donor = (0..file).rev().chain(file + 1..self.files.len());
        let donor = donor.map(|number| &self.files[number]).find(|other| other.bytes() > from);
        if let Some(donor) = donor.filter(|_| is_stale) {
            let stale = donor.range(from..to.min(donor.bytes()));
            self.files[file].write(&stale, from);
        }
    }

    /// What programs see: all that is pending, too.
    pub(crate) fn visible(&self) -> (Names, Vec<Content>) {
        let whole = self.cut(Survival::Everything);
        (whole.names, whole.files)
    }

    /// What programs see of one file, once the page cache has forgotten it.
    pub(crate) fn visible_file(&self, file: usize) -> Content {
        let mut content = self.files[file].clone();
        for step in self.pending.iter().filter(|step| step.file() == Some(file)) {
            apply_bytes(&mut content, step);
        }
        content
    }

    /// The synced bytes of a file, to be changed behind everybody's back.
    ///
    /// # Panics
    /// When no synced name is this one.
    pub fn file(&mut self, name: &str) -> FileBytes<'_> {
        let Some(Node::File(file)) = self.names.get(name).copied() else {
            unreachable!("there is no file {name}");
        };
        let content = &mut self.files[file];
        FileBytes { bytes: content.range(0..content.bytes()), content, is_changed: false }
    }

    /// The files whose names are synced.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        let files = self.names.iter().filter(|(_, node)| matches!(node, Node::File(_)));
        files.map(|(name, _)| name.as_str())
    }
}

/// Where what a step writes or sets aside ends.
pub(crate) fn end_of(step: &Step) -> u64 {
    match step {
        Step::Write { offset, bytes, .. } => offset + bytes.0.len() as u64,
        Step::Reserve { offset, bytes, .. } => offset + bytes,
        _ => 0,
    }
}

/// Does a step to the bytes of its file.
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

/// The bytes of a file, which are put back when this is dropped.
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
