//! Measures reading one file from its beginning to its end, with several methods.
//!
//! The file is not in the page cache at the start. The kernel's readahead is a parameter: it is set
//! for a descriptor with `posix_fadvise`, or for the whole device with `read_ahead_kb`.

mod options;
mod source;
mod strategy;

use std::time::{Duration, Instant};

use haul_disk::AlignedBuf;
use haul_measure::{Error, Result, Watcher, shuffled_turns};

use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::fio;
use crate::log::process_cpu;
use crate::report::Report;
use crate::setting::Setting;
use crate::test_file::{NO_DIRECT_IO, TestFile, check};
pub use options::SequentialReadBench;
use source::{Source, prefetch};
use strategy::{Advice, Method, Readahead, Strategy};

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

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("readahead", "readahead", |strategy| strategy.readahead.to_string().into()),
    number("request_kib", "KiB", 0).label(|it| (it.request_bytes as f64 / 1024.0).into()),
    Field::label("way", "method", |strategy| strategy.method.name().into()),
    number("window_kib", "window KiB", 0)
        .label(|it| it.window_bytes.map(|bytes| bytes as f64 / 1024.0).into()),
    number("mb_per_s", "MB/s", 0).spread(4, rate),
    number("cpu_ms_per_gib", "CPU ms/GiB", 0)
        .rank(2)
        .median(|it| Some(it.cpu.as_secs_f64() * 1000.0 * f64::from(1 << 30) / it.bytes as f64)),
    number("device_reads_per_mib", "device reads/MiB", 2)
        .rank(3)
        .median(|it| Some(it.device_reads? as f64 * f64::from(1 << 20) / it.bytes as f64)),
    number("cached_percent", "% cached", 0).rank(1).median(|round| Some(round.cached * 100.0)),
    fio::COLUMN.label(|strategy| fio::cell(strategy.fio_options())),
];

fn rate(round: &Round) -> Option<f64> {
    Some(round.bytes as f64 / 1e6 / round.time.as_secs_f64())
}

impl Benchmark for SequentialReadBench {
    const NAME: &'static str = "sequential-read";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let file = TestFile::new(&self.dir, self.file_size, watcher)?;
        let mut report = new_report(Self::NAME, FIELDS, note(self));
        report.host = report.host.with_storage("", &file.storage);
        let device = file.storage.device.as_ref();
        if !self.read_ahead_kb.is_empty() && device.is_none() {
            let why = "the file system has no device whose readahead can be set";
            return Err(Error::Missing(why.to_owned()));
        }
        let mut contest = Contest::new(FIELDS, self.strategies());
        let turns = shuffled_turns(self.rounds, contest.entries.len());
        contest.run_in(turns, &Stage::only(self.rounds, watcher), |strategy| {
            if strategy.method == Method::Direct && !file.is_direct(strategy.request_bytes) {
                return Outcome::skipped(NO_DIRECT_IO);
            }
            let _setting = match (strategy.readahead, device) {
                (Readahead::Kib(kib), Some(device)) => {
                    Setting::on_device(device, "read_ahead_kb", &kib.to_string())?
                }
                _ => None,
            };
            file.make_cold()?;
            measure(&file, strategy, watcher).map(Outcome::Measured)
        })?;
        contest.report(&mut report, "", |strategy| {
            format!("{} {}", strategy.readahead, strategy.request_bytes)
        });
        add_ratios(&contest, &mut report);
        Ok(report)
    }
}

fn note(options: &SequentialReadBench) -> String {
    let SequentialReadBench { file_size, rounds, .. } = options;
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

fn measure(file: &TestFile, strategy: &Strategy, watcher: &dyn Watcher) -> Result<Round> {
    let mut source = Source::open(file, strategy)?;
    let (cpu_before, started) = (process_cpu(), Instant::now());
    let ((), device_reads) =
        file.count_reads(|| read(&mut source, file.bytes, strategy, watcher))?;
    let (time, cpu) = (started.elapsed(), process_cpu().saturating_sub(cpu_before));
    drop(source);
    Ok(Round { bytes: file.bytes, time, cpu, device_reads, cached: file.in_memory()? })
}

fn read(
    source: &mut Source,
    file_bytes: u64,
    strategy: &Strategy,
    watcher: &dyn Watcher,
) -> Result<()> {
    let request_bytes = usize::try_from(strategy.request_bytes).unwrap_or(usize::MAX);
    let mut buffer = AlignedBuf::zeroed(request_bytes);
    let mut fetched = 0;
    for at in (0..file_bytes).step_by(request_bytes) {
        watcher.check()?;
        if let Some(window_bytes) = strategy.window_bytes
            && let Some((from, bytes)) = prefetch(at, fetched, window_bytes, file_bytes)
        {
            source.prefetch(from, bytes)?;
            fetched = from + bytes;
        }
        let left = usize::try_from(file_bytes - at).unwrap_or(usize::MAX);
        let part = &mut buffer[..left.min(request_bytes)];
        source.read(part, at)?;
        check(part, at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

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
    fn ratios_are_of_the_first_readahead_and_the_longest_requests() {
        let words = ["", "--dir", "d", "--advice", "normal,random"];
        let options = SequentialReadBench::parse_from(words);
        let mut contest = Contest::new(FIELDS, options.strategies());
        for which in 0..contest.entries.len() {
            let strategy = contest.entries[which].strategy;
            let is_first = strategy.readahead == Readahead::Advice(Advice::Normal)
                && strategy.request_bytes == 1 << 20
                && strategy.window_bytes != Some(1 << 20);
            let seconds = match strategy.method {
                _ if !is_first => 100,
                Method::Read => 8,
                Method::Mmap => 16,
                Method::MmapAdvised | Method::ReadAhead => 4,
                Method::Direct | Method::Uncached => 2,
            };
            contest.record(which, round(seconds));
        }
        let mut report = new_report("b", FIELDS, String::new());
        add_ratios(&contest, &mut report);
        report.assert_ratios(&[
            ("direct_vs_read", 4.0),
            ("mmap_advised_vs_mmap", 4.0),
            ("mmap_vs_read", 0.5),
            ("read_ahead_vs_read", 2.0),
            ("readahead_vs_none", 12.5),
            ("uncached_vs_read", 4.0),
        ]);
    }
}
