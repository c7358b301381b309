//! Collects records in a buffer, and writes and syncs them together.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::{AlignedBuf, PAGE_BYTES, align_down, align_up};

use crate::append::buffers::append_buffer;
use crate::append::policy::padding::padding_bytes;
use crate::append::writer::Writer;
use crate::format::{Kind, RECORD_HEADER_BYTES, RecordHeader, record_bytes};
use crate::lsn::Lsn;
use crate::segments::Segment;
use crate::stats::Counters;

/// The segment to which a batch is written, with its writer.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    pub(crate) segment: Arc<Segment>,
    pub(crate) writer: Writer,
}

/// A record's payload, in parts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Payload<'a> {
    pub(crate) parts: &'a [&'a [u8]],
    /// The parts' total length.
    pub(crate) bytes: usize,
    pub(crate) checksum: u32,
}

/// A batch: the records that one write and one sync add to a segment. The buffer holds whole
/// segment pages. The first page may begin with records that are already synced.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) tail: Tail,
    buffer: AlignedBuf,
    /// The segment offset to which the buffer is written, a multiple of the page length.
    start: u32,
    /// The number of synced bytes at the beginning of the buffer. They are written again unchanged,
    /// so that a torn write of the page cannot damage them.
    carried: usize,
    used: usize,
    /// The number of data records in the batch.
    pub(crate) records: u32,
    /// The length in bytes of the batch's only data record; 0 if the batch has several. Until a
    /// data record is appended, the previous batch's value in the same segment.
    lone_bytes: usize,
    /// The previous batch's `lone_bytes`.
    lone_before: usize,
    /// `true` if the last record is a seal, which ends the segment.
    pub(crate) sealed: bool,
}

impl Batch {
    pub(crate) fn in_new_segment(tail: Tail, buffer: AlignedBuf) -> Self {
        Self::with_carried(tail, buffer, crate::format::HEADER_BYTES, 0)
    }

    /// Creates a batch whose first record begins at `end`, and reads the bytes before `end` in the
    /// same page.
    pub(crate) fn resume(tail: Tail, end: u32, buffer_bytes: usize) -> haul_disk::Result<Self> {
        debug_assert!((crate::format::HEADER_BYTES..=tail.segment.limit).contains(&end));
        let mut buffer = append_buffer(buffer_bytes);
        let start = page_start(end);
        let carried = (end - start) as usize;
        haul_disk::read_full(&*tail.segment.file, &mut buffer[..carried], u64::from(start))?;
        Ok(Self::with_carried(tail, buffer, start, carried))
    }

    /// Creates the next batch in the same segment, beginning with a copy of the partial last page
    /// of this batch.
    pub(crate) fn followed_in(&self, mut buffer: AlignedBuf) -> Self {
        debug_assert!(!self.sealed, "a record after a seal is never read");
        let end = self.offset();
        let start = page_start(end);
        let carried = (end - start) as usize;
        debug_assert!(carried <= self.used);
        buffer[..carried].copy_from_slice(&self.buffer[self.used - carried..self.used]);
        let lone = self.lone_bytes;
        let batch = Self::with_carried(self.tail.clone(), buffer, start, carried);
        Self { lone_bytes: lone, lone_before: lone, ..batch }
    }

    /// Creates a batch without new records, whose buffer holds `carried` synced bytes.
    fn with_carried(tail: Tail, buffer: AlignedBuf, start: u32, carried: usize) -> Self {
        debug_assert_eq!(
            start % crate::format::HEADER_BYTES,
            0,
            "direct writes are of whole pages"
        );
        debug_assert!(carried < PAGE_BYTES && carried <= buffer.len());
        debug_assert_eq!(buffer.len() % PAGE_BYTES, 0);
        Self {
            tail,
            buffer,
            start,
            carried,
            used: carried,
            records: 0,
            lone_bytes: 0,
            lone_before: 0,
            sealed: false,
        }
    }

    pub(crate) fn has_new(&self) -> bool {
        self.used > self.carried
    }

    /// Returns the number of bytes in the batch, including the synced bytes at its beginning.
    pub(crate) fn bytes(&self) -> u64 {
        self.used as u64
    }

    /// Returns the next record's offset in the segment.
    pub(crate) fn offset(&self) -> u32 {
        self.start + offset_of(self.used)
    }

    /// Returns the LSN at which the next record will begin.
    pub(crate) fn end(&self) -> Lsn {
        Lsn::new(self.tail.segment.number, self.offset())
    }

    /// `true` if a record of `record_bytes` bytes and a seal fit into the rest of the buffer.
    pub(crate) fn fits(&self, record_bytes: usize) -> bool {
        self.used + record_bytes + crate::format::record_bytes(0) <= self.buffer.len()
    }

    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Moves the records to a longer buffer, and returns the old buffer.
    pub(crate) fn grow(&mut self, mut longer: AlignedBuf) -> AlignedBuf {
        debug_assert!(longer.len() > self.buffer.len());
        longer[..self.used].copy_from_slice(&self.buffer[..self.used]);
        std::mem::replace(&mut self.buffer, longer)
    }

