//! Measures the latencies of small writes during bulk writes.
//!
//! A backup or a copy writes gigabytes, and the kernel lets it fill memory with dirty pages. Then
//! writeback saturates the device, and other writers stall. This benchmark measures two foreground
//! writers, one that syncs each record and one that overwrites pages in the page cache, while a
//! third writer writes bulk data: unpaced, paced by [`haul_disk::Pacer`] (which starts writeback
//! every few MiB), and with `O_DIRECT`. The rate of the bulk data includes its final sync.
//!
//! # Sources
//! \[Morton06\] on pacing; \[HdrHistogram\] on correcting for coordinated omission (the writes
//! that a stalled writer could not start).

mod bulk;
pub(crate) mod dirty;
mod foreground;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::{WINDOW_BYTES_MAX, WINDOW_BYTES_MIN};
use haul_measure::{Result, Watcher, turns};
use haul_units::parse_time;

use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::options::{rounds, size_in};
use crate::reads::joined;
use crate::report::Report;
use crate::write_modes::VirtualDisk;
use crate::write_modes::target_fs::TargetFs;
use bulk::{BULK, Bulk, DIRECT_BYTES, Mode};
use dirty::DirtyLimits;
use foreground::{
    Foreground, OVERWRITE_EVERY, PAGES, RECORD_BYTES, RECORDS, SYNC_EVERY, Writer, Written,
    most_dirty,
};

/// The benchmark `pacing`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct PacingBench {
    /// Directory for the test files and the images of virtual disks
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Measure new file systems in image files: ext4, ext4-nojournal, xfs, btrfs
    ///
    /// The images are in DIR, whose file system is then not measured. Needs root. With a journal, a
    /// small sync may wait for the bulk data. Each request also passes the file system of DIR, so
    /// times on virtual disks are comparable only with each other.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub virtual_disk: Vec<VirtualDisk>,
    /// Amount of bulk data written in one measurement
    ///
    /// If it exceeds about half of the kernel's dirty limit, writers that never sync are throttled
    /// too. The limit is a fifth of the available memory, or --dirty-limit.
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    #[arg(value_parser = size_in(4 << 20..=16 << 40, "4MiB to 16TiB"))]
    pub bulk: u64,
    /// Dirty bytes at which the pacer starts writeback (a window), 256KiB to 64MiB
    ///
    /// Each window is measured separately. The ratios use the first one.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4MiB")]
    #[arg(value_parser = size_in(WINDOW_BYTES_MIN..=WINDOW_BYTES_MAX, "256KiB to 64MiB"))]
    pub windows: Vec<u64>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of the measurement of the small writes without bulk data
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    pub alone: Duration,
    /// Dirty limit of the kernel during the benchmark; its background limit is half of it
    ///
    /// Needs root, and affects the whole machine. Both limits are restored at the end, also when
    /// the program is killed.
    #[arg(long, value_name = "SIZE", value_parser = size_in(1 << 20..=u64::MAX, "1MiB or more"))]
    pub dirty_limit: Option<u64>,
}

/// A foreground writer, and the mode in which bulk data is written at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    foreground: Foreground,
    mode: Mode,
}

/// The results of a foreground writer and of the bulk writer in one round.
#[derive(Debug, Clone)]
struct Round {
    written: Written,
    bulk: Option<Bulk>,
    dirty_bytes: Option<u64>,
}

const MIB: f64 = 1024.0 * 1024.0;

/// The columns of the table. Latencies are those of the foreground writer; figures are medians of
/// the rounds.
const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("foreground", "foreground", |strategy| strategy.foreground.name().into()),
    Field::label("bulk", "bulk", |strategy| strategy.mode.name().into()),
    number("window_mib", "window MiB", 2)
        .rank(4)
        .label(|it| it.mode.window_bytes().map(|bytes| bytes as f64 / MIB).into()),
    number("p50_us", "µs", 0).median(|r| r.written.latencies.percentile_us(50.0)),
    number("p99_us", "p99 µs", 0).rank(2).median(|it| it.written.latencies.percentile_us(99.0)),
    number("p999_us", "p99.9 µs", 0).spread(8, p999_us),
    number("longest_us", "longest µs", 0).rank(5).total(|it| {
        it.iter().filter_map(|round| round.written.latencies.max_us()).reduce(f64::max).into()
    }),
    number("writes", "writes", 0).rank(9).sum(|round| round.written.writes),
    number("bulk_mib_per_s", "bulk MiB/s", 0).spread(7, bulk_rate),
    number("bulk_longest_ms", "longest bulk ms", 1).rank(5).median(bulk_longest),
    number("waiting_mib", "dirty MiB", 0).rank(3).median(|it| Some(it.dirty_bytes? as f64 / MIB)),
    number("cached_percent", "% cached", 1).rank(6).median(|it| Some(it.bulk?.cached? * 100.0)),
];

