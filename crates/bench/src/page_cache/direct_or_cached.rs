//! Finds the ratio of data to memory above which direct reads are faster than reads through the
//! page cache: measures random reads of increasing amounts of data with the same memory.
//!
//! Threads read random pages with three methods: through the page cache; "uncached", through the
//! page cache with `RWF_DONTCACHE`, which drops the pages after the read; and with `O_DIRECT`,
//! which bypasses the page cache.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use haul_disk::{Open, PAGE_BYTES, read_full, read_uncached};
use haul_measure::{Result, Watcher};
use haul_units::parse_time;

use super::memory_size;
use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::memory_limit::MemoryLimit;
use crate::named::named;
use crate::options::{count, rounds};
use crate::reads::{Load, Reads};
use crate::report::{Ratio, Report, Samples, Verdict};
use crate::test_file::{NO_DIRECT_IO, TestFile};

/// The benchmark `direct-or-cached`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct DirectOrCachedBench {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Memory for the page cache and the readers together
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = memory_size)]
    pub memory: u64,
    /// Sizes of the data, in percent of the memory
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "25,50,80,100,125,150,200,400,800,1600")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub data_percent: Vec<u64>,
    /// Number of threads that read
    #[arg(long, value_name = "N", default_value = "50", value_parser = count(1..=4096))]
    pub readers: usize,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 1s
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub seconds: Duration,
}

const PAGE: u64 = PAGE_BYTES as u64;

named! {
    /// The method of one read.
    pub(super) enum Method {
        PageCache = "page cache",
        Uncached = "page cache, uncached",
        Direct = "direct",
    }
}

/// A method of reading, with an amount of data.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    percent: u64,
    method: Method,
    data_bytes: u64,
}

impl DirectOrCachedBench {
    fn data_bytes(&self, percent: u64) -> u64 {
        (self.memory / 100 * percent / PAGE).max(1) * PAGE
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.data_percent.iter().flat_map(|percent| {
            let (percent, data_bytes) = (*percent, self.data_bytes(*percent));
            Method::ALL.map(|method| Point { percent, method, data_bytes })
        })
    }
}

const FIELDS: &[Field<Point, Reads>] = &[
    number("data_per_memory", "data/memory", 2).label(|it| (it.percent as f64 / 100.0).into()),
    Field::label("way", "method", |point| point.method.name().into()),
    number("data_mib", "data MiB", 0).rank(5).label(|it| ((it.data_bytes >> 20) as f64).into()),
    number("reads_per_s", "reads/s", 0).spread(6, Reads::per_second),
    number("median_us", "µs", 1).rank(1).percentile_us(50.0, |it| &it.latencies),
    number("p99_us", "p99 µs", 1).rank(1).percentile_us(99.0, |it| &it.latencies),
    number("device_reads", "device reads", 2).rank(3).median(Reads::device_reads_each),
    number("reads", "reads", 0).rank(7).sum(|reads| reads.latencies.count()),
];

impl Benchmark for DirectOrCachedBench {
    const NAME: &'static str = "direct-or-cached";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        // Returns an error before the file is written if memory cannot be limited.
        drop(MemoryLimit::new(self.memory)?);
        let most = self.data_percent.iter().copied().max().unwrap_or(100);
        let file = TestFile::new(&self.dir, self.data_bytes(most), watcher)?;
        let mut report = new_report(Self::NAME, FIELDS, note(self));
        report.host = report.host.with_storage("", &file.storage);
        let _limit = MemoryLimit::new(self.memory)?;
        let mut contest = Contest::new(FIELDS, self.points());
        contest.run(&Stage::only(self.rounds, watcher), |point| {
            if point.method == Method::Direct && !file.is_direct(PAGE) {
                return Outcome::skipped(NO_DIRECT_IO);
            }
            measure(self, &file, point, watcher).map(Outcome::Measured)
        })?;
        contest.report(&mut report, "", |point| point.percent.to_string());
        add_ratios(&contest, &mut report);
        Ok(report)
    }
}

fn note(options: &DirectOrCachedBench) -> String {
    let DirectOrCachedBench { memory, readers, rounds, seconds, .. } = options;
    format!(
        "{readers} threads read random pages of 4 KiB; {rounds} interleaved rounds, {} ms each. A \
         memory cgroup limits this process, page cache included, to {} MiB. Before each \
         measurement the data is evicted, and for the page cache read once. Device reads are per \
         read. \"crossover\" is the smallest ratio of data to memory from which on direct reads \
         are faster than the page cache.",
        seconds.as_millis(),
        memory >> 20,
    )
}

