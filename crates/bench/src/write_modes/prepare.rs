//! The file, as it is before its first record.

use std::sync::Arc;

use haul_disk::{
    AlignedBuf, Allocation, DirectIo, Disk, Durability, File, Map, Open, evict, write_full,
};

use super::place::Place;
use super::plan::{Cell, Sync, Way};
use crate::error::{Error, Result};

/// The only names the bench makes in its directory.
pub(super) const LOG: &str = "log";
pub(super) const OLD: &str = "log.old";

/// How much is written at a time to fill a file.
const FILL_BYTES: usize = 1 << 20;

/// A file that is ready for records.
#[derive(Debug)]
pub(super) enum Ready {
    File(Arc<dyn File>),
    Map(Arc<dyn File>, Map),
    /// It cannot be made here.
    Not(&'static str),
}

const NOT_SUPPORTED: Ready = Ready::Not("not supported");

/// Makes the file of a cell for `records`, and brings everything about it onto the medium.
pub(super) fn prepare(place: &Place, cell: &Cell, records: u64) -> Result<Ready> {
    if cell.sync == Sync::DirectDsync
        && matches!(place.storage.direct_io, Some(DirectIo::Unsupported))
    {
        return Ok(NOT_SUPPORTED);
    }
    let bytes = cell.file_bytes(records);
    let made = make(&place.disk, cell.way, bytes);
    match made {
        Err(Error::Disk(error)) if error.is_unsupported() => {
            remove(place)?;
            return Ok(NOT_SUPPORTED);
        }
        made => made?,
    }
    let direct = cell.sync == Sync::DirectDsync;
    let file = place.disk.open(LOG, Open { direct, dsync: direct, ..Open::default() })?;
    file.sync(Durability::Everything)?;
    // An old log is no longer in memory when its turn comes; direct writes would have to drop it.
    if direct || cell.way == Way::Recycled {
        evict(&*file, 0, bytes)?;
    }
    place.settle()?;
    Ok(match cell.sync {
        Sync::Msync => {
            let length = usize::try_from(bytes)
                .map_err(|_beyond| Error::Missing(format!("{bytes} B are too much to map")))?;
            let map = Map::of(Arc::clone(&file), length)?;
            Ready::Map(file, map)
        }
        _ => Ready::File(file),
    })
}

fn make(disk: &dyn Disk, way: Way, bytes: u64) -> Result<()> {
    let name = if way == Way::Recycled { OLD } else { LOG };
    let file = disk.create(name, Open::default())?;
    match way {
        Way::Append => {}
        Way::Fallocate => file.allocate(Allocation::Reserve, 0, bytes)?,
        Way::WriteZeroes => file.allocate(Allocation::WriteZeroes, 0, bytes)?,
        Way::Filled => fill(&*file, bytes, 0)?,
        Way::ZeroRange => {
            fill(&*file, bytes, b'o')?;
            file.sync(Durability::Everything)?;
            file.allocate(Allocation::ZeroRange, 0, bytes)?;
        }
        Way::Recycled => {
            fill(&*file, bytes, b'o')?;
            file.sync(Durability::Everything)?;
            disk.rename(OLD, LOG)?;
        }
    }
    Ok(())
}

fn fill(file: &dyn File, bytes: u64, with: u8) -> Result<()> {
    let mut buffer = AlignedBuf::zeroed(FILL_BYTES);
    buffer.fill(with);
    let mut offset = 0;
    while offset < bytes {
        let step = usize::try_from(bytes - offset).map_or(FILL_BYTES, |left| left.min(FILL_BYTES));
        write_full(file, &buffer[..step], offset)?;
        offset += step as u64;
    }
    Ok(())
}

/// Removes the file of a cell, whichever name it has by now.
pub(super) fn remove(place: &Place) -> Result<()> {
    for name in [LOG, OLD] {
        match place.disk.remove(name) {
            Err(error) if error.is_not_found() => {}
            removed => removed?,
        }
    }
    Ok(())
}
