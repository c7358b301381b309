//! Ships segments' bytes as chunks, and the newest ones in the manifest tail.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::{Position, SegmentBytes, SegmentInfo};

use crate::error::{Error, Result};
use crate::manifest::names;
use crate::manifest::{Chunk, HEADER_BYTES, Manifest, SegmentCopy};
use crate::ship::merger::upload_whole;
use crate::ship::round::Shipper;
use crate::source::Source;

/// The number of chunks that are uploaded together.
const CHUNKS_TOGETHER: usize = 4;

/// The draft while segments are shipped.
struct Advance<'a, S> {
    shipper: &'a mut Shipper<S>,
    next: Manifest,
    /// The chunks in `next` that are not uploaded yet.
    chunks: Vec<(String, Bytes)>,
    /// `true` if a segment or file was removed before it was read.
    has_missed: bool,
}

impl<S: Source> Shipper<S> {
    /// Ships these segments' durable bytes and the files that their records refer to. Returns
    /// `true` if some of them were removed meanwhile.
    pub(super) fn ship_segments(&mut self, segments: &[SegmentInfo]) -> Result<bool> {
        let mut tail = self.buffers.take();
        tail.extend_from_slice(&self.draft.tail);
        let next = Manifest { tail, ..self.draft.clone() };
        let mut advance = Advance { shipper: self, next, chunks: Vec::new(), has_missed: false };
        for segment in segments {
            match advance.ship_segment(*segment) {
                Err(_) if !advance.exists(*segment) => {
                    advance.has_missed = true;
                    break;
                }
                shipped => shipped?,
            }
        }
        advance.finish()
    }
}

