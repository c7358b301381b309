//! Sorts the requests of a device and divides them into batches. No I/O.

use std::cmp::Ordering;
use std::ops::Range;

use super::request::ReadRequest;

/// The sort keys of a request. They are kept compact, because a run may have millions of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Item {
    /// The index of the request in the caller's list.
    pub(crate) request: u32,
    pub(crate) dir: u32,
    pub(crate) inode: u64,
    /// The number of bytes to read.
    pub(crate) bytes: u64,
}

impl Item {
    pub(super) fn of<'a>(&self, requests: &'a [ReadRequest]) -> &'a ReadRequest {
        &requests[self.request as usize]
    }
}

/// The order in which the files of a device are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// [`Order::Physical`] on a rotational device, else [`Order::Inode`].
    #[default]
    Auto,
    /// The order of the caller's list of requests.
    AsGiven,
    /// By directory, then by inode.
    Inode,
    /// By the physical position of the first requested byte. Files whose position is unknown come
    /// last, by inode.
    Physical,
}

/// A batch ends when it reaches this number of requests or of bytes.
const BATCH_REQUESTS: usize = 64;
const BATCH_BYTES: u64 = 1 << 20;

/// Sorts the items by directory, then by inode. Several ranges of one file stay adjacent, by
/// ascending offset.
pub(crate) fn by_inode(items: &mut [Item], requests: &[ReadRequest]) {
    let key = |item: &Item| (item.dir, item.inode);
    items.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| in_file(a, b, requests)));
}

/// Compares items with equal sort keys by file, then by offset.
fn in_file(a: &Item, b: &Item, requests: &[ReadRequest]) -> Ordering {
    let key = |item: &Item| {
        let ReadRequest { file, offset, .. } = item.of(requests);
        (*file, *offset, item.request)
    };
    key(a).cmp(&key(b))
}

/// The position of a request on its device. Byte offsets and inode numbers are not comparable, so
/// unknown positions sort after all known ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Position {
    /// The byte offset on the device.
    Known { offset: u64 },
    /// The file system does not report the position; the inode number approximates it.
    Unknown { inode: u64 },
}

/// Sorts the items by physical position.
pub(crate) fn by_position(mut items: Vec<(Position, Item)>, requests: &[ReadRequest]) -> Vec<Item> {
    items.sort_unstable_by(|(position_a, a), (position_b, b)| {
        position_a.cmp(position_b).then_with(|| in_file(a, b, requests))
    });
    without_positions(items)
}

/// Drops the positions. The items are collected in place, then the excess memory is released.
pub(crate) fn without_positions(items: Vec<(Position, Item)>) -> Vec<Item> {
    let mut items: Vec<Item> = items.into_iter().map(|(_, item)| item).collect();
    items.shrink_to_fit();
    items
}

/// Divides the items, in order, into batches for the workers. A batch is large enough to amortize
/// the access to the queue; a large file starts a new batch.
pub(crate) fn batches(items: &[Item]) -> Vec<Range<u32>> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0_u64);
    for (index, item) in items.iter().enumerate() {
        let is_full = index - start >= BATCH_REQUESTS || bytes >= BATCH_BYTES;
        let is_alone = item.bytes >= BATCH_BYTES;
        if index > start && (is_full || is_alone) {
            batches.push(range(start, index));
            (start, bytes) = (index, 0);
        }
        bytes = bytes.saturating_add(item.bytes);
    }
    if start < items.len() {
        batches.push(range(start, items.len()));
    }
    batches
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

    fn item(request: u32, dir: u32, inode: u64, bytes: u64) -> Item {
        Item { request, dir, inode, bytes }
    }

    fn requests(files: &[(u32, u64)]) -> Vec<ReadRequest> {
        let request = |(file, offset): &(u32, u64)| (FileId(*file), *offset);
        files
            .iter()
            .map(request)
            .map(|(file, offset)| ReadRequest { file, offset, bytes: 1 })
            .collect()
    }

    #[test]
    fn item_takes_24_bytes() {
        assert_eq!(size_of::<Item>(), 24);
    }

    #[test]
    fn ranges_of_a_file_stay_together_in_inode_order() {
        let requests = requests(&[(0, 0), (1, 4096), (1, 0), (3, 0), (4, 0)]);
        // The last item is a hard link to the file of the two requests before it.
        let all = [(0, 2, 5), (1, 1, 9), (2, 1, 9), (3, 1, 3), (4, 1, 9)];
        let mut items = all.map(|(request, dir, inode)| item(request, dir, inode, 1));
        by_inode(&mut items, &requests);
        assert_eq!(items.map(|item| item.request), [3, 2, 1, 4, 0]);
    }

    #[test]
    fn known_positions_precede_unknown_ones() {
        let known = |request, offset| (Position::Known { offset }, item(request, 0, 9, 1));
        let unknown = |request, inode| (Position::Unknown { inode }, item(request, 0, inode, 1));
        let items =
            vec![unknown(0, 500), known(1, 1 << 40), unknown(2, 3), known(3, 0), known(4, 700)];
        let requests = requests(&[(0, 0); 5]);
        let order: Vec<_> = by_position(items, &requests).iter().map(|item| item.request).collect();
        assert_eq!(order, [3, 4, 1, 2, 0]);
    }

    #[test]
    fn large_file_gets_its_own_batch() {
        let items = [1, 1, 5 << 20, 1, 600 << 10, 600 << 10, 1].map(|bytes| item(0, 0, 0, bytes));
        assert_eq!(batches(&items), [0..2, 2..3, 3..6, 6..7]);
        let small = [item(0, 0, 0, 10); 150];
        assert_eq!(batches(&small), [0..64, 64..128, 128..150]);
        assert_eq!(batches(&[]), []);
    }

    proptest! {
        #[test]
        fn batches_cover_all_items_once_in_order(sizes in prop::collection::vec(0_u64..3 << 20, 0..300)) {
            let items: Vec<_> = sizes.iter().map(|bytes| item(0, 0, 0, *bytes)).collect();
            let mut next = 0;
            for batch in batches(&items) {
                prop_assert_eq!(batch.start, next);
                prop_assert!(batch.end > batch.start);
                next = batch.end;
            }
            prop_assert_eq!(next as usize, items.len());
        }
    }
}
