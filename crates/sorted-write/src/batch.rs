//! Writes to one file, gathered in memory: in the order they came, and found again by page.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;

use haul_disk::PAGE_BYTES;

use crate::options::WRITE_BYTES_MAX;
use crate::plan::Entry;

/// What a write takes beside its bytes: its entry and place, and a link for its page or two.
pub(crate) const ENTRY_BYTES: usize = 64;

/// Where the bytes of a write are.
#[derive(Debug, Clone, Copy)]
struct Place {
    chunk: u32,
    from: u32,
}

/// A write that touches a page, and the one before it that does.
#[derive(Debug, Clone, Copy)]
struct Link {
    number: u32,
    before: Option<u32>,
}

/// Page numbers are spread by one multiplication.
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

/// The gathered writes. Its memory is kept for the next ones when it is emptied.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    entries: Vec<Entry>,
    places: Vec<Place>,
    chunks: Vec<Vec<u8>>,
    filling: usize,
    /// The newest link of each page.
    pages: HashMap<u64, u32, BuildHasherDefault<PageHasher>>,
    links: Vec<Link>,
    /// Where the farthest write ends.
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

    /// What the plan is made from.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The bytes of a write.
    pub(crate) fn bytes_of(&self, number: u32) -> &[u8] {
        let (entry, place) = (&self.entries[number as usize], &self.places[number as usize]);
        let from = place.from as usize;
        &self.chunks[place.chunk as usize][from..from + entry.bytes as usize]
    }

    /// The memory a write of so many bytes takes, unless it is absorbed.
    pub(crate) fn cost(bytes: usize) -> usize {
        bytes + ENTRY_BYTES
    }

    /// Takes a write of at most [`WRITE_BYTES_MAX`], and gives the memory that took: none where it
    /// lies within the newest write to all its pages, whose bytes it replaces. So a page that is
    /// written again and again takes its place once.
    pub(crate) fn push(&mut self, offset: u64, bytes: &[u8]) -> usize {
        self.end = self.end.max(offset + bytes.len() as u64);
        if let Some(number) = self.newest_around(offset, bytes.len()) {
            let within = usize::try_from(offset - self.entries[number as usize].offset);
            let from = self.places[number as usize].from as usize + within.unwrap_or(0);
            let chunk = self.places[number as usize].chunk as usize;
            self.chunks[chunk][from..from + bytes.len()].copy_from_slice(bytes);
            return 0;
        }
        let number = small(self.entries.len());
        let place = self.store(bytes);
        self.entries.push(Entry { offset, number, bytes: small(bytes.len()) });
        self.places.push(place);
        for page in pages(offset, bytes.len()) {
            let link = small(self.links.len());
            let before = self.pages.insert(page, link);
            self.links.push(Link { number, before });
        }
        Self::cost(bytes.len())
    }

    /// The write that is the newest on each of these pages and reaches over all of the bytes.
    pub(crate) fn newest_around(&self, offset: u64, bytes: usize) -> Option<u32> {
        let mut pages = pages(offset, bytes)
            .map(|page| self.pages.get(&page).map(|link| self.links[*link as usize].number));
        let number = pages.next()??;
        let entry = self.entries[number as usize];
        let is_around = entry.offset <= offset && offset + bytes as u64 <= entry.end();
        (is_around && pages.all(|other| other == Some(number))).then_some(number)
    }

    fn store(&mut self, bytes: &[u8]) -> Place {
        if self.chunks.get(self.filling).is_some_and(|c| c.len() + bytes.len() > WRITE_BYTES_MAX) {
            self.filling += 1;
        }
        if self.filling == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(WRITE_BYTES_MAX));
        }
        let chunk = &mut self.chunks[self.filling];
        let place = Place { chunk: small(self.filling), from: small(chunk.len()) };
        chunk.extend_from_slice(bytes);
        place
    }

    /// Puts what was written here over `buffer`, which holds the file's bytes at `offset`.
    pub(crate) fn lay_over(&self, buffer: &mut [u8], offset: u64) {
        if self.is_empty() || buffer.is_empty() {
            return;
        }
        let mut numbers = Vec::new();
        for page in pages(offset, buffer.len()) {
            let mut link = self.pages.get(&page).copied();
            while let Some(Link { number, before }) = link.map(|link| self.links[link as usize]) {
                numbers.push(number);
                link = before;
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

    /// Forgets all writes, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        self.chunks.iter_mut().for_each(Vec::clear);
        self.filling = 0;
        self.pages.clear();
        self.links.clear();
        self.end = 0;
    }
}

/// Counts of what fits into a generation fit into 32 bits.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_written_again_takes_its_place_once() {
        let mut batch = Batch::default();
        assert_eq!(batch.push(4096, &[1; 4096]), 4096 + ENTRY_BYTES);
        for n in 0..100 {
            assert_eq!(batch.push(4096 + n, &[2; 16]), 0, "it is within");
        }
        assert_eq!(batch.entries().len(), 1);
        assert!(batch.push(4000, &[3; 200]) > 0, "it reaches out of it");
        assert!(batch.push(4096, &[4; 16]) == 0, "the newest here is the one that reaches out");
        assert!(batch.push(5000, &[4; 16]) > 0, "the newest on this page is another one");
        let mut buffer = vec![0; 4200];
        batch.lay_over(&mut buffer, 4000);
        let runs = |from: usize, to: usize| buffer[from..to].to_vec();
        assert_eq!(runs(0, 96), [3; 96]);
        assert_eq!(runs(96, 112), [4; 16]);
        assert_eq!(runs(112, 200), [3; 88]);
        assert_eq!(runs(200, 211), [2; 11]);
        assert_eq!(runs(211, 1000), [1; 789]);
        assert_eq!(runs(1000, 1016), [4; 16]);
        assert_eq!(runs(1016, 4192), [1; 3176]);
        assert_eq!(runs(4192, 4200), [0; 8], "nobody wrote here");
    }

    #[test]
    fn an_emptied_batch_has_nothing_to_say() {
        let mut batch = Batch::default();
        batch.push(10, &[1; 10]);
        batch.clear();
        assert!(batch.is_empty() && batch.end() == 0);
        let mut buffer = [7; 30];
        batch.lay_over(&mut buffer, 0);
        assert_eq!(buffer, [7; 30]);
        batch.push(0, &[2; 2]);
        assert_eq!((batch.entries().len(), batch.bytes_of(0)), (1, &[2, 2][..]));
    }
}