impl<S: Source> Advance<'_, S> {
    /// Ships a segment's durable bytes that are not in `next`.
    fn ship_segment(&mut self, segment: SegmentInfo) -> Result<()> {
        if self.position(segment)? == Some(0) && self.ship_whole(segment)? {
            return Ok(());
        }
        while let Some(from) = self.position(segment)? {
            let source = self.shipper.source.as_ref();
            let tail = &mut self.next.tail;
            let space = self.shipper.options.chunk_bytes - tail.len();
            let mut files = Vec::new();
            let each = &mut |_: Position, payload: &[u8]| collect(source, payload, &mut files);
            let read = source.log().read_bytes(segment.number, from, space, tail, each)?;
            if read.bytes == 0 && !read.is_complete {
                break;
            }
            self.ship_files(files)?;
            self.appended(segment, read)?;
        }
        Ok(())
    }

    /// Ships a segment as one object if `next` has nothing of it, and it is complete and longer
    /// than a chunk. Otherwise returns `false`.
    fn ship_whole(&mut self, segment: SegmentInfo) -> Result<bool> {
        let source = Arc::clone(&self.shipper.source);
        if source.log().synced().segment() <= segment.number {
            return Ok(false);
        }
        let (mut end, mut header, mut files) = (0, None, Vec::new());
        let mut bytes = self.shipper.buffers.take();
        loop {
            let space = self.shipper.options.chunk_bytes;
            bytes.clear();
            let each = &mut |_: Position, payload: &[u8]| collect(&*source, payload, &mut files);
            let read = source.log().read_bytes(segment.number, end, space, &mut bytes, each)?;
            header = header.or(bytes.first_chunk::<HEADER_BYTES>().copied());
            end += read.bytes;
            if read.is_complete {
                break;
            }
            if read.bytes == 0 {
                return Ok(false);
            }
        }
        self.shipper.buffers.put(bytes);
        let Some(header) = header.filter(|_| end as usize > self.shipper.options.chunk_bytes)
        else {
            return Ok(false);
        };
        self.ship_files(files)?;
        let SegmentInfo { number, nonce, .. } = segment;
        let mut copy = SegmentCopy { number, nonce, header, is_complete: true, chunks: Vec::new() };
        let Shipper { remote, buffers, .. } = &*self.shipper;
        copy.chunks.push(upload_whole(&*source, remote, buffers, &copy, (end, self.next.epoch))?);
        self.next.segments.push(copy);
        self.shipper.is_quiet = false;
        // Makes the segment part of the draft, which a later segment's failure does not change.
        self.upload()?;
        Ok(true)
    }

    /// Ships the files that records refer to.
    fn ship_files(&mut self, files: Vec<Result<Vec<String>>>) -> Result<()> {
        for names in files {
            for name in names? {
                self.has_missed |= !self.shipper.ship_file(&name)?;
            }
        }
        Ok(())
    }

    /// Returns the offset of a segment's first byte that is not in `next`; `None` if `next` has all
    /// of its bytes.
    fn position(&self, segment: SegmentInfo) -> Result<Option<u32>> {
        let copies = &self.next.segments;
        let found = copies.binary_search_by_key(&segment.number, |copy| copy.number);
        let Some(copy) = found.ok().and_then(|index| copies.get(index)) else {
            let is_older = |copy: &SegmentCopy| copy.number > segment.number;
            // An older segment that the copy does not have was empty when the copy passed it.
            let is_passed = self.next.segments.last().is_some_and(is_older);
            return Ok((!is_passed).then_some(0));
        };
        if copy.nonce != segment.nonce {
            let what = format!("segment {} has another nonce", segment.number);
            return Err(Error::NotThisLog { what });
        }
        let tail = u32::try_from(self.next.tail.len()).unwrap_or(u32::MAX);
        Ok((!copy.is_complete).then(|| copy.chunks_end() + tail))
    }

    /// Adds a segment, whose first bytes were appended to the tail, to `next`, and turns a complete
    /// tail into a chunk.
    fn appended(&mut self, segment: SegmentInfo, read: SegmentBytes) -> Result<()> {
        if self.next.segments.last().is_none_or(|last| last.number < segment.number) {
            let Some(header) = self.next.tail.first_chunk::<HEADER_BYTES>() else {
                // A segment without records is not copied.
                self.has_missed = true;
                return Ok(());
            };
            let (number, nonce, chunks) = (segment.number, segment.nonce, Vec::new());
            self.next.segments.push(SegmentCopy {
                number,
                nonce,
                header: *header,
                is_complete: false,
                chunks,
            });
        }
        if let Some(last) = self.next.segments.last_mut() {
            last.is_complete = read.is_complete;
        }
        if read.is_complete || self.next.tail.len() >= self.shipper.options.chunk_bytes {
            self.cut_chunk()?;
        }
        Ok(())
    }

    /// Turns the tail into a chunk.
    fn cut_chunk(&mut self) -> Result<()> {
        let epoch = self.next.epoch;
        let Some(segment) = self.next.segments.last_mut() else { return Ok(()) };
        if self.next.tail.is_empty() {
            return Ok(());
        }
        let buffers = &self.shipper.buffers;
        let bytes = std::mem::replace(&mut self.next.tail, buffers.take());
        let bytes = buffers.freeze(bytes);
        let from = segment.chunks_end();
        let to = from + u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let chunk = Chunk { from, to, epoch, checksum: haul_crc::crc32c(&bytes) };
        self.chunks.push((names::chunk(segment, &chunk), bytes));
        (self.shipper.is_quiet, self.shipper.tail_sent) = (false, 0);
        segment.chunks.push(chunk);
        // A chunk with a long record is longer than `chunk_bytes`.
        let bytes: usize = self.chunks.iter().map(|(_, bytes)| bytes.len()).sum();
        let bytes_max = CHUNKS_TOGETHER * self.shipper.options.chunk_bytes;
        let is_enough = self.chunks.len() >= CHUNKS_TOGETHER || bytes >= bytes_max;
        if is_enough { self.upload() } else { Ok(()) }
    }

    /// Uploads the chunks, and makes `next` the draft.
    fn upload(&mut self) -> Result<()> {
        let chunks = std::mem::take(&mut self.chunks);
        let names: Vec<_> = chunks.iter().map(|(name, _)| name.clone()).collect();
        if let Err(error) = self.shipper.remote.put_all(chunks) {
            // The next attempt may divide the bytes at other offsets.
            self.shipper.garbage.extend(names);
            return Err(error);
        }
        self.shipper.draft.clone_from(&self.next);
        Ok(())
    }

    fn finish(mut self) -> Result<bool> {
        let Shipper { options, draft, tail_sent, .. } = &*self.shipper;
        let has_grown = self.next.tail.len() > draft.tail.len();
        let is_sent_too_often = has_grown && *tail_sent > options.tail_bytes_max;
        if is_sent_too_often || self.next.tail.len() > options.tail_bytes_max {
            self.cut_chunk()?;
        }
        self.upload()?;
        self.shipper.buffers.put(self.next.tail);
        Ok(self.has_missed)
    }

    /// `true` if the log still has the segment.
    fn exists(&self, segment: SegmentInfo) -> bool {
        self.shipper.source.log().segments().contains(&segment)
    }
}

/// Adds the names of the files that a record refers to.
fn collect(source: &impl Source, payload: &[u8], files: &mut Vec<Result<Vec<String>>>) {
    match source.record_files(payload) {
        Ok(names) if names.is_empty() => {}
        found => files.push(found),
    }
}
