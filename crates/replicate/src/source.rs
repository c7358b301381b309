//! The log that a replica follows, and the files beside it.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, SegmentInfo};
use haul_disk::{Disk, File};

use crate::error::Result;

/// A log that a replica follows, and the files that its records refer to.
pub trait Source: Send + Sync + 'static {
    /// Returns the log.
    fn log(&self) -> &Log;

    /// Returns the disk whose root is the directory of the log or store.
    fn disk(&self) -> &dyn Disk;

    /// Returns the kind of the log, such as "log".
    fn kind(&self) -> &'static str {
        "log"
    }

    /// Returns the directory of the segments, relative to the root of the disk.
    fn segment_dir(&self) -> &'static str {
        ""
    }

    /// Returns the names of the files that a record refers to.
    ///
    /// # Errors
    /// The record is invalid.
    fn record_files(&self, payload: &[u8]) -> Result<Vec<String>> {
        let _ = payload;
        Ok(Vec::new())
    }

    /// Opens a file that a record refers to, or one of a checkpoint; `None` if it was removed.
    ///
    /// # Errors
    /// The error of the system call.
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
    /// They cannot be read.
    fn small_files(&self, segments: &[SegmentInfo]) -> Result<SmallFiles> {
        let _ = segments;
        Ok(SmallFiles::default())
    }

    /// Returns the place of the current checkpoint; `None` if there is none.
    fn checkpoint_place(&self) -> Option<Lsn> {
        None
    }

    /// Returns the files of the current checkpoint, all of the same one.
    ///
    /// # Errors
    /// They cannot be opened.
    fn checkpoint(&self) -> Result<Option<CheckpointFiles>> {
        Ok(None)
    }
}

/// The small files of a copy.
#[derive(Debug, Default)]
pub struct SmallFiles {
    /// Name and content of each file.
    pub files: Vec<(String, Vec<u8>)>,
    /// The place before which no checkpoint may be used.
    pub checkpoint_min: Lsn,
}

/// The open files of a checkpoint.
#[derive(Debug)]
pub struct CheckpointFiles {
    /// The place of the checkpoint in the log.
    pub place: Lsn,
    /// Name, length in bytes, and an open file.
    pub files: Vec<(String, u64, Arc<dyn File>)>,
}

/// A log without other files, in the root of a disk.
#[derive(Debug)]
pub struct PlainLog {
    log: Arc<Log>,
    disk: Arc<dyn Disk>,
}

impl PlainLog {
    /// Returns the source for a log and the disk that it was opened on.
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
