//! Big objects' files and the references to them. Pure.

use std::collections::HashMap;

use crate::format::FilePart;

/// A big object's file. Copies share it, and readers prevent its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileUse {
    bytes: u64,
    /// References by needles, which a checkpoint keeps.
    uses: u32,
    /// References by readers, which end with the process.
    readers: u32,
}

/// All big objects' files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    by_id: HashMap<u128, FileUse>,
    /// Object bytes in all files.
    bytes: u64,
    /// Files that are no longer referenced, which the caller removes.
    freed: Vec<u128>,
}

impl Files {
    /// Adds a needle's reference to each of `files`.
    pub(crate) fn hold(&mut self, files: &[FilePart]) {
        files.iter().for_each(|file| self.entry(file).uses += 1);
    }

    /// Adds a reader's reference to each of `files`.
    pub(crate) fn pin(&mut self, files: &[FilePart]) {
        files.iter().for_each(|file| self.entry(file).readers += 1);
    }

    fn entry(&mut self, file: &FilePart) -> &mut FileUse {
        debug_assert!(self.by_id.get(&file.id).is_none_or(|found| found.bytes == file.bytes));
        let bytes = &mut self.bytes;
        self.by_id.entry(file.id).or_insert_with(|| {
            *bytes += file.bytes;
            FileUse { bytes: file.bytes, uses: 0, readers: 0 }
        })
    }

    /// Removes a needle's reference from each of `files`.
    pub(crate) fn release(&mut self, files: &[FilePart]) {
        self.remove_references(files, |file| &mut file.uses);
    }

    /// Removes a reader's reference from each of `files`.
    pub(crate) fn unpin(&mut self, files: &[FilePart]) {
        self.remove_references(files, |file| &mut file.readers);
    }

    fn remove_references(&mut self, files: &[FilePart], count: fn(&mut FileUse) -> &mut u32) {
        for file in files {
            let Some(held) = self.by_id.get_mut(&file.id) else { continue };
            let count = count(held);
            debug_assert!(*count > 0, "file {} has no such reference", file.id);
            *count = count.checked_sub(1).unwrap_or(0);
            if held.uses == 0 && held.readers == 0 {
                self.bytes -= held.bytes;
                self.by_id.remove(&file.id);
                self.freed.push(file.id);
            }
        }
    }

    /// Frees files that were never referenced.
    pub(crate) fn free(&mut self, files: &[FilePart]) {
        debug_assert!(files.iter().all(|file| !self.by_id.contains_key(&file.id)), "in use");
        self.freed.extend(files.iter().map(|file| file.id));
    }

    /// Returns and clears the list of files that are no longer referenced.
    pub(crate) fn take_freed(&mut self) -> Vec<u128> {
        std::mem::take(&mut self.freed)
    }

    pub(crate) fn contains(&self, id: u128) -> bool {
        self.by_id.contains_key(&id)
    }

    pub(crate) fn len(&self) -> u64 {
        self.by_id.len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the files, each once.
    pub(crate) fn parts(&self) -> impl Iterator<Item = FilePart> {
        self.by_id.iter().map(|(id, file)| FilePart { id: *id, bytes: file.bytes })
    }

    /// Returns the files that needles reference, with the numbers of references.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (FilePart, u32)> {
        let used = self.by_id.iter().filter(|(_, file)| file.uses > 0);
        used.map(|(id, file)| (FilePart { id: *id, bytes: file.bytes }, file.uses))
    }

    /// Restores a file from a checkpoint.
    pub(crate) fn restore(&mut self, file: FilePart, uses: u32) {
        debug_assert!(
            uses > 0 && !self.by_id.contains_key(&file.id),
            "a checkpoint has a file once"
        );
        self.entry(&file).uses = uses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_freed_with_its_last_reference_and_reader() {
        let part = [FilePart { id: 7, bytes: 100 }];
        let mut files = Files::default();
        files.hold(&part);
        files.pin(&part);
        files.release(&part);
        assert_eq!((files.take_freed(), files.bytes(), files.uses().count()), (vec![], 100, 0));
        files.unpin(&part);
        assert_eq!((files.take_freed(), files.bytes(), files.contains(7)), (vec![7], 0, false));
        files.restore(part[0], 2);
        files.release(&part);
        assert_eq!((files.take_freed(), files.uses().collect()), (vec![], vec![(part[0], 1)]));
    }
}
