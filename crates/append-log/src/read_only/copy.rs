//! Copies a read-only log to another directory.

use haul_disk::{Disk, Durability, File, Open, read_full, write_full};

use super::deliver::ReadSegment;
use super::snapshot::ReadOnlyLog;
use crate::error::{Error, Result};
use crate::format::HEADER_BYTES;
use crate::names;

/// The number of bytes copied at a time.
const PIECE_BYTES: usize = 1 << 20;

impl ReadOnlyLog {
    /// Copies the segments to the root of `target`, which must contain no log. The copy has all
    /// records up to [`Self::end`], with the same LSNs. After that, the copy has zeros, even if
    /// another process has written more records or a crash has left a torn tail.
    ///
    /// The copy is not verified. Damaged bytes are copied unless the log was opened with
    /// [`crate::OnDamage::Refuse`], which finds them before.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if a file cannot be read, created or written, and
    /// [`Error::SegmentRemoved`] if the writing process removed a segment. The copy is then
    /// incomplete: remove it.
    ///
    /// # Durability
    /// When this returns `Ok`, the files in `target` and their names are durable.
    pub fn copy_to(&self, target: &dyn Disk) -> Result<()> {
        for (number, read) in &self.segments {
            let copy = target.create(&names::segment(*number), Open::default())?;
            copy_segment(read, &*copy)?;
            // A file is recycled only after it was renamed, so the bytes belong to the segment.
            if !self.has_name(&read.segment)? {
                return Err(Error::SegmentRemoved { file: read.segment.path.clone() });
            }
            copy.sync(Durability::Data)?;
        }
        Ok(target.sync_dir("")?)
    }
}

/// Copies a segment's records and its header pages. The copy's remaining bytes are a hole.
fn copy_segment(read: &ReadSegment, copy: &dyn File) -> Result<()> {
    let segment = &read.segment;
    copy.resize(segment.bytes.into())?;
    copy_range(&*segment.file, copy, 0, read.end.max(HEADER_BYTES).into())?;
    copy_range(&*segment.file, copy, segment.limit.into(), segment.bytes.into())
}

fn copy_range(from: &dyn File, to: &dyn File, start: u64, end: u64) -> Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut at = start;
    while at < end {
        let left = usize::try_from(end - at).unwrap_or(PIECE_BYTES);
        let piece = &mut buffer[..PIECE_BYTES.min(left)];
        let read = read_full(from, piece, at)?;
        if read == 0 {
            return Ok(());
        }
        write_full(to, &piece[..read], at)?;
        at += read as u64;
    }
    Ok(())
}
