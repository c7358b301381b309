//! Writes the background load of the pacing benchmark: large files, in one of several modes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use haul_disk::{
    AlignedBuf, DirectIo, Disk, Durability, File, Open, Pace, PaceBudget, Pacer, resident,
    write_full,
};
use haul_measure::{Error, Result, Watcher, noise, stamp};

use crate::reads::joined;
use crate::write_modes::target_fs::TargetFs;

/// Returns the name of a file with bulk data.
pub(super) fn file_name(number: u64) -> String {
    format!("bulk-{number}")
}

/// The length in bytes of a direct write. The device is idle from the end of one direct write to
/// the start of the next, so longer writes keep it busier.
pub(super) const DIRECT_BYTES: usize = 4 << 20;

/// The maximum length in bytes of a write that is not direct.
const WRITE_BYTES: usize = 1 << 20;

/// The minimum length in bytes of a write. The length is divided by the number of files, so that
/// the files together have as many bytes in flight as one.
const WRITE_BYTES_MIN: usize = 64 << 10;

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

    /// Returns the pacer of one of the files that share a budget, in modes with a pacer.
    fn pacer<'f>(self, file: &'f dyn File, budget: &PaceBudget) -> Option<Pacer<'f>> {
        let drop_behind = matches!(self, Self::Dropping { .. });
        let pace = Pace { window_bytes: self.window_bytes()?, drop_behind };
        Some(Pacer::of(file, pace).sharing(budget))
    }

    /// Returns the length in bytes of a write to one of several files, which is a power of two and
    /// at most the length of a window.
    fn write_bytes(self, files: u64) -> usize {
        let one = match self {
            Self::Direct => DIRECT_BYTES,
            _ => {
                let window = self.window_bytes().and_then(|bytes| usize::try_from(bytes).ok());
                window.unwrap_or(WRITE_BYTES).min(WRITE_BYTES)
            }
        };
        let files = usize::try_from(files).unwrap_or(usize::MAX).next_power_of_two();
        (one / files).max(WRITE_BYTES_MIN.min(one))
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

/// The amount of bulk data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    pub(super) files: u64,
    /// The length of each file, a multiple of [`DIRECT_BYTES`].
    pub(super) file_bytes: u64,
}

impl Amount {
    /// Divides at least `bytes` bytes among files.
    pub(super) fn new(files: u64, bytes: u64) -> Self {
        Self { files, file_bytes: bytes.div_ceil(files).next_multiple_of(DIRECT_BYTES as u64) }
    }

    pub(super) fn bytes(self) -> u64 {
        self.files * self.file_bytes
    }
}

/// Writes new files, each with a thread of its own, and syncs them; in the mode `Alone`, waits for
/// the time `alone` instead.
pub(super) fn write(
    place: &TargetFs,
    mode: Mode,
    amount: Amount,
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
    let blocks: Vec<_> = (0..amount.files).map(|_| noise(mode.write_bytes(amount.files))).collect();
    let started = Instant::now();
    let create = |(number, block)| BulkFile::create(place, mode, amount, number, block);
    let mut files = (0..).zip(blocks).map(create).collect::<Result<Vec<_>>>()?;
    write_all(&mut files, mode, watcher)?;
    let time = started.elapsed();
    let resident = |it: &BulkFile| Some(resident(&*it.file, 0, u64::MAX).ok()?.resident_bytes);
    let resident: Option<u64> = files.iter().map(resident).sum();
    let bytes = amount.bytes();
    let longest = files.iter().map(|file| file.longest).max().unwrap_or_default();
    Ok(Some(Bulk { bytes, time, longest, cached: resident.map(|it| it as f64 / bytes as f64) }))
}

/// Writes and syncs all files at the same time, the first one on this thread.
fn write_all(files: &mut [BulkFile], mode: Mode, watcher: &dyn Watcher) -> Result<()> {
    let Some((first, others)) = files.split_first_mut() else { return Ok(()) };
    let (budget, is_stopped) = (PaceBudget::default(), AtomicBool::new(false));
    let check = || match is_stopped.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => Ok(()),
    };
    scope(|scope| {
        let (budget, check) = (&budget, &check);
        let others = others.iter_mut();
        let threads: Vec<_> =
            others.map(|file| scope.spawn(move || file.write(mode, budget, check))).collect();
        let written = first.write(mode, budget, &|| watcher.check());
        is_stopped.store(written.is_err(), Ordering::Relaxed);
        threads.into_iter().map(joined).fold(written, Result::and)
    })
}

/// A file with bulk data, and the bytes of a write to it.
struct BulkFile {
    file: Arc<dyn File>,
    bytes: u64,
    /// The number of the first byte. The numbers are written into the pages, so that no two pages
    /// of all files are equal.
    first: u64,
    block: AlignedBuf,
    longest: Duration,
}

impl BulkFile {
    fn create(
        place: &TargetFs,
        mode: Mode,
        amount: Amount,
        number: u64,
        block: AlignedBuf,
    ) -> Result<Self> {
        let open = Open { direct: mode == Mode::Direct, ..Open::default() };
        let file = place.disk.create(&file_name(number), open)?;
        let bytes = amount.file_bytes;
        Ok(Self { file, bytes, first: number * bytes, block, longest: Duration::ZERO })
    }

    /// Writes the file and syncs it.
    fn write(
        &mut self,
        mode: Mode,
        budget: &PaceBudget,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let mut pacer = mode.pacer(&*self.file, budget);
        for offset in (0..self.bytes).step_by(self.block.len()) {
            check()?;
            stamp(&mut self.block, self.first + offset);
            let began = Instant::now();
            write_full(&*self.file, &self.block, offset)?;
            if let Some(pacer) = &mut pacer {
                pacer.wrote(offset, self.block.len() as u64)?;
            }
            self.longest = self.longest.max(began.elapsed());
        }
        // A pacer that drops pages drops a window when a later one is full. Without this call, the
        // last windows would stay in the page cache.
        if let (Some(pacer), Mode::Dropping { .. }) = (&mut pacer, mode) {
            pacer.finish()?;
        }
        Ok(self.file.sync(Durability::Everything)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_is_paced_and_the_first_one_dropped() {
        let names: Vec<_> = Mode::all(&[8 << 20, 1 << 20]).iter().map(Mode::to_string).collect();
        let expected = [
            "alone",
            "unpaced",
            "paced 8192 KiB",
            "paced 1024 KiB",
            "paced, dropped 8192 KiB",
            "direct",
        ];
        assert_eq!(names, expected);
        assert_eq!(Mode::all(&[]).len(), 3);
    }

    #[test]
    fn writes_are_at_most_a_window_and_shorter_for_many_files() {
        for (mode, files, bytes) in [
            (Mode::Unpaced, 1, 1 << 20),
            (Mode::Unpaced, 3, 256 << 10),
            (Mode::Unpaced, 64, 64 << 10),
            (Mode::Paced { window_bytes: 256 << 10 }, 1, 256 << 10),
            (Mode::Paced { window_bytes: 8 << 20 }, 1, 1 << 20),
            (Mode::Direct, 1, 4 << 20),
            (Mode::Direct, 1024, 64 << 10),
        ] {
            assert_eq!(mode.write_bytes(files), bytes, "{mode}, {files} files");
        }
    }

    #[test]
    fn files_have_whole_direct_writes() {
        for (files, bytes, expected) in
            [(1, 1, 4 << 20), (64, 1 << 30, 1 << 30), (3, 16 << 20, 24 << 20)]
        {
            assert_eq!(Amount::new(files, bytes).bytes(), expected, "{files} files");
        }
    }
}
