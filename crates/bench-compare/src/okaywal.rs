//! okaywal: one shared log, whose files go to the checkpointer and come back to be written again.

use std::path::Path;

use haul_bench::log::{Contender, Failure};
use okaywal::{Configuration, LogVoid, WriteAheadLog};

/// How long its files are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Files {
    /// 1 MiB, as its README describes: this was the faster one wherever it was tried.
    Default,
    /// As long as those of the others, and checkpointed before the preallocated space is used up.
    Long,
}

const FILE_BYTES: u32 = 64 << 20;
const CHECKPOINT_AFTER_BYTES: u64 = 48 << 20;
/// A record and its head go to the kernel in one write.
const BUFFER_BYTES: usize = 128 << 10;

/// A written chunk of the warm-up.
const WARM_UP_BYTES: usize = 1 << 20;
/// As many files as there ever are: one written to, one at the checkpointer, one waiting.
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
