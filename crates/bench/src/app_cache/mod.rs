//! What is hot while somebody scans what is cold: the page cache alone, an application's own cache
//! in front of it, and a scan that leaves the page cache as it was.
//!
//! Readers ask for pages of a hot part of the data which fits into memory. Beside them the rest,
//! which does not, is read from end to end, again and again.

mod hot;
mod rows;

use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Open, PAGE_BYTES, read_full, read_uncached, resident};

use crate::error::Result;
use crate::host::Host;
use crate::memory_limit::MemoryLimit;
use crate::places::Places;
use crate::report::Report;
use crate::rounds::turns;
use crate::stats::Latencies;
use crate::test_file::{TestFile, check};
use crate::watch::Watcher;
use hot::Hot;
use rows::{BAR, COLUMNS, Sum};

/// One read of the scan.
const SCAN_BYTES: usize = 1 << 20;

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to make the file in.
    pub dir: PathBuf,
    /// How much memory there is for both caches and for the readers.
    pub memory_bytes: u64,
    /// How much of the data is hot, in percent of the memory.
    pub hot_percent: u64,
    /// How much is scanned, in percent of the memory.
    pub cold_percent: u64,
    /// How many read what is hot.
    pub readers: usize,
    /// How many pages they read a second, all together, at most; 0 is as many as they can. What is
    /// asked for all the time stays in any cache: what is asked for now and then is the question.
    pub reads_per_s: u64,
    /// How often each way is measured, in turn.
    pub rounds: usize,
    /// How long each is measured.
    pub time: Duration,
}

impl Options {
    /// The defaults, in `dir`: about a minute.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            memory_bytes: 256 << 20,
            hot_percent: 40,
            cold_percent: 800,
            readers: 8,
            reads_per_s: 10_000,
            rounds: 5,
            time: Duration::from_secs(2),
        }
    }

    fn part(&self, percent: u64) -> u64 {
        (self.memory_bytes / 100 * percent / SCAN_BYTES as u64).max(1) * SCAN_BYTES as u64
    }

    /// How long one reader takes for a page, the wait for the next one included.
    fn pause(&self) -> Duration {
        match self.reads_per_s {
            0 => Duration::ZERO,
            reads => Duration::from_secs_f64(self.readers as f64 / reads as f64),
        }
    }

    fn hot_bytes(&self) -> u64 {
        self.part(self.hot_percent)
    }
}

/// Who keeps what is hot, and how the rest is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Alone,
    PageCache,
    AppCache,
    ScanUncached,
    ScanDirect,
}

impl Way {
    const ALL: [Self; 5] =
        [Self::Alone, Self::PageCache, Self::AppCache, Self::ScanUncached, Self::ScanDirect];

    fn name(self) -> &'static str {
        match self {
            Self::Alone => "page cache, no scan",
            Self::PageCache => "page cache",
            Self::AppCache => "application cache + page cache",
            Self::ScanUncached => "page cache, scan uncached",
            Self::ScanDirect => "page cache, scan direct",
        }
    }
}

/// What one measurement came to.
#[derive(Debug, Default)]
struct Point {
    time: Duration,
    latencies: Latencies,
    scanned_bytes: u64,
    /// How much of what is hot was in one of the caches at the end.
    kept: f64,
}

/// Measures. The file is gone when this returns, and also when the process is killed.
///
/// # Errors
/// [`crate::Error::Cancelled`] when it was told to stop; [`crate::Error::Missing`] where memory
/// cannot be limited; what the disk refuses; and when a read gave other bytes than those asked for.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    // Where it cannot be had, that is told before anything is written.
    drop(MemoryLimit::new(options.memory_bytes)?);
    watcher.step(0, 1, "making the file");
    let bytes = options.hot_bytes() + options.part(options.cold_percent);
    let file = TestFile::new(&options.dir, bytes, watcher)?;
    let host = Host::here().with_storage("", &file.storage);
    let mut report = Report::new("app-cache", host, COLUMNS, BAR);
    report.notes.push(note(options));
    let mut sums = vec![Sum::default(); Way::ALL.len()];
    let _limit = MemoryLimit::new(options.memory_bytes)?;
    for turn in turns(options.rounds, Way::ALL.len()) {
        let way = Way::ALL[turn.which];
        watcher.step(turn.done, turn.of, way.name());
        watcher.check()?;
        if way == Way::ScanDirect && !file.is_direct(SCAN_BYTES as u64) {
            sums[turn.which].cannot("no direct I/O here");
            continue;
        }
        sums[turn.which].add(&Bench { options, file: &file, way }.measure()?);
    }
    report.rows.extend(Way::ALL.iter().zip(&sums).map(|(way, sum)| sum.row(*way)));
    report.ratios = rows::ratios(&sums);
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { memory_bytes, readers, reads_per_s, rounds, time, .. } = options;
    format!(
        "{readers} readers of random pages of 4 KiB of {} MiB, {reads_per_s} a second at most, while {} MiB are read from end to end, \
         again and again; {rounds} rounds in turn, {} ms each. All memory of this process, page cache \
         included, is {} MiB, by a memory cgroup. kept: how much of what is hot was in one of the caches \
         at the end.",
        options.hot_bytes() >> 20,
        options.part(options.cold_percent) >> 20,
        time.as_millis(),
        memory_bytes >> 20,
    )
}

