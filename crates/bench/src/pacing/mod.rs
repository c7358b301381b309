//! What writers who want to be quick wait for while bulk data is written beside them.
//!
//! A backup, a copy, an export: somebody writes gigabytes, and the kernel lets it fill memory. Then
//! all of it goes to the device at once, and everybody else who writes waits. This measures two
//! who write little, one that syncs each record and one that only overwrites pages in memory,
//! while a third writes bulk data: as it comes, at the pace of [`haul_disk::Pacer`], and past the
//! page cache. The rate of the bulk data is told beside it; its time ends when all of it is on the
//! medium.
//!
//! # Sources
//! \[Morton06\] for pacing; \[HdrHistogram\] for latencies: a stall counts for all writes that
//! would have come meanwhile.

mod bulk;
mod dirty;
mod foreground;
mod plan;
mod rows;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, WINDOW_BYTES};

use crate::error::{Error, Result};
use crate::host::{Host, load};
use crate::report::Report;
use crate::rounds::turns;
use crate::watch::Watcher;
use crate::write_modes::VirtualDisk;
use crate::write_modes::place::Place;
use bulk::BULK;
use dirty::DirtyLimits;
use foreground::{
    OVERWRITE_EVERY, PAGES, RECORD_BYTES, RECORDS, SYNC_EVERY, Writer, Written, most_waiting,
};
use plan::{DIRECT_BYTES, Foreground, Way, ways};
use rows::{BAR, COLUMNS, Round, Sum, ratios};

/// What is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to measure in, or to make the virtual disks in.
    pub dir: PathBuf,
    /// File systems to make and measure one after the other, as root; none is `dir` itself.
    pub virtual_disks: Vec<VirtualDisk>,
    /// How much bulk data is written each time; rounded up to whole pieces of 4 MiB.
    pub bulk_bytes: u64,
    /// The windows of the pacer. Ratios are about the first one.
    pub window_bytes: Vec<u64>,
    /// How often each way is measured, in turn.
    pub rounds: usize,
    /// How long the foreground is measured without bulk data, each time.
    pub alone: Duration,
    /// What the kernel's limit of dirty bytes is set to, as root, for as long as the bench takes;
    /// its background limit to half of that. Everybody on the machine has it meanwhile.
    pub dirty_limit_bytes: Option<u64>,
}

impl Options {
    /// The defaults, in `dir`.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            virtual_disks: Vec::new(),
            bulk_bytes: 2 << 30,
            window_bytes: vec![WINDOW_BYTES],
            rounds: 5,
            alone: Duration::from_secs(2),
            dirty_limit_bytes: None,
        }
    }
}

/// Measures. Everything it made is gone when it returns, and the kernel's limits are as they were,
/// also when the process is killed.
///
/// # Errors
/// [`Error::Cancelled`] when it was told to stop; a full disk; a virtual disk that cannot be made;
/// no root, where [`Options::dirty_limit_bytes`] asks for it.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("pacing", Host::here(), COLUMNS, BAR);
    let _limits = options.dirty_limit_bytes.map(DirtyLimits::set).transpose()?;
    let ways = ways(&options.window_bytes);
    let bytes = options.bulk_bytes.next_multiple_of(DIRECT_BYTES as u64);
    report.notes.push(note(options, bytes));
    report.notes.extend(load());
    let places = options.virtual_disks.len().max(1);
    for number in 0..places {
        let place = match options.virtual_disks.get(number) {
            None => Place::below(&options.dir, &[BULK, RECORDS, PAGES])?,
            Some(kind) => Place::on_virtual_disk(*kind, &options.dir, bytes)?,
        };
        let mut sums = Vec::new();
        sums.resize_with(ways.len(), Sum::default);
        for turn in turns(options.rounds, ways.len()) {
            let (way, sum) = (ways[turn.which], &mut sums[turn.which]);
            let what = format!("{}: {way}", place.name);
            watcher.step(number * turn.of + turn.done, turn.of * places, &what);
            match bulk::not_here(&place, way) {
                Some(why) => sum.cannot(why),
                None => sum.add(one(&place, way, bytes, options.alone, watcher)?),
            }
        }
        for which in 0..Foreground::ALL.len() {
            let rows = ways.iter().zip(&sums).map(|(way, sum)| (sum, *way));
            report.rows.extend(rows.map(|(sum, way)| sum.row(&place.name, way, which, bytes)));
        }
        report.host.storage.push(place.facts.clone());
        for (name, ratio) in ratios(&ways, &sums, bytes) {
            let name = if places > 1 { format!("{}_{name}", place.name) } else { name };
            report.ratios.insert(name, ratio);
        }
    }
    Ok(report)
}

fn note(options: &Options, bytes: u64) -> String {
    format!(
        "Rounds: {}, each way in turn, each with {} MiB of bulk data in pieces of 1 MiB (direct: 4 MiB) \
         into a new file; its time ends with a sync. Beside it one thread appends {RECORD_BYTES} B and \
         syncs every {} ms, and one overwrites a page in memory every {} ms; who is late writes at once, \
         and a stall counts for all writes that would have come meanwhile. Numbers are medians of the \
         rounds; the longest is that of all. Dirty is the most that was dirty or on its way on the \
         whole machine. Limits: {}. A ratio \"a_vs_b\" is a's number over b's: lower is better for \
         p99.9, higher for the rate; without \"overwrite\" it is about the one that syncs.",
        options.rounds,
        bytes >> 20,
        SYNC_EVERY.as_millis(),
        OVERWRITE_EVERY.as_millis(),
        dirty::limits(),
    )
}

/// One turn of one way, with files of its own.
fn one(
    place: &Place,
    way: Way,
    bytes: u64,
    alone: Duration,
    watcher: &dyn Watcher,
) -> Result<Round> {
    let [syncing, overwriting] = Foreground::ALL.map(|what| Writer::new(place, what));
    let (syncing, overwriting) = (syncing?, overwriting?);
    place.settle()?;
    let stop = AtomicBool::new(false);
    let (bulk, first, second, waiting_bytes) = thread::scope(|scope| {
        let first = scope.spawn(|| syncing.run(&stop));
        let second = scope.spawn(|| overwriting.run(&stop));
        let most = scope.spawn(|| most_waiting(&stop));
        let bulk = bulk::write(place, way, bytes, alone, watcher);
        stop.store(true, Ordering::Relaxed);
        (bulk, first.join(), second.join(), most.join())
    });
    for name in [BULK, RECORDS, PAGES] {
        match place.disk.remove(name) {
            Err(error) if error.is_not_found() => {}
            removed => removed?,
        }
    }
    place.settle()?;
    let ended = |joined: thread::Result<Result<Written>>| {
        joined.unwrap_or_else(|_panic| Err(Error::Missing("a writer ended early".into())))
    };
    let waiting_bytes = waiting_bytes.ok().flatten();
    Ok(Round { bulk: bulk?, written: [ended(first)?, ended(second)?], waiting_bytes })
}
