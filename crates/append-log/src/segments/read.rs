//! Reads single records in a segment, with or without knowing their length.

use haul_disk::read_full;

use crate::error::{Error, Result};
use crate::format::{Kind, RECORD_HEADER_BYTES, RecordHeader};
use crate::lsn::{Lsn, Position};
use crate::record::{BatchRecord, Record, RecordRequest};
use crate::segments::Segment;

const ENDS_EARLY: &str = "the file ends within the record";
const NO_HEADER: &str = "no valid record header at this position";
const MISMATCH: &str = "the record's checksum does not match its bytes";

impl Segment {
    /// Reads the record at `at` with one request and verifies it.
    pub(crate) fn read(&self, at: Position) -> Result<Record> {
        let bytes = RECORD_HEADER_BYTES + at.payload_bytes as usize;
        let mut record = vec![0; bytes.min(self.bytes_after(at.lsn))];
        let read = read_full(&*self.file, &mut record, u64::from(at.lsn.offset()))?;
        let header = self.data_header(at.lsn, &record[..read])?;
        if read < bytes {
            return Err(self.damaged(at.lsn, ENDS_EARLY));
        }
        self.verified(&header, record)
    }

    /// Reads the record at `lsn`, whose length is unknown, and verifies it. The first request is
    /// long enough for a payload of `payload_bytes_hint` bytes. A longer record takes a second
    /// request for the rest.
    pub(crate) fn read_hinted(
        &self,
        lsn: Lsn,
        payload_bytes_hint: u32,
        buffer: Vec<u8>,
    ) -> Result<Record> {
        let offset = u64::from(lsn.offset());
        let hinted = RECORD_HEADER_BYTES.saturating_add(payload_bytes_hint as usize);
        let mut record = buffer;
        let first = self.first_part(lsn, hinted, &mut record);
        let mut read = read_full(&*self.file, &mut record[..first], offset)?;
        let header = self.data_header(lsn, &record[..read])?;
        let bytes = self.whole_bytes(&header)?;
        // Cuts off the bytes after the record. A longer record gets space for the rest.
        record.resize(bytes, 0);
        if read < bytes {
            read += read_full(&*self.file, &mut record[read..], offset + read as u64)?;
        }
        if read < bytes {
            return Err(self.damaged(lsn, ENDS_EARLY));
        }
        self.verified(&header, record)
    }

    /// Reads the record at `lsn` like [`Self::read_hinted`] if all of it is in the page cache.
    pub(crate) fn read_hinted_cached(
        &self,
        lsn: Lsn,
        payload_bytes_hint: u32,
        payload_bytes_max: u32,
        buffer: Vec<u8>,
    ) -> Result<Option<Record>> {
        let offset = u64::from(lsn.offset());
        let hinted = RECORD_HEADER_BYTES.saturating_add(payload_bytes_hint as usize);
        let mut record = buffer;
        let first = self.first_part(lsn, hinted, &mut record);
        let mut read = match self.file.read_cached(&mut record[..first], offset)? {
            Some(read) if read >= RECORD_HEADER_BYTES => read,
            _ => return Ok(None),
        };
        let header = self.data_header(lsn, &record[..read])?;
        let bytes = self.whole_bytes(&header)?;
        if bytes - RECORD_HEADER_BYTES > payload_bytes_max as usize {
            return Ok(None);
        }
        record.resize(bytes, 0);
        if read == first && read < bytes {
            read += self.file.read_cached(&mut record[read..], offset + read as u64)?.unwrap_or(0);
        }
        if read < bytes {
            return Ok(None);
        }
        self.verified(&header, record).map(Some)
    }

    /// Returns the length of a record's first request, and extends `buffer` to it.
    fn first_part(&self, lsn: Lsn, hinted: usize, buffer: &mut Vec<u8>) -> usize {
        let bytes = hinted.min(self.bytes_after(lsn));
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        bytes
    }

