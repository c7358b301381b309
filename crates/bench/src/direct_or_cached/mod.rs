//! Random reads of more and more data with the same memory: from where on the page cache does more
//! harm than good.
//!
//! Many readers ask for pages anywhere in the data, through the page cache, through it without
//! leaving anything in it, and past it. This process, with what it reads, has a bounded amount of
//! memory.

mod rows;

use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, DeviceCounters, File, Open, PAGE_BYTES, read_full, read_uncached};

use crate::error::Result;
use crate::host::Host;
use crate::memory_limit::MemoryLimit;
use crate::places::Places;
use crate::reads::{Point, Sum};
use crate::report::Report;
use crate::rounds::turns;
use crate::stats::Latencies;
use crate::test_file::{TestFile, check};
use crate::watch::Watcher;
use rows::{BAR, COLUMNS};

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to make the file in.
    pub dir: PathBuf,
    /// How much memory there is for the page cache and for the readers.
    pub memory_bytes: u64,
    /// How much data there is, in percent of the memory.
    pub data_percents: Vec<u64>,
    /// How many read at a time.
    pub readers: usize,
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
            memory_bytes: 256 << 20,
            data_percents: vec![25, 50, 80, 100, 125, 150, 200, 400, 800, 1600],
            readers: 50,
            rounds: 3,
            time: Duration::from_millis(500),
        }
    }

    fn data_bytes(&self, percent: u64) -> u64 {
        const PAGE: u64 = PAGE_BYTES as u64;
        (self.memory_bytes / 100 * percent / PAGE).max(1) * PAGE
    }
}

/// How a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    PageCache,
    Uncached,
    Direct,
}

impl Way {
    const ALL: [Self; 3] = [Self::PageCache, Self::Uncached, Self::Direct];

    fn name(self) -> &'static str {
        match self {
            Self::PageCache => "page cache",
            Self::Uncached => "page cache, uncached",
            Self::Direct => "direct",
        }
    }

    fn read(self, file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<()> {
        match self {
            Self::PageCache | Self::Direct => read_full(file, buffer, offset),
            Self::Uncached => read_uncached(file, buffer, offset),
        }
        .map(drop)
        .map_err(Into::into)
    }
}

/// One point of the curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    percent: u64,
    way: Way,
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
    let most = options.data_percents.iter().copied().max().unwrap_or(100);
    let file = TestFile::new(&options.dir, options.data_bytes(most), watcher)?;
    let host = Host::here().with_storage("", &file.storage);
    let mut report = Report::new("direct-or-cached", host, COLUMNS, BAR);
    report.notes.push(note(options));
    let cells: Vec<_> = options
        .data_percents
        .iter()
        .flat_map(|percent| Way::ALL.map(|way| Cell { percent: *percent, way }))
        .collect();
    let mut sums = vec![Sum::default(); cells.len()];
    let _limit = MemoryLimit::new(options.memory_bytes)?;
    for turn in turns(options.rounds, cells.len()) {
        let cell = &cells[turn.which];
        watcher.step(turn.done, turn.of, &format!("{} %, {}", cell.percent, cell.way.name()));
        watcher.check()?;
        if cell.way == Way::Direct && !file.is_direct(PAGE_BYTES as u64) {
            sums[turn.which].cannot("no direct I/O here");
            continue;
        }
        sums[turn.which].add(&measured(options, &file, cell, watcher)?);
    }
    report.rows.extend(cells.iter().zip(&sums).map(|(cell, sum)| rows::row(sum, cell, options)));
    report.ratios = rows::ratios(&cells, &sums);
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { memory_bytes, readers, rounds, time, .. } = options;
    format!(
        "{readers} readers of random pages of 4 KiB; {rounds} rounds in turn, {} ms each. All memory of \
         this process, page cache included, is {} MiB, by a memory cgroup. Before each point the data is \
         put out of memory, and for the page cache read once. Device reads are for one read. \
         \"crossover\" is the least data, in times the memory, from which on direct reads are more a \
         second than those of the page cache.",
        time.as_millis(),
        memory_bytes >> 20,
    )
}

fn measured(
    options: &Options,
    file: &TestFile,
    cell: &Cell,
    watcher: &dyn Watcher,
) -> Result<Point> {
    let data_bytes = options.data_bytes(cell.percent);
    file.make_cold()?;
    let direct = cell.way == Way::Direct;
    if cell.way == Way::PageCache {
        let file = file.open(Open { read_only: true, ..Open::default() })?;
        let mut chunk = AlignedBuf::zeroed(1 << 20);
        let mut at = 0;
        while at < data_bytes {
            watcher.check()?;
            at += read_full(&*file, &mut chunk, at)? as u64;
        }
    }
    let file_of_all =
        file.open(Open { direct, random: true, read_only: true, ..Open::default() })?;
    let counters = || {
        let device = file.storage.device.as_ref()?;
        DeviceCounters::of(device).ok().map(|counters| counters.reads)
    };
    let before = counters();
    let (latencies, time) = by_readers(options, &file_of_all, cell.way, data_bytes)?;
    let device_reads = counters().zip(before).map(|(now, before)| now - before);
    Ok(Point { time, latencies, device_reads })
}

fn by_readers(
    options: &Options,
    file: &Arc<dyn File>,
    way: Way,
    data_bytes: u64,
) -> Result<(Latencies, Duration)> {
    let start = Barrier::new(options.readers + 1);
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=options.readers as u64)
            .map(|seed| {
                let (start, file) = (&start, Arc::clone(file));
                scope.spawn(move || {
                    start.wait();
                    read(
                        options.time,
                        &*file,
                        way,
                        Places::new(PAGE_BYTES as u64, data_bytes, seed),
                    )
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        let mut all = Latencies::default();
        for thread in threads {
            let part = thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))?;
            all.add(&part);
        }
        Ok((all, began.elapsed()))
    })
}

/// One reader, until its time is over.
fn read(time: Duration, file: &dyn File, way: Way, mut places: Places) -> Result<Latencies> {
    let mut buffer = AlignedBuf::zeroed(PAGE_BYTES);
    let mut latencies = Latencies::default();
    let started = Instant::now();
    while started.elapsed() < time {
        let offset = places.next();
        let began = Instant::now();
        way.read(file, &mut buffer, offset)?;
        latencies.record(began.elapsed());
        check(&buffer, offset)?;
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_whole_pages_of_a_part_of_the_memory() {
        let options = Options { memory_bytes: 100 << 20, ..Options::new("d") };
        assert_eq!(options.data_bytes(50), 50 << 20);
        assert_eq!(options.data_bytes(1600), 1600 << 20);
        assert_eq!(Options { memory_bytes: 4096, ..options }.data_bytes(1), 4096);
    }
}
