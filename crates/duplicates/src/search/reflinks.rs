//! Files that are in the same blocks are equal without being read.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;

use haul_bulk_read::Tree;
use haul_disk::{ExtentMap, Unplaced, extents, first_extent, same_blocks};

use super::candidates::Candidates;

/// Contents that need no reading, by the one that is read instead.
#[derive(Debug, Default)]
pub(super) struct Reflinks(HashMap<u32, Vec<u32>>);

impl Reflinks {
    /// Those that are in the blocks of `content`.
    pub(super) fn of(&self, content: u32) -> impl Iterator<Item = u32> {
        self.0.get(&content).into_iter().flatten().copied()
    }

    /// Looks at the blocks of contents of one length. One of those in the same blocks stays in
    /// front; gives how many such there are.
    ///
    /// Nothing is read, but what of them is in memory alone is written: until then a file that was
    /// changed stands in the old blocks.
    pub(super) fn gather(
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
        // What begins in another block need not be compared.
        let mut beginning: HashMap<Option<u64>, Vec<usize>> = HashMap::new();
        for content in contents.iter().copied() {
            let bytes = candidates.bytes(content);
            // Without a map it is equal to nothing.
            let map = open(content)
                .and_then(|file| extents(&file.as_fd(), 0, u64::MAX, Unplaced::Write).ok())
                .unwrap_or_default();
            let alike = beginning.entry(map.extents.first().map(|first| first.physical));
            let alike = alike.or_default();
            match alike.iter().find(|place| same_blocks(&map, &readers[**place].1, bytes)) {
                Some(place) => self.0.entry(readers[*place].0).or_default().push(content),
                None => {
                    alike.push(readers.len());
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
