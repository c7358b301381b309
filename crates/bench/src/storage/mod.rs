//! What a storage is good at, found out in a few seconds: durable writes in several ways, random
//! reads with more and more of them under way, long reads and writes.
//!
//! All of it happens in one scratch file without a name, whose blocks the kernel takes back
//! however the process ends.
//!
//! # Sources
//! \[PgTestFsync\] for the kind of test.

mod method;
mod random;
mod reads;
pub(crate) mod scratch;
mod verdict;
mod write_rate;
mod writes;

use std::path::PathBuf;
use std::time::Duration;

use haul_disk::{PAGE_BYTES, Storage, probe};

pub use method::Method;
pub use reads::DepthRead;
pub use verdict::{Rotation, knee, rotation};
pub use write_rate::{RateOptions, WriteRate, write_rate};
pub use writes::MethodWrite;

use crate::error::Result;
use crate::host::load;
use crate::stats::Latencies;
use crate::watch::Watcher;
use scratch::Scratch;

/// What a record or a random read is long.
pub const BLOCK_BYTES: usize = PAGE_BYTES;
/// What a long read or write asks for at a time.
pub const LONG_BYTES: usize = 1 << 20;
/// How many of these are under way at a time.
pub const LONG_DEPTH: usize = 4;

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory whose storage it is about.
    pub dir: PathBuf,
    /// The length of the scratch file.
    pub bytes: u64,
    /// How often each way is measured, in turn with the others.
    pub rounds: usize,
    /// How long each is measured in a round.
    pub time: Duration,
    /// How many random reads are under way at a time, one row for each.
    pub depths: Vec<usize>,
}

impl Options {
    /// The defaults, in `dir`: well under ten seconds on a solid-state disk.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            bytes: 256 << 20,
            rounds: 3,
            time: Duration::from_millis(80),
            depths: vec![1, 2, 4, 8, 16, 32, 64],
        }
    }
}

/// So many of something in such a time.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// How long each took.
    pub latencies: Latencies,
    /// The time by the clock for all of them.
    pub time: Duration,
}

impl Sample {
    /// How many were done in a second; `None` of none.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        (self.latencies.count() > 0 && seconds > 0.0)
            .then(|| self.latencies.count() as f64 / seconds)
    }

    fn add(&mut self, other: &Self) {
        self.latencies.add(&other.latencies);
        self.time += other.time;
    }
}

/// What was found out.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Durable writes of a block, one after the other.
    pub writes: Vec<MethodWrite>,
    /// Random reads of a block past the page cache, by depth; none where that cannot be done.
    pub reads: Vec<DepthRead>,
    /// Long reads past the page cache, in bytes a second.
    pub read_bytes_per_s: Option<f64>,
    /// Long writes past the page cache into blocks that were written before, in bytes a second.
    pub write_bytes_per_s: Option<f64>,
    /// The smallest depth that gives nearly the best rate.
    pub depth: Option<usize>,
    /// What the reads say of the claim that the disk rotates.
    pub rotation: Rotation,
    /// What must be known to read the figures.
    pub notes: Vec<String>,
}

/// Measures. Nothing is left behind.
///
/// # Errors
/// [`crate::Error::Cancelled`] when it was told to stop; [`crate::Error::Missing`] when less than
/// twice the length of the scratch file is free; else as the disk says.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Measured> {
    let storage = probe(&options.dir)?;
    let (rounds, load) = (options.rounds.max(1), load());
    let steps = Steps { watcher, of: rounds * (Method::ALL.len() + options.depths.len()) + 3 };
    steps.at(0, "filling the scratch file")?;
    let scratch = Scratch::new(options, watcher)?;
    let writes = writes::measure(&scratch, options, &steps)?;
    let reads_from = 1 + rounds * Method::ALL.len();
    let mut notes: Vec<_> = load.into_iter().collect();
    let (mut reads, mut read_bytes_per_s, mut write_bytes_per_s) = (Vec::new(), None, None);
    if scratch.is_direct {
        reads = reads::measure(&scratch, options, &steps, reads_from)?;
        let last = reads_from + rounds * options.depths.len();
        steps.at(last, "long reads")?;
        read_bytes_per_s = Some(reads::long(&scratch, options, watcher, false)?);
        steps.at(last + 1, "long writes")?;
        write_bytes_per_s = Some(reads::long(&scratch, options, watcher, true)?);
    } else {
        notes.push("there is no direct I/O here: reads would come from memory".to_owned());
    }
    let rates: Vec<_> =
        reads.iter().filter_map(|row| Some((row.depth, row.sample.per_second()?))).collect();
    Ok(Measured {
        depth: knee(&rates),
        rotation: verdict_of(&storage, &reads),
        writes,
        reads,
        read_bytes_per_s,
        write_bytes_per_s,
        notes,
    })
}

fn verdict_of(storage: &Storage, reads: &[DepthRead]) -> Rotation {
    let rate = |row: &DepthRead| row.sample.per_second();
    let one = reads.iter().find(|row| row.depth == 1);
    let best = reads.iter().filter_map(rate).max_by(f64::total_cmp);
    let known = one.and_then(|one| {
        let median_us = one.sample.latencies.percentile_us(50.0)?;
        Some((median_us, best? / rate(one)?))
    });
    rotation(storage.queue.rotational, known)
}

/// Tells how far it is, and hears whether it shall stop.
struct Steps<'a> {
    watcher: &'a dyn Watcher,
    of: usize,
}

impl Steps<'_> {
    fn at(&self, done: usize, what: &str) -> Result<()> {
        self.watcher.check()?;
        self.watcher.step(done, self.of, what);
        Ok(())
    }
}