fn measure(
    options: &DirectOrCachedBench,
    file: &TestFile,
    point: &Point,
    watcher: &dyn Watcher,
) -> Result<Reads> {
    file.make_cold()?;
    let direct = point.method == Method::Direct;
    if point.method == Method::PageCache {
        file.read_through_cache(point.data_bytes, watcher)?;
    }
    let opened = &*file.open(Open { direct, random: true, ..Open::default() })?;
    let load = Load::new(PAGE, point.data_bytes, options.seconds);
    let method = point.method;
    let read = |page: &mut [u8], offset| {
        match method {
            Method::PageCache | Method::Direct => read_full(opened, page, offset)?,
            Method::Uncached => read_uncached(opened, page, offset)?,
        };
        Ok(())
    };
    let (reads, device_reads) = file.count_reads(|| load.run(vec![read; options.readers]))?;
    Ok(Reads { device_reads, ..reads })
}

/// Adds the rates of direct and uncached reads relative to the page cache, and `crossover`: the
/// smallest ratio of data to memory from which on direct reads are faster.
fn add_ratios(contest: &Contest<Point, Reads>, report: &mut Report) {
    let mut direct = BTreeMap::new();
    for point in contest.entries.iter().map(|entry| entry.strategy) {
        let cached = Point { method: Method::PageCache, ..point };
        let ratio = contest.ratio(&point, &cached, Reads::per_second);
        let name = match point.method {
            Method::PageCache => continue,
            Method::Uncached => "uncached",
            Method::Direct => "direct",
        };
        if point.method == Method::Direct {
            direct.extend(ratio.clone().map(|ratio| (point.percent, ratio)));
        }
        report.ratio(format!("{name}_vs_cached_{}_percent", point.percent), ratio);
    }
    report.ratio("crossover", crossover(&direct));
}

/// Returns the smallest amount of data, relative to the memory, from which on direct reads are
/// faster. Its interval reaches from the amount from which on no ratio shows that direct reads are
/// slower, to the amount from which on each ratio shows that they are faster.
fn crossover(ratios: &BTreeMap<u64, Ratio>) -> Option<Ratio> {
    let is_clear = |ratio: &Ratio| ratio.verdict == Verdict::Different;
    let first = |is_faster: &dyn Fn(&Ratio) -> bool| {
        let last = ratios.iter().rev().take_while(|(_, ratio)| is_faster(ratio)).last();
        last.map(|(percent, _)| *percent as f64 / 100.0)
    };
    let value = first(&|ratio| ratio.value > 1.0)?;
    let low = first(&|ratio| ratio.value > 1.0 || !is_clear(ratio));
    let high = first(&|ratio| ratio.value > 1.0 && is_clear(ratio));
    let ratio = Ratio::amount(Samples::new("direct", [value]))?;
    Some(Ratio { interval: low.zip(high), ..ratio })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn crossover_is_where_direct_reads_stay_faster() {
        // The rates of five rounds; the last one differs, so that small ratios are noise.
        let ratio = |ratio: f64| {
            let samples = |name, last| Samples::new(name, [1.0, 1.0, 1.0, 1.0, last]);
            let mut of = Ratio::of(samples("direct", 1.3), samples("cached", 1.0)).unwrap();
            of.value = ratio;
            of.verdict =
                if (0.8..1.25).contains(&ratio) { Verdict::Noise } else { Verdict::Different };
            of
        };
        for (ratios, expected) in [
            (&[(50, 0.1), (100, 0.9), (200, 1.2), (400, 1.3)][..], Some((2.0, Some((1.0, 4.0))))),
            (&[(50, 1.3), (100, 0.5), (200, 1.3)], Some((2.0, Some((2.0, 2.0))))),
            (&[(100, 0.5), (200, 1.3), (400, 0.99), (800, 1.2)], Some((8.0, None))),
            (&[(50, 0.2), (100, 0.9)], None),
            (&[], None),
        ] {
            let all = ratios.iter().map(|(percent, of)| (*percent, ratio(*of))).collect();
            let found = crossover(&all).map(|ratio| (ratio.value, ratio.interval));
            assert_eq!(found, expected, "{ratios:?}");
        }
    }

    #[test]
    fn each_amount_of_data_has_ratios_and_rows() {
        let options = DirectOrCachedBench::parse_from(
            "haul --dir d --memory 100MiB --data-percent 50,200".split(' '),
        );
        let mut contest = Contest::new(FIELDS, options.points());
        contest.record_all([800, 100, 200, 100, 50, 150].map(|count| {
            let mut reads = Reads { time: Duration::from_secs(1), ..Reads::default() };
            (0..count).for_each(|_| reads.latencies.record(Duration::from_micros(100)));
            [Some(reads)]
        }));
        let mut report = new_report("b", FIELDS, String::new());
        contest.report(&mut report, "", |point| point.percent.to_string());
        add_ratios(&contest, &mut report);
        report.assert_ratios(&[
            ("crossover", 2.0),
            ("direct_vs_cached_200_percent", 1.5),
            ("direct_vs_cached_50_percent", 0.25),
            ("uncached_vs_cached_200_percent", 0.5),
            ("uncached_vs_cached_50_percent", 0.125),
        ]);
        let number = |key| report.value(&report.rows[0], key).unwrap().number();
        assert_eq!((number("data_per_memory"), number("data_mib")), (Some(0.5), Some(50.0)));
    }
}
