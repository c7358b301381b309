//! Measures the storage below a directory: durable writes, random reads by queue depth, and
//! sequential reads and writes.

use haul_disk::{Storage, probe};

use crate::error::Result;
use crate::load::load;
use crate::method::Method;
use crate::options::Options;
use crate::reads::{self, DepthRead};
use crate::scratch::Scratch;
use crate::verdict::{Rotation, knee, rotation};
use crate::watch::Steps;
use crate::watch::Watcher;
use crate::writes::{self, MethodWrite};

/// The results of [`measure`].
#[derive(Debug, Clone)]
pub struct Measured {
    /// The writes of single blocks by one thread, one element per [`Method`].
    pub writes: Vec<MethodWrite>,
    /// The random direct reads of single blocks, one element per queue depth; empty if the file
    /// system has no direct I/O.
    pub reads: Vec<DepthRead>,
    /// The rate of sequential direct reads in bytes per second; `None` without direct I/O.
    pub read_bytes_per_s: Option<f64>,
    /// The rate of sequential direct overwrites in bytes per second; `None` without direct I/O.
    pub write_bytes_per_s: Option<f64>,
    /// The smallest queue depth whose rate of random reads is at least 90 % of the best; `None` if
    /// no reads were measured.
    pub depth: Option<usize>,
    /// The verdict on whether the disk rotates.
    pub rotation: Rotation,
    /// Circumstances that affect the figures, as sentences for a report.
    pub notes: Vec<String>,
}

/// Measures the storage below a directory. No file remains in it.
///
/// # Errors
/// [`crate::Error::Cancelled`] if `watcher` cancels; [`crate::Error::Missing`] if less than twice
/// the length of the scratch file is free; [`crate::Error::Disk`] if an operation on the disk
/// fails.
pub fn measure(options: &Options, watcher: &dyn Watcher) -> Result<Measured> {
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
        notes.push(
            "the file system has no direct I/O: reads would be served from memory".to_owned(),
        );
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
