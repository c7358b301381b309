//! The writer of bulk data.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use haul_disk::{
    AlignedBuf, DirectIo, Disk, Durability, File, Open, Pace, Pacer, resident, write_full,
};

use super::plan::Way;
use crate::error::Result;
use crate::storage::scratch::{noise, stamp};
use crate::watch::Watcher;
use crate::write_modes::place::Place;

/// The only name it makes in its directory.
pub(super) const BULK: &str = "bulk";

/// How often somebody who only waits asks whether to stop.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bulk {
    /// Until all of it was on the medium.
    pub(super) time: Duration,
    /// How much of it the page cache has then.
    pub(super) cached: Option<f64>,
}

/// Why it cannot be written in this way here.
pub(super) fn not_here(place: &Place, way: Way) -> Option<&'static str> {
    let unsupported = matches!(place.storage.direct_io, Some(DirectIo::Unsupported));
    (way == Way::Direct && unsupported).then_some("not supported")
}

/// Writes `bytes` into a new file, and waits until all of them are on the medium. Where nothing is
/// to be written it waits for `alone`.
pub(super) fn write(
    place: &Place,
    way: Way,
    bytes: u64,
    alone: Duration,
    watcher: &dyn Watcher,
) -> Result<Option<Bulk>> {
    if way == Way::Alone {
        let started = Instant::now();
        while started.elapsed() < alone {
            watcher.check()?;
            sleep(ASK_EVERY);
        }
        return Ok(None);
    }
    let mut block = noise(way.piece_bytes());
    let open = Open { direct: way == Way::Direct, ..Open::default() };
    let started = Instant::now();
    let file = place.disk.create(BULK, open)?;
    pour(&file, way, bytes, &mut block, watcher)?;
    file.sync(Durability::Everything)?;
    let time = started.elapsed();
    let in_memory = resident(&*file, 0, u64::MAX).ok();
    let cached = in_memory.map(|now| now.resident_bytes as f64 / bytes as f64);
    Ok(Some(Bulk { time, cached }))
}

fn pour(
    file: &Arc<dyn File>,
    way: Way,
    bytes: u64,
    block: &mut AlignedBuf,
    watcher: &dyn Watcher,
) -> Result<()> {
    let drop_behind = matches!(way, Way::Dropping { .. });
    let pace = |window_bytes| Pace { window_bytes, drop_behind };
    let mut pacer = way.window_bytes().map(|bytes| Pacer::of(&**file, pace(bytes)));
    for offset in (0..bytes).step_by(block.len()) {
        watcher.check()?;
        stamp(block, offset);
        write_full(&**file, block, offset)?;
        if let Some(pacer) = &mut pacer {
            pacer.wrote(offset, block.len() as u64)?;
        }
    }
    // What is still in the last windows shall be dropped as well.
    pacer.filter(|_| drop_behind).map_or(Ok(()), |mut pacer| pacer.finish())?;
    Ok(())
}
