//! In which order the wants of one device are read, and in which portions. Pure.

use std::cmp::Ordering;
use std::ops::Range;

use super::Want;

/// What a plan knows of one want, beside the want itself. There may be millions of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Item {
    /// Which want it is.
    pub(crate) want: u32,
    pub(crate) dir: u32,
    pub(crate) inode: u64,
    /// How much is to be read.
    pub(crate) bytes: u64,
}

impl Item {
    pub(super) fn of<'a>(&self, wants: &'a [Want]) -> &'a Want {
        &wants[self.want as usize]
    }
}

/// In which order the files of a device are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// What suits the device: [`Order::Physical`] where it rotates, else [`Order::Inode`].
    #[default]
    Auto,
    /// As the wants were given.
    AsGiven,
    /// By directory, and in it by inode.
    Inode,
    /// By where the first byte lies on the device. Files of which nobody knows that come last, by
    /// inode.
    Physical,
}

/// A portion is closed when it holds that many wants, or that many bytes.
const PORTION_WANTS: usize = 64;
const PORTION_BYTES: u64 = 1 << 20;

/// Puts the items in order by directory and inode: the pieces of a file stand together, the first
/// first.
pub(crate) fn by_inode(items: &mut [Item], wants: &[Want]) {
    let key = |item: &Item| (item.dir, item.inode);
    items.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| in_file(a, b, wants)));
}

/// The order of what one place has: by file, and from its beginning.
fn in_file(a: &Item, b: &Item, wants: &[Want]) -> Ordering {
    let key = |item: &Item| {
        let Want { file, offset, .. } = item.of(wants);
        (*file, *offset, item.want)
    };
    key(a).cmp(&key(b))
}

/// Where a want lies on its device. The two kinds of keys have no common scale, so what is not
/// known comes after all that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// So many bytes from its beginning.
    At { at: u64 },
    /// Nobody tells; the inode is the best guess.
    Unknown { inode: u64 },
}

/// Puts the items in the order they lie.
pub(crate) fn by_place(mut items: Vec<(Place, Item)>, wants: &[Want]) -> Vec<Item> {
    items.sort_unstable_by(|(place_a, a), (place_b, b)| {
        place_a.cmp(place_b).then_with(|| in_file(a, b, wants))
    });
    without_places(items)
}

/// The items alone, in no more memory than they need: they are made where they stood.
pub(crate) fn without_places(items: Vec<(Place, Item)>) -> Vec<Item> {
    let mut items: Vec<Item> = items.into_iter().map(|(_, item)| item).collect();
    items.shrink_to_fit();
    items
}

/// Cuts the items, in their order, into portions for the workers to take: none is so small that
/// taking it costs more than reading it, and what is big stands alone.
pub(crate) fn portions(items: &[Item]) -> Vec<Range<u32>> {
    let mut portions = Vec::new();
    let (mut start, mut bytes) = (0, 0_u64);
    for (index, item) in items.iter().enumerate() {
        let is_full = index - start >= PORTION_WANTS || bytes >= PORTION_BYTES;
        let is_alone = item.bytes >= PORTION_BYTES;
        if index > start && (is_full || is_alone) {
            portions.push(range(start, index));
            (start, bytes) = (index, 0);
        }
        bytes = bytes.saturating_add(item.bytes);
    }
    if start < items.len() {
        portions.push(range(start, items.len()));
    }
    portions
}

fn range(start: usize, end: usize) -> Range<u32> {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    number(start)..number(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::FileId;

    fn item(want: u32, dir: u32, inode: u64, bytes: u64) -> Item {
        Item { want, dir, inode, bytes }
    }

    fn wants(files: &[(u32, u64)]) -> Vec<Want> {
        let want = |(file, offset): &(u32, u64)| (FileId(*file), *offset);
        files.iter().map(want).map(|(file, offset)| Want { file, offset, bytes: 1 }).collect()
    }

    #[test]
    fn a_want_costs_24_bytes_of_a_plan() {
        assert_eq!(size_of::<Item>(), 24);
    }

    #[test]
    fn pieces_of_a_file_stand_together_in_the_order_of_inodes() {
        let wants = wants(&[(0, 0), (1, 4096), (1, 0), (3, 0), (4, 0)]);
        // The last is another name of the file of two wants.
        let all = [(0, 2, 5), (1, 1, 9), (2, 1, 9), (3, 1, 3), (4, 1, 9)];
        let mut items = all.map(|(want, dir, inode)| item(want, dir, inode, 1));
        by_inode(&mut items, &wants);
        assert_eq!(items.map(|item| item.want), [3, 2, 1, 4, 0]);
    }

    #[test]
    fn what_has_a_place_comes_first_and_inodes_are_no_places() {
        let at = |want, at| (Place::At { at }, item(want, 0, 9, 1));
        let unknown = |want, inode| (Place::Unknown { inode }, item(want, 0, inode, 1));
        let items = vec![unknown(0, 500), at(1, 1 << 40), unknown(2, 3), at(3, 0), at(4, 700)];
        let wants = wants(&[(0, 0); 5]);
        let order: Vec<_> = by_place(items, &wants).iter().map(|item| item.want).collect();
        assert_eq!(order, [3, 4, 1, 2, 0]);
    }

    #[test]
    fn what_is_big_stands_alone() {
        let items = [1, 1, 5 << 20, 1, 600 << 10, 600 << 10, 1].map(|bytes| item(0, 0, 0, bytes));
        assert_eq!(portions(&items), [0..2, 2..3, 3..6, 6..7]);
        let small = [item(0, 0, 0, 10); 150];
        assert_eq!(portions(&small), [0..64, 64..128, 128..150]);
        assert_eq!(portions(&[]), []);
    }

    proptest! {
        #[test]
        fn portions_cover_everything_once_and_in_order(sizes in prop::collection::vec(0_u64..3 << 20, 0..300)) {
            let items: Vec<_> = sizes.iter().map(|bytes| item(0, 0, 0, *bytes)).collect();
            let mut next = 0;
            for portion in portions(&items) {
                prop_assert_eq!(portion.start, next);
                prop_assert!(portion.end > portion.start);
                next = portion.end;
            }
            prop_assert_eq!(next as usize, items.len());
        }
    }
}
