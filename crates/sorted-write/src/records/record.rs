//! Reads records from a stream. A record consists of an offset (8 bytes) and a length (4 bytes),
//! both little-endian, and the bytes to write.

use std::io::{self, Read};

/// The record header's length, in bytes.
const HEADER_BYTES: usize = 12;

/// The maximum number of bytes that [`RecordParts`] reads at a time.
const PART_BYTES: usize = 1 << 20;

/// A record's header. The record's bytes follow in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The record number, counted from 1.
    pub number: u64,
    /// The offset in the file at which the bytes are written.
    pub offset: u64,
    /// The number of bytes to write.
    pub bytes: u64,
}

/// The error for a record that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Reading the stream or file failed.
    #[error("cannot read the records")]
    Read(#[source] io::Error),
    /// The stream or file ends within a record. The program that wrote it may have been
    /// interrupted.
    #[error("the input ends within record {number}, after {got} of {of} {part} bytes")]
    Truncated {
        /// The record number, counted from 1.
        number: u64,
        /// The number of bytes read for this part.
        got: u64,
        /// The part's length in bytes.
        of: u64,
        /// The record part, `header` or `data`.
        part: &'static str,
    },
    /// The record ends after the end of the file: correct the offset, or permit the file to grow.
    #[error(
        "record {} ({} bytes at offset {}) extends beyond the end of the file at {file_bytes}",
        record.number, record.bytes, record.offset
    )]
    BeyondEnd {
        /// The record.
        record: Record,
        /// The file length in bytes.
        file_bytes: u64,
    },
}

impl Record {
    /// Reads record `number`'s header from a stream. Returns `None` at the end of the stream.
    ///
    /// # Errors
    /// Returns [`RecordError::Read`] if reading fails, and [`RecordError::Truncated`] if the stream
    /// ends within the header.
    pub fn read(stream: &mut dyn Read, number: u64) -> Result<Option<Self>, RecordError> {
        let mut header = [0; HEADER_BYTES];
        let read = read_up_to(stream, &mut header)?;
        if read == 0 {
            return Ok(None);
        }
        if read < HEADER_BYTES {
            let (got, of) = (read as u64, HEADER_BYTES as u64);
            return Err(RecordError::Truncated { number, got, of, part: "header" });
        }
        let (offset, length) = header.split_at(8);
        let offset = u64::from_le_bytes(offset.try_into().unwrap_or_default());
        let bytes = u32::from_le_bytes(length.try_into().unwrap_or_default());
        Ok(Some(Self { number, offset, bytes: bytes.into() }))
    }

    /// Checks that the record ends within a file of `file_bytes` bytes. If `may_grow` is set, the
    /// record may extend the file up to the largest file offset.
    ///
    /// # Errors
    /// Returns [`RecordError::BeyondEnd`] if the record ends later.
    pub fn check(&self, file_bytes: u64, may_grow: bool) -> Result<(), RecordError> {
        let bytes_max = if may_grow { file_bytes.max(i64::MAX as u64) } else { file_bytes };
        let end = self.offset.checked_add(self.bytes);
        match end.is_some_and(|end| end <= bytes_max) {
            true => Ok(()),
            false => Err(RecordError::BeyondEnd { record: *self, file_bytes }),
        }
    }

    /// Returns a reader of the record's bytes, which are next in `source`, in parts of up to 1 MiB.
    pub fn parts<'a>(&self, source: &'a mut dyn Read) -> RecordParts<'a> {
        let longest = self.bytes.min(PART_BYTES as u64);
        let buffer = vec![0; usize::try_from(longest).unwrap_or(PART_BYTES)];
        RecordParts { source, record: *self, done: 0, buffer }
    }
}

/// A reader for a record's bytes, in parts.
pub struct RecordParts<'a> {
    source: &'a mut dyn Read,
    record: Record,
    done: u64,
    buffer: Vec<u8>,
}

impl RecordParts<'_> {
    /// Returns the next bytes and their offset in the file; `None` at the end of the record.
    ///
    /// # Errors
    /// Returns [`RecordError::Read`] if reading fails, and [`RecordError::Truncated`] if the source
    /// ends within the record.
    pub fn next_part(&mut self) -> Result<Option<(u64, &[u8])>, RecordError> {
        let Record { number, offset, bytes: of } = self.record;
        if self.done == of {
            return Ok(None);
        }
        let left = usize::try_from(of - self.done).unwrap_or(PART_BYTES);
        let part = &mut self.buffer[..left.min(PART_BYTES)];
        let read = read_up_to(self.source, part)?;
        let (at, got) = (offset + self.done, self.done + read as u64);
        if read < part.len() {
            return Err(RecordError::Truncated { number, got, of, part: "data" });
        }
        self.done = got;
        Ok(Some((at, part)))
    }
}

/// Fills the buffer and returns the number of bytes read, which is less than the buffer length only
/// at the end of the source.
fn read_up_to(source: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, RecordError> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(RecordError::Read(error)),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(offset: u64, bytes: &[u8]) -> Vec<u8> {
        let length = u32::try_from(bytes.len()).unwrap();
        [&offset.to_le_bytes()[..], &length.to_le_bytes(), bytes].concat()
    }

    #[test]
    fn stream_is_read_record_by_record() {
        let long = vec![7; PART_BYTES * 2 + 5];
        let stream = [record(3, b"abc"), record(9, b""), record(5, &long)].concat();
        let mut stream = stream.as_slice();
        let mut got = Vec::new();
        for number in 1.. {
            let Some(record) = Record::read(&mut stream, number).unwrap() else { break };
            let mut bytes = Vec::new();
            let mut parts = record.parts(&mut stream);
            while let Some((at, part)) = parts.next_part().unwrap() {
                assert_eq!(at, record.offset + bytes.len() as u64);
                bytes.extend_from_slice(part);
            }
            got.push((record.offset, bytes));
        }
        assert!(got == [(3, b"abc".to_vec()), (9, vec![]), (5, long)]);
    }

    #[test]
    fn truncated_input_is_reported_with_its_position() {
        let whole = record(3, b"abc");
        for (mut bytes, expected) in [
            (&whole[..5], "record 1, after 5 of 12 header bytes"),
            (&whole[..14], "record 1, after 2 of 3 data bytes"),
        ] {
            let outcome = Record::read(&mut bytes, 1).and_then(|record| {
                record.unwrap().parts(&mut bytes).next_part().map(|part| part.is_some())
            });
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn records_beyond_the_end_need_permission_to_grow() {
        let record = |offset, bytes| Record { number: 1, offset, bytes };
        for (record, file_bytes, within, growing) in [
            (record(0, 10), 10, true, true),
            (record(1, 10), 10, false, true),
            (record(10, 0), 10, true, true),
            (record(i64::MAX as u64, 1), 10, false, false),
            (record(u64::MAX, 1), u64::MAX, false, false),
        ] {
            let is_ok = |may_grow| record.check(file_bytes, may_grow).is_ok();
            assert_eq!((is_ok(false), is_ok(true)), (within, growing), "{record:?}");
        }
    }
}
