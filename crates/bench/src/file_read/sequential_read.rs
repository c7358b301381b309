//! Measures reading one file from its beginning to its end, with several methods.
//!
//! The file is not in the page cache at the start. The kernel's readahead is a parameter: it is set
//! for a descriptor with `posix_fadvise`, or for the whole device with `read_ahead_kb`.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Device, File, Map, Open, read_full, read_uncached, warm};
use haul_measure::{Error, Result, Watcher};
use rustix::fs::{Advice as Fadvice, fadvise};
use rustix::time::{ClockId, clock_gettime};

use super::NO_DIRECT_IO;
pub use super::strategy::Advice;
use super::strategy::{Method, Readahead, Strategy};
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::fio::{self, Checker};
use crate::guardian::Guardian;
use crate::host::Host;
use crate::options::{file_size, pages, rounds};
use crate::report::{Column, Report};
use crate::test_file::{TestFile, check};

/// Options of `haul bench sequential-read`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Length of the test file
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = file_size)]
    pub file_size: u64,
    /// Lengths of a read, multiples of 4KiB, at most 64MiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64KiB,1MiB")]
    #[arg(value_parser = pages)]
    pub sizes: Vec<u64>,
    /// Lengths of the part ahead of the reader to prefetch with madvise or fadvise
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1MiB,8MiB")]
    #[arg(value_parser = pages)]
    pub windows: Vec<u64>,
    /// Readahead advice (posix_fadvise) for the file: normal, sequential, random
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "normal,sequential,random")]
    pub advice: Vec<Advice>,
    /// Readahead of the device, in KiB, instead of --advice; such as 0,128,4096
    ///
    /// Needs root. The setting affects all programs that use the device during the benchmark. It
    /// is restored at the end, also after Ctrl-C and when the program is killed.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "advice")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=1_048_576))]
    pub read_ahead_kb: Vec<u64>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Also run the command lines of fio in the column fio, and show its figures
    ///
    /// The column has for each row that fio can measure the command for the same work. FILE stands
    /// for the file. Without this option, fio is not run.
    #[arg(long, value_name = "PROGRAM")]
    pub check_with: Option<Checker>,
}

impl Options {
    fn readaheads(&self) -> Vec<Readahead> {
        match self.read_ahead_kb.is_empty() {
            true => self.advice.iter().copied().map(Readahead::Advice).collect(),
            false => self.read_ahead_kb.iter().copied().map(Readahead::Kib).collect(),
        }
    }

    /// Returns all methods for each readahead. Direct reads have no readahead, so they are returned
    /// only with the first readahead.
    fn strategies(&self) -> Vec<Strategy> {
        let mut strategies = Vec::new();
        for (number, readahead) in self.readaheads().into_iter().enumerate() {
            for method in Method::ALL.into_iter().filter(|it| number == 0 || *it != Method::Direct)
            {
                let windows: Vec<_> = match method {
                    Method::MmapAdvised | Method::ReadAhead => {
                        self.windows.iter().copied().map(Some).collect()
                    }
                    _ => vec![None],
                };
                let file_bytes = self.file_size;
                for request_bytes in self.sizes.iter().copied() {
                    let of = |window_bytes| Strategy {
                        readahead,
                        method,
                        request_bytes,
                        window_bytes,
                        file_bytes,
                    };
                    strategies.extend(windows.iter().copied().map(of));
                }
            }
        }
        strategies
    }
}

/// The figures of one pass over the file.
#[derive(Debug, Clone, Copy)]
struct Round {
    bytes: u64,
    time: Duration,
    /// The CPU time of this process, in user and kernel mode.
    cpu: Duration,
    /// Read requests to the device, including those of other programs.
    device_reads: Option<u64>,
    /// The fraction of the file that is in the page cache afterwards.
    cached: f64,
}

const BAR: &str = "mb_per_s";

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("readahead", "readahead", |strategy| strategy.readahead.to_string().into()),
    Field::parameter(Column::number("request_kib", "KiB", 0), |strategy| {
        (strategy.request_bytes as f64 / 1024.0).into()
    }),
    Field::label("way", "method", |strategy| strategy.method.name().into()),
    Field::parameter(Column::number("window_kib", "window KiB", 0), |strategy| {
        strategy.window_bytes.map(|bytes| bytes as f64 / 1024.0).into()
    }),
    Field::spread(Column::number("mb_per_s", "MB/s", 0), 4, rate),
    Field::median(Column::number("cpu_ms_per_gib", "CPU ms/GiB", 0).ranked(2), |round| {
        Some(round.cpu.as_secs_f64() * 1000.0 * f64::from(1 << 30) / round.bytes as f64)
    }),
    Field::median(
        Column::number("device_reads_per_mib", "device reads/MiB", 2).ranked(3),
        |round| Some(round.device_reads? as f64 * f64::from(1 << 20) / round.bytes as f64),
    ),
    Field::median(Column::number("cached_percent", "% cached", 0).ranked(1), |round| {
        Some(round.cached * 100.0)
    }),
    Field::parameter(fio::COLUMN, |strategy| fio::cell(strategy.fio_options())),
];

