//! Replaces a complete segment's chunks by one.

use std::sync::Arc;

use crate::manifest::SegmentCopy;
use crate::manifest::names;
use crate::ship::merger::{MergeJobs, Merger};
use crate::ship::round::Shipper;
use crate::source::Source;

/// The number of chunks in a manifest, not counting one per segment, above which segments with few
/// chunks are merged, too. Each chunk takes about 15 bytes in the manifest.
const CHUNKS_MAX: usize = 4096;

impl<S: Source> Shipper<S> {
    pub(super) fn start_merger(&mut self) {
        let jobs = self.create_merger();
        if self.merger.as_mut().is_none_or(|merger| merger.start(jobs).is_err()) {
            self.merger = None;
        }
    }

    /// Requests merges from now on, and returns the jobs.
    pub(crate) fn create_merger(&mut self) -> MergeJobs<S> {
        let (source, remote) = (Arc::clone(&self.source), self.remote.clone());
        let (buffers, epoch) = (self.buffers.clone(), self.object.current().epoch);
        let (merger, jobs) = Merger::new(source, remote, buffers, epoch);
        self.merger = Some(merger);
        jobs
    }

    /// Replaces the chunks of the draft's segments that were merged.
    pub(super) fn apply_merges(&mut self) {
        while let Some((job, chunk)) = self.merger.as_mut().and_then(|merger| merger.take()) {
            let Some(chunk) = chunk else { continue };
            match self.draft.segments.iter_mut().find(|segment| **segment == job) {
                Some(segment) => {
                    let replaced = std::mem::replace(&mut segment.chunks, vec![chunk]);
                    self.garbage.extend(replaced.iter().map(|chunk| names::chunk(segment, chunk)));
                }
                // The log has removed the segment meanwhile.
                None => self.garbage.push(names::chunk(&job, &chunk)),
            }
        }
    }

    /// Requests the merge of the segment that [`select`] returns.
    pub(super) fn request_merge(&mut self) {
        let (chunk_bytes, is_quiet) = (self.options.chunk_bytes, self.is_quiet);
        if let Some(merger) = &mut self.merger
            && let Some(segment) = select(&self.draft.segments, chunk_bytes, is_quiet)
        {
            merger.request(segment);
        }
    }
}

/// Returns the segment to be merged next, if there is one.
///
/// A merge sends all of a segment's bytes a second time. It pays if the chunks are many and small:
/// the oldest complete segment is selected whose chunks have less than half of `chunk_bytes` on
/// average. Other segments are only merged if the manifest lists too many chunks, and while writers
/// leave time for it.
fn select(segments: &[SegmentCopy], chunk_bytes: usize, is_quiet: bool) -> Option<&SegmentCopy> {
    let mut due = segments.iter().filter(|segment| segment.is_complete && !segment.is_merged());
    let has_small_chunks = |segment: &&SegmentCopy| {
        (segment.chunks_end() as usize) < segment.chunks.len() * chunk_bytes / 2
    };
    let extra = || segments.iter().map(|segment| segment.chunks.len().saturating_sub(1)).sum();
    due.clone()
        .find(has_small_chunks)
        .or_else(|| due.next().filter(|_| is_quiet && CHUNKS_MAX < extra()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Chunk, HEADER_BYTES};

    /// Returns a segment with `count` chunks of `bytes` bytes.
    fn segment(number: u32, is_complete: bool, count: u32, bytes: u32) -> SegmentCopy {
        let chunk = |index| {
            let (from, to) = (index * bytes, (index + 1) * bytes);
            Chunk { from, to, epoch: 1, checksum: 0 }
        };
        let (nonce, header) = (7, [0; HEADER_BYTES]);
        SegmentCopy { number, nonce, header, is_complete, chunks: (0..count).map(chunk).collect() }
    }

    #[test]
    fn segments_with_small_chunks_are_merged_the_oldest_first() {
        let whole = segment(1, true, 1, 1000);
        let large = segment(2, true, 10, 512);
        let small = segment(3, true, 10, 511);
        let last = segment(5, false, 10, 10);
        let segments = [whole, large, small, segment(4, true, 2, 10), last];
        for is_quiet in [false, true] {
            let selected = |until: usize| {
                select(&segments[..until], 1024, is_quiet).map(|segment| segment.number)
            };
            assert_eq!([2, 3, 5].map(selected), [None, Some(3), Some(3)]);
            assert_eq!(select(&segments[3..], 1024, is_quiet), Some(&segments[3]));
            assert_eq!(select(&segments[4..], 1024, is_quiet), None);
        }
    }

    #[test]
    fn segments_with_large_chunks_are_merged_if_there_are_too_many_and_no_bytes_to_ship() {
        let mut segments: Vec<_> = (1..=256).map(|number| segment(number, true, 17, 512)).collect();
        assert_eq!(select(&segments, 1024, true), None);
        segments.push(segment(257, false, 2, 512));
        assert_eq!(select(&segments, 1024, false), None);
        assert_eq!(select(&segments, 1024, true), Some(&segments[0]));
    }
}
