//! Reads and writes files of a disk through the traits of the standard library, for the streams of zstd.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use haul_disk::{Error, File};

/// Writes to the end of a new file.
#[derive(Debug)]
pub(crate) struct FileWriter {
    file: Arc<dyn File>,
    end: u64,
    error: Option<Error>,
}

impl FileWriter {
    pub(crate) fn new(file: Arc<dyn File>) -> Self {
        Self { file, end: 0, error: None }
    }

    /// Returns the number of bytes written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the error of the disk that made a write fail, with the path and the offset.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write_some(bytes, self.end) {
            Ok(written) => {
                self.end += written as u64;
                Ok(written)
            }
            Err(error) => {
                let kind = error.source.kind();
                self.error = Some(error);
                Err(kind.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a range of a file, or up to its end if that comes first.
#[derive(Debug)]
pub(crate) struct FileReader {
    file: Arc<dyn File>,
    offset: u64,
    end: u64,
}

impl FileReader {
    pub(crate) fn new(file: Arc<dyn File>, range: Range<u64>) -> Self {
        Self { file, offset: range.start, end: range.end }
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let read = self.file.read_some(&mut buffer[..wanted], self.offset);
        let read = read.map_err(|error| error.source)?;
        self.offset += read as u64;
        Ok(read)
    }
}
