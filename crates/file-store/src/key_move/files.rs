//! The files of big objects that a move copies.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::format::FilePart;
use crate::index::entry::Entry;
use crate::needles::object::Files;
use crate::needles::written::UnreferencedFile;
use crate::store::Store;

/// Files of one store and their copies in the other store. Copies that no needle references are
/// removed when this value is dropped.
#[derive(Debug, Default)]
pub(super) struct CopiedFiles {
    /// The copies, by the identifier of the original.
    copies: BTreeMap<u128, Copied>,
}

#[derive(Debug)]
struct Copied {
    part: FilePart,
    /// `None` once a needle references the copy.
    unreferenced: Option<UnreferencedFile>,
}

impl CopiedFiles {
    /// Forgets copies that needles reference, because these needles may have been removed since, and
    /// adds those of `common`, the versions that both stores have now. The key is locked in both
    /// stores until the needles that use the copies are appended. Thus versions that share a file
    /// share its copy, too.
    pub(super) fn update<'a>(&mut self, common: impl Iterator<Item = (&'a Entry, &'a Entry)>) {
        self.copies.retain(|_, copied| copied.unreferenced.is_some());
        for (from, to) in common {
            let lengths = |entry: &Entry| entry.files.iter().map(|file| file.bytes).collect();
            let [one, other]: [Vec<u64>; 2] = [from, to].map(lengths);
            if one != other {
                continue;
            }
            for (original, copy) in from.files.iter().zip(&to.files) {
                let copied = || Copied { part: *copy, unreferenced: None };
                self.copies.entry(original.id).or_insert_with(copied);
            }
        }
    }

    /// Returns the files that have no copy yet, each once.
    pub(super) fn missing<'a>(&self, files: impl Iterator<Item = &'a FilePart>) -> Vec<FilePart> {
        let missing = files.filter(|file| !self.copies.contains_key(&file.id));
        let unique: BTreeMap<u128, FilePart> = missing.map(|file| (file.id, *file)).collect();
        unique.into_values().collect()
    }

    /// Copies files to `to`, and verifies them while it reads them. The caller holds no lock: this
    /// may take long, and may wait for space.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Full`], or a failed system call.
    pub(super) fn copy(&mut self, files: &Files, to: &Store) -> Result<()> {
        let copies = to.copy_files(files)?;
        for (original, copy) in files.parts.iter().zip(copies) {
            if let Some(part) = copy.part() {
                self.copies.insert(original.id, Copied { part, unreferenced: Some(copy) });
            }
        }
        Ok(())
    }

    /// Returns the copies of files.
    pub(super) fn copies(&self, files: &[FilePart]) -> Result<Box<[FilePart]>> {
        let copy = |file: &FilePart| {
            let copied = self.copies.get(&file.id).map(|copied| copied.part);
            let what = || format!("the file {:032x} was not copied", file.id);
            copied.ok_or_else(|| Error::Invalid { what: what() })
        };
        files.iter().map(copy).collect()
    }

    /// Keeps the copies of files, because a needle that references them was appended.
    pub(super) fn keep(&mut self, files: &[FilePart]) {
        for file in files {
            let copied = self.copies.get_mut(&file.id);
            if let Some(mut copy) = copied.and_then(|copied| copied.unreferenced.take()) {
                copy.keep();
            }
        }
    }
}
