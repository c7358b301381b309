//! The thread that merges complete segments' chunks: it uploads each segment as one object.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use crate::error::{Error, Result};
use crate::manifest::names;
use crate::manifest::{Chunk, SegmentCopy};
use crate::remote::Remote;
use crate::ship::buffers::Buffers;
use crate::source::Source;

/// The number of bytes read and sent at a time.
const PIECE_BYTES: usize = 8 << 20;

/// The thread that merges. Dropping it ends the thread after the current segment.
#[derive(Debug)]
pub(crate) struct Merger {
    jobs: Option<Sender<SegmentCopy>>,
    merged: Receiver<(SegmentCopy, Option<Chunk>)>,
    /// The segment that is being merged.
    current: Option<u32>,
    thread: Option<JoinHandle<()>>,
}

/// The segments to merge, and the means to merge them.
#[derive(Debug)]
pub(crate) struct MergeJobs<S> {
    source: Arc<S>,
    remote: Remote,
    buffers: Buffers,
    epoch: u64,
    pub(crate) segments: Receiver<SegmentCopy>,
    merged: Sender<(SegmentCopy, Option<Chunk>)>,
}

impl<S: Source> MergeJobs<S> {
    /// Uploads a segment as one object. Returns `false` if the merger was dropped.
    pub(crate) fn merge(&self, segment: SegmentCopy) -> bool {
        let end = (segment.chunks_end(), self.epoch);
        let chunk = upload_whole(&*self.source, &self.remote, &self.buffers, &segment, end);
        self.merged.send((segment, chunk.ok())).is_ok()
    }
}

impl Merger {
    /// Returns a merger without a thread, and the jobs for a thread to execute.
    pub(super) fn new<S: Source>(
        source: Arc<S>,
        remote: Remote,
        buffers: Buffers,
        epoch: u64,
    ) -> (Self, MergeJobs<S>) {
        let (jobs, segments) = channel();
        let (results, merged) = channel();
        let merger = Self { jobs: Some(jobs), merged, current: None, thread: None };
        (merger, MergeJobs { source, remote, buffers, epoch, segments, merged: results })
    }

    pub(super) fn start<S: Source>(&mut self, jobs: MergeJobs<S>) -> std::io::Result<()> {
        let run = move || {
            while let Ok(segment) = jobs.segments.recv()
                && jobs.merge(segment)
            {}
        };
        self.thread = Some(Builder::new().name("replicate-merge".to_owned()).spawn(run)?);
        Ok(())
    }

    /// Requests to merge a segment, unless one is being merged.
    pub(crate) fn request(&mut self, segment: &SegmentCopy) {
        let Some(jobs) = self.jobs.as_ref().filter(|_| self.current.is_none()) else { return };
        if jobs.send(segment.clone()).is_ok() {
            self.current = Some(segment.number);
        }
    }

    /// Returns the segment that was merged since the last call, and the chunk with all its bytes;
    /// `None` as the chunk if it could not be merged.
    pub(crate) fn take(&mut self) -> Option<(SegmentCopy, Option<Chunk>)> {
        let merged = self.merged.try_recv().ok();
        if merged.is_some() {
            self.current = None;
        }
        merged
    }
}

impl Merger {
    /// Waits for the merge in progress, and ends the thread.
    pub(crate) fn finish(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Uploads a complete segment, which ends at `end`, as one object, from the local log.
pub(super) fn upload_whole(
    source: &impl Source,
    remote: &Remote,
    buffers: &Buffers,
    segment: &SegmentCopy,
    (end, epoch): (u32, u64),
) -> Result<Chunk> {
    let mut merged = Chunk { from: 0, to: end, epoch, checksum: 0 };
    let (name, mut at) = (names::chunk(segment, &merged), 0);
    let mut checksum = haul_crc::crc32c(b"");
    let mut next = || {
        if at == end {
            return Ok(None);
        }
        let mut piece = buffers.take();
        let log = source.log();
        // The records are verified again.
        let read = log.read_bytes(segment.number, at, PIECE_BYTES, &mut piece, &mut |_, _| {})?;
        at += read.bytes;
        if piece.is_empty() || at > end || read.segment.nonce != segment.nonce {
            let what = format!("segment {} differs from its copy", segment.number);
            return Err(Error::Invalid(what));
        }
        checksum = haul_crc::crc32c_append(checksum, &piece);
        Ok(Some(buffers.freeze(piece)))
    };
    remote.put_pieces(&name, &mut next)?;
    merged.checksum = checksum;
    Ok(merged)
}
