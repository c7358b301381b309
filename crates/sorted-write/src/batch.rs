//! Buffers the writes to one file in arrival order, with an index by page.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;

use haul_disk::PAGE_BYTES;

use crate::options::WRITE_BYTES_MAX;
use crate::plan::Entry;

/// The memory, in bytes, that a write takes besides its data: for its entry, its location, and the
/// links to the one or two pages that a short write touches.
pub(crate) const ENTRY_BYTES: usize = 64;

/// The number of chunks, each of [`WRITE_BYTES_MAX`] bytes, that an empty batch may keep.
const KEPT_CHUNKS: usize = 96;

/// The location of a write's buffered bytes.
#[derive(Debug, Clone, Copy)]
struct Location {
    chunk: u32,
    from: u32,
}

/// A write that touches a page, with a link to the previous write that touches the same page.
#[derive(Debug, Clone, Copy)]
struct Link {
    number: u32,
    previous: Option<u32>,
}

/// A multiplicative hasher for page numbers.
#[derive(Debug, Default)]
pub(crate) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, page: u64) {
        let spread = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }
}

/// The buffered writes to one file. [`Self::clear`] keeps the memory for reuse.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    entries: Vec<Entry>,
    locations: Vec<Location>,
    chunks: Vec<Vec<u8>>,
    filling: usize,
    /// Each page with buffered writes, and the index of its newest link.
    pages: HashMap<u64, u32, BuildHasherDefault<PageHasher>>,
    links: Vec<Link>,
    /// The greatest file offset at which a buffered write ends.
    end: u64,
}

