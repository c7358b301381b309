//! Measures reading objects of the file store beside `pread` of as many bytes from one file.
//!
//! Cold reads reach the device: the files are evicted from the page cache before each round, and a
//! round reads an object at most once. Hot reads find their bytes in the page cache.

mod case;
mod many;
mod options;
mod target;

use std::fmt;

use haul_disk::{DeviceCounters, PAGE_BYTES, error_chain};
use haul_measure::{Error, Latencies, Result, Watcher};

use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::host::Host;
use crate::log::{Failure, process_cpu};
use crate::named::named;
use crate::reads::Reads;
use crate::report::{Column, Report};
use crate::test_file::TestFile;
use case::Case;
use many::BATCH_KEYS;
pub use options::Options;
use options::RANGE_OBJECT_BYTES;
use target::Targets;

named! {
    /// The source of the bytes: the device (cold) or the page cache (hot).
    enum Cache {
        Cold = "cold",
        Hot = "hot",
    }
}

named! {
    /// The target of the reads.
    enum Target {
        /// The file store of Haul, with one call for each object or range.
        Store = "haul",
        /// The file store of Haul, with one thread and one call for many objects.
        Many = "haul: get_many",
        /// `pread` of whole pages at random offsets of one file.
        Floor = "floor: pread",
        /// `pread` of one page more: the head of a needle and its data begin within a page.
        FloorWithHead = "floor: 1 page more",
    }
}

impl Target {
    /// Returns `true` if the target is measured with these reads.
    fn reads(self, case: Case) -> bool {
        match self {
            Self::Store | Self::Floor => true,
            Self::Many | Self::FloorWithHead => case.is_whole(),
        }
    }
}

/// A target, the bytes that it reads, and their source.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    cache: Cache,
    case: Case,
    target: Target,
}

impl Strategy {
    fn group(&self) -> String {
        self.case.to_string()
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.cache, self.case, self.target)
    }
}

/// The reads of one round.
struct Round {
    reads: Reads,
    cpu_seconds: f64,
    /// Bytes read from the device during the round, including those of other programs.
    device_bytes: Option<f64>,
}

const BAR: &str = "gets_per_s";

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("target", "target", |strategy| strategy.target.name().into()),
    Field::parameter(Column::number("object_bytes", "object", 0), |strategy| {
        (strategy.case.object_bytes as f64).into()
    }),
    Field::parameter(Column::number("read_bytes", "bytes", 0), |strategy| {
        (strategy.case.read_bytes as f64).into()
    }),
    Field::spread(Column::number("gets_per_s", "reads/s", 0), 5, rate),
    Field::percentile_us(Column::number("p50_us", "p50 µs", 1), 50.0, latencies),
    Field::percentile_us(Column::number("p99_us", "p99 µs", 1), 99.0, latencies),
    Field::median(Column::number("cpu_us_per_get", "CPU µs", 1), |round| {
        Some(round.cpu_seconds * 1e6 / count(round))
    }),
    Field::median(Column::number("device_reads_per_get", "device reads", 2), |round| {
        round.reads.device_reads_each()
    }),
    Field::median(Column::number("device_bytes_per_get", "device bytes", 0), |round| {
        Some(round.device_bytes? / count(round))
    }),
    Field::total(Column::number("gets", "reads", 0).ranked(6), |rounds| {
        Some(rounds.iter().map(count).sum())
    }),
];

fn count(round: &Round) -> f64 {
    round.reads.latencies.count() as f64
}

fn rate(round: &Round) -> Option<f64> {
    round.reads.per_second()
}

fn latencies(round: &Round) -> &Latencies {
    &round.reads.latencies
}

