//! Stores a file's content in pages that copies share, so that copying a disk is cheap.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use haul_disk::PAGE_BYTES;

type Page = [u8; PAGE_BYTES];

static ZEROS: LazyLock<Arc<Page>> = LazyLock::new(|| Arc::new([0; PAGE_BYTES]));

/// A file's content. Pages that were never written are holes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    bytes: u64,
    pages: Arc<BTreeMap<u64, Arc<Page>>>,
}

fn small(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a test's file fits in memory")
}

/// Splits the range of `bytes` bytes at `offset` at page boundaries. Returns for each piece the
/// page number, the offset in the page, and the piece's position within the whole range.
fn pieces(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = small(at % PAGE_BYTES as u64);
        let step = (PAGE_BYTES - within).min(bytes - done);
        let piece = (at / PAGE_BYTES as u64, within, done..done + step);
        done += step;
        (step > 0).then_some(piece)
    })
}

impl Content {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many pages are not holes.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns how many pages a write of `bytes` bytes at `offset` would add.
    pub(crate) fn pages_missing(&self, offset: u64, bytes: usize) -> u64 {
        pieces(offset, bytes).filter(|(page, _, _)| !self.pages.contains_key(page)).count() as u64
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let read = small(self.bytes.saturating_sub(offset)).min(buffer.len());
        for (page, within, range) in pieces(offset, read) {
            let length = range.len();
            match self.pages.get(&page) {
                Some(page) => buffer[range].copy_from_slice(&page[within..within + length]),
                None => buffer[range].fill(0),
            }
        }
        read
    }

    /// Returns a copy of the bytes in `range`, up to the end of the file.
    pub(crate) fn range(&self, range: std::ops::Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; small(range.end.saturating_sub(range.start))];
        let read = self.read(&mut bytes, range.start);
        bytes.truncate(read);
        bytes
    }

    /// Flips one bit in the byte at `offset`.
    pub(crate) fn flip(&mut self, offset: u64, bit: u8) {
        let byte = self.range(offset..offset + 1);
        if let [byte] = byte[..] {
            self.write(&[byte ^ (1 << (bit % 8))], offset);
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8], offset: u64) {
        let pages = Arc::make_mut(&mut self.pages);
        for (page, within, range) in pieces(offset, bytes.len()) {
            let bytes = &bytes[range];
            let page = pages.entry(page).or_insert_with(|| Arc::clone(&ZEROS));
            if page[within..within + bytes.len()] != *bytes {
                Arc::make_mut(page)[within..within + bytes.len()].copy_from_slice(bytes);
            }
        }
        self.bytes = self.bytes.max(offset + bytes.len() as u64);
    }

    pub(crate) fn resize(&mut self, bytes: u64) {
        if bytes < self.bytes {
            let pages = Arc::make_mut(&mut self.pages);
            let (last, within) = (bytes / PAGE_BYTES as u64, small(bytes % PAGE_BYTES as u64));
            pages.retain(|page, _| *page < last || (*page == last && within > 0));
            if let Some(page) = pages.get_mut(&last) {
                Arc::make_mut(page)[within..].fill(0);
            }
        }
        self.bytes = bytes;
    }

    /// Allocates a range's pages, filled with zeros, and extends the file if it is shorter.
    pub(crate) fn reserve(&mut self, offset: u64, bytes: u64) {
        let pages = Arc::make_mut(&mut self.pages);
        for (page, _, _) in pieces(offset, small(bytes)) {
            pages.entry(page).or_insert_with(|| Arc::clone(&ZEROS));
        }
        self.bytes = self.bytes.max(offset + bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_behaves_like_a_sparse_file() {
        let mut content = Content::default();
        content.write(b"hello", 4094);
        let mut buffer = [7; 12];
        assert_eq!((content.read(&mut buffer, 4092), &buffer[..7]), (7, &b"\0\0hello"[..]));
        assert_eq!((content.pages(), content.pages_missing(0, 8193)), (2, 1));
        content.resize(4095);
        content.resize(8000);
        assert_eq!((content.read(&mut buffer, 4092), &buffer[..5]), (12, &b"\0\0h\0\0"[..]));
        content.reserve(8192, 1);
        assert_eq!((content.bytes(), content.pages()), (8193, 2));
    }
}
