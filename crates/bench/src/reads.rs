//! Reads one file at random offsets with several threads; times and verifies each read.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::AlignedBuf;
use haul_measure::{Latencies, Result};
use haul_testing::Random;

use crate::test_file::check;

/// The reads of all threads in one round.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) time: Duration,
    /// The length in bytes of each read.
    pub(crate) read_bytes: u64,
    pub(crate) latencies: Latencies,
    /// Read requests to the device during the round, including those of other programs.
    pub(crate) device_reads: Option<u64>,
}

impl Reads {
    /// Returns the reads of several threads, each with its latencies, start and end.
    fn of(read_bytes: u64, parts: &[(Latencies, Instant, Instant)]) -> Self {
        let mut latencies = Latencies::default();
        parts.iter().for_each(|(times, _, _)| latencies.add(times));
        // On a busy machine the threads neither begin nor end at the same time, so the round lasts
        // from the first start to the last end.
        let began = parts.iter().map(|part| part.1).min();
        let ended = parts.iter().map(|part| part.2).max();
        let time = ended.zip(began).map_or(Duration::ZERO, |(ended, began)| ended - began);
        Self { time, read_bytes, latencies, device_reads: None }
    }

    pub(crate) fn per_second(&self) -> Option<f64> {
        let count = self.latencies.count() as f64;
        Some(count / self.time.as_secs_f64()).filter(|rate| *rate > 0.0)
    }

    pub(crate) fn megabytes_per_second(&self) -> Option<f64> {
        Some(self.per_second()? * self.read_bytes as f64 / 1e6)
    }

    /// Returns the number of requests to the device per read.
    pub(crate) fn device_reads_each(&self) -> Option<f64> {
        Some(self.device_reads? as f64 / self.latencies.count() as f64)
    }
}

/// The parameters of a load: threads that read at random offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) read_bytes: u64,
    /// The length in bytes of the part of the file that is read, from its beginning.
    pub(crate) data_bytes: u64,
    pub(crate) time: Duration,
    /// The time between the starts of two reads of a thread; if zero, threads read as fast as
    /// possible.
    pub(crate) interval: Duration,
}

impl Load {
    /// Returns a load in which threads read as fast as possible.
    pub(crate) fn new(read_bytes: u64, data_bytes: u64, time: Duration) -> Self {
        Self { read_bytes, data_bytes, time, interval: Duration::ZERO }
    }

    /// Returns the offset of a random read.
    pub(crate) fn offset(&self, random: &mut Random) -> u64 {
        random.below((self.data_bytes / self.read_bytes).max(1)) * self.read_bytes
    }

    /// Reads with one thread per reader until the duration `time` has passed.
    pub(crate) fn run<R>(&self, readers: Vec<R>) -> Result<Reads>
    where
        R: Fn(&mut [u8], u64) -> Result<()> + Send,
    {
        let start = Barrier::new(readers.len());
        let parts = thread::scope(|scope| {
            let threads = (1u64..).zip(readers).map(|(seed, reader)| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    self.read(&reader, seed).map(|times| (times, began, Instant::now()))
                })
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(joined).collect::<Result<Vec<_>>>()
        })?;
        Ok(Reads::of(self.read_bytes, &parts))
    }

    fn read(&self, reader: &impl Fn(&mut [u8], u64) -> Result<()>, seed: u64) -> Result<Latencies> {
        let mut buffer = AlignedBuf::zeroed(usize::try_from(self.read_bytes).unwrap_or(usize::MAX));
        let mut latencies = Latencies::default();
        let mut random = Random(seed);
        let started = Instant::now();
        let mut due = started;
        while started.elapsed() < self.time {
            due += self.interval;
            let offset = self.offset(&mut random);
            let began = Instant::now();
            reader(&mut buffer, offset)?;
            latencies.record(began.elapsed());
            check(&buffer, offset)?;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(latencies)
    }
}

/// Joins a thread and returns its result. If the thread panicked, the caller panics, too.
pub(crate) fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
