//! Reads the lines of one file.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use haul_disk::{Error, File, Op, Result};
use zstd::stream::read::Decoder;

use super::scan::{Scan, has_stamp};
use super::seek::first_line_since;
use crate::disk_io::FileReader;

/// The number of bytes that are read and passed on at once.
const PART_BYTES: usize = 256 << 10;

/// A file of lines, plain or compressed.
pub(super) struct Source {
    path: PathBuf,
    reader: Box<dyn Read>,
    /// The file and its length, unless it is compressed.
    plain: Option<(Arc<dyn File>, u64)>,
    /// Bytes that were read, and not yet passed on.
    buffer: Vec<u8>,
    is_at_end: bool,
}

impl Source {
    pub(super) fn plain(file: Arc<dyn File>, path: PathBuf) -> Result<Self> {
        let bytes = file.bytes()?;
        let reader = Box::new(FileReader::new(Arc::clone(&file), 0..bytes));
        let plain = Some((file, bytes));
        Ok(Self { path, reader, plain, buffer: Vec::new(), is_at_end: false })
    }

    pub(super) fn compressed(file: Arc<dyn File>, path: PathBuf) -> Result<Self> {
        match Decoder::new(FileReader::new(file, 0..u64::MAX)) {
            Ok(decoder) => {
                let reader = Box::new(decoder);
                Ok(Self { path, reader, plain: None, buffer: Vec::new(), is_at_end: false })
            }
            Err(error) => Err(Error::new(Op::Read, path, error)),
        }
    }

    /// `true` if a line at the beginning of the file has a timestamp.
    pub(super) fn has_timestamps(&mut self) -> Result<bool> {
        self.fill()?;
        Ok(has_stamp(&self.buffer))
    }

    /// Returns the lines from `since` to `until`, both in microseconds.
    pub(super) fn parts(mut self, mut since: Option<u64>, until: Option<u64>) -> Result<Parts> {
        if let (Some((file, bytes)), Some(since_us)) = (&self.plain, since) {
            let start = first_line_since(&**file, *bytes, since_us)?;
            self.reader = Box::new(FileReader::new(Arc::clone(file), start..*bytes));
            self.buffer.clear();
            self.is_at_end = false;
            // The reader starts at the first line of the range.
            since = None;
        }
        Ok(Parts { source: self, scan: Scan::new(since, until), done: 0 })
    }

    /// Reads until the buffer has [`PART_BYTES`] bytes or the file ends.
    fn fill(&mut self) -> Result<()> {
        let before = self.buffer.len();
        let wanted = PART_BYTES.saturating_sub(before) as u64;
        let read = (&mut self.reader).take(wanted).read_to_end(&mut self.buffer);
        match read {
            Ok(read) => {
                self.is_at_end = (read as u64) < wanted;
                Ok(())
            }
            Err(error) => Err(Error::new(Op::Read, &self.path, error)),
        }
    }
}

/// A part of the lines of a file.
pub(super) enum Part<'a> {
    /// Lines of the range. The first and the last may be incomplete.
    Lines(&'a [u8]),
    EndOfRange,
    EndOfFile,
}

/// The lines of a range of a file.
pub(super) struct Parts {
    source: Source,
    scan: Scan,
    /// The number of bytes at the beginning of the buffer that were passed on or skipped.
    done: usize,
}

impl Parts {
    /// Returns the next part.
    pub(super) fn next(&mut self) -> Result<Part<'_>> {
        loop {
            self.source.buffer.drain(..std::mem::take(&mut self.done));
            let failed = self.source.fill().err();
            let is_at_end = self.source.is_at_end || failed.is_some();
            let found = self.scan.next(&self.source.buffer, is_at_end);
            self.done = found.done;
            if !found.lines.is_empty() {
                return Ok(Part::Lines(&self.source.buffer[found.lines]));
            }
            match failed {
                Some(error) => return Err(error),
                None if self.scan.is_over() => return Ok(Part::EndOfRange),
                None if is_at_end && self.done == self.source.buffer.len() => {
                    return Ok(Part::EndOfFile);
                }
                None => {}
            }
        }
    }
}
