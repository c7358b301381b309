//! Compresses one file.

use std::io::{self, Read, Write};
use std::sync::Arc;

use haul_disk::{Disk, Durability, Error, File, Op, Open, Result};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::disk_io::{FileReader, FileWriter};
use crate::names::{self, READ_ONLY, Stamp};
use crate::options::Compression;

/// The number of bytes that are read at once. A cancellation takes effect between two reads.
const READ_BYTES: usize = 128 << 10;

/// The result of the compression of a file.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The compressed file is durable and has this length in bytes.
    Compressed { bytes: u64 },
    /// The file would not become shorter.
    Incompressible,
    /// The compression was cancelled.
    Cancelled,
    /// An operation failed.
    Failed(Error),
}

/// Executes steps 1 to 3 for a closed file.
pub(super) fn compress(
    disk: &dyn Disk,
    stamp: Stamp,
    compression: Compression,
    is_cancelled: &dyn Fn() -> bool,
) -> Outcome {
    let job = Job { disk, stamp, compression, is_cancelled };
    let temporary = names::temporary(stamp);
    let outcome = job.write_temporary(&temporary).unwrap_or_else(Outcome::Failed);
    let outcome = match outcome {
        Outcome::Compressed { bytes } => {
            job.publish(&temporary).map_or_else(Outcome::Failed, |()| Outcome::Compressed { bytes })
        }
        other => other,
    };
    if !matches!(outcome, Outcome::Compressed { .. }) {
        // The file does not exist if its creation failed. If it remains, the next attempt fails
        // because of it, and opening the log removes it.
        disk.remove(&temporary).ok();
    }
    outcome
}

struct Job<'a> {
    disk: &'a dyn Disk,
    stamp: Stamp,
    compression: Compression,
    is_cancelled: &'a dyn Fn() -> bool,
}

impl Job<'_> {
    /// Executes steps 1 and 2.
    fn write_temporary(&self, temporary: &str) -> Result<Outcome> {
        let original = self.disk.open(&names::closed(self.stamp), READ_ONLY)?;
        // With `SyncMode::Never`, the bytes may not be durable yet. If they were lost later, the
        // log could not distinguish this file from a complete one.
        original.sync(Durability::Data)?;
        let bytes = original.bytes()?;
        let file = self.disk.create(temporary, Open::default())?;
        let Compression::Zstd { level } = self.compression;
        let mut encoder = Encoder::new(FileWriter::new(Arc::clone(&file)), i32::from(level))
            .and_then(|mut encoder| {
                encoder.include_checksum(true)?;
                encoder.set_pledged_src_size(Some(bytes))?;
                Ok(encoder)
            })
            .map_err(|error| self.failed(Op::Write, temporary, error))?;
        let mut buffer = vec![0; READ_BYTES];
        let mut offset = 0;
        while offset < bytes {
            if (self.is_cancelled)() {
                return Ok(Outcome::Cancelled);
            }
            let read = self.read(&*original, &mut buffer, offset, bytes)?;
            let written = encoder.write_all(&buffer[..read]);
            written.map_err(|error| self.unwritten(&mut encoder, temporary, error))?;
            if encoder.get_ref().end() >= bytes {
                return Ok(Outcome::Incompressible);
            }
            offset += read as u64;
        }
        encoder.do_finish().map_err(|error| self.unwritten(&mut encoder, temporary, error))?;
        let compressed = encoder.get_ref().end();
        drop(encoder);
        if compressed >= bytes {
            return Ok(Outcome::Incompressible);
        }
        file.sync(Durability::Everything)?;
        if !self.is_equal(&*original, file, &mut buffer, bytes, temporary)? {
            return Ok(Outcome::Cancelled);
        }
        Ok(Outcome::Compressed { bytes: compressed })
    }

    /// Compares the decompressed bytes with the original ones. Returns `false` if the compression
    /// was cancelled, and an error if the bytes differ.
    fn is_equal(
        &self,
        original: &dyn File,
        file: Arc<dyn File>,
        expected: &mut [u8],
        bytes: u64,
        temporary: &str,
    ) -> Result<bool> {
        let differs = || {
            let source = io::Error::new(io::ErrorKind::InvalidData, "the bytes differ");
            self.failed(Op::Read, temporary, source)
        };
        let unread = |error| self.failed(Op::Read, temporary, error);
        let mut decoder = Decoder::new(FileReader::new(file, 0..u64::MAX)).map_err(unread)?;
        let mut found = vec![0; READ_BYTES];
        let mut offset = 0;
        while offset < bytes {
            if (self.is_cancelled)() {
                return Ok(false);
            }
            let read = self.read(original, expected, offset, bytes)?;
            decoder.read_exact(&mut found[..read]).map_err(unread)?;
            if found[..read] != expected[..read] {
                return Err(differs());
            }
            offset += read as u64;
        }
        match decoder.read(&mut found).map_err(unread)? {
            0 => Ok(true),
            _ => Err(differs()),
        }
    }

    /// Executes step 3.
    fn publish(&self, temporary: &str) -> Result<()> {
        let compressed = Stamp { is_compressed: true, ..self.stamp };
        self.disk.rename(temporary, &names::closed(compressed))?;
        self.disk.sync_dir("")
    }

    fn failed(&self, op: Op, name: &str, source: io::Error) -> Error {
        Error::new(op, self.disk.root().join(name), source)
    }

    /// Returns the error of the disk that made the encoder fail.
    fn unwritten(
        &self,
        encoder: &mut Encoder<'_, FileWriter>,
        temporary: &str,
        error: io::Error,
    ) -> Error {
        let disk_error = encoder.get_mut().take_error();
        disk_error.unwrap_or_else(|| self.failed(Op::Write, temporary, error))
    }

    /// Fills `buffer` with the bytes of the file being compressed from `offset` on, up to `end`.
    /// Returns their number, at least one.
    fn read(&self, file: &dyn File, buffer: &mut [u8], offset: u64, end: u64) -> Result<usize> {
        let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        match haul_disk::read_full(file, &mut buffer[..wanted], offset)? {
            read if read == wanted => Ok(read),
            read => {
                let source = io::ErrorKind::UnexpectedEof.into();
                let error = self.failed(Op::Read, &names::closed(self.stamp), source);
                Err(error.at(offset + read as u64, wanted - read))
            }
        }
    }
}
