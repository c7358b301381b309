//! One file read from its beginning to its end, in each of the ways there are.
//!
//! The file is not in memory before any reading. How far the kernel reads ahead by itself is one of
//! the things that are changed: by advice for the descriptor, or by the setting of the device.

mod plan;
mod read_ahead_kb;
mod rows;

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, DeviceCounters, File, Map, Open, read_full, read_uncached, warm};
use rustix::fs::{Advice as Fadvice, fadvise};
use rustix::time::{ClockId, clock_gettime};

pub use plan::Advice;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::report::Report;
use crate::rounds::mixed_turns;
use crate::test_file::{TestFile, check};
use crate::watch::Watcher;
use plan::{Cell, Setting, Way, cells, fetch_next};
use read_ahead_kb::ReadAheadKb;
use rows::{BAR, COLUMNS, Reading, Sum};

/// What is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to make the file in.
    pub dir: PathBuf,
    /// The length of the file.
    pub file_bytes: u64,
    /// The lengths of a read, in whole pages.
    pub request_bytes: Vec<u64>,
    /// How far ahead of the reader the kernel is told to fetch.
    pub window_bytes: Vec<u64>,
    /// What the kernel is told of each descriptor.
    pub advices: Vec<Advice>,
    /// In place of advice: what the device's `read_ahead_kb` is set to, as root, for as long as the
    /// bench takes. Everybody who uses the device has it meanwhile.
    pub read_ahead_kib: Vec<u64>,
    /// How often each is measured, in turn.
    pub rounds: usize,
}

impl Options {
    /// The defaults, in `dir`.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            file_bytes: 256 << 20,
            request_bytes: vec![64 << 10, 1 << 20],
            window_bytes: vec![1 << 20, 8 << 20],
            advices: Advice::ALL.to_vec(),
            read_ahead_kib: Vec::new(),
            rounds: 5,
        }
    }

    fn settings(&self) -> Vec<Setting> {
        match self.read_ahead_kib.is_empty() {
            true => self.advices.iter().copied().map(Setting::Advice).collect(),
            false => self.read_ahead_kib.iter().copied().map(Setting::Kib).collect(),
        }
    }
}

/// Measures. The file is gone when this returns, and the device set as it was, also when the process
/// is killed.
///
/// # Errors
/// [`Error::Cancelled`] when it was told to stop; what the disk refuses; no root, where
/// [`Options::read_ahead_kib`] asks for it; and when a read gave other bytes than those asked for.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    watcher.step(0, 1, "making the file");
    let file = TestFile::new(&options.dir, options.file_bytes, watcher)?;
    let host = Host::here().with_storage("", &file.storage);
    let mut report = Report::new("sequential-read", host, COLUMNS, BAR);
    report.notes.push(note(options));
    let device = match (options.read_ahead_kib.is_empty(), &file.storage.device) {
        (true, _) => None,
        (false, Some(device)) => Some(ReadAheadKb::of(device)?),
        (false, None) => {
            return Err(Error::Missing(
                "there is no device below whose readahead can be set".into(),
            ));
        }
    };
    let cells = cells(&options.settings(), &options.request_bytes, &options.window_bytes);
    let mut sums = vec![Sum::default(); cells.len()];
    for turn in mixed_turns(options.rounds, cells.len()) {
        let cell = &cells[turn.which];
        watcher.step(turn.done, turn.of, &cell.to_string());
        if cell.way == Way::Direct && !file.is_direct(cell.request_bytes) {
            sums[turn.which].cannot("no direct I/O here");
            continue;
        }
        if let (Setting::Kib(kib), Some(device)) = (cell.setting, &device) {
            device.set(kib)?;
        }
        file.make_cold()?;
        sums[turn.which].add(measure(&file, cell, watcher)?);
    }
    report.rows.extend(cells.iter().zip(&sums).map(|(cell, sum)| sum.row(cell)));
    report.ratios = rows::ratios(&cells, &sums);
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { file_bytes, rounds, .. } = options;
    format!(
        "A file of {} MiB, read {rounds} times from end to end, all ways mixed, nothing of it in \
         memory before. Readahead is the kernel's own: by advice for the descriptor, or KiB of the \
         device's read_ahead_kb; direct knows none, and is measured once. % cached is how much of the \
         file is in memory afterwards. CPU is that of this process. A ratio \"a_vs_b\" is how many \
         times faster a is than b, with the first readahead, the longest requests and the longest \
         window.",
        file_bytes >> 20
    )
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

