//! Reads the records of a patch from a stream, or from files that a list names.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use haul_disk::error_chain;
use haul_sorted_write::records::{ListLine, Record, RecordError, list_lines};

use crate::report::{Failure, OrFail, Result};

/// The size of the buffer for stdin, in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// The source of records.
pub(super) enum Input {
    Stream(Box<dyn BufRead>),
    List { files: Vec<ListedFile>, next: usize },
}

/// A file named in a list, and the offset at which to write its content.
pub(super) struct ListedFile {
    offset: u64,
    path: PathBuf,
    bytes: u64,
}

impl Input {
    pub(super) fn stdin() -> Self {
        Self::Stream(Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin())))
    }

    /// Reads a list and determines the lengths of its files.
    pub(super) fn list(path: &Path) -> Result<Self> {
        let text = match path.to_str() {
            Some("-") => io::read_to_string(io::stdin()),
            _ => fs::read_to_string(path),
        };
        let text = text.or_not_start(|| format!("cannot read the list {}", path.display()))?;
        let failed = |number: u64, reason: String| {
            let place = format!("line {number} of the list {}", path.display());
            Failure::new(format!("{place}: {reason}")).advise("nothing was written")
        };
        let files = list_lines(&text).map(|line| {
            let line = line.map_err(|error| failed(error.number, error.to_string()))?;
            let number = line.number;
            ListedFile::of(line).map_err(|reason| failed(number, reason))
        });
        Ok(Self::List { files: files.collect::<Result<_>>()?, next: 0 })
    }

    /// Returns the total length of the records in bytes; returns `None` if it is unknown.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Stream(_) => None,
            Self::List { files, .. } => Some(files.iter().map(|file| file.bytes).sum()),
        }
    }

    /// Returns the number of records; returns `None` if it is unknown.
    pub(super) fn records(&self) -> Option<u64> {
        match self {
            Self::Stream(_) => None,
            Self::List { files, .. } => Some(files.len() as u64),
        }
    }

    /// Returns the record `number`; returns `None` at the end of the input.
    pub(super) fn next(&mut self, number: u64) -> Result<Option<Record>> {
        match self {
            Self::Stream(stream) => Record::read(&mut **stream, number).map_err(failed),
            Self::List { files, next } => {
                let file = files.get(*next);
                *next += 1;
                Ok(file.map(|file| Record { number, offset: file.offset, bytes: file.bytes }))
            }
        }
    }

    /// Calls `each` with the offset and the bytes of each part of a record.
    pub(super) fn each_part(
        &mut self,
        record: &Record,
        each: &mut dyn FnMut(u64, &[u8]) -> Result,
    ) -> Result {
        let mut file;
        let source: &mut dyn Read = match self {
            Self::Stream(stream) => stream,
            Self::List { files, next } => {
                let path = &files[*next - 1].path;
                file = File::open(path).or_fail(|| format!("cannot read {}", path.display()))?;
                &mut file
            }
        };
        let mut parts = record.parts(source);
        while let Some((offset, part)) = parts.next_part().map_err(failed)? {
            each(offset, part)?;
        }
        Ok(())
    }
}

impl ListedFile {
    fn of(ListLine { offset, path, .. }: ListLine) -> std::result::Result<Self, String> {
        let status = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if !status.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        Ok(Self { offset, path, bytes: status.len() })
    }
}

pub(super) fn failed(error: RecordError) -> Failure {
    Failure::new(error_chain(&error))
}