fn p999_us(round: &Round) -> Option<f64> {
    round.written.latencies.percentile_us(99.9)
}

/// Returns the longest time of one write of bulk data, in milliseconds.
fn bulk_longest(round: &Round) -> Option<f64> {
    Some(round.bulk?.longest.as_secs_f64() * 1e3)
}

fn bulk_rate(round: &Round) -> Option<f64> {
    let Bulk { bytes, time, .. } = round.bulk?;
    Some(bytes as f64 / MIB / time.max(Duration::from_nanos(1)).as_secs_f64())
}

impl Benchmark for PacingBench {
    const NAME: &'static str = "pacing";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let _limits = self.dirty_limit.map(DirtyLimits::set).transpose()?;
        let bytes = self.bulk.next_multiple_of(DIRECT_BYTES as u64);
        let mut report = new_report(Self::NAME, FIELDS, note(self, bytes));
        let places = TargetFs::all(&self.virtual_disk, &self.dir, bytes)?;
        let of = places.len();
        for (number, place) in places.iter().enumerate() {
            let stage = Stage { name: &place.name, number, of, rounds: self.rounds, watcher };
            let contest = measure_on(place, &stage, self, bytes)?;
            contest.report(&mut report, &place.name, |it| it.foreground.name().to_owned());
            report.host.storage.push(place.facts.clone());
            let prefix = if of > 1 { format!("{}_", place.name) } else { String::new() };
            add_ratios(&contest, &prefix, &mut report);
        }
        Ok(report)
    }
}

fn contest(modes: &[Mode]) -> Contest<Strategy, Round> {
    let rows = Foreground::ALL
        .into_iter()
        .flat_map(|foreground| modes.iter().map(move |mode| Strategy { foreground, mode: *mode }));
    Contest::new(FIELDS, rows)
}

fn measure_on(
    place: &TargetFs,
    stage: &Stage<'_>,
    options: &PacingBench,
    bytes: u64,
) -> Result<Contest<Strategy, Round>> {
    let modes = Mode::all(&options.windows);
    let mut contest = contest(&modes);
    for turn in turns(options.rounds, modes.len()) {
        let mode = modes[turn.which];
        stage.step(turn, &mode.to_string())?;
        let outcomes = match bulk::obstacle(place, mode) {
            Some(reason) => [(); 2].map(|()| Outcome::Skipped(reason.to_owned())),
            None => {
                measure(place, mode, bytes, options.alone, stage.watcher)?.map(Outcome::Measured)
            }
        };
        for (number, outcome) in outcomes.into_iter().enumerate() {
            contest.record(number * modes.len() + turn.which, outcome);
        }
    }
    Ok(contest)
}

fn note(options: &PacingBench, bytes: u64) -> String {
    format!(
        "{} interleaved rounds, each with {} MiB of bulk data in a new file, in writes of at most \
         1 MiB (direct: 4 MiB), synced at the end. Meanwhile one thread appends {RECORD_BYTES} B and syncs every {} \
         ms, and one overwrites a cached page every {} ms; a late writer writes at once, and a \
         stall counts for all writes it delayed. Numbers are medians of the rounds; the longest is \
         that of all. Dirty: the most dirty and writeback memory of the machine; its limits: {}. A \
         ratio \"a_vs_b\" is a divided by b: lower is better for p99.9 and the longest write, \
         higher for the rate; without \"overwrite\" it is of the writer that syncs.",
        options.rounds,
        bytes >> 20,
        SYNC_EVERY.as_millis(),
        OVERWRITE_EVERY.as_millis(),
        dirty::limits(),
    )
}

