//! Appends records with okaywal to one log for all writers. okaywal passes each full file to a
//! checkpointer (here `LogVoid`, which ignores the entries), and then reuses the file.

use std::path::Path;

use haul_bench::log::{Contender, Failure};
use okaywal::{Configuration, LogVoid, WriteAheadLog};

/// The size of the log files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Files {
    /// Files of 1 MiB, as in the README of okaywal. They were faster than `Long` in all
    /// measurements.
    Default,
    /// Files of 64 MiB, as large as those of the other logs, checkpointed before their preallocated
    /// space is full.
    Long,
}

const FILE_BYTES: u32 = 64 << 20;
const CHECKPOINT_AFTER_BYTES: u64 = 48 << 20;
/// The size of the buffer in bytes, large enough that a record and its header are one write.
const BUFFER_BYTES: usize = 128 << 10;

/// The size in bytes of a chunk written while warming up.
const WARM_UP_BYTES: usize = 1 << 20;
/// The maximum number of files in use: one is being written, one is being checkpointed, and one
/// waits for the checkpointer.
const WARM_UP_FILES: u64 = 3;

#[derive(Debug)]
pub(crate) struct Log {
    wal: WriteAheadLog,
    file_bytes: u64,
}

impl Log {
    pub(crate) fn open(dir: &Path, files: Files) -> Result<Self, Failure> {
        let default = Configuration::default_for(dir);
        let configuration = match files {
            Files::Default => default,
            Files::Long => default
                .preallocate_bytes(FILE_BYTES)
                .checkpoint_after_bytes(CHECKPOINT_AFTER_BYTES)
                .buffer_bytes(BUFFER_BYTES),
        };
        let file_bytes = configuration.checkpoint_after_bytes;
        Ok(Self { wal: configuration.open(LogVoid)?, file_bytes })
    }
}

impl Contender for Log {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        let mut entry = self.wal.begin_entry()?;
        entry.write_chunk(record)?;
        entry.commit()?;
        Ok(())
    }

    fn warm_up(&self) -> Result<(), Failure> {
        let chunk = vec![0; WARM_UP_BYTES];
        for _ in 0..=(WARM_UP_FILES * self.file_bytes).div_ceil(WARM_UP_BYTES as u64) {
            self.append(0, &chunk)?;
        }
        Ok(())
    }
}
