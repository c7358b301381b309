//! Defines the errors that end a transfer, and the errors of a single object.

use std::io;
use std::path::PathBuf;

use haul_disk::Error as DiskError;
use haul_file_store::Error as StoreError;

/// An error that ends a transfer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not even one thread could be started. Free memory, or reduce the number of processes.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The store failed. The error of the store states what to do.
    #[error("cannot import {}", path.display())]
    Import {
        /// The file whose import failed.
        path: PathBuf,
        /// The error of the store.
        source: StoreError,
    },
    /// The disk has no space for a directory. Free space, then export again.
    #[error("cannot export")]
    Directory(#[source] DiskError),
    /// The disk has no space for an object. Free space, then export again.
    #[error("cannot export {key}")]
    Export {
        /// The key of the object.
        key: String,
        /// The reason.
        source: ExportError,
    },
}

/// The reason why an object was not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The object cannot be opened.
    #[error(transparent)]
    Open(StoreError),
    /// The object cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] DiskError),
    /// The modification time of the file cannot be set.
    #[error(transparent)]
    SetTime(io::Error),
}

impl ExportError {
    /// `true` if the disk is full, so that the next object would fail, too.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Write(error) if error.is_full())
    }
}

/// The reason why the content of an object cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store cannot read the bytes.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The content is stored in an encoded form that only its program can decode. Read the object
    /// over S3 from the server that encrypted it.
    #[error("the object is encrypted; read it over S3 from \"haul serve\", which decrypts it")]
    Encoded,
    /// The content is shorter than the length of the object.
    #[error("unexpected end at byte {at}")]
    UnexpectedEnd {
        /// The offset at which the content ended.
        at: u64,
    },
}