    /// Appends a record, for which [`Self::fits`] must be `true`.
    ///
    /// The record's `synced` field is the LSN of the batch's first record: the batch is written
    /// only after the previous batch is synced.
    pub(crate) fn push(&mut self, kind: Kind, payload: &Payload<'_>) -> Lsn {
        debug_assert!(!self.sealed, "a record after a seal is never read");
        debug_assert_eq!(parts_bytes(payload), payload.bytes);
        // Space for a seal is always left.
        debug_assert!(kind == Kind::Seal || self.fits(record_bytes(payload.bytes)));
        debug_assert!(
            kind == Kind::Seal
                || self.tail.segment.holds(self.offset(), record_bytes(payload.bytes))
        );
        let lsn = self.end();
        let synced = Lsn::new(self.tail.segment.number, self.start + offset_of(self.carried));
        let Payload { parts, bytes, checksum: payload_checksum } = *payload;
        let payload_bytes = offset_of(bytes);
        let header = RecordHeader { kind, payload_bytes, lsn, synced, payload_checksum };
        let record = &mut self.buffer[self.used..self.used + record_bytes(bytes)];
        let (head, mut rest) = record.split_at_mut(RECORD_HEADER_BYTES);
        head.copy_from_slice(&header.encode(self.tail.segment.salt));
        for part in parts {
            rest[..part.len()].copy_from_slice(part);
            rest = &mut rest[part.len()..];
        }
        rest.fill(0);
        self.used += record_bytes(bytes);
        debug_assert!(self.used <= self.buffer.len() && self.offset() <= self.tail.segment.limit);
        debug_assert!(synced <= lsn, "a batch is written after the one before it was synced");
        if kind == Kind::Data {
            self.records += 1;
            self.lone_bytes = if self.records == 1 { record_bytes(bytes) } else { 0 };
        }
        self.sealed = kind == Kind::Seal;
        lsn
    }

    /// Appends a record without a payload, like [`Self::push`].
    pub(crate) fn push_empty(&mut self, kind: Kind) {
        self.push(kind, &Payload::default());
    }

    /// Pads the page after a batch's only record, if that record is as long as the previous batch's
    /// only record and [`padding_bytes`] finds a saving. The padding is a watermark record whose
    /// payload is zeros. Does nothing if another record of this length would not fit into the
    /// segment after the padding.
    pub(crate) fn pad_lone_record(&mut self) {
        let bytes = self.lone_bytes;
        let is_repeated = self.records == 1 && bytes == self.lone_before;
        if !is_repeated || self.sealed {
            return;
        }
        let Some(padding) = padding_bytes(self.offset(), bytes) else { return };
        let end = self.offset() as usize + padding + bytes;
        if end <= self.tail.segment.records_end() as usize && self.fits(padding) {
            let zeros = vec![0; padding - RECORD_HEADER_BYTES];
            let checksum = haul_crc::crc32c(&zeros);
            let parts: &[&[u8]] = &[&zeros];
            self.push(Kind::Watermark, &Payload { parts, bytes: zeros.len(), checksum });
        }
    }

    /// Writes and syncs the batch: one write of whole pages and one sync. Returns how long they
    /// took together.
    ///
    /// 1. Writes the pages. After a crash any subset of the sectors may be on storage. The synced
    ///    bytes of the first page are written unchanged, so they survive; incomplete new records
    ///    fail their checksum.
    /// 2. Syncs the file. All records in the batch are now durable and may be acknowledged.
    pub(crate) fn write_and_sync(&mut self, counters: &Counters) -> haul_disk::Result<Duration> {
        debug_assert!(self.has_new(), "a batch without records needs no sync");
        let bytes = align_up(self.used as u64, PAGE_BYTES as u64);
        let whole_pages = usize::try_from(bytes).expect("a buffer fits in memory");
        // After the records, the buffer holds an earlier batch's bytes. Recovery would take these
        // bytes for a torn tail, what an interrupted write left.
        self.buffer[self.used..whole_pages].fill(0);
        let pages = &self.buffer[..whole_pages];
        let took = self.tail.writer.write_and_sync(pages, u64::from(self.start))?;
        counters.batch(bytes, took);
        Ok(took)
    }

    /// Returns the buffer and the [`Tail`] of a batch that was written or is empty.
    pub(crate) fn into_parts(self) -> (AlignedBuf, Tail) {
        (self.buffer, self.tail)
    }
}

fn parts_bytes(payload: &Payload<'_>) -> usize {
    payload.parts.iter().map(|part| part.len()).sum()
}

fn offset_of(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a buffer is shorter than the longest segment")
}

fn page_start(offset: u32) -> u32 {
    u32::try_from(align_down(u64::from(offset), PAGE_BYTES as u64)).expect("rounded down")
}
