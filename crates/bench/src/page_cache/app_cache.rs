//! Measures reads of hot pages during a scan of cold data: with the page cache alone, with an
//! application's own cache in front of it, and with scans that bypass the page cache.
//!
//! Threads read random pages of the hot part of a file, which fits into memory. Meanwhile a scan
//! repeatedly reads the cold rest of the file, which does not fit into memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::{AlignedBuf, File, Open, PAGE_BYTES, read_full, read_uncached, resident};
use haul_measure::{Latencies, Result, Watcher};
use haul_units::parse_time;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::memory_size;
use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::memory_limit::MemoryLimit;
use crate::named::named;
use crate::options::{count, rounds};
use crate::reads::{Load, Reads, joined};
use crate::report::Report;
use crate::test_file::{NO_DIRECT_IO, TestFile, check};

/// The benchmark `app-cache`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct AppCacheBench {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Memory for the page cache, the application's cache and the readers together
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = memory_size)]
    pub memory: u64,
    /// Size of the hot data, in percent of the memory
    #[arg(long, value_name = "PERCENT", default_value = "40")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub hot_percent: u64,
    /// Size of the scanned data, in percent of the memory
    #[arg(long, value_name = "PERCENT", default_value = "800")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub cold_percent: u64,
    /// Number of threads that read hot pages
    #[arg(long, value_name = "N", default_value = "8", value_parser = count(1..=4096))]
    pub readers: usize,
    /// Maximum number of hot reads per second, of all readers together; 0: unlimited
    ///
    /// At a high rate hot pages stay in any cache. The methods differ at a low rate only.
    #[arg(long, value_name = "N", default_value = "10000")]
    pub reads_per_second: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 5s
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    pub seconds: Duration,
}

/// The length in bytes of one read of the scan.
const SCAN_BYTES: u64 = 1 << 20;

impl AppCacheBench {
    fn data_bytes(&self, percent: u64) -> u64 {
        (self.memory / 100 * percent / SCAN_BYTES).max(1) * SCAN_BYTES
    }

    fn hot_bytes(&self) -> u64 {
        self.data_bytes(self.hot_percent)
    }

    /// Returns the time between the starts of two consecutive reads of a thread.
    fn interval(&self) -> Duration {
        match self.reads_per_second {
            0 => Duration::ZERO,
            reads => Duration::from_secs_f64(self.readers as f64 / reads as f64),
        }
    }
}

named! {
    /// The cache that holds the hot pages, and the kind of scan: "uncached" uses `RWF_DONTCACHE`,
    /// "direct" uses `O_DIRECT`.
    pub(super) enum Strategy {
        NoScan = "page cache, no scan",
        PageCache = "page cache",
        AppCache = "application cache + page cache",
        ScanUncached = "page cache, scan uncached",
        ScanDirect = "page cache, scan direct",
    }
}

/// The result of one measurement of one strategy.
#[derive(Debug, Default)]
struct Round {
    reads: Reads,
    scanned_bytes: u64,
    /// The fraction of the hot pages that is cached at the end.
    cached: f64,
}

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("way", "strategy", |strategy| strategy.name().into()),
    number("reads_per_s", "hot reads/s", 0).spread(6, rate),
    number("median_us", "µs", 1).rank(1).percentile_us(50.0, latencies),
    number("p99_us", "p99 µs", 1).percentile_us(99.0, latencies),
    number("p999_us", "p99.9 µs", 1).rank(2).percentile_us(99.9, latencies),
    number("kept_percent", "% cached", 1).rank(3).median(|round| Some(round.cached * 100.0)),
    number("scan_mb_per_s", "scan MB/s", 0)
        .rank(4)
        .median(|it| Some(it.scanned_bytes as f64 / 1e6 / it.reads.time.as_secs_f64())),
    number("reads", "reads", 0).rank(7).sum(|round| round.reads.latencies.count()),
];

fn rate(round: &Round) -> Option<f64> {
    round.reads.per_second()
}

fn p99_us(round: &Round) -> Option<f64> {
    round.reads.latencies.percentile_us(99.0)
}

