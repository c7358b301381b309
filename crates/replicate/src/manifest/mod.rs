//! The manifest: the only object of a copy that is replaced. It lists everything that belongs to
//! the copy, and names the process that may change it.

mod format;
mod history;
pub(crate) mod object;

use std::time::Duration;

use haul_append_log::Lsn;

pub(crate) use format::{decode, encode};
pub(crate) use history::HistoryEntry;

use crate::lease::Version;

/// The bytes of a segment header that the manifest keeps, from which its header page is rebuilt.
pub(crate) const HEADER_BYTES: usize = 48;

/// The length of the header page of a segment.
pub(crate) const HEADER_PAGE_BYTES: u32 = 4096;

/// The kind of the copy of a plain log.
pub(crate) const LOG: &str = "log";

/// The kind of the copy of a file store.
pub(crate) const STORE: &str = "file store";

/// The state of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Manifest {
    /// The number of times that the manifest was replaced.
    pub(crate) generation: u64,
    /// The number of times that a process took over the copy.
    pub(crate) epoch: u64,
    /// A random number of the process that owns the copy.
    pub(crate) session: u128,
    /// The time of this manifest, in milliseconds since 1970, by the clock of its writer.
    pub(crate) written_ms: u64,
    /// The kind of the log: "log" or "file store".
    pub(crate) kind: String,
    /// The directory of the segments, relative to that of the log or store: "" or "volumes".
    pub(crate) segment_dir: String,
    /// The segments, in ascending order of their numbers.
    pub(crate) segments: Vec<SegmentCopy>,
    /// The last bytes of the last segment, which are in no chunk yet.
    pub(crate) tail: Vec<u8>,
    /// Small files beside the log: name and content.
    pub(crate) small_files: Vec<(String, Vec<u8>)>,
    /// The place of the checkpoint that `index` holds; 0 if there is none.
    pub(crate) checkpoint: Lsn,
    /// The files of a checkpoint.
    pub(crate) index: Vec<IndexFile>,
    /// The time within which the owner replaces this manifest again, in milliseconds; 0 if it makes
    /// no such promise.
    pub(crate) lease_ms: u64,
    /// The earlier states that are kept, in ascending order of their generations.
    pub(crate) history: Vec<HistoryEntry>,
}

/// A segment of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentCopy {
    /// The segment number.
    pub(crate) number: u32,
    /// The nonce of the segment.
    pub(crate) nonce: u64,
    /// The header of the segment.
    pub(crate) header: [u8; HEADER_BYTES],
    /// `true` if no further records follow in this segment.
    pub(crate) is_complete: bool,
    /// The chunks, which are adjacent and begin at offset 0.
    pub(crate) chunks: Vec<Chunk>,
}

/// An object with a range of the bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The offset in the segment at which the range begins.
    pub(crate) from: u32,
    /// The offset at which the range ends.
    pub(crate) to: u32,
    /// The epoch of the writer.
    pub(crate) epoch: u64,
    /// The CRC-32C of the bytes.
    pub(crate) checksum: u32,
}

/// An object with a file of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexFile {
    /// The name of the file, relative to the directory of the store.
    pub(crate) name: String,
    /// The length in bytes.
    pub(crate) bytes: u64,
    /// The epoch of the writer.
    pub(crate) epoch: u64,
    /// The CRC-32C of the bytes.
    pub(crate) checksum: u32,
}

impl SegmentCopy {
    /// Returns the end of the chunks.
    pub(crate) fn chunks_end(&self) -> u32 {
        self.chunks.last().map_or(0, |chunk| chunk.to)
    }

    /// `true` if one chunk has all bytes of the complete segment.
    pub(crate) fn is_merged(&self) -> bool {
        self.is_complete && self.chunks.len() == 1
    }

    /// Returns the header page of the segment.
    pub(crate) fn header_page(&self) -> Vec<u8> {
        let mut page = self.header.to_vec();
        page.resize(HEADER_PAGE_BYTES as usize, 0);
        page
    }
}

impl Manifest {
    /// Returns the version of this manifest, with the lease of its owner.
    pub(crate) fn version(&self) -> Version {
        let lease = (self.lease_ms > 0).then(|| Duration::from_millis(self.lease_ms));
        Version { generation: self.generation, session: self.session, lease }
    }

    /// Returns the end of the log in the copy.
    #[must_use]
    pub(crate) fn end(&self) -> Lsn {
        let Some(last) = self.segments.last() else { return Lsn::default() };
        let tail = u32::try_from(self.tail.len()).unwrap_or(u32::MAX);
        Lsn::new(last.number, last.chunks_end().saturating_add(tail))
    }

    /// `true` if opening the store reads a segment: it has records after the checkpoint, or it is the
    /// last one.
    pub(crate) fn is_recent(&self, segment: &SegmentCopy) -> bool {
        let is_last = self.segments.last().is_some_and(|last| last.number == segment.number);
        is_last || !segment.is_complete || segment.number >= self.checkpoint.segment()
    }

    /// Returns the manifest with only the segments that opening the store reads.
    pub(crate) fn recent(&self) -> Self {
        let mut recent = self.clone();
        recent.segments.retain(|segment| self.is_recent(segment));
        recent
    }

    /// Returns a description of the writer, for messages.
    pub(crate) fn writer(&self) -> String {
        let Self { epoch, generation, session, .. } = self;
        format!("epoch {epoch}, generation {generation}, session {session:032x}")
    }
}
