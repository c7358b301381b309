//! The names of the objects of a copy, relative to its prefix.

use crate::manifest::{Chunk, IndexFile, SegmentCopy};

/// The name of the manifest, the only object that is replaced.
pub(crate) const MANIFEST: &str = "manifest";

/// The folder of the chunks.
pub(crate) const LOG: &str = "log/";

/// The folder of the files of the index.
pub(crate) const INDEX: &str = "index/";

/// The folder of the files of big objects.
pub(crate) const FILES: &str = "files/";

/// Returns the name of a chunk. Writers of different epochs never use the same name, because they
/// may have written different bytes to the same range.
pub(crate) fn chunk(segment: &SegmentCopy, chunk: &Chunk) -> String {
    let (number, nonce) = (segment.number, segment.nonce);
    let Chunk { from, to, epoch, .. } = chunk;
    format!("{LOG}{number:010}-{nonce:016x}/{from:08x}-{to:08x}-{epoch}")
}

/// Returns the name of the file of a big object, whose identifier is never used again.
pub(crate) fn file(name: &str) -> String {
    format!("{FILES}{name}")
}

/// Returns the name of a file of the index.
pub(crate) fn index_file(file: &IndexFile) -> String {
    format!("{INDEX}{}-{:08x}-{}", file.name.replace('/', "-"), file.checksum, file.epoch)
}