fn rate(round: &Round) -> Option<f64> {
    Some(round.bytes as f64 / 1e6 / round.time.as_secs_f64())
}

/// Runs the benchmark. The file is removed and the setting of the device restored when this
/// returns, and also when the process is killed.
///
/// # Errors
/// Returns [`Error::Cancelled`] if the watcher cancels, and an error if the disk fails,
/// [`Options::read_ahead_kb`] is set without root, or a read returns wrong bytes.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    watcher.step(0, 1, "writing the test file");
    let file = TestFile::new(&options.dir, options.file_size, watcher)?;
    let host = Host::here().with_storage("", &file.storage);
    let mut report = Report::new("sequential-read", host, columns(FIELDS), BAR);
    report.notes.push(note(options));
    let device = match (options.read_ahead_kb.is_empty(), &file.storage.device) {
        (true, _) => None,
        (false, Some(device)) => Some(ReadAheadKb::of(device)?),
        (false, None) => {
            let why = "the file system has no device whose readahead can be set";
            return Err(Error::Missing(why.to_owned()));
        }
    };
    let mut contest = Contest::new(FIELDS, options.strategies());
    contest.run_shuffled(&Stage::only(options.rounds, watcher), |strategy| {
        if strategy.method == Method::Direct && !file.is_direct(strategy.request_bytes) {
            return Outcome::skipped(NO_DIRECT_IO);
        }
        if let (Readahead::Kib(kib), Some(device)) = (strategy.readahead, &device) {
            device.set(kib)?;
        }
        file.make_cold()?;
        measure(&file, strategy, watcher).map(Outcome::Measured)
    })?;
    contest.report(&mut report, "", |strategy| {
        format!("{} {}", strategy.readahead, strategy.request_bytes)
    });
    add_ratios(&contest, &mut report);
    if options.check_with.is_some() {
        fio::check(&mut report, fio::Figure::MegabytesPerSecond, &options.dir, watcher)?;
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { file_size, rounds, .. } = options;
    format!(
        "A file of {} MiB, read {rounds} times with each method in shuffled order, not in the page \
         cache at the start. Readahead is that of the kernel: by advice for the descriptor, or \
         KiB of the device's read_ahead_kb; direct reads have none and are measured once. \
         % cached: the part of the file in the page cache afterwards. CPU is that of this process. \
         A ratio \"a_vs_b\" is the rate of a divided by that of b with the first readahead, the \
         longest requests and the longest window.",
        file_size >> 20
    )
}

/// Adds the ratios between the methods, with the first readahead, the longest reads and the largest
/// window.
fn add_ratios(contest: &Contest<Strategy, Round>, report: &mut Report) {
    let strategies = || contest.entries.iter().map(|entry| entry.strategy);
    let Some(first) = strategies().next() else { return };
    let longest = strategies().map(|strategy| strategy.request_bytes).max();
    let window = strategies().filter_map(|strategy| strategy.window_bytes).max();
    let strategy = |method: Method| {
        strategies().find(|strategy| {
            (strategy.readahead, strategy.method) == (first.readahead, method)
                && Some(strategy.request_bytes) == longest
                && (strategy.window_bytes.is_none() || strategy.window_bytes == window)
        })
    };
    for (name, a, b) in [
        ("mmap_vs_read", Method::Mmap, Method::Read),
        ("mmap_advised_vs_mmap", Method::MmapAdvised, Method::Mmap),
        ("read_ahead_vs_read", Method::ReadAhead, Method::Read),
        ("direct_vs_read", Method::Direct, Method::Read),
        ("uncached_vs_read", Method::Uncached, Method::Read),
    ] {
        let pair = strategy(a).zip(strategy(b));
        report.ratio(name, pair.and_then(|(a, b)| contest.ratio(&a, &b, rate)));
    }
    let unread = strategy(Method::Read)
        .map(|it| Strategy { readahead: Readahead::Advice(Advice::Random), ..it });
    let pair = strategy(Method::Read).zip(unread).filter(|(a, b)| a != b);
    report.ratio("readahead_vs_none", pair.and_then(|(a, b)| contest.ratio(&a, &b, rate)));
}