struct Bench<'a> {
    options: &'a Options,
    file: &'a TestFile,
    way: Way,
}

impl Bench<'_> {
    fn measure(&self) -> Result<Point> {
        self.file.make_cold()?;
        let file = self.file.open(Open { random: true, read_only: true, ..Open::default() })?;
        let hot_bytes = self.options.hot_bytes();
        let hot = Hot::new(file, (self.way == Way::AppCache).then_some(hot_bytes));
        // What is hot has been asked for before.
        let mut page = AlignedBuf::zeroed(PAGE_BYTES);
        for offset in (0..hot_bytes).step_by(PAGE_BYTES) {
            hot.read(&mut page, offset)?;
        }
        let is_over = AtomicBool::new(false);
        let start = Barrier::new(self.options.readers + 1);
        let (latencies, time, scanned_bytes) = thread::scope(|scope| {
            let scan = (self.way != Way::Alone).then(|| scope.spawn(|| self.scan(&is_over)));
            let readers: Vec<_> = (1..=self.options.readers as u64)
                .map(|seed| {
                    let (hot, start) = (&hot, &start);
                    scope.spawn(move || {
                        start.wait();
                        self.read(hot, seed)
                    })
                })
                .collect();
            start.wait();
            let began = Instant::now();
            let parts: Vec<_> = readers.into_iter().map(joined).collect();
            let time = began.elapsed();
            is_over.store(true, Ordering::Relaxed);
            let scanned_bytes = scan.map_or(Ok(0), joined)?;
            let mut all = Latencies::default();
            for part in parts {
                all.add(&part?);
            }
            Ok::<_, crate::Error>((all, time, scanned_bytes))
        })?;
        let kept = match hot.kept() {
            Some(pages) => pages as f64 * PAGE_BYTES as f64,
            None => resident(hot.file(), 0, hot_bytes)?.resident_bytes as f64,
        };
        Ok(Point { time, latencies, scanned_bytes, kept: kept / hot_bytes as f64 })
    }

    /// One reader, until its time is over.
    fn read(&self, hot: &Hot, seed: u64) -> Result<Latencies> {
        let mut page = AlignedBuf::zeroed(PAGE_BYTES);
        let mut latencies = Latencies::default();
        let mut places = Places::new(PAGE_BYTES as u64, self.options.hot_bytes(), seed);
        let started = Instant::now();
        let (pause, mut due) = (self.options.pause(), started);
        while started.elapsed() < self.options.time {
            due += pause;
            let offset = places.next();
            let began = Instant::now();
            hot.read(&mut page, offset)?;
            latencies.record(began.elapsed());
            check(&page, offset)?;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(latencies)
    }

    /// Reads what is cold from end to end until it is over; how much that was.
    fn scan(&self, is_over: &AtomicBool) -> Result<u64> {
        let direct = self.way == Way::ScanDirect;
        let file = self.file.open(Open { direct, read_only: true, ..Open::default() })?;
        let mut chunk = AlignedBuf::zeroed(SCAN_BYTES);
        let (mut at, mut bytes) = (self.options.hot_bytes(), 0);
        while !is_over.load(Ordering::Relaxed) {
            match self.way {
                Way::ScanUncached => read_uncached(&*file, &mut chunk, at)?,
                _ => read_full(&*file, &mut chunk, at)?,
            };
            check(&chunk, at)?;
            bytes += SCAN_BYTES as u64;
            at += SCAN_BYTES as u64;
            if at >= self.file.bytes {
                at = self.options.hot_bytes();
            }
        }
        Ok(bytes)
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
}
