//! Random reads of one file, by more and more readers, in each of the ways there are.
//!
//! Cold reads go past the page cache, so each is one of the device; warm ones find all in memory.
//! Every read is timed, and checked to be the page that was asked for.

mod ring;
mod rows;
mod ways;

use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, DeviceCounters, Open, warm};

use crate::error::Result;
use crate::host::Host;
use crate::places::Places;
use crate::reads::{Point, Sum};
use crate::report::Report;
use crate::rounds::turns;
use crate::stats::Latencies;
use crate::test_file::{TestFile, check};
use crate::watch::Watcher;
use rows::{BAR, COLUMNS};
use ways::{Cache, Cell, Reader, Readers, Way, cells};

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to make the file in.
    pub dir: PathBuf,
    /// The length of a read, a whole number of pages.
    pub read_bytes: u64,
    /// The length of the file.
    pub file_bytes: u64,
    /// Numbers of readers.
    pub readers: Vec<usize>,
    /// How often each point is measured, in turn.
    pub rounds: usize,
    /// How long each is measured.
    pub time: Duration,
}

impl Options {
    /// The defaults, in `dir`: about a minute and a half.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            read_bytes: 4 << 10,
            file_bytes: 1 << 30,
            readers: vec![1, 2, 4, 8, 16, 32, 64, 128, 256],
            rounds: 5,
            time: Duration::from_millis(300),
        }
    }
}

/// Measures. The file is gone when this returns, and also when the process is killed.
///
/// # Errors
/// [`crate::Error::Cancelled`] when it was told to stop; what the disk refuses; and when a read
/// gave other bytes than those asked for.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    watcher.step(0, 1, "making the file");
    let file = TestFile::new(&options.dir, options.file_bytes, watcher)?;
    let host = Host::here().with_storage("", &file.storage);
    let mut report = Report::new("random-read", host, COLUMNS, BAR);
    report.notes.push(note(options));
    let bench = Bench { options, file: &file, watcher };
    let cells = cells(&options.readers);
    let mut sums = vec![Sum::default(); cells.len()];
    // All that is cold first: what is warm must stay so.
    let (cold, warm): (Vec<_>, Vec<_>) =
        (0..cells.len()).partition(|at| cells[*at].cache == Cache::Cold);
    let steps = cells.len() * options.rounds;
    for (cache, done, which) in [(Cache::Cold, 0, &cold), (Cache::Warm, cold.len(), &warm)] {
        if let Some(why) = bench.cannot(cache)? {
            which.iter().for_each(|at| sums[*at].cannot(why));
            continue;
        }
        for turn in turns(options.rounds, which.len()) {
            let at = which[turn.which];
            watcher.step(done * options.rounds + turn.done, steps, &cells[at].to_string());
            watcher.check()?;
            match bench.measure(&cells[at])? {
                Some(point) => sums[at].add(&point),
                None => sums[at].cannot("no io_uring here"),
            }
        }
    }
    report.rows.extend(
        cells.iter().zip(&sums).map(|(cell, sum)| rows::row(sum, cell, options.read_bytes)),
    );
    report.ratios = rows::ratios(&cells, &sums);
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { read_bytes, file_bytes, rounds, time, .. } = options;
    format!(
        "Reads of {read_bytes} B at random pages of a file of {} MiB; {rounds} rounds in turn, {} ms \
         each. Cold: past the page cache (O_DIRECT); warm: all of it in memory before. Reads a second \
         are medians of the rounds, times those of all reads; device reads are for one read, by the \
         counters of the device, whoever else uses it. A ratio \"a_vs_b\" is how many times more reads \
         a second a does than b with that many readers.",
        file_bytes >> 20,
        time.as_millis()
    )
}

struct Bench<'a> {
    options: &'a Options,
    file: &'a TestFile,
    watcher: &'a dyn Watcher,
}

impl Bench<'_> {
    /// Why it cannot be measured like that here; else the file is made so.
    fn cannot(&self, cache: Cache) -> Result<Option<&'static str>> {
        match cache {
            Cache::Cold if !self.file.is_direct(self.options.read_bytes) => {
                return Ok(Some("no direct I/O here"));
            }
            Cache::Cold => self.file.make_cold()?,
            Cache::Warm => {
                let file = self.file.open(Open { read_only: true, ..Open::default() })?;
                warm(&*file, 0, u64::MAX)?;
                let mut chunk = AlignedBuf::zeroed(1 << 20);
                let mut at = 0;
                while at < self.file.bytes {
                    self.watcher.check()?;
                    at += haul_disk::read_full(&*file, &mut chunk, at)? as u64;
                }
                if self.file.in_memory()? < 1.0 {
                    return Ok(Some("does not fit into memory"));
                }
            }
        }
        Ok(None)
    }

    fn counters(&self) -> Option<u64> {
        let device = self.file.storage.device.as_ref()?;
        DeviceCounters::of(device).ok().map(|counters| counters.reads)
    }

    fn measure(&self, cell: &Cell) -> Result<Option<Point>> {
        let before = self.counters();
        let measured = match cell.way {
            Way::Ring => ring::read(self.file, cell, self.options)?,
            _ => Some(self.by_threads(cell)?),
        };
        let Some((latencies, time)) = measured else { return Ok(None) };
        let device_reads = self.counters().zip(before).map(|(now, before)| now - before);
        Ok(Some(Point { time, latencies, device_reads }))
    }

    fn by_threads(&self, cell: &Cell) -> Result<(Latencies, Duration)> {
        let readers = Readers::new(self.file, cell)?;
        let own = (0..cell.readers).map(|_| readers.one()).collect::<Result<Vec<_>>>()?;
        let start = Barrier::new(cell.readers);
        let parts = thread::scope(|scope| {
            let threads = (1u64..).zip(own).map(|(seed, reader)| {
                let (start, options) = (&start, self.options);
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    read(options, &reader, seed).map(|times| (times, began, Instant::now()))
                })
            });
            let threads: Vec<_> = threads.collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|part| part.unwrap_or_else(|why| std::panic::resume_unwind(why)))
                .collect::<Result<Vec<_>>>()
        })?;
        let mut all = Latencies::default();
        parts.iter().for_each(|(times, _, _)| all.add(times));
        // From the first to begin until the last has ended: on a busy machine they are not at once.
        let began = parts.iter().map(|part| part.1).min();
        let ended = parts.iter().map(|part| part.2).max();
        let time = ended.zip(began).map_or(Duration::ZERO, |(ended, began)| ended - began);
        Ok((all, time))
    }
}

/// One reader, until its time is over.
fn read(options: &Options, reader: &Reader, seed: u64) -> Result<Latencies> {
    let bytes = options.read_bytes;
    let mut buffer = AlignedBuf::zeroed(usize::try_from(bytes).unwrap_or(usize::MAX));
    let (mut latencies, mut places) =
        (Latencies::default(), Places::new(bytes, options.file_bytes, seed));
    let started = Instant::now();
    while started.elapsed() < options.time {
        let offset = places.next();
        let began = Instant::now();
        reader.read(&mut buffer, offset)?;
        latencies.record(began.elapsed());
        check(&buffer, offset)?;
    }
    Ok(latencies)
}