/// The readahead setting of a device, restored on drop and when the process is killed.
#[derive(Debug)]
struct ReadAheadKb {
    path: PathBuf,
    _restored: Guardian,
}

impl ReadAheadKb {
    fn of(device: &Device) -> Result<Self> {
        let path = PathBuf::from(format!("/sys/block/{}/queue/read_ahead_kb", device.disk));
        let restored = Guardian::writing(&path, &crate::setting::read(&path)?)?;
        Ok(Self { path, _restored: restored })
    }

    /// Sets the readahead in KiB for files that are opened afterwards.
    fn set(&self, kib: u64) -> Result<()> {
        let what = || format!("write {kib} to {}, which needs root", self.path.display());
        std::fs::write(&self.path, kib.to_string()).map_err(Error::other(what()))
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

fn measure(file: &TestFile, strategy: &Strategy, watcher: &dyn Watcher) -> Result<Round> {
    let mut source = Source::open(file, strategy)?;
    let request_bytes = strategy.request_bytes;
    let mut buffer = AlignedBuf::zeroed(usize::try_from(request_bytes).unwrap_or(usize::MAX));
    let (before, cpu_before, started) = (file.device_reads(), cpu_time(), Instant::now());
    let (mut at, mut fetched) = (0, 0);
    while at < file.bytes {
        watcher.check()?;
        if let Some(window_bytes) = strategy.window_bytes
            && let Some((from, bytes)) = prefetch(at, fetched, window_bytes, file.bytes)
        {
            source.prefetch(from, bytes)?;
            fetched = from + bytes;
        }
        let length = request_bytes.min(file.bytes - at);
        let part = &mut buffer[..usize::try_from(length).unwrap_or(usize::MAX)];
        source.read(part, at)?;
        check(part, at)?;
        at += length;
    }
    let (time, cpu) = (started.elapsed(), cpu_time().saturating_sub(cpu_before));
    let device_reads = file.device_reads().zip(before).map(|(after, before)| after - before);
    drop(source);
    Ok(Round { bytes: file.bytes, time, cpu, device_reads, cached: file.in_memory()? })
}

/// Returns the offset and length to prefetch next after `read` bytes were read and `fetched` bytes
/// were prefetched; `None` while more than half a window is prefetched ahead of the reader. So the
/// reader always has at least half a window ahead of it.
fn prefetch(read: u64, fetched: u64, window_bytes: u64, file_bytes: u64) -> Option<(u64, u64)> {
    let end = (read + window_bytes).min(file_bytes);
    let is_due = end == file_bytes || end.saturating_sub(fetched) >= window_bytes / 2;
    (is_due && end > fetched).then(|| (fetched, end - fetched))
}

/// The test file, opened for a method.
enum Source {
    Calls(Arc<dyn File>),
    Uncached(Arc<dyn File>),
    Mapped(Map),
}

impl Source {
    fn open(file: &TestFile, strategy: &Strategy) -> Result<Self> {
        let direct = strategy.method == Method::Direct;
        let opened = file.open(Open { direct, ..Open::default() })?;
        if let (Readahead::Advice(advice), Some(fd)) = (strategy.readahead, opened.descriptor()) {
            let advice = match advice {
                Advice::Normal => Fadvice::Normal,
                Advice::Sequential => Fadvice::Sequential,
                Advice::Random => Fadvice::Random,
            };
            fadvise(fd, 0, None::<NonZeroU64>, advice)
                .map_err(Error::other("advise the kernel"))?;
        }
        let bytes = usize::try_from(file.bytes).unwrap_or(usize::MAX);
        Ok(match strategy.method {
            Method::Read | Method::ReadAhead | Method::Direct => Self::Calls(opened),
            Method::Uncached => Self::Uncached(opened),
            Method::Mmap => Self::Mapped(Map::for_reading(opened, bytes)?),
            Method::MmapAdvised => {
                let map = Map::for_reading(opened, bytes)?;
                map.advise_sequential()?;
                Self::Mapped(map)
            }
        })
    }

    fn prefetch(&mut self, offset: u64, bytes: u64) -> Result<()> {
        match self {
            Self::Calls(file) | Self::Uncached(file) => warm(&**file, offset, bytes)?,
            Self::Mapped(map) => map.prefetch(address(offset)?, address(bytes)?)?,
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<()> {
        match self {
            Self::Calls(file) => read_full(&**file, buffer, offset).map(drop)?,
            Self::Uncached(file) => read_uncached(&**file, buffer, offset).map(drop)?,
            Self::Mapped(map) => map.read(buffer, address(offset)?)?,
        }
        Ok(())
    }
}

fn address(bytes: u64) -> Result<usize> {
    let too_long = std::io::Error::other;
    usize::try_from(bytes).map_err(|error| Error::other("map the file")(too_long(error)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn options(more: &[&str]) -> Options {
        Options::parse_from(["", "--dir", "d"].iter().chain(more))
    }

    #[test]
    fn methods_that_prefetch_have_windows_and_direct_is_measured_once() {
        let strategies = options(&["--advice", "normal,random"]).strategies();
        assert_eq!(strategies.len(), 2 * (8 + 8) - 2);
        let has_window =
            |it: &Strategy| matches!(it.method, Method::MmapAdvised | Method::ReadAhead);
        assert!(strategies.iter().all(|it| has_window(it) == it.window_bytes.is_some()));
        assert_eq!(strategies.iter().filter(|it| it.method == Method::Direct).count(), 2);
        let device = options(&["--read-ahead-kb", "0"]).strategies();
        assert_eq!(device[0].readahead, Readahead::Kib(0));
    }

    #[test]
    fn prefetch_keeps_half_a_window_in_flight() {
        for (read, fetched, expected) in [
            (0, 0, Some((0, 8))),
            (1, 8, None),
            (3, 8, None),
            (4, 8, Some((8, 4))),
            (13, 20, Some((20, 1))),
            (20, 21, None),
            (21, 21, None),
        ] {
            assert_eq!(prefetch(read, fetched, 8, 21), expected, "{read} of {fetched}");
        }
        let (mut fetched, mut steps) = (0, 0);
        for read in 0..=1000 {
            if let Some((from, bytes)) = prefetch(read, fetched, 16, 1000) {
                assert_eq!(from, fetched);
                (fetched, steps) = (from + bytes, steps + 1);
            }
            assert!(fetched >= (read + 8).min(1000) && fetched <= read + 16);
        }
        assert!((fetched, steps) == (1000, 125) || steps < 150, "{steps}");
    }

    fn round(seconds: u64) -> Outcome<Round> {
        Outcome::Measured(Round {
            bytes: 1 << 30,
            time: Duration::from_secs(seconds),
            cpu: Duration::from_millis(200),
            device_reads: Some(4096),
            cached: 0.25,
        })
    }

    #[test]
    fn rows_have_rate_cost_and_cached_part() {
        let mut contest = Contest::new(FIELDS, options(&["--sizes", "1MiB"]).strategies());
        contest.record(0, round(2));
        let mut report = Report::new("b", Host::default(), columns(FIELDS), BAR);
        contest.report(&mut report, "", |_| String::new());
        for (key, expected) in [
            ("mb_per_s", 536.870_912),
            ("cpu_ms_per_gib", 200.0),
            ("device_reads_per_mib", 4.0),
            ("cached_percent", 25.0),
            ("request_kib", 1024.0),
        ] {
            let number = report.value(&report.rows[0], key).unwrap().number().unwrap();
            assert!((number - expected).abs() < 1e-6, "{key}: {number}");
        }
    }

    #[test]
    fn ratios_are_of_the_first_readahead_and_the_longest_requests() {
        let mut contest =
            Contest::new(FIELDS, options(&["--advice", "normal,random"]).strategies());
        for which in 0..contest.entries.len() {
            let strategy = contest.entries[which].strategy;
            let seconds = match strategy.method {
                _ if strategy.readahead != Readahead::Advice(Advice::Normal)
                    || strategy.request_bytes < 1 << 20 =>
                {
                    100
                }
                Method::Read => 8,
                Method::Mmap => 16,
                Method::MmapAdvised | Method::ReadAhead
                    if strategy.window_bytes == Some(1 << 20) =>
                {
                    100
                }
                Method::MmapAdvised | Method::ReadAhead => 4,
                Method::Direct | Method::Uncached => 2,
            };
            contest.record(which, round(seconds));
        }
        let mut report = Report::new("b", Host::default(), columns(FIELDS), BAR);
        add_ratios(&contest, &mut report);
        let expected = [
            ("direct_vs_read", 4.0),
            ("mmap_advised_vs_mmap", 4.0),
            ("mmap_vs_read", 0.5),
            ("read_ahead_vs_read", 2.0),
            ("readahead_vs_none", 12.5),
            ("uncached_vs_read", 4.0),
        ];
        assert_eq!(report.values(), expected.map(|(n, r)| (n.to_owned(), r)).into());
    }
}
