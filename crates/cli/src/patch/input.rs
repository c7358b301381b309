//! Records from a stream, or from files that a list names.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::report::{Failure, OrFail, Result};

/// The offset and the length in front of each record of a stream.
const HEADER_BYTES: usize = 12;

/// What is read of a record at a time: a long one goes on in parts.
const PART_BYTES: usize = 1 << 20;

/// Where records come from.
pub(super) enum Input {
    Stream(Box<dyn BufRead>),
    List { lines: Vec<Line>, next: usize },
}

/// A line of a list.
pub(super) struct Line {
    offset: u64,
    path: PathBuf,
    bytes: u64,
}

/// A record whose place is known, and whose bytes are still to be read.
pub(super) struct Record {
    /// Counted from 1.
    pub(super) number: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Input {
    pub(super) fn stdin() -> Self {
        Self::Stream(Box::new(BufReader::with_capacity(PART_BYTES, io::stdin())))
    }

    /// The files of a list, whose lengths are looked up now.
    pub(super) fn list(path: &Path) -> Result<Self> {
        let text = match path.to_str() {
            Some("-") => io::read_to_string(io::stdin()),
            _ => fs::read_to_string(path),
        };
        let text = text.or_fail(|| format!("cannot read the list {}", path.display()))?;
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if !line.is_empty() && !line.starts_with('#') {
                lines.push(parse(line).map_err(|why| {
                    let place = format!("line {number} of the list {}", path.display());
                    Failure::new(format!("{place}: {why}")).advise("nothing was written")
                })?);
            }
        }
        Ok(Self::List { lines, next: 0 })
    }

    /// How many bytes all records have, where that is known.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Stream(_) => None,
            Self::List { lines, .. } => Some(lines.iter().map(|line| line.bytes).sum()),
        }
    }

    /// How many records there are, where that is known.
    pub(super) fn records(&self) -> Option<u64> {
        match self {
            Self::Stream(_) => None,
            Self::List { lines, .. } => Some(lines.len() as u64),
        }
    }

    /// The place of the next record, which is the `number`-th; `None` at the end.
    pub(super) fn next(&mut self, number: u64) -> Result<Option<Record>> {
        match self {
            Self::Stream(stream) => {
                let mut header = [0; HEADER_BYTES];
                let read = read_up_to(&mut **stream, &mut header)?;
                if read == 0 {
                    return Ok(None);
                }
                if read < HEADER_BYTES {
                    return Err(cut(number, read as u64, HEADER_BYTES as u64, "offset and length"));
                }
                let (offset, length) = header.split_at(8);
                let offset = u64::from_le_bytes(offset.try_into().unwrap_or_default());
                let bytes = u32::from_le_bytes(length.try_into().unwrap_or_default());
                Ok(Some(Record { number, offset, bytes: bytes.into() }))
            }
            Self::List { lines, next } => {
                let line = lines.get(*next);
                *next += 1;
                Ok(line.map(|line| Record { number, offset: line.offset, bytes: line.bytes }))
            }
        }
    }

    /// Gives the bytes of a record in parts, each with its place.
    pub(super) fn each_part(
        &mut self,
        record: &Record,
        each: &mut dyn FnMut(u64, &[u8]) -> Result,
    ) -> Result {
        let mut file;
        let source: &mut dyn Read = match self {
            Self::Stream(stream) => stream,
            Self::List { lines, next } => {
                let path = &lines[*next - 1].path;
                file = File::open(path).or_fail(|| format!("cannot read {}", path.display()))?;
                &mut file
            }
        };
        let longest = record.bytes.min(PART_BYTES as u64);
        let mut buffer = vec![0; usize::try_from(longest).unwrap_or(PART_BYTES)];
        let mut done = 0;
        while done < record.bytes {
            let left = usize::try_from(record.bytes - done).unwrap_or(PART_BYTES);
            let part = left.min(PART_BYTES);
            let read = read_up_to(source, &mut buffer[..part])?;
            if read < part {
                return Err(cut(record.number, done + read as u64, record.bytes, "bytes"));
            }
            each(record.offset + done, &buffer[..part])?;
            done += part as u64;
        }
        Ok(())
    }
}

fn parse(line: &str) -> std::result::Result<Line, String> {
    const HOW: &str = "write an offset in bytes, a space, and a path, like: 4096 page.bin";
    let (offset, path) = line.split_once(char::is_whitespace).ok_or(HOW)?;
    let offset = offset.parse().map_err(|_no_number| HOW)?;
    let path = PathBuf::from(path.trim_start());
    let status = fs::metadata(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    if !status.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    Ok(Line { offset, path, bytes: status.len() })
}

/// Fills the buffer, or gives how much there was at the end.
fn read_up_to(source: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::new("cannot read the records").because(error)),
        }
    }
    Ok(done)
}

fn cut(number: u64, got: u64, of: u64, what: &str) -> Failure {
    Failure::new(format!(
        "the input ends within record {number}, after {got} of the {of} bytes of its {what}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bytes: Vec<u8>) -> Input {
        Input::Stream(Box::new(io::Cursor::new(bytes)))
    }

    fn record(offset: u64, bytes: &[u8]) -> Vec<u8> {
        let length = u32::try_from(bytes.len()).unwrap();
        [&offset.to_le_bytes()[..], &length.to_le_bytes(), bytes].concat()
    }

    #[test]
    fn a_stream_is_read_record_by_record() {
        let long = vec![7; PART_BYTES * 2 + 5];
        let mut input = stream([record(3, b"abc"), record(9, b""), record(5, &long)].concat());
        let mut got = Vec::new();
        for number in 1.. {
            let Some(record) = input.next(number).unwrap() else { break };
            let mut bytes = Vec::new();
            let mut part = |at: u64, part: &[u8]| {
                assert_eq!(at, record.offset + bytes.len() as u64);
                bytes.extend_from_slice(part);
                Ok(())
            };
            input.each_part(&record, &mut part).unwrap();
            got.push((record.offset, bytes));
        }
        assert!(got == [(3, b"abc".to_vec()), (9, vec![]), (5, long)]);
    }

    #[test]
    fn an_input_that_ends_within_a_record_says_where() {
        let whole = record(3, b"abc");
        for (bytes, told) in [
            (&whole[..5], "record 1, after 5 of the 12 bytes of its offset and length"),
            (&whole[..14], "record 1, after 2 of the 3 bytes of its bytes"),
        ] {
            let mut input = stream(bytes.to_vec());
            let outcome = input
                .next(1)
                .and_then(|record| input.each_part(&record.unwrap(), &mut |_, _| Ok(())));
            let text = outcome.unwrap_err().text().unwrap();
            assert!(text.contains(told), "{text}");
        }
    }
}
