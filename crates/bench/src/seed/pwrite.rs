//! Measures threads that write to one file against threads that write to one file each.
//!
//! `pwrite` holds the lock of the inode exclusively while it copies into the page cache, so that
//! text 003 expects writers of one file to wait for each other, unlike readers.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Disk, File, Open, PAGE_BYTES, read_full, write_full};
use haul_measure::{Latencies, Result, Watcher};
use haul_units::parse_time;

use super::require_space;
use super::thread_counts::ThreadCounts;
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::host::Host;
use crate::named::named;
use crate::options::{count, rounds};
use crate::reads::{Offsets, Reads, joined};
use crate::report::{Column, Report};
use crate::write_modes::target_fs::TargetFs;

/// Options of `haul bench seed pwrite`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test files
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Numbers of threads; each number is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8,16")]
    #[arg(value_parser = count(1..=256))]
    pub threads: Vec<usize>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 1s
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_time)]
    pub seconds: Duration,
}

/// The length of each file.
const FILE_BYTES: u64 = 4 << 20;
const PAGE: u64 = PAGE_BYTES as u64;

named! {
    /// The call of a thread, and the files of the threads.
    enum Method {
        /// `pwrite` to one file.
        OneWritten = "pwrite, one file",
        /// `pwrite` to a separate file of each thread.
        OwnWritten = "pwrite, one file each",
        /// `pread` from one file.
        OneRead = "pread, one file",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    threads: usize,
    method: Method,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} threads", self.method, self.threads)
    }
}

/// The calls of all threads in one round.
struct Round {
    calls: Reads,
    counts: ThreadCounts,
}

impl Round {
    fn each(&self, number: Option<u64>) -> Option<f64> {
        Some(number? as f64 / self.calls.latencies.count() as f64)
    }
}

const BAR: &str = "calls_per_s";

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::parameter(Column::number("threads", "threads", 0), |it| (it.threads as f64).into()),
    Field::label("way", "method", |strategy| strategy.method.name().into()),
    Field::spread(Column::number("calls_per_s", "calls/s", 0), 6, rate),
    Field::percentile_us(Column::number("median_us", "µs", 1), 50.0, latencies),
    Field::percentile_us(Column::number("p999_us", "p99.9 µs", 1).ranked(2), 99.9, latencies),
    Field::median(Column::number("cpu_us", "CPU µs", 2), |round| {
        Some(round.each(round.counts.cpu_ns)? / 1000.0)
    }),
    Field::median(Column::number("sleeps_per_1000", "sleeps/1,000", 2).ranked(1), sleeps),
    Field::total(Column::number("calls", "calls", 0).ranked(7), |rounds| {
        Some(rounds.iter().map(|round| round.calls.latencies.count() as f64).sum())
    }),
];

fn rate(round: &Round) -> Option<f64> {
    round.calls.per_second()
}

fn latencies(round: &Round) -> &Latencies {
    &round.calls.latencies
}

fn sleeps(round: &Round) -> Option<f64> {
    Some(round.each(round.counts.sleeps)? * 1000.0)
}

/// Runs the experiment. All files are removed when this returns, and also when the process is
/// killed.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and the errors of the disk.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let most = options.threads.iter().copied().max().unwrap_or(1);
    require_space(&options.dir, most as u64 * FILE_BYTES)?;
    let names: Vec<_> = (0..most).map(|number| format!("file-{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let place = TargetFs::below(&options.dir, &names)?;
    let mut report = Report::new("seed pwrite", Host::here(), columns(FIELDS), BAR);
    report.host.storage.push(place.facts.clone());
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    let files: Vec<_> = names.iter().map(|name| create(&place, name)).collect::<Result<_>>()?;
    let of = |threads: &usize| {
        let threads = *threads;
        Method::ALL.map(|method| Strategy { threads, method })
    };
    let mut contest = Contest::new(FIELDS, options.threads.iter().flat_map(of));
    contest.run(&Stage::only(options.rounds, watcher), |strategy| {
        measure(&files, *strategy, options.seconds).map(Outcome::Measured)
    })?;
    contest.report(&mut report, "", |strategy| strategy.threads.to_string());
    for threads in options.threads.iter().copied() {
        let [one, own, read] = Method::ALL.map(|method| Strategy { threads, method });
        report.ratio(format!("own_vs_one_file_{threads}"), contest.ratio(&own, &one, rate));
        report.ratio(format!("read_vs_written_{threads}"), contest.ratio(&read, &one, rate));
    }
    Ok(report)
}

/// Creates a file whose pages are all in the page cache and on the device, so that a write changes
/// only memory.
fn create(place: &TargetFs, name: &str) -> Result<Arc<dyn File>> {
    let file = place.disk.create(name, Open::default())?;
    let chunk = AlignedBuf::zeroed(1 << 20);
    for at in (0..FILE_BYTES).step_by(chunk.len()) {
        write_full(&*file, &chunk, at)?;
    }
    file.sync(haul_disk::Durability::Everything)?;
    Ok(file)
}

/// Runs all threads for `time`.
fn measure(files: &[Arc<dyn File>], strategy: Strategy, time: Duration) -> Result<Round> {
    let start = Barrier::new(strategy.threads);
    let parts = thread::scope(|scope| {
        let threads = (0..strategy.threads).map(|number| {
            let file = match strategy.method {
                Method::OwnWritten => &*files[number],
                Method::OneWritten | Method::OneRead => &*files[0],
            };
            let start = &start;
            scope.spawn(move || {
                start.wait();
                call(file, strategy.method, number as u64, time)
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(joined).collect::<Result<Vec<_>>>()
    })?;
    let counts = parts.iter().map(|(_, counts)| *counts);
    let counts = counts.reduce(|one, other| one.plus(&other)).unwrap_or_default();
    let parts: Vec<_> = parts.into_iter().map(|(part, _)| part).collect();
    Ok(Round { calls: Reads::of(&parts), counts })
}

/// The latencies of a thread, its start and its end.
type Part = (Latencies, Instant, Instant);

/// Reads or writes random pages of a file for `time`.
fn call(
    file: &dyn File,
    method: Method,
    seed: u64,
    time: Duration,
) -> Result<(Part, ThreadCounts)> {
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    let mut offsets = Offsets::new(PAGE, FILE_BYTES, seed);
    let mut latencies = Latencies::default();
    let (before, started) = (ThreadCounts::now(), Instant::now());
    while started.elapsed() < time {
        let offset = offsets.next();
        let began = Instant::now();
        match method {
            Method::OneRead => drop(read_full(file, &mut page, offset)?),
            Method::OneWritten | Method::OwnWritten => write_full(file, &page, offset)?,
        }
        latencies.record(began.elapsed());
    }
    let ended = Instant::now();
    Ok(((latencies, started, ended), ThreadCounts::now().since(&before)))
}

impl Options {
    fn note(&self) -> String {
        format!(
            "Threads write or read random pages of 4 KiB in files of 4 MiB, which are in the page \
             cache and never synced; {} interleaved rounds of {} ms. CPU is that of all threads \
             per call; sleeps are voluntary context switches per 1,000 calls, such as waits for \
             the lock of the inode. A ratio \"a_vs_b_N\" is the rate of a divided by that of b \
             with N threads. The text has no figure: it expects that writers of one file wait for \
             each other, and readers do not.",
            self.rounds,
            self.seconds.as_millis(),
        )
    }
}