fn latencies(round: &Round) -> &Latencies {
    &round.reads.latencies
}

impl Benchmark for AppCacheBench {
    const NAME: &'static str = "app-cache";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        // Returns an error before the file is written if memory cannot be limited.
        drop(MemoryLimit::new(self.memory)?);
        let bytes = self.hot_bytes() + self.data_bytes(self.cold_percent);
        let file = TestFile::new(&self.dir, bytes, watcher)?;
        let mut report = new_report(Self::NAME, FIELDS, note(self));
        report.host = report.host.with_storage("", &file.storage);
        let _limit = MemoryLimit::new(self.memory)?;
        let mut contest = Contest::new(FIELDS, Strategy::ALL);
        contest.run(&Stage::only(self.rounds, watcher), |strategy| {
            if *strategy == Strategy::ScanDirect && !file.is_direct(SCAN_BYTES) {
                return Outcome::skipped(NO_DIRECT_IO);
            }
            measure(self, &file, *strategy).map(Outcome::Measured)
        })?;
        contest.report(&mut report, "", |_| String::new());
        add_ratios(&contest, &mut report);
        Ok(report)
    }
}

fn note(options: &AppCacheBench) -> String {
    let AppCacheBench { memory, readers, reads_per_second, rounds, seconds, .. } = options;
    format!(
        "{readers} threads read random pages of 4 KiB of {} MiB of hot data, at most \
         {reads_per_second} per second, while a scan reads {} MiB of cold data over and over; \
         {rounds} interleaved rounds, {} ms each. A memory cgroup limits this process, page cache \
         included, to {} MiB. % cached: the part of the hot data in a cache at the end.",
        options.hot_bytes() >> 20,
        options.data_bytes(options.cold_percent) >> 20,
        seconds.as_millis(),
        memory >> 20,
    )
}

/// Adds the rate and the 99th percentile of each strategy during a scan, relative to the page cache
/// alone during a scan.
fn add_ratios(contest: &Contest<Strategy, Round>, report: &mut Report) {
    let base = Strategy::PageCache;
    for (name, strategy) in [
        ("app_cache", Strategy::AppCache),
        ("scan_uncached", Strategy::ScanUncached),
        ("scan_direct", Strategy::ScanDirect),
    ] {
        report.ratio(format!("{name}_vs_page_cache"), contest.ratio(&strategy, &base, rate));
        let ratio = contest.ratio(&strategy, &base, p99_us);
        report.ratio(format!("{name}_p99_vs_page_cache"), ratio);
    }
}

fn measure(options: &AppCacheBench, file: &TestFile, strategy: Strategy) -> Result<Round> {
    file.make_cold()?;
    let hot_bytes = options.hot_bytes();
    let opened = file.open(Open { random: true, ..Open::default() })?;
    let pages = CachedPages::new(opened, (strategy == Strategy::AppCache).then_some(hot_bytes));
    // Reads all hot pages once, so that the caches are warm at the start.
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    for offset in (0..hot_bytes).step_by(PAGE_BYTES) {
        pages.read(&mut page, offset)?;
    }
    let load = Load::new(PAGE_BYTES as u64, hot_bytes, options.seconds);
    let load = Load { interval: options.interval(), ..load };
    let readers = vec![|page: &mut [u8], offset| pages.read(page, offset); options.readers];
    let is_over = AtomicBool::new(false);
    let (reads, scanned_bytes) = thread::scope(|scope| {
        let scan = (strategy != Strategy::NoScan)
            .then(|| scope.spawn(|| scan(file, hot_bytes, strategy, &is_over)));
        let reads = load.run(readers);
        is_over.store(true, Ordering::Relaxed);
        (reads, scan.map_or(Ok(0), joined))
    });
    Ok(Round { reads: reads?, scanned_bytes: scanned_bytes?, cached: pages.cached(hot_bytes)? })
}

