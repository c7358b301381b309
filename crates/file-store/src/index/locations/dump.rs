//! Encodes a whole table as a dump in a file, and loads it from there.
//!
//! A dump is a sequence of chunks, each with one or more pages in hash order:
//!
//! | bytes | field of a page, little-endian |
//! |---|---|
//! | 8 | the smallest hash of the page |
//! | 4 | the number of entries |
//! | 2 | the depth |
//! | 2 | the length of a value, in bits |
//! | 8 each | words of the groups; none without entries |
//! | 8 each | words of the slots |
//!
//! Chunks have no checksums; the caller adds them.

use std::sync::Arc;

use super::page::Page;
use super::{DEPTH_MAX, DEPTH_MIN, Locations, is_depth_allowed};

/// The length at which a chunk is complete.
const CHUNK_BYTES: usize = 256 << 10;

const WORD_BYTES: usize = 8;

/// The number of hashes, which is the end of the last page.
const HASHES_END: u128 = 1 << 64;

#[derive(Debug)]
pub(crate) struct Snapshot {
    /// All pages, in hash order.
    pages: Vec<Arc<Page>>,
}

impl Snapshot {
    pub(super) const fn new(pages: Vec<Arc<Page>>) -> Self {
        Self { pages }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> u64 {
        self.pages.iter().map(|page| page.len() as u64).sum()
    }

    /// Encodes the snapshot in chunks of about 256 KiB. Releases each page after encoding it, so
    /// that changes of the table need not copy the page.
    pub(crate) fn chunks(self) -> impl Iterator<Item = Vec<u8>> {
        let mut pages = self.pages.into_iter();
        let mut hash = 0;
        std::iter::from_fn(move || {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
            while chunk.len() < CHUNK_BYTES {
                let Some(page) = pages.next() else { break };
                hash = encode_page(&mut chunk, hash, &page);
            }
            (!chunk.is_empty()).then_some(chunk)
        })
    }
}

/// Appends the page whose smallest hash is `hash`. Returns the next page's smallest hash.
fn encode_page(chunk: &mut Vec<u8>, hash: u64, page: &Page) -> u64 {
    chunk.extend_from_slice(&hash.to_le_bytes());
    chunk.extend_from_slice(&(page.len() as u64).to_le_bytes()[..4]);
    chunk.extend_from_slice(&page.depth().to_le_bytes()[..2]);
    chunk.extend_from_slice(&page.value_bits().to_le_bytes()[..2]);
    let (groups, slots) = page.encode();
    chunk.extend(groups.iter().chain(&slots).flat_map(|word| word.to_le_bytes()));
    hash.wrapping_add(1 << (64 - page.depth()))
}

/// The reason why a dump cannot be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoadError {
    /// A chunk ends within a page.
    #[error("a page of the index is incomplete")]
    Truncated,
    /// A depth is out of range, or too great for the number of pages.
    #[error("a page of the index has an invalid depth")]
    Depth,
    /// A page does not start where the previous page ends.
    #[error("a page of the index is missing, repeated or out of order")]
    Range,
    /// The length of a value is out of range.
    #[error("a page of the index has values of an invalid length")]
    Values,
    /// The words encode another number of entries, or have other bits set.
    #[error("a page of the index has invalid entries")]
    Entries,
    /// Pages are missing at the end.
    #[error("the last pages of the index are missing")]
    Incomplete,
}

/// Builds a table from the chunks of a dump. Its memory is bounded by a multiple of the chunks.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    pages: Vec<Arc<Page>>,
    /// The words of one page.
    words: Vec<u64>,
    /// The first hash of the next page.
    next: u128,
}

impl Loader {
    /// Creates a loader for the first chunk.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the next chunk. After an error, the loader must not be used again.
    ///
    /// # Errors
    /// Fails if the chunk is inconsistent or does not follow the previous one.
    pub(crate) fn add(&mut self, mut chunk: &[u8]) -> Result<(), LoadError> {
        while !chunk.is_empty() {
            chunk = self.add_page(chunk)?;
        }
        Ok(())
    }

    /// Returns the table after the last chunk.
    ///
    /// # Errors
    /// Fails if pages are missing.
    pub(crate) fn finish(self) -> Result<Locations, LoadError> {
        if self.next != HASHES_END {
            return Err(LoadError::Incomplete);
        }
        let depth = self.pages.iter().map(|page| page.depth()).max().unwrap_or(0);
        if !is_depth_allowed(depth, self.pages.len()) {
            return Err(LoadError::Depth);
        }
        Ok(Locations::from_pages(self.pages))
    }

    /// Adds the first page of a chunk and returns the rest of the chunk.
    fn add_page<'a>(&mut self, chunk: &'a [u8]) -> Result<&'a [u8], LoadError> {
        let (header, rest) = Header::decode(chunk).ok_or(LoadError::Truncated)?;
        let Header { hash, len, depth, value_bits } = header;
        if !(DEPTH_MIN..=DEPTH_MAX).contains(&depth) {
            return Err(LoadError::Depth);
        }
        let hashes = 1 << (64 - depth);
        if u128::from(hash) != self.next || !hash.is_multiple_of(hashes) {
            return Err(LoadError::Range);
        }
        let words = Page::encoded_words(depth, value_bits, len).ok_or(LoadError::Values)?;
        let (words, rest) =
            rest.split_at_checked(words * WORD_BYTES).ok_or(LoadError::Truncated)?;
        self.words.clear();
        self.words.extend(words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
        let page = Page::decode(depth, value_bits, len, &self.words).ok_or(LoadError::Entries)?;
        self.pages.push(Arc::new(page));
        self.next += u128::from(hashes);
        Ok(rest)
    }
}

/// What precedes a page's words.
struct Header {
    hash: u64,
    len: usize,
    depth: u32,
    value_bits: u32,
}

impl Header {
    /// Returns the header at the beginning of `bytes`, and the remaining bytes.
    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (hash, bytes) = bytes.split_first_chunk()?;
        let (len, bytes) = bytes.split_first_chunk()?;
        let (depth, bytes) = bytes.split_first_chunk()?;
        let (value_bits, bytes) = bytes.split_first_chunk()?;
        let header = Self {
            hash: u64::from_le_bytes(*hash),
            len: u32::from_le_bytes(*len) as usize,
            depth: u16::from_le_bytes(*depth).into(),
            value_bits: u16::from_le_bytes(*value_bits).into(),
        };
        Some((header, bytes))
    }
}
