//! A table from 64-bit hashes of keys to values of up to 46 bits in memory.
//!
//! # What it is
//! [`Locations`] locates a store's records: the hash is a keyed hash of the key, the value is the
//! record's position on the disk. The table stores neither the key nor the whole hash. A lookup
//! returns each value whose known hash bits match; the key in the record decides.
//!
//! # Structure
//! A directory is indexed by the first bits of the hash and refers to pages \[Fagin79\]. A page of
//! depth d contains all entries whose hashes start with the same d bits. The table knows the first
//! 38 bits of each hash. Of the 38 − d bits that are left in a page, the first 11 select a group, in
//! a list of the lengths of all groups \[Elias74\]; the others are in the entry's slot, with its
//! value. All slots of a page have the same length, which the greatest value determines. A full page
//! is split into two of depth d + 1.
//!
//! # Memory
//! 6.7 bytes of heap per entry on average in a table with at least 10^6 entries, whose values are
//! those of records of 240 bytes; 6.5 to 6.9 between two doublings. Each further bit of the values
//! takes 1/8 byte. An empty table uses 42 KB, and the first entry of each of 256 pages 1 KiB. A table
//! that shrinks keeps its pages, of about 150 bytes each, but not their groups and slots.
//!
//! # False matches
//! The lookup of an absent key returns n / 2^38 values on average in a table with n entries: 0.0004
//! with 10^8, and 0.004 with 10^9.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Fagin79\] extendible hashing, \[Elias74\] lists of numbers
//! whose upper bits are counted.

mod bits;
pub(crate) mod dump;
mod groups;
mod page;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use dump::Snapshot;
use page::Page;

/// The number of first hash bits that the table knows. One more would take 1/8 byte an entry, and
/// halve the false matches.
const HASH_BITS: u32 = 38;

/// The maximum length of a value.
pub(crate) const VALUE_BITS: u32 = 46;

/// The page depth in an empty table.
const DEPTH_MIN: u32 = 8;

/// The greatest depth, at which entries have no remainder. The pages then have 10^11 entries.
const DEPTH_MAX: u32 = HASH_BITS - groups::GROUP_BITS;

/// The maximum number of directory entries per page. A page whose split would exceed it grows
/// instead, because its hashes are not uniform.
const DIRECTORY_ENTRIES_PER_PAGE_MAX: usize = 16;

/// A page of this depth can always be split, and those of the next depth have space for any value.
const _: () = assert!(
    2 << DEPTH_MIN <= (1 << DEPTH_MIN) * DIRECTORY_ENTRIES_PER_PAGE_MAX
        && HASH_BITS - groups::GROUP_BITS - (DEPTH_MIN + 2) + VALUE_BITS <= bits::FIELD_BITS_MAX
);

/// A table from hashes to values. Several entries may have the same hash.
#[derive(Debug)]
pub(crate) struct Locations {
    /// Indexes of pages, by the first `depth` bits of the hash.
    directory: Vec<u32>,
    depth: u32,
    pages: Vec<Arc<Page>>,
    len: u64,
    /// Heap bytes of all pages.
    page_bytes: usize,
}

impl Locations {
    pub(crate) fn new() -> Self {
        let pages = (0..1 << DEPTH_MIN).map(|_| Arc::new(Page::new(DEPTH_MIN))).collect();
        Self::from_pages(pages)
    }

