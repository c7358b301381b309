//! Writes the background load of the pacing benchmark: large files, in one of several modes.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use haul_disk::{DirectIo, Disk, Durability, File, Open, Pace, Pacer, resident, write_full};
use haul_measure::{Result, Watcher, noise, stamp};

use crate::write_modes::target_fs::TargetFs;

/// The name of the file with the bulk data.
pub(super) const BULK: &str = "bulk";

/// The length in bytes of a direct write. The device is idle from the end of one direct write to
/// the start of the next, so longer writes keep it busier.
pub(super) const DIRECT_BYTES: usize = 4 << 20;

/// The maximum length in bytes of a write that is not direct.
const WRITE_BYTES: usize = 1 << 20;

/// The interval between checks for cancellation while no bulk data is written.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// The method by which bulk data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// No bulk data is written.
    Alone,
    /// `write`, as a program that copies files does.
    Unpaced,
    /// `write` with a [`Pacer`], which starts writeback each time it has seen this many bytes (a
    /// window).
    Paced { window_bytes: u64 },
    /// As [`Mode::Paced`], and each window is dropped from the page cache once it is written back.
    Dropping { window_bytes: u64 },
    /// Direct writes (`O_DIRECT`).
    Direct,
}

impl Mode {
    /// Returns all modes: `Paced` with each window, and `Dropping` with the first window.
    pub(super) fn all(window_bytes: &[u64]) -> Vec<Self> {
        let paced = window_bytes.iter().map(|&window_bytes| Self::Paced { window_bytes });
        let dropping = window_bytes.first().map(|&window_bytes| Self::Dropping { window_bytes });
        let unpaced = [Self::Alone, Self::Unpaced].into_iter();
        unpaced.chain(paced).chain(dropping).chain([Self::Direct]).collect()
    }

    /// Returns the name of the mode in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Unpaced => "unpaced",
            Self::Paced { .. } => "paced",
            Self::Dropping { .. } => "paced, dropped",
            Self::Direct => "direct",
        }
    }

    pub(super) const fn window_bytes(self) -> Option<u64> {
        match self {
            Self::Paced { window_bytes } | Self::Dropping { window_bytes } => Some(window_bytes),
            Self::Alone | Self::Unpaced | Self::Direct => None,
        }
    }

    fn pacer(self, file: &dyn File) -> Option<Pacer<'_>> {
        let drop_behind = matches!(self, Self::Dropping { .. });
        Some(Pacer::of(file, Pace { window_bytes: self.window_bytes()?, drop_behind }))
    }

    /// Returns the length in bytes of a write, which is at most the length of a window.
    fn write_bytes(self) -> usize {
        if self == Self::Direct {
            return DIRECT_BYTES;
        }
        let window = self.window_bytes().and_then(|bytes| usize::try_from(bytes).ok());
        window.unwrap_or(WRITE_BYTES).min(WRITE_BYTES)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.window_bytes().map_or(Ok(()), |bytes| write!(f, " {} KiB", bytes >> 10))
    }
}

/// The result of writing bulk data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bulk {
    pub(super) bytes: u64,
    /// The time from the first write until the final sync returned.
    pub(super) time: Duration,
    /// The longest time of one write, with the wait of the pacer.
    pub(super) longest: Duration,
    /// The fraction of the data that is in the page cache afterwards.
    pub(super) cached: Option<f64>,
}

/// Returns the reason why a mode cannot be measured; `None` if it can.
pub(super) fn obstacle(place: &TargetFs, mode: Mode) -> Option<&'static str> {
    let unsupported = matches!(place.storage.direct_io, Some(DirectIo::Unsupported));
    (mode == Mode::Direct && unsupported).then_some("not supported")
}

/// Writes a new file of `bytes` bytes, and syncs it; in the mode `Alone`, waits for the time `alone`
/// instead.
pub(super) fn write(
    place: &TargetFs,
    mode: Mode,
    bytes: u64,
    alone: Duration,
    watcher: &dyn Watcher,
) -> Result<Option<Bulk>> {
    let started = Instant::now();
    if mode == Mode::Alone {
        while started.elapsed() < alone {
            watcher.check()?;
            sleep(CHECK_EVERY);
        }
        return Ok(None);
    }
    let mut block = noise(mode.write_bytes());
    let started = Instant::now();
    let open = Open { direct: mode == Mode::Direct, ..Open::default() };
    let file = place.disk.create(BULK, open)?;
    let (mut pacer, mut longest) = (mode.pacer(&*file), Duration::ZERO);
    for offset in (0..bytes).step_by(block.len()) {
        watcher.check()?;
        stamp(&mut block, offset);
        let began = Instant::now();
        write_full(&*file, &block, offset)?;
        if let Some(pacer) = &mut pacer {
            pacer.wrote(offset, block.len() as u64)?;
        }
        longest = longest.max(began.elapsed());
    }
    // A pacer that drops pages drops a window when a later one is full. Without this call, the
    // last windows would stay in the page cache.
    if let (Some(pacer), Mode::Dropping { .. }) = (&mut pacer, mode) {
        pacer.finish()?;
    }
    file.sync(Durability::Everything)?;
    let time = started.elapsed();
    let resident = resident(&*file, 0, u64::MAX).ok().map(|it| it.resident_bytes as f64);
    Ok(Some(Bulk { bytes, time, longest, cached: resident.map(|it| it / bytes as f64) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_at_most_a_window() {
        for (mode, bytes) in [
            (Mode::Unpaced, 1 << 20),
            (Mode::Paced { window_bytes: 256 << 10 }, 256 << 10),
            (Mode::Paced { window_bytes: 8 << 20 }, 1 << 20),
            (Mode::Direct, 4 << 20),
        ] {
            assert_eq!(mode.write_bytes(), bytes, "{mode}");
        }
    }
}
