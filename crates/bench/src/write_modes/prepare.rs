//! Prepares a file before its first record is written.

use std::fs::File as StdFile;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use haul_disk::{Allocation, DirectIo, Disk, Durability, File, Map, Open, evict};
use haul_measure::{Error, Result, Silent};
use rustix::fs::OFlags;

use super::modes::{Cell, Preparation, Sync};
use super::target_fs::TargetFs;
use crate::test_file::fill;

/// The names of the file that is written, and of the old file that is recycled.
const LOG: &str = "log";
const OLD: &str = "log.old";
pub(super) const NAMES: [&str; 2] = [LOG, OLD];

/// A file that is prepared for records: with its mapping for `msync`, or opened a second time with
/// `O_SYNC`.
#[derive(Debug)]
pub(crate) enum Prepared {
    File(Arc<dyn File>),
    Opened(Arc<dyn File>, StdFile),
    Map(Arc<dyn File>, Map),
}

/// Creates the file for `records` records in the mode of `cell`, and syncs the file; returns `None`
/// if the file system does not support the mode.
pub(crate) fn prepare(place: &TargetFs, cell: &Cell, records: u64) -> Result<Option<Prepared>> {
    if cell.sync == Sync::DirectDsync
        && matches!(place.storage.direct_io, Some(DirectIo::Unsupported))
    {
        return Ok(None);
    }
    let bytes = cell.file_bytes(records);
    match create(&place.disk, cell.preparation, bytes) {
        Err(Error::Disk(error)) if error.is_unsupported() => {
            place.remove(&NAMES)?;
            return Ok(None);
        }
        created => created?,
    }
    let direct = cell.sync == Sync::DirectDsync;
    let dsync = direct || cell.sync == Sync::OpenDatasync;
    let file = place.disk.open(LOG, Open { direct, dsync, ..Open::default() })?;
    file.sync(Durability::Everything)?;
    // The cached pages are evicted for two reasons: an old segment is usually no longer cached when
    // a log reuses it, and direct writes would have to invalidate cached pages.
    if direct || cell.preparation == Preparation::Recycled {
        evict(&*file, 0, bytes)?;
    }
    place.settle()?;
    Ok(Some(match cell.sync {
        Sync::Msync => {
            let length = usize::try_from(bytes).map_err(|_beyond| {
                Error::Missing(format!("{bytes} B are too long for a mapping"))
            })?;
            let map = Map::of(Arc::clone(&file), length)?;
            Prepared::Map(file, map)
        }
        Sync::OpenSync => {
            let opened = open_sync(&*file)?;
            Prepared::Opened(file, opened)
        }
        _ => Prepared::File(file),
    }))
}

/// Opens an open file a second time, with `O_SYNC`.
fn open_sync(file: &dyn File) -> Result<StdFile> {
    let what = "open a file with O_SYNC";
    let missing = || Error::Missing("the file has no descriptor".to_owned());
    let path = format!("/proc/self/fd/{}", file.descriptor().ok_or_else(missing)?.as_raw_fd());
    let flags = OFlags::SYNC.bits().cast_signed();
    StdFile::options().write(true).custom_flags(flags).open(path).map_err(Error::other(what))
}

fn create(disk: &dyn Disk, preparation: Preparation, bytes: u64) -> Result<()> {
    let name = if preparation == Preparation::Recycled { OLD } else { LOG };
    let old = |chunk: &mut [u8], _| chunk.fill(b'o');
    let file = disk.create(name, Open::default())?;
    match preparation {
        Preparation::Append => {}
        Preparation::Fallocate => file.allocate(Allocation::Reserve, 0, bytes)?,
        Preparation::WriteZeroes => file.allocate(Allocation::WriteZeroes, 0, bytes)?,
        Preparation::Filled => fill(&*file, bytes, &Silent, |_, _| {})?,
        Preparation::ZeroRange => {
            fill(&*file, bytes, &Silent, old)?;
            file.allocate(Allocation::ZeroRange, 0, bytes)?;
        }
        Preparation::Recycled => {
            fill(&*file, bytes, &Silent, old)?;
            disk.rename(OLD, LOG)?;
        }
    }
    Ok(())
}