fn measure(file: &TestFile, cell: &Cell, watcher: &dyn Watcher) -> Result<Reading> {
    let counters = || {
        let device = file.storage.device.as_ref()?;
        DeviceCounters::of(device).ok().map(|counters| counters.reads)
    };
    let mut source = Source::open(file, cell)?;
    let mut buffer = AlignedBuf::zeroed(usize::try_from(cell.request_bytes).unwrap_or(usize::MAX));
    let (before, cpu_before, started) = (counters(), cpu(), Instant::now());
    let (mut at, mut fetched) = (0, 0);
    while at < file.bytes {
        watcher.check()?;
        if let Some(window_bytes) = cell.window_bytes
            && let Some((from, bytes)) = fetch_next(at, fetched, window_bytes, file.bytes)
        {
            source.fetch(from, bytes)?;
            fetched = from + bytes;
        }
        let length = cell.request_bytes.min(file.bytes - at);
        let part = &mut buffer[..usize::try_from(length).unwrap_or(usize::MAX)];
        source.read(part, at)?;
        check(part, at)?;
        at += length;
    }
    let (time, cpu) = (started.elapsed(), cpu().saturating_sub(cpu_before));
    let device_reads = counters().zip(before).map(|(now, before)| now - before);
    drop(source);
    Ok(Reading { bytes: file.bytes, time, cpu, device_reads, cached: file.in_memory()? })
}

/// The file, opened in the way it is read.
enum Source {
    Calls(Arc<dyn File>),
    Uncached(Arc<dyn File>),
    Mapped(Map),
}

impl Source {
    fn open(file: &TestFile, cell: &Cell) -> Result<Self> {
        let how = Open { direct: cell.way == Way::Direct, read_only: true, ..Open::default() };
        let opened = file.open(how)?;
        if let (Setting::Advice(advice), Some(fd)) = (cell.setting, opened.descriptor()) {
            let advice = match advice {
                Advice::Normal => Fadvice::Normal,
                Advice::Sequential => Fadvice::Sequential,
                Advice::Random => Fadvice::Random,
            };
            fadvise(fd, 0, None::<NonZeroU64>, advice)
                .map_err(Error::other("advise the kernel"))?;
        }
        let bytes = usize::try_from(file.bytes).unwrap_or(usize::MAX);
        Ok(match cell.way {
            Way::Read | Way::ReadAhead | Way::Direct => Self::Calls(opened),
            Way::Uncached => Self::Uncached(opened),
            Way::Mmap => Self::Mapped(Map::for_reading(opened, bytes)?),
            Way::MmapAdvised => {
                let map = Map::for_reading(opened, bytes)?;
                map.will_be_read_in_order()?;
                Self::Mapped(map)
            }
        })
    }

    /// Has the kernel fetch a range.
    fn fetch(&mut self, offset: u64, bytes: u64) -> Result<()> {
        match self {
            Self::Calls(file) | Self::Uncached(file) => warm(&**file, offset, bytes)?,
            Self::Mapped(map) => map.fetch(whole(offset)?, whole(bytes)?)?,
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<()> {
        match self {
            Self::Calls(file) => read_full(&**file, buffer, offset).map(drop)?,
            Self::Uncached(file) => read_uncached(&**file, buffer, offset).map(drop)?,
            Self::Mapped(map) => map.read(buffer, whole(offset)?)?,
        }
        Ok(())
    }
}

fn whole(bytes: u64) -> Result<usize> {
    let too_long = std::io::Error::other;
    usize::try_from(bytes).map_err(|error| Error::other("map the file")(too_long(error)))
}
