//! Replaces the chunks of a complete segment by one.

use std::sync::Arc;

use crate::manifest::SegmentCopy;
use crate::names;
use crate::ship::merger::Merger;
use crate::ship::round::Shipper;
use crate::source::Source;

impl<S: Source> Shipper<S> {
    /// Starts the thread that merges.
    pub(super) fn start_merger(&mut self) {
        let (source, remote) = (Arc::clone(&self.source), self.remote.clone());
        self.merger = Merger::start(source, remote, self.object.current().epoch).ok();
    }

    /// Replaces the chunks of the segments in the draft that were merged.
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

    /// Requests the merge of the oldest complete segment of several chunks.
    pub(super) fn request_merge(&mut self) {
        let is_due = |segment: &&SegmentCopy| segment.is_complete && !segment.is_merged();
        if let Some(merger) = &mut self.merger
            && let Some(segment) = self.draft.segments.iter().find(is_due)
        {
            merger.request(segment);
        }
    }
}
