//! In which order the wants of one device are read, and in which portions. Pure.

use std::ops::Range;

/// What a plan knows of one want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// Which want it is.
    pub(crate) want: u32,
    pub(crate) file: u32,
    pub(crate) dir: u32,
    pub(crate) inode: u64,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    /// How much is to be read.
    pub(crate) bytes: u64,
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
pub(crate) fn by_inode(items: &mut [Item]) {
    items.sort_unstable_by_key(|item| (item.dir, item.inode, item.file, item.offset, item.want));
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

    fn item(want: u32, dir: u32, inode: u64, offset: u64, bytes: u64) -> Item {
        Item { want, file: want, dir, inode, offset, bytes }
    }

    #[test]
    fn pieces_of_a_file_stand_together_in_the_order_of_inodes() {
        let mut items = vec![
            item(0, 2, 5, 0, 1),
            item(1, 1, 9, 0, 1),
            Item { file: 1, ..item(2, 1, 9, 4096, 1) },
            item(3, 1, 3, 0, 1),
        ];
        items.swap(1, 2);
        by_inode(&mut items);
        assert_eq!(items.iter().map(|item| item.want).collect::<Vec<_>>(), [3, 1, 2, 0]);
    }

    #[test]
    fn what_is_big_stands_alone() {
        let items =
            [1, 1, 5 << 20, 1, 600 << 10, 600 << 10, 1].map(|bytes| item(0, 0, 0, 0, bytes));
        assert_eq!(portions(&items), [0..2, 2..3, 3..6, 6..7]);
        let small = [item(0, 0, 0, 0, 10); 150];
        assert_eq!(portions(&small), [0..64, 64..128, 128..150]);
        assert_eq!(portions(&[]), []);
    }

    proptest! {
        #[test]
        fn portions_cover_everything_once_and_in_order(sizes in prop::collection::vec(0_u64..3 << 20, 0..300)) {
            let items: Vec<_> = sizes.iter().map(|bytes| item(0, 0, 0, 0, *bytes)).collect();
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
