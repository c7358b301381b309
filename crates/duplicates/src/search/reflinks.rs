//! Detects files that share all their blocks on disk (reflinked copies). Such files are equal, so
//! only one of them is read. A content is an inode, given by its index among the candidates.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;

use haul_bulk_read::Tree;
use haul_disk::{DelayedAllocation, ExtentMap, extents, first_extent, same_blocks};

use super::candidates::Candidates;
use crate::file_systems::FileSystems;

/// A map from each content that is read to the contents that share its blocks and are not read.
#[derive(Debug)]
pub(super) struct Reflinks<'a> {
    file_systems: &'a FileSystems,
    sharing: HashMap<u32, Vec<u32>>,
}

impl<'a> Reflinks<'a> {
    pub(super) fn new(file_systems: &'a FileSystems) -> Self {
        Self { file_systems, sharing: HashMap::new() }
    }

    /// Returns the contents that share the blocks of `content` and are not read themselves.
    pub(super) fn of(&self, content: u32) -> impl Iterator<Item = u32> {
        self.sharing.get(&content).into_iter().flatten().copied()
    }

    /// Compares the extent maps of contents of one length. Of each set of contents with the same
    /// blocks, one is moved to the front of `contents`. Returns the number of sets. If neither of
    /// the first two contents begins with a shared block, all are assumed to be unshared, to save
    /// calls.
    ///
    /// Reads no data, but writes back dirty pages: until then the extent map of a modified file has
    /// its old blocks.
    pub(super) fn deduplicate(
        &mut self,
        contents: &mut [u32],
        tree: &Tree,
        candidates: &Candidates,
    ) -> usize {
        let open = |content| File::open(tree.path(candidates.file(content))).ok();
        if contents.len() < 2 || !contents.iter().take(2).any(|c| open(*c).is_some_and(is_shared)) {
            return contents.len();
        }
        let mut readers: Vec<(u32, ExtentMap)> = Vec::new();
        // Only files with the same first block of one file system are compared.
        let mut by_first_block: HashMap<(u64, Option<u64>), Vec<usize>> = HashMap::new();
        for content in contents.iter().copied() {
            let bytes = candidates.bytes(content);
            // A file without an extent map matches no other file.
            let map = open(content)
                .and_then(|file| extents(&file.as_fd(), 0, u64::MAX, DelayedAllocation::Sync).ok())
                .unwrap_or_default();
            let first_block = map.extents.first().map(|first| first.physical);
            let device = tree.meta(candidates.file(content)).device;
            let place = (self.file_systems.number(device), first_block);
            let matching = by_first_block.entry(place).or_default();
            match matching.iter().find(|index| same_blocks(&map, &readers[**index].1, bytes)) {
                Some(index) => self.sharing.entry(readers[*index].0).or_default().push(content),
                None => {
                    matching.push(readers.len());
                    readers.push((content, map));
                }
            }
        }
        for (place, (reader, _)) in contents.iter_mut().zip(&readers) {
            *place = *reader;
        }
        readers.len()
    }
}

fn is_shared(file: File) -> bool {
    first_extent(&file.as_fd()).is_ok_and(|first| first.is_some_and(|extent| extent.flags.shared))
}