    /// Creates a table from pages, in hash order. They must contain all hashes, and the greatest
    /// depth must be allowed by [`is_depth_allowed`].
    fn from_pages(pages: Vec<Arc<Page>>) -> Self {
        let depth = pages.iter().map(|page| page.depth()).max().unwrap_or(DEPTH_MIN);
        let mut directory = Vec::with_capacity(1 << depth);
        for (number, page) in (0..).zip(&pages) {
            let end = directory.len() + (1 << (depth - page.depth()));
            directory.resize(end, number);
        }
        debug_assert_eq!(directory.len(), 1 << depth, "the pages cover all hashes");
        let len = pages.iter().map(|page| page.len() as u64).sum();
        let page_bytes = pages.iter().map(|page| page.heap_bytes()).sum();
        Self { directory, depth, pages, len, page_bytes }
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Returns the heap bytes of this table, without those that only snapshots reference.
    pub(crate) const fn heap_bytes(&self) -> u64 {
        let directory = self.directory.capacity() * size_of::<u32>();
        let pages = self.pages.capacity() * size_of::<Arc<Page>>();
        (directory + pages + self.page_bytes) as u64
    }

    /// Inserts an entry, even if an equal one exists. The value must be less than 2^46.
    pub(crate) fn insert(&mut self, hash: u64, value: u64) {
        debug_assert_eq!(value >> VALUE_BITS, 0, "a value has 46 bits");
        self.make_space(hash, value);
        self.change(hash, |page| page.insert(hash, value));
        self.len += 1;
    }

    /// Removes one entry that matches the hash and has the value; `false` if there is none.
    pub(crate) fn remove(&mut self, hash: u64, value: u64) -> bool {
        let Some(found) = self.page(hash).matching(hash).find(|found| found.value == value) else {
            return false;
        };
        self.change(hash, |page| page.remove(hash, found));
        debug_assert!(self.len > 0);
        self.len -= 1;
        true
    }

    /// Replaces the value of an entry. Returns `false`, without a change, if no entry matches the
    /// hash and has the old value.
    pub(crate) fn replace(&mut self, hash: u64, old: u64, new: u64) -> bool {
        self.make_space(hash, new);
        let Some(found) = self.page(hash).matching(hash).find(|found| found.value == old) else {
            return false;
        };
        self.change(hash, |page| page.replace(found, new));
        true
    }

    /// Returns `true` if an entry matches the hash and has the value.
    pub(crate) fn contains(&self, hash: u64, value: u64) -> bool {
        self.matches(hash).any(|found| found == value)
    }

    /// Returns the values of all entries that match the hash: all entries with this hash, and
    /// rarely others.
    pub(crate) fn matches(&self, hash: u64) -> impl Iterator<Item = u64> {
        self.page(hash).matching(hash).map(|found| found.value)
    }

    /// Returns a snapshot, which later changes do not affect. Takes time per page, not per entry; a
    /// page is copied when it first changes after that.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut pages = Vec::with_capacity(self.pages.len());
        let mut at = 0;
        while at < self.directory.len() {
            let page = &self.pages[self.directory[at] as usize];
            at += 1 << (self.depth - page.depth());
            pages.push(Arc::clone(page));
        }
        Snapshot::new(pages)
    }

    /// Splits the page that contains a hash until it has space for an entry with this value, if it
    /// can be split.
    fn make_space(&mut self, hash: u64, value: u64) {
        while !self.page(hash).has_space(value) && self.can_split(hash) {
            self.split(hash);
        }
    }

    fn page_index(&self, hash: u64) -> usize {
        self.directory[first_bits(hash, self.depth)] as usize
    }

    fn page(&self, hash: u64) -> &Page {
        &self.pages[self.page_index(hash)]
    }

    /// Changes the page that contains a hash. If a snapshot references the page, changes a copy of
    /// it.
    fn change<R>(&mut self, hash: u64, change: impl FnOnce(&mut Page) -> R) -> R {
        let index = self.page_index(hash);
        let shared = &mut self.pages[index];
        self.page_bytes -= shared.heap_bytes();
        let page = Arc::make_mut(shared);
        let result = change(page);
        self.page_bytes += page.heap_bytes();
        result
    }

    fn can_split(&self, hash: u64) -> bool {
        let page = self.page(hash);
        page.can_split()
            && (page.depth() < self.depth || is_depth_allowed(self.depth + 1, self.pages.len() + 1))
    }

    /// Splits the page that contains a hash.
    fn split(&mut self, hash: u64) {
        if self.page(hash).depth() == self.depth {
            self.directory = self.directory.iter().flat_map(|page| [*page, *page]).collect();
            self.depth += 1;
        }
        let before = self.page(hash).len();
        let upper = self.change(hash, Page::split);
        debug_assert_eq!(self.page(hash).len() + upper.len(), before, "a split loses no slot");
        let depth = upper.depth();
        debug_assert!(depth <= self.depth);
        // Of the directory entries that refer to the split page, the second half get the upper
        // page.
        let count = 1 << (self.depth - depth);
        let first = (first_bits(hash, depth) | 1) * count;
        let number = u32::try_from(self.pages.len()).unwrap_or(u32::MAX);
        self.directory[first..first + count].fill(number);
        self.page_bytes += upper.heap_bytes();
        self.pages.push(Arc::new(upper));
    }
}

/// Returns `true` if a table with this number of pages may have a page of this depth.
fn is_depth_allowed(depth: u32, pages: usize) -> bool {
    (DEPTH_MIN..=DEPTH_MAX).contains(&depth)
        && 1 << depth <= pages.saturating_mul(DIRECTORY_ENTRIES_PER_PAGE_MAX)
}

/// Returns the first `count` bits of a hash as an index; `count` is between 1 and [`DEPTH_MAX`].
fn first_bits(hash: u64, count: u32) -> usize {
    usize::try_from(hash >> (64 - count)).unwrap_or(usize::MAX)
}
