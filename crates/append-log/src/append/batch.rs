//! One buffer of records on its way to the medium.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::{AlignedBuf, PAGE_BYTES, align_down, align_up};

use crate::append::writer::Writer;
use crate::format::{Kind, RECORD_HEADER_BYTES, RecordHeader, record_bytes};
use crate::lsn::{Lsn, Position};
use crate::segments::Segment;
use crate::stats::Counters;

/// A segment that is written to.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    pub(crate) segment: Arc<Segment>,
    pub(crate) writer: Writer,
}

/// Records on their way to one segment: whole pages of it, beginning with what is already there.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) tail: Tail,
    buffer: AlignedBuf,
    /// The offset in the segment of the buffer's first byte, a multiple of the page.
    start: u32,
    /// Bytes at the front of the buffer that are on the medium already. They are written again,
    /// bit for bit the same, so that a torn page cannot harm them.
    carried: usize,
    used: usize,
    /// How many records are new, the seal not counted.
    pub(crate) records: u32,
    /// The last record is the segment's seal.
    pub(crate) sealed: bool,
}

impl Batch {
    pub(crate) fn begin(tail: Tail, buffer: AlignedBuf) -> Self {
        let start = crate::format::HEADER_BYTES;
        Self { tail, buffer, start, carried: 0, used: 0, records: 0, sealed: false }
    }

    /// Goes on at `end`, with the begun page read back.
    pub(crate) fn resume(tail: Tail, end: u32, buffer_bytes: usize) -> haul_disk::Result<Self> {
        let mut buffer = AlignedBuf::zeroed(buffer_bytes);
        let start = page_start(end);
        let carried = (end - start) as usize;
        haul_disk::read_full(&*tail.segment.file, &mut buffer[..carried], u64::from(start))?;
        Ok(Self { tail, buffer, start, carried, used: carried, records: 0, sealed: false })
    }

    /// The batch behind this one in the same segment: it begins with this one's last page.
    pub(crate) fn followed_in(&self, mut buffer: AlignedBuf) -> Self {
        let end = self.offset();
        let start = page_start(end);
        let carried = (end - start) as usize;
        buffer[..carried].copy_from_slice(&self.buffer[self.used - carried..self.used]);
        let tail = self.tail.clone();
        Self { tail, buffer, start, carried, used: carried, records: 0, sealed: false }
    }

    pub(crate) fn has_new(&self) -> bool {
        self.used > self.carried
    }

    /// Where the next record goes in the segment.
    pub(crate) fn offset(&self) -> u32 {
        self.start + offset_of(self.used)
    }

    /// The LSN behind its last record.
    pub(crate) fn end(&self) -> Lsn {
        Lsn::new(self.tail.segment.number, self.offset())
    }

    /// Whether a record and a seal behind it fit in what is left of the buffer.
    pub(crate) fn fits(&self, record_bytes: usize) -> bool {
        self.used + record_bytes + crate::format::record_bytes(0) <= self.buffer.len()
    }

    /// Puts a record behind the others; there must be room.
    ///
    /// Its watermark is where the new records of its batch begin: the batch is written only when
    /// the one before it has been synced.
    pub(crate) fn push(
        &mut self,
        kind: Kind,
        payload: &[&[u8]],
        payload_checksum: u32,
    ) -> Position {
        let lsn = self.end();
        let synced = Lsn::new(self.tail.segment.number, self.start + offset_of(self.carried));
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        let payload_bytes = offset_of(bytes);
        let header = RecordHeader { kind, payload_bytes, lsn, synced, payload_checksum };
        let record = &mut self.buffer[self.used..self.used + record_bytes(bytes)];
        let (head, mut rest) = record.split_at_mut(RECORD_HEADER_BYTES);
        head.copy_from_slice(&header.encode(self.tail.segment.salt));
        for part in payload {
            rest[..part.len()].copy_from_slice(part);
            rest = &mut rest[part.len()..];
        }
        rest.fill(0);
        self.used += record_bytes(bytes);
        self.records += u32::from(kind != Kind::Seal);
        self.sealed = kind == Kind::Seal;
        Position { lsn, payload_bytes }
    }

    /// One write of whole pages and one sync, and how long they took together.
    ///
    /// 1. The write. After a crash any of its sectors may be there: the carried bytes are the
    ///    same as before, and new records that are torn do not check out.
    /// 2. The sync. Now all of them are there, and may be acknowledged.
    pub(crate) fn carry_out(&mut self, counters: &Counters) -> haul_disk::Result<Duration> {
        let bytes = align_up(self.used as u64, PAGE_BYTES as u64);
        let whole_pages = usize::try_from(bytes).expect("a buffer fits in memory");
        // The buffer was used before; what it still holds must not look like a torn tail.
        self.buffer[self.used..whole_pages].fill(0);
        let pages = &self.buffer[..whole_pages];
        let took = self.tail.writer.write_and_sync(pages, u64::from(self.start))?;
        counters.batch(bytes, took);
        Ok(took)
    }

    /// The memory, when the batch is done.
    pub(crate) fn into_buffer(self) -> AlignedBuf {
        self.buffer
    }
}

fn offset_of(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("what is in a buffer fits in a segment")
}

fn page_start(offset: u32) -> u32 {
    u32::try_from(align_down(u64::from(offset), PAGE_BYTES as u64)).expect("rounded down")
}