/// Reads the cold data over and over until `is_over` is set; returns the number of bytes read.
fn scan(file: &TestFile, from: u64, strategy: Strategy, is_over: &AtomicBool) -> Result<u64> {
    let direct = strategy == Strategy::ScanDirect;
    let opened = file.open(Open { direct, ..Open::default() })?;
    let mut chunk = AlignedBuf::zeroed(1 << 20);
    let (mut at, mut bytes) = (from, 0);
    while !is_over.load(Ordering::Relaxed) {
        match strategy {
            Strategy::ScanUncached => read_uncached(&*opened, &mut chunk, at)?,
            _ => read_full(&*opened, &mut chunk, at)?,
        };
        check(&chunk, at)?;
        bytes += SCAN_BYTES;
        at += SCAN_BYTES;
        if at >= file.bytes {
            at = from;
        }
    }
    Ok(bytes)
}

type Page = Arc<[u8]>;

#[derive(Debug, Clone)]
struct PageBytes;

impl Weighter<u64, Page> for PageBytes {
    fn weight(&self, _offset: &u64, page: &Page) -> u64 {
        page.len() as u64
    }
}

/// A reader of pages with an optional application cache. A page that the application cache does not
/// have is read through the page cache.
struct CachedPages {
    file: Arc<dyn File>,
    cache: Option<Cache<u64, Page, PageBytes>>,
}

impl CachedPages {
    /// Creates a reader of the pages of `file`, with a cache of `cache_bytes` bytes if given.
    fn new(file: Arc<dyn File>, cache_bytes: Option<u64>) -> Self {
        // The shards of the cache fill unevenly, so a cache of exactly `bytes` would evict pages
        // before it is full. An eighth more prevents this.
        let cache = |bytes: u64| {
            let pages = usize::try_from(bytes).unwrap_or(usize::MAX) / PAGE_BYTES;
            Cache::with_weighter(pages, bytes + bytes / 8, PageBytes)
        };
        Self { file, cache: cache_bytes.map(cache) }
    }

    /// Returns the cached fraction of the first `bytes` bytes: in the application's cache if there
    /// is one, otherwise in the page cache.
    fn cached(&self, bytes: u64) -> Result<f64> {
        let cached = match &self.cache {
            Some(cache) => cache.len() as f64 * PAGE_BYTES as f64,
            None => resident(&*self.file, 0, bytes)?.resident_bytes as f64,
        };
        Ok(cached / bytes as f64)
    }

    /// Reads the page at `offset`.
    fn read(&self, page: &mut [u8], offset: u64) -> Result<()> {
        let cached = self.cache.as_ref().and_then(|cache| cache.get(&offset));
        if let Some(cached) = cached {
            page.copy_from_slice(&cached);
            return Ok(());
        }
        read_full(&*self.file, page, offset)?;
        if let Some(cache) = &self.cache {
            cache.insert(offset, Arc::from(&*page));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round((reads, us): (u64, u64)) -> [Option<Round>; 1] {
        let mut all = Reads { time: Duration::from_secs(2), ..Reads::default() };
        (0..reads).for_each(|_| all.latencies.record(Duration::from_micros(us)));
        [Some(Round { reads: all, scanned_bytes: 8_000_000, cached: 0.5 })]
    }

    #[test]
    fn strategies_are_compared_with_the_page_cache_during_a_scan() {
        let mut contest = Contest::new(FIELDS, Strategy::ALL);
        contest.record_all([(900, 10), (100, 400), (800, 20), (200, 100)].map(round));
        let mut report = new_report("app-cache", FIELDS, String::new());
        contest.report(&mut report, "", |_| String::new());
        add_ratios(&contest, &mut report);
        report.assert_ratios(&[
            ("app_cache_vs_page_cache", 8.0),
            ("app_cache_p99_vs_page_cache", 0.05),
            ("scan_uncached_vs_page_cache", 2.0),
            ("scan_uncached_p99_vs_page_cache", 0.25),
        ]);
        let number = |key| report.value(&report.rows[1], key).unwrap().number();
        assert_eq!((number("kept_percent"), number("scan_mb_per_s")), (Some(50.0), Some(4.0)));
    }
}
