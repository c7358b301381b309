//! Measures direct I/O: random reads by queue depth, and sequential reads and writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Durability, File, Open, read_full, write_full};

use crate::error::{Error, Result};
use crate::options::{BLOCK_BYTES, LONG_BYTES, LONG_DEPTH, Options};
use crate::random::Random;
use crate::rounds::turns;
use crate::scratch::{Scratch, noise, stamp};
use crate::stats::Latencies;
use crate::stats::Sample;
use crate::watch::Steps;
use crate::watch::Watcher;

/// The random reads at one queue depth.
#[derive(Debug, Clone)]
pub struct DepthRead {
    /// The number of reads in flight.
    pub depth: usize,
    /// The latencies of the reads and the elapsed time, summed over all rounds.
    pub sample: Sample,
}

/// Measures random reads at all depths, in rounds that measure each depth once. `from` is the
/// number of progress steps that the measurement completed before these reads.
pub(crate) fn measure(
    scratch: &Scratch,
    options: &Options,
    steps: &Steps<'_>,
    from: usize,
) -> Result<Vec<DepthRead>> {
    let file = scratch.open(Open { direct: true, read_only: true, ..Open::default() })?;
    let row = |depth: &usize| DepthRead { depth: (*depth).max(1), sample: Sample::default() };
    let mut rows: Vec<_> = options.depths.iter().map(row).collect();
    for turn in turns(options.rounds.max(1), rows.len()) {
        let row = &mut rows[turn.which];
        steps.at(from + turn.done, &format!("random reads, {} at a time", row.depth))?;
        let seed = (turn.done as u64) << 32;
        row.sample.add(&random(&*file, scratch.bytes, row.depth, options.time, seed)?);
    }
    Ok(rows)
}

/// Reads blocks at random offsets of the first `bytes` bytes on `depth` threads for `time`.
pub(crate) fn random(
    file: &dyn File,
    bytes: u64,
    depth: usize,
    time: Duration,
    seed: u64,
) -> Result<Sample> {
    let blocks = bytes / BLOCK_BYTES as u64;
    let all = Mutex::new(Latencies::default());
    let started = Instant::now();
    on_threads(depth, |number| {
        let mut random = Random::new(seed + number);
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES);
        let mut latencies = Latencies::default();
        while latencies.count() == 0 || started.elapsed() < time {
            let began = Instant::now();
            read_full(file, &mut block, random.below(blocks) * BLOCK_BYTES as u64)?;
            latencies.record(began.elapsed());
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).add(&latencies);
        Ok(())
    })?;
    let latencies = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Sample { latencies, time: started.elapsed() })
}

/// Runs `work` on each of `threads` threads with the index of the thread, and waits for them.
pub(crate) fn on_threads(threads: usize, work: impl Fn(u64) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let mut running = Vec::new();
        for number in 0..threads as u64 {
            let work = &work;
            let thread = thread::Builder::new().spawn_scoped(scope, move || work(number));
            running.push(thread.map_err(Error::other(format!("start {threads} threads")))?);
        }
        let panicked = |_panic| Error::Missing("a measuring thread panicked".to_owned());
        running.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)
    })
}

/// Reads or writes the scratch file sequentially with [`LONG_DEPTH`] requests in flight, and
/// returns bytes per second.
pub(crate) fn long(
    scratch: &Scratch,
    options: &Options,
    watcher: &dyn Watcher,
    write: bool,
) -> Result<f64> {
    let file = scratch.open(Open { direct: true, read_only: !write, ..Open::default() })?;
    let time = options.time * u32::try_from(options.rounds.max(1)).unwrap_or(u32::MAX);
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let content = noise(LONG_BYTES);
    watcher.check()?;
    let started = Instant::now();
    on_threads(LONG_DEPTH, |_number| {
        let mut block = AlignedBuf::zeroed(LONG_BYTES);
        block.copy_from_slice(&content);
        loop {
            let offset = next.fetch_add(LONG_BYTES as u64, Ordering::Relaxed) % scratch.bytes;
            if write {
                stamp(&mut block, offset);
                write_full(&*file, &block, offset)?;
            } else {
                read_full(&*file, &mut block, offset)?;
            }
            done.fetch_add(LONG_BYTES as u64, Ordering::Relaxed);
            if started.elapsed() >= time {
                return Ok(());
            }
        }
    })?;
    if write {
        // The measured time includes the flush of the device's volatile cache.
        file.sync(Durability::Data)?;
    }
    let bytes = done.into_inner() as f64;
    Ok(bytes / started.elapsed().as_secs_f64())
}