/// Measures a mode once, and returns a round for each foreground writer.
fn measure(
    place: &TargetFs,
    mode: Mode,
    bytes: u64,
    alone: Duration,
    watcher: &dyn Watcher,
) -> Result<[Round; 2]> {
    let [syncing, overwriting] = Foreground::ALL.map(|foreground| Writer::new(place, foreground));
    let (syncing, overwriting) = (syncing?, overwriting?);
    place.settle()?;
    let stop = AtomicBool::new(false);
    let (bulk, first, second, dirty_bytes) = thread::scope(|scope| {
        let first = scope.spawn(|| syncing.run(&stop));
        let second = scope.spawn(|| overwriting.run(&stop));
        let most = scope.spawn(|| most_dirty(&stop));
        let bulk = bulk::write(place, mode, bytes, alone, watcher);
        stop.store(true, Ordering::Relaxed);
        (bulk, joined(first), joined(second), joined(most))
    });
    place.remove(&[BULK, RECORDS, PAGES])?;
    place.settle()?;
    let bulk = bulk?;
    Ok([first?, second?].map(|written| Round { written, bulk, dirty_bytes }))
}

/// Adds the 99.9th percentiles of both writers and the rate of the bulk data, relative to unpaced
/// bulk data. If several window lengths were measured, the ratios use the first.
fn add_ratios(contest: &Contest<Strategy, Round>, prefix: &str, report: &mut Report) {
    let strategy = |foreground, name| {
        let strategies = contest.entries.iter().map(|entry| entry.strategy);
        strategies.into_iter().find(|it| it.foreground == foreground && it.mode.name() == name)
    };
    let modes = [("paced", "paced"), ("dropping", "paced, dropped"), ("direct", "direct")];
    for (key, name) in modes {
        let ratio = |foreground, figure| {
            let unpaced = strategy(foreground, Mode::Unpaced.name())?;
            contest.ratio(&strategy(foreground, name)?, &unpaced, figure)
        };
        for (what, ratio) in [
            ("p999", ratio(Foreground::Syncing, p999_us)),
            ("overwrite_p999", ratio(Foreground::Overwriting, p999_us)),
            ("bulk_rate", ratio(Foreground::Syncing, bulk_rate)),
            ("bulk_longest", ratio(Foreground::Syncing, bulk_longest)),
        ] {
            report.ratio(format!("{prefix}{key}_{what}_vs_unpaced"), ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_relative_to_unpaced_with_the_first_window() {
        let [first, second] = [19, 20].map(|bits| Mode::Paced { window_bytes: 1 << bits });
        let modes = [Mode::Alone, Mode::Unpaced, first, second, Mode::Direct];
        let mut contest = contest(&modes);
        // The latency of the writes of both writers, and the time of the bulk writes.
        for (which, us, bulk_ms) in [
            (0, [1, 1], None),
            (1, [1000, 10], Some(1000)),
            (2, [100, 5], Some(1250)),
            (3, [7, 7], Some(7)),
        ] {
            for (number, us) in us.into_iter().enumerate() {
                let mut written = Written { writes: 100, ..Written::default() };
                (0..100).for_each(|_| written.latencies.record(Duration::from_micros(us)));
                let bulk = bulk_ms.map(Duration::from_millis).map(|time| Bulk {
                    bytes: 100 << 20,
                    time,
                    longest: time / 10,
                    cached: Some(0.5),
                });
                let round = Round { written, bulk, dirty_bytes: Some(3 << 20) };
                contest.record(number * modes.len() + which, Outcome::Measured(round));
            }
        }
        contest.record(9, Outcome::Skipped("not supported".to_owned()));
        let mut report = new_report("pacing", FIELDS, String::new());
        contest.report(&mut report, "ext4", |it| it.foreground.name().to_owned());
        add_ratios(&contest, "", &mut report);
        report.assert_ratios(&[
            ("paced_bulk_longest_vs_unpaced", 1.25),
            ("paced_bulk_rate_vs_unpaced", 0.8),
            ("paced_overwrite_p999_vs_unpaced", 0.5),
            ("paced_p999_vs_unpaced", 0.1),
        ]);
        assert_eq!(report.rows[9].state.as_deref(), Some("not supported"));
        assert_eq!(report.value(&report.rows[5], "bulk_mib_per_s").unwrap().number(), None);
    }
}
