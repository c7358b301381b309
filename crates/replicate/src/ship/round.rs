//! One shipping round: everything that is durable in the log, committed by one manifest.

use std::sync::Arc;
use std::time::Instant;

use haul_append_log::{Lsn, SegmentInfo};

use crate::error::Result;
use crate::manifest::Manifest;
use crate::manifest::names;
use crate::options::Options;
use crate::owner::OwnedManifest;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::ship::age::{HistoryAge, now_ms};
use crate::ship::buffers::Buffers;
use crate::ship::discarded::Discarded;
use crate::ship::merger::Merger;
use crate::ship::stored_files::StoredFiles;
use crate::source::Source;

/// The shipping thread's state.
#[derive(Debug)]
pub(crate) struct Shipper<S> {
    pub(super) source: Arc<S>,
    pub(super) remote: Remote,
    pub(super) options: Options,
    pub(crate) object: OwnedManifest,
    /// The next manifest: the objects uploaded so far, and the tail.
    pub(super) draft: Manifest,
    /// The big-object files that are known to be in the remote store.
    pub(super) stored_files: StoredFiles,
    /// The time of the last search for removed files.
    pub(super) files_searched: Option<Instant>,
    /// The time at which the checkpoint was last shipped.
    pub(super) checkpoint_shipped: Option<Instant>,
    /// The objects to delete once no manifest refers to them, by name.
    pub(super) garbage: Vec<String>,
    /// Discarded objects that kept states, or readers, may still need.
    pub(super) retained: Vec<Discarded>,
    /// The time at which a state was last kept.
    pub(super) history_kept: Option<Instant>,
    pub(super) history_age: HistoryAge,
    pub(super) merger: Option<Merger>,
    pub(super) buffers: Buffers,
    /// The bytes of the log's tail that manifests have sent since the last chunk was uploaded. Each
    /// manifest sends the whole tail again.
    pub(super) tail_sent: usize,
    /// `true` if the current round has uploaded no log bytes except in the manifest.
    pub(super) is_quiet: bool,
}

impl<S: Source> Shipper<S> {
    /// Returns a shipper that has claimed the copy.
    pub(super) fn new(
        source: Arc<S>,
        remote: Remote,
        options: Options,
        object: OwnedManifest,
    ) -> Self {
        let draft = object.current().clone();
        let buffers = Buffers::new(options.chunk_bytes);
        Self {
            source,
            remote,
            options,
            object,
            draft,
            stored_files: StoredFiles::default(),
            files_searched: None,
            checkpoint_shipped: None,
            garbage: Vec::new(),
            retained: Vec::new(),
            history_kept: None,
            history_age: HistoryAge::new(),
            merger: None,
            buffers,
            tail_sent: 0,
            is_quiet: true,
        }
    }

    /// `true` if the log has records that no round has shipped.
    pub(super) fn is_behind(&self, shipped: Lsn) -> bool {
        self.source.log().synced() > shipped
    }

    /// Runs a round, and publishes its end or its failure.
    pub(crate) fn ship(&mut self, progress: &Progress) -> Result<Lsn> {
        let ended = self.round();
        match &ended {
            Ok(end) => progress.advance(*end, self.is_behind(*end)),
            Err(error) => progress.note_failure(error),
        }
        ended
    }

    /// Ships everything that is durable when this is called, and returns its end.
    ///
    /// 1. Uploads chunks, big-object files and the checkpoint. A crash leaves objects that no
    ///    manifest refers to.
    /// 2. Replaces the manifest. From here on the copy has the new end.
    /// 3. Deletes the objects that only earlier manifests refer to. A crash leaves some of them.
    fn round(&mut self) -> Result<Lsn> {
        self.is_quiet = true;
        self.apply_merges();
        // Before the log's end is determined.
        let removed_files = self.removed_files()?;
        let end = self.upload()?;
        self.draft.generation = self.object.current().generation;
        self.draft.written_ms = self.object.current().written_ms;
        if self.draft != *self.object.current() {
            self.keep_history()?;
            self.draft.written_ms = now_ms();
            self.tail_sent += self.draft.tail.len();
            self.object.replace(self.draft.clone())?;
            self.draft = self.object.current().clone();
        }
        self.delete_files(&removed_files);
        self.delete_garbage();
        self.request_merge();
        if self.is_quiet {
            self.buffers.shrink();
        }
        Ok(end)
    }

    /// Waits for the merge in progress, and deletes unneeded objects.
    pub(crate) fn finish(&mut self) {
        if let Some(merger) = &mut self.merger {
            merger.finish();
        }
        self.apply_merges();
        // The chunks that were merged stay in the manifest, which is not replaced any more.
        self.garbage.extend(
            self.draft.segments.iter().flat_map(|segment| {
                segment.chunks.iter().map(|chunk| names::chunk(segment, chunk))
            }),
        );
        self.delete_garbage();
    }

    /// Uploads until the draft is a consistent state of the log, and returns the end of that state.
    ///
    /// If a segment or file is removed during its upload, its live records were appended again
    /// before: the draft is extended to the log's new end, so that it has them.
    fn upload(&mut self) -> Result<Lsn> {
        let mut must_ship_checkpoint = false;
        loop {
            // The checkpoint is older than the log's end, which is determined after it.
            self.ship_checkpoint(must_ship_checkpoint)?;
            // A segment is removed after its live records were appended to others. They lie before
            // the log's end if this is determined after the segments.
            let segments = self.source.log().segments();
            let end = self.source.log().synced();
            self.drop_removed(&segments);
            let has_missed = self.ship_segments(&segments)?;
            if has_missed {
                continue;
            }
            let copied = self.copied_segments(&segments);
            let small = self.source.small_files(&copied)?;
            self.draft.small_files = small.files;
            if small.checkpoint_min > self.draft.checkpoint
                && self.draft.checkpoint > Lsn::default()
            {
                if !must_ship_checkpoint {
                    must_ship_checkpoint = true;
                    continue;
                }
                self.drop_checkpoint();
            }
            return Ok(end);
        }
    }

    /// Removes the segments from the draft that the log no longer has.
    fn drop_removed(&mut self, segments: &[SegmentInfo]) {
        let exists = |number: u32, nonce: u64| {
            segments.iter().any(|segment| segment.number == number && segment.nonce == nonce)
        };
        let last = self.draft.segments.last().map(|segment| segment.number);
        let removed: Vec<_> = self
            .draft
            .segments
            .extract_if(.., |segment| !exists(segment.number, segment.nonce))
            .collect();
        for segment in removed {
            if Some(segment.number) == last {
                self.draft.tail.clear();
            }
            self.garbage.extend(segment.chunks.iter().map(|chunk| names::chunk(&segment, chunk)));
        }
    }

    /// Returns the segments that the draft has.
    fn copied_segments(&self, segments: &[SegmentInfo]) -> Vec<SegmentInfo> {
        let copies = &self.draft.segments;
        let has = |segment: &SegmentInfo| {
            copies.binary_search_by_key(&segment.number, |copy| copy.number).is_ok()
        };
        segments.iter().copied().filter(has).collect()
    }
}