/// Runs the benchmark. All files are removed when this returns.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and an error if the disk fails or a
/// read returns wrong bytes.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    watcher.step(0, 1, "writing the files");
    let file = TestFile::new(&options.dir, options.data_size, watcher)?;
    let cases = options.cases();
    let targets = Targets::new(options, &file, &cases, watcher)?;
    let host = Host::here().with_storage("", &file.storage);
    let mut report = Report::new("small-files-get", host, columns(FIELDS), BAR);
    report.notes.push(note(options));
    let of = Cache::ALL.len() * cases.len();
    let all = Cache::ALL.into_iter().flat_map(|cache| cases.iter().map(move |case| (cache, *case)));
    for (number, (cache, case)) in all.enumerate() {
        let all = Target::ALL.into_iter().filter(|target| target.reads(case));
        let mut contest = Contest::new(FIELDS, all.map(|target| Strategy { cache, case, target }));
        let stage = Stage { number, of, ..Stage::only(options.rounds, watcher) };
        let is_floor = |strategy: &Strategy| strategy.target == Target::Floor;
        let rounds = contest.run_above_floor(&stage, is_floor, rate, |strategy| {
            measure(&targets, &file, strategy)
        })?;
        let what = format!("{cache}, {} B of {} B", case.read_bytes, case.object_bytes);
        report.notes.push(rounds.note(&what));
        contest.report(&mut report, cache.name(), Strategy::group);
        add_ratios(&contest, cache, case, &mut report);
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    format!(
        "{} interleaved rounds of up to {} ms by {} threads, get_many by one thread with \
         {BATCH_KEYS} keys in a call; its latencies are from the call to the return of each object. \
         Cold: the files are evicted from the \
         page cache before each round, and a round reads at most a quarter of the objects, each \
         once. Hot: a quarter of the objects, read before. The floor reads whole pages at random \
         offsets of a file of {} MiB, cold with O_DIRECT where the disk supports it: as many as an \
         object has, or one more, because a needle begins within a page. A range is \
         read from objects of {RANGE_OBJECT_BYTES} bytes. Device reads and bytes are per read, and \
         include other programs.",
        options.rounds,
        options.seconds.as_millis(),
        options.threads,
        options.data_size >> 20,
    )
}

fn measure(targets: &Targets<'_>, file: &TestFile, strategy: &Strategy) -> Result<Outcome<Round>> {
    let counters = || {
        let device = file.storage.device.as_ref()?;
        DeviceCounters::of(device).ok()
    };
    let is_cold = strategy.cache == Cache::Cold;
    let failed = |failure: Failure| {
        Error::Missing(format!("cannot measure {strategy}: {}", error_chain(&*failure)))
    };
    let run: Box<dyn FnOnce() -> Result<Reads>> = match strategy.target {
        Target::Store => {
            let numbers = targets.prepare_store(strategy.case, is_cold).map_err(failed)?;
            Box::new(move || targets.read_store(strategy.case, &numbers, is_cold).map_err(failed))
        }
        Target::Many => {
            let numbers = targets.prepare_store(strategy.case, is_cold).map_err(failed)?;
            Box::new(move || targets.read_many(strategy.case, &numbers, is_cold).map_err(failed))
        }
        Target::Floor | Target::FloorWithHead => {
            targets.prepare_floor(is_cold)?;
            let more = if strategy.target == Target::Floor { 0 } else { PAGE_BYTES as u64 };
            Box::new(move || targets.read_floor(strategy.case, more, is_cold))
        }
    };
    let (before, cpu) = (counters(), process_cpu());
    let reads = run()?;
    let cpu_seconds = process_cpu().saturating_sub(cpu).as_secs_f64();
    let device = counters().zip(before).map(|(after, before)| after.since(&before));
    let device_reads = device.map(|device| device.reads);
    let device_bytes = device.map(|device| device.read_bytes as f64);
    let reads = Reads { device_reads, ..reads };
    Ok(Outcome::Measured(Round { reads, cpu_seconds, device_bytes }))
}

/// Adds the rates of the store divided by those of the floors.
fn add_ratios(contest: &Contest<Strategy, Round>, cache: Cache, case: Case, report: &mut Report) {
    let strategy = |target| Strategy { cache, case, target };
    let Case { object_bytes, read_bytes } = case;
    for (name, a, b) in [
        ("store_vs_floor", Target::Store, Target::Floor),
        ("store_vs_floor_with_head", Target::Store, Target::FloorWithHead),
        ("many_vs_store", Target::Many, Target::Store),
        ("many_vs_floor_with_head", Target::Many, Target::FloorWithHead),
    ] {
        if a.reads(case) && b.reads(case) {
            let ratio = contest.ratio(&strategy(a), &strategy(b), rate);
            report.ratio(format!("{name}_{read_bytes}_of_{object_bytes}_{cache}"), ratio);
        }
    }
}
