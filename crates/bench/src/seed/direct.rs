//! Reads the first block of a file again and again, with `O_DIRECT` and through the page cache, and
//! shows the bytes that come from the disk: the counter of the thread that `iotop` shows, too.
//!
//! Text 002: `iotop` shows 17.45 MB/s for direct reads of one block in a loop, and none for reads
//! through the page cache.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Open, PAGE_BYTES, read_full};
use haul_measure::{Result, Watcher};
use haul_units::parse_time;

use super::compare;
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::host::Host;
use crate::named::named;
use crate::options::rounds;
use crate::report::{Column, Report};
use crate::test_file::{TestFile, check};

/// Options of `haul bench seed direct`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "9", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 1s
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub seconds: Duration,
}

/// The length of the test file.
const FILE_BYTES: u64 = 1 << 20;

named! {
    /// The method of a read.
    enum Method {
        /// `pread` with `O_DIRECT`.
        Direct = "direct",
        /// `pread` through the page cache.
        Cached = "page cache",
    }
}

#[derive(Debug, Clone, Copy)]
struct Round {
    calls: u64,
    time: Duration,
    /// The bytes that the kernel read from the disk for the thread.
    disk_bytes: Option<u64>,
}

const BAR: &str = "calls_per_s";

const FIELDS: &[Field<Method, Round>] = &[
    Field::label("way", "method", |method| method.name().into()),
    Field::spread(Column::number("calls_per_s", "reads/s", 0), 4, |round| {
        Some(round.calls as f64 / round.time.as_secs_f64())
    }),
    Field::median(Column::number("disk_mb_per_s", "MB/s from the disk", 2), disk_mb_per_s),
    Field::median(Column::number("disk_bytes", "B from the disk/read", 0), disk_bytes),
    Field::total(Column::number("calls", "reads", 0).ranked(5), |rounds| {
        Some(rounds.iter().map(|round| round.calls as f64).sum())
    }),
];

fn disk_mb_per_s(round: &Round) -> Option<f64> {
    Some(round.disk_bytes? as f64 / 1e6 / round.time.as_secs_f64())
}

fn disk_bytes(round: &Round) -> Option<f64> {
    Some(round.disk_bytes? as f64 / round.calls as f64)
}

/// Runs the experiment. The file is removed when this returns, and also when the process is killed.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and an error if the disk fails or a
/// read returns wrong bytes.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let file = TestFile::new(&options.dir, FILE_BYTES, watcher)?;
    let host = Host::here().with_storage("", &file.storage);
    let mut report = Report::new("seed direct", host, columns(FIELDS), BAR);
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    let mut contest = Contest::new(FIELDS, Method::ALL);
    contest.run(&Stage::only(options.rounds, watcher), |method| {
        if *method == Method::Direct && !file.is_direct(PAGE_BYTES as u64) {
            return Outcome::skipped("no direct I/O here");
        }
        measure(&file, *method, options.seconds).map(Outcome::Measured)
    })?;
    contest.report(&mut report, "", |_| String::new());
    for (name, method) in [("direct", Method::Direct), ("cached", Method::Cached)] {
        let rate = contest.samples(&method, disk_mb_per_s);
        report.amount(format!("{name}_disk_mb_per_s"), rate);
        let bytes = contest.samples(&method, disk_bytes);
        report.amount(format!("{name}_disk_bytes_per_read"), bytes);
    }
    compare(&mut report, "", &[("direct_disk_mb_per_s", 17.45), ("cached_disk_mb_per_s", 0.0)]);
    Ok(report)
}

fn measure(file: &TestFile, method: Method, time: Duration) -> Result<Round> {
    let direct = method == Method::Direct;
    let source = file.open(Open { direct, random: !direct, ..Open::default() })?;
    let mut block = AlignedBuf::zeroed(PAGE_BYTES);
    // The first read brings the block into the page cache.
    read_full(&*source, &mut block, 0)?;
    let (before, started, mut calls) = (read_bytes(), Instant::now(), 0);
    while calls == 0 || started.elapsed() < time {
        read_full(&*source, &mut block, 0)?;
        check(&block, 0)?;
        calls += 1;
    }
    let time = started.elapsed();
    let disk_bytes = read_bytes().zip(before).and_then(|(after, before)| after.checked_sub(before));
    Ok(Round { calls, time, disk_bytes })
}

/// Returns the bytes that the kernel has read from disks for this thread; `None` if it does not
/// count them.
fn read_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

impl Options {
    fn note(&self) -> String {
        format!(
            "The first 4 KiB of a file, read in a loop by one thread; {} interleaved rounds of {} \
             ms. Bytes from the disk are those that the kernel counts for the thread \
             (/proc/thread-self/io), as iotop shows them. The text: 17.45 MB/s direct, 0 through \
             the page cache.",
            self.rounds,
            self.seconds.as_millis(),
        )
    }
}