fn pages(offset: u64, bytes: usize) -> RangeInclusive<u64> {
    let page = PAGE_BYTES as u64;
    offset / page..=(offset + bytes as u64 - 1) / page
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the writes as entries to plan.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn bytes_of(&self, number: u32) -> &[u8] {
        let (entry, location) = (&self.entries[number as usize], &self.locations[number as usize]);
        let from = location.from as usize;
        &self.chunks[location.chunk as usize][from..from + entry.bytes as usize]
    }

    /// Returns the memory, in bytes, that a write of `bytes` bytes takes unless it is absorbed (see
    /// [`Self::push`]).
    pub(crate) fn cost(bytes: usize) -> usize {
        bytes + ENTRY_BYTES
    }

    /// Adds a write of at most [`WRITE_BYTES_MAX`] bytes, and returns the memory it took, in bytes.
    /// If one earlier write contains the whole range of the new write, and is the newest write on
    /// all its pages, the new write is absorbed: it overwrites the buffered bytes and takes no
    /// memory. A page that is overwritten repeatedly therefore takes memory only once.
    pub(crate) fn push(&mut self, offset: u64, bytes: &[u8]) -> usize {
        self.end = self.end.max(offset + bytes.len() as u64);
        if let Some(number) = self.newest_covering(offset, bytes.len()) {
            let within = usize::try_from(offset - self.entries[number as usize].offset);
            let from = self.locations[number as usize].from as usize + within.unwrap_or(0);
            let chunk = self.locations[number as usize].chunk as usize;
            self.chunks[chunk][from..from + bytes.len()].copy_from_slice(bytes);
            return 0;
        }
        let number = to_u32(self.entries.len());
        let location = self.store(bytes);
        self.entries.push(Entry { offset, number, bytes: to_u32(bytes.len()) });
        self.locations.push(location);
        debug_assert_eq!(self.entries.len(), self.locations.len());
        debug_assert_eq!(self.bytes_of(number), bytes);
        for page in pages(offset, bytes.len()) {
            let link = to_u32(self.links.len());
            let previous = self.pages.insert(page, link);
            self.links.push(Link { number, previous });
        }
        Self::cost(bytes.len())
    }

    /// Returns the number of the write that contains the whole range and is the newest write on all
    /// the range's pages; `None` if there is no such write.
    pub(crate) fn newest_covering(&self, offset: u64, bytes: usize) -> Option<u32> {
        let mut pages = pages(offset, bytes)
            .map(|page| self.pages.get(&page).map(|link| self.links[*link as usize].number));
        let number = pages.next()??;
        let entry = self.entries[number as usize];
        let covers = entry.offset <= offset && offset + bytes as u64 <= entry.end();
        (covers && pages.all(|other| other == Some(number))).then_some(number)
    }

    fn store(&mut self, bytes: &[u8]) -> Location {
        if self.chunks.get(self.filling).is_some_and(|c| c.len() + bytes.len() > WRITE_BYTES_MAX) {
            self.filling += 1;
        }
        if self.filling == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(WRITE_BYTES_MAX));
        }
        let chunk = &mut self.chunks[self.filling];
        let location = Location { chunk: to_u32(self.filling), from: to_u32(chunk.len()) };
        chunk.extend_from_slice(bytes);
        debug_assert!(chunk.len() <= WRITE_BYTES_MAX, "a chunk is allocated once");
        location
    }

    /// Copies the buffered writes over `buffer`, which holds the file's bytes at `offset`.
    pub(crate) fn overlay(&self, buffer: &mut [u8], offset: u64) {
        if self.is_empty() || buffer.is_empty() {
            return;
        }
        let mut numbers = Vec::new();
        for page in pages(offset, buffer.len()) {
            let mut link = self.pages.get(&page).copied();
            while let Some(Link { number, previous }) = link.map(|link| self.links[link as usize]) {
                numbers.push(number);
                link = previous;
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        let end = offset + buffer.len() as u64;
        for number in numbers {
            let entry = self.entries[number as usize];
            let (from, to) = (entry.offset.max(offset), entry.end().min(end));
            if from < to {
                let within = |at: u64, of: u64| usize::try_from(at - of).unwrap_or(usize::MAX);
                let bytes =
                    &self.bytes_of(number)[within(from, entry.offset)..within(to, entry.offset)];
                buffer[within(from, offset)..within(to, offset)].copy_from_slice(bytes);
            }
        }
    }

    /// Removes all writes. Keeps up to [`KEPT_CHUNKS`] chunks for reuse; a large batch is rare
    /// enough to allocate its memory again.
    pub(crate) fn clear(&mut self) {
        if self.filling >= KEPT_CHUNKS {
            *self = Self::default();
            return;
        }
        self.entries.clear();
        self.locations.clear();
        self.chunks.iter_mut().for_each(Vec::clear);
        self.filling = 0;
        self.pages.clear();
        self.links.clear();
        self.end = 0;
    }
}

/// Converts a count to 32 bits, which suffice for all counts in a batch.
fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwritten_page_takes_memory_once() {
        let mut batch = Batch::default();
        assert_eq!(batch.push(4096, &[1; 4096]), 4096 + ENTRY_BYTES);
        for n in 0..100 {
            assert_eq!(batch.push(4096 + n, &[2; 16]), 0, "covered by the first write");
        }
        assert_eq!(batch.entries().len(), 1);
        assert!(batch.push(4000, &[3; 200]) > 0, "not covered");
        assert!(batch.push(4096, &[4; 16]) == 0, "covered by the newest write to the page");
        assert!(batch.push(5000, &[4; 16]) > 0, "covered only by an older write");
        let mut buffer = vec![0; 4200];
        batch.overlay(&mut buffer, 4000);
        let runs = |from: usize, to: usize| buffer[from..to].to_vec();
        assert_eq!(runs(0, 96), [3; 96]);
        assert_eq!(runs(96, 112), [4; 16]);
        assert_eq!(runs(112, 200), [3; 88]);
        assert_eq!(runs(200, 211), [2; 11]);
        assert_eq!(runs(211, 1000), [1; 789]);
        assert_eq!(runs(1000, 1016), [4; 16]);
        assert_eq!(runs(1016, 4192), [1; 3176]);
        assert_eq!(runs(4192, 4200), [0; 8], "not written");
    }

    #[test]
    fn cleared_batch_is_empty() {
        let mut batch = Batch::default();
        batch.push(10, &[1; 10]);
        batch.clear();
        assert!(batch.is_empty() && batch.end() == 0);
        let mut buffer = [7; 30];
        batch.overlay(&mut buffer, 0);
        assert_eq!(buffer, [7; 30]);
        batch.push(0, &[2; 2]);
        assert_eq!((batch.entries().len(), batch.bytes_of(0)), (1, &[2, 2][..]));
    }
}