    /// Reads the header and the payload's front of the record at `lsn`, whose length is unknown,
    /// into `buffer` with one request. Verifies only the header. Returns the position and the part
    /// of `buffer` that contains the front of the payload.
    pub(crate) fn read_front_hinted<'a>(
        &self,
        lsn: Lsn,
        buffer: &'a mut [u8],
    ) -> Result<(Position, &'a [u8])> {
        if buffer.len() < RECORD_HEADER_BYTES {
            return Err(Error::Invalid("the buffer is shorter than a record header"));
        }
        let wanted = buffer.len().min(self.bytes_after(lsn));
        let read = read_full(&*self.file, &mut buffer[..wanted], u64::from(lsn.offset()))?;
        let header = self.data_header(lsn, &buffer[..read])?;
        let end = self.whole_bytes(&header)?.min(wanted);
        if read < end {
            return Err(self.damaged(lsn, ENDS_EARLY));
        }
        Ok((position(&header), &buffer[RECORD_HEADER_BYTES..end]))
    }

    /// Reads the front of the record at `lsn` like [`Self::read_front_hinted`] if it is in the page
    /// cache.
    pub(crate) fn read_front_hinted_cached<'a>(
        &self,
        lsn: Lsn,
        buffer: &'a mut [u8],
    ) -> Result<Option<(Position, &'a [u8])>> {
        let wanted = buffer.len().min(self.bytes_after(lsn));
        let read = self.file.read_cached(&mut buffer[..wanted], u64::from(lsn.offset()))?;
        let Some(read) = read.filter(|read| *read >= RECORD_HEADER_BYTES) else {
            return Ok(None);
        };
        let header = self.data_header(lsn, &buffer[..read])?;
        let end = self.whole_bytes(&header)?.min(wanted);
        let front = buffer[..read].get(RECORD_HEADER_BYTES..end);
        Ok(front.map(|front| (position(&header), front)))
    }

    /// Returns the record for `request` from `bytes`, which begin with the record: whole, or its
    /// first bytes if it is longer than requested. `None` if `bytes` end too early.
    pub(crate) fn batch_record(
        &self,
        request: &RecordRequest,
        bytes: &[u8],
    ) -> Result<Option<BatchRecord>> {
        let RecordRequest { lsn, payload_bytes, .. } = *request;
        if lsn.offset() >= self.end() {
            return Err(Error::Invalid("the record was removed by a truncation"));
        }
        if bytes.len() < RECORD_HEADER_BYTES {
            return Ok(None);
        }
        let header = self.data_header(lsn, bytes)?;
        let whole = self.whole_bytes(&header)?;
        let wanted = whole.min(RECORD_HEADER_BYTES.saturating_add(payload_bytes as usize));
        let Some(bytes) = bytes.get(..wanted) else { return Ok(None) };
        if wanted < whole {
            let front = bytes[RECORD_HEADER_BYTES..].to_vec();
            return Ok(Some(BatchRecord::Front { at: position(&header), front }));
        }
        // The copy has exactly the record's length: the caller may keep the record longer than the
        // buffer.
        Ok(Some(BatchRecord::Whole(self.verified(&header, bytes.to_vec())?)))
    }

    /// Reads a request's record with one system call.
    pub(crate) fn read_batch_record(&self, request: &RecordRequest) -> Result<BatchRecord> {
        let bytes = RECORD_HEADER_BYTES.saturating_add(request.payload_bytes as usize);
        let mut record = vec![0; bytes.min(self.bytes_after(request.lsn))];
        let read = read_full(&*self.file, &mut record, u64::from(request.lsn.offset()))?;
        let found = self.batch_record(request, &record[..read])?;
        found.ok_or_else(|| self.damaged(request.lsn, ENDS_EARLY))
    }

    /// Decodes and verifies the header of the data record at `lsn`; `bytes` begin with this header.
    fn data_header(&self, lsn: Lsn, bytes: &[u8]) -> Result<RecordHeader> {
        if bytes.len() < RECORD_HEADER_BYTES {
            return Err(self.damaged(lsn, ENDS_EARLY));
        }
        match RecordHeader::decode(self.salt, bytes, lsn) {
            Some(header) if header.kind == Kind::Data => Ok(header),
            Some(_) => Err(self.damaged(lsn, MISMATCH)),
            None => Err(self.damaged(lsn, NO_HEADER)),
        }
    }

    /// Returns the record if its payload has the length and checksum in its header.
    fn verified(&self, header: &RecordHeader, record: Vec<u8>) -> Result<Record> {
        if !header.matches(&record[RECORD_HEADER_BYTES..]) {
            return Err(self.damaged(header.lsn, MISMATCH));
        }
        Ok(Record::new(position(header), record))
    }

    /// Returns the record's length in bytes without padding; fails if the segment ends before the
    /// record does.
    fn whole_bytes(&self, header: &RecordHeader) -> Result<usize> {
        let bytes = RECORD_HEADER_BYTES.saturating_add(header.payload_bytes as usize);
        if bytes > self.bytes_after(header.lsn) {
            return Err(self.damaged(header.lsn, ENDS_EARLY));
        }
        Ok(bytes)
    }

    /// Returns the number of bytes from `lsn` up to the end of the space for records.
    fn bytes_after(&self, lsn: Lsn) -> usize {
        self.limit.saturating_sub(lsn.offset()) as usize
    }

    fn damaged(&self, lsn: Lsn, what: &str) -> Error {
        let offset = u64::from(lsn.offset());
        Error::Damaged { file: self.path.clone(), offset, what: what.to_owned() }
    }
}

fn position(header: &RecordHeader) -> Position {
    Position { lsn: header.lsn, payload_bytes: header.payload_bytes }
}
