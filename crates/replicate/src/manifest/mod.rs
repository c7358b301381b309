//! The manifest: the copy's only object that is replaced. It lists everything that belongs to the
//! copy, and names the process that may change it.

mod format;
mod history;
pub(crate) mod names;
pub(crate) mod object;

use std::time::Duration;

use haul_append_log::Lsn;

pub(crate) use format::{decode, encode};
pub(crate) use history::HistoryEntry;

use crate::lease::Version;

/// The number of bytes that the manifest keeps from a segment header, from which the header page is
/// rebuilt.
pub(crate) const HEADER_BYTES: usize = 48;

/// The segment header page's length, in bytes.
pub(crate) const HEADER_PAGE_BYTES: u32 = 4096;

/// The kind of a plain log's copy.
pub(crate) const LOG: &str = "log";

/// The kind of a file store's copy.
pub(crate) const STORE: &str = "file store";

/// A copy's state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Manifest {
    /// The number of times that the manifest was replaced.
    pub(crate) generation: u64,
    /// The number of times that a process took over the copy.
    pub(crate) epoch: u64,
    /// A random number that identifies the process that owns the copy.
    pub(crate) session: u128,
    /// The time at which this manifest was written, in milliseconds since 1970, by its writer's
    /// clock.
    pub(crate) written_ms: u64,
    /// The log's kind: "log" or "file store".
    pub(crate) kind: String,
    /// The segment directory, relative to the log's or store's directory: "" or "volumes".
    pub(crate) segment_dir: String,
    /// The segments, by ascending number.
    pub(crate) segments: Vec<SegmentCopy>,
    /// The last segment's newest bytes, which are in no chunk yet.
    pub(crate) tail: Vec<u8>,
    /// Small files beside the log: name and content.
    pub(crate) small_files: Vec<(String, Vec<u8>)>,
    /// The log position of the checkpoint in `index`; 0 if there is none.
    pub(crate) checkpoint: Lsn,
    /// The checkpoint's files.
    pub(crate) index: Vec<IndexFile>,
    /// The time within which the owner replaces this manifest again, in milliseconds; 0 if it makes
    /// no such promise.
    pub(crate) lease_ms: u64,
    /// The kept earlier states, by ascending generation.
    pub(crate) history: Vec<HistoryEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentCopy {
    pub(crate) number: u32,
    pub(crate) nonce: u64,
    pub(crate) header: [u8; HEADER_BYTES],
    /// `true` if no further records follow in this segment.
    pub(crate) is_complete: bool,
    /// The chunks, which are adjacent and begin at offset 0.
    pub(crate) chunks: Vec<Chunk>,
}

/// An object with a range of a segment's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The segment offset at which the range begins.
    pub(crate) from: u32,
    /// The segment offset at which the range ends.
    pub(crate) to: u32,
    /// The writer's epoch.
    pub(crate) epoch: u64,
    /// The CRC-32C over the bytes.
    pub(crate) checksum: u32,
}

/// An object with an index file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexFile {
    /// The file's name, relative to the store's directory.
    pub(crate) name: String,
    /// The length in bytes.
    pub(crate) bytes: u64,
    /// The writer's epoch.
    pub(crate) epoch: u64,
    /// The CRC-32C over the bytes.
    pub(crate) checksum: u32,
}

impl SegmentCopy {
    /// Returns the offset at which the chunks end.
    pub(crate) fn chunks_end(&self) -> u32 {
        self.chunks.last().map_or(0, |chunk| chunk.to)
    }

    /// `true` if one chunk has all bytes of the complete segment.
    pub(crate) fn is_merged(&self) -> bool {
        self.is_complete && self.chunks.len() == 1
    }

    pub(crate) fn header_page(&self) -> Vec<u8> {
        let mut page = self.header.to_vec();
        page.resize(HEADER_PAGE_BYTES as usize, 0);
        page
    }
}

impl Manifest {
    /// Returns this manifest's version, with its owner's lease.
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

    /// `true` if opening the store reads a segment: it has records after the checkpoint, or it is
    /// the last one.
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
