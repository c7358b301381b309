//! Creates a new segment's file and prepares its blocks.

use std::sync::Arc;

use haul_disk::{Allocation, Disk, Error as DiskError, File, Open, fill_paced};

use crate::format::SegmentHeader;
use crate::segments::RANDOM;
use crate::segments::header::write_header;

/// A function that is called between the steps of filling a file, with the number of bytes filled
/// so far. It may block. If it returns `false`, the creation is cancelled.
pub(crate) type Pace<'a> = &'a mut dyn FnMut(u64) -> bool;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preparation {
    /// Zeros are written to all blocks, so that a later write in place changes no file system
    /// metadata. On storage that does not overwrite in place, the blocks are only reserved.
    Zeroed,
    /// The blocks are allocated and not written.
    Reserved,
}

/// Creates the file `name` with prepared blocks and a synced header. The rest of the file reads as
/// zeros. Returns `None` if `pace` cancelled the creation.
pub(super) fn new_file(
    disk: &dyn Disk,
    name: &str,
    header: &SegmentHeader,
    preparation: Preparation,
    pace: Pace<'_>,
) -> Result<Option<Arc<dyn File>>, DiskError> {
    match preparation {
        Preparation::Zeroed => {
            // The zeros bypass the page cache: they are never read, and each step is written before
            // `pace` is called for the next one.
            let file = disk.create(name, Open { direct: true, ..Open::default() })?;
            if fill_paced(&*file, header.bytes, pace)?.is_none() {
                return Ok(None);
            }
        }
        Preparation::Reserved => {
            let file = disk.create(name, RANDOM)?;
            // Reserving blocks detects a full disk now. If the file system does not support it,
            // later writes detect a full disk.
            match file.allocate(Allocation::Reserve, 0, header.bytes) {
                Err(error) if error.is_full() => return Err(error),
                _ => file.resize(header.bytes)?,
            }
        }
    }
    let file = disk.open(name, RANDOM)?;
    write_header(&*file, header)?;
    Ok(Some(file))
}
