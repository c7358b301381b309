//! The log that a replica follows, and the files beside it.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, SegmentInfo};
use haul_disk::{Disk, File};

use crate::error::Result;

/// A log that a replica follows, and the files that its records refer to.
pub trait Source: Send + Sync + 'static {
    /// Returns the log.
    fn log(&self) -> &Log;

    /// Returns the disk whose root is the log's or store's directory.
    fn disk(&self) -> &dyn Disk;

    /// Returns the log's kind, such as "log".
    fn kind(&self) -> &'static str {
        "log"
    }

    /// Returns the segment directory, relative to the disk's root.
    fn segment_dir(&self) -> &'static str {
        ""
    }

    /// Returns the names of the files that a record refers to.
    ///
    /// # Errors
    /// Fails if the record is invalid.
    fn record_files(&self, payload: &[u8]) -> Result<Vec<String>> {
        let _ = payload;
        Ok(Vec::new())
    }

    /// Opens a file that a record refers to or that belongs to a checkpoint; `None` if it was
    /// removed.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn open_file(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        let _ = name;
        Ok(None)
    }

    /// Returns the names of the files that live records refer to, as [`Self::record_files`] does.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the small files that a copy with these segments needs: name and content.
    ///
    /// # Errors
    /// Fails if the files cannot be read.
    fn small_files(&self, segments: &[SegmentInfo]) -> Result<SmallFiles> {
        let _ = segments;
        Ok(SmallFiles::default())
    }

    /// Returns the current checkpoint's position in the log; `None` if there is none.
    fn checkpoint_lsn(&self) -> Option<Lsn> {
        None
    }

    /// Returns the current checkpoint's files, all from the same checkpoint.
    ///
    /// # Errors
    /// Fails if the files cannot be opened.
    fn checkpoint(&self) -> Result<Option<CheckpointFiles>> {
        Ok(None)
    }
}

/// A copy's small files.
#[derive(Debug, Default)]
pub struct SmallFiles {
    /// Each file's name and content.
    pub files: Vec<(String, Vec<u8>)>,
    /// The position before which no checkpoint may be used.
    pub checkpoint_min: Lsn,
}

/// A checkpoint's open files.
#[derive(Debug)]
pub struct CheckpointFiles {
    /// The checkpoint's position in the log.
    pub lsn: Lsn,
    /// Each file's name, length in bytes, and open file.
    pub files: Vec<(String, u64, Arc<dyn File>)>,
}

/// A log without other files, in a disk's root.
#[derive(Debug)]
pub struct PlainLog {
    log: Arc<Log>,
    disk: Arc<dyn Disk>,
}

impl PlainLog {
    /// Returns the source for a log and the disk on which it was opened.
    #[must_use]
    pub fn new(log: Arc<Log>, disk: Arc<dyn Disk>) -> Self {
        Self { log, disk }
    }
}

impl Source for PlainLog {
    fn log(&self) -> &Log {
        &self.log
    }

    fn disk(&self) -> &dyn Disk {
        &*self.disk
    }
}
