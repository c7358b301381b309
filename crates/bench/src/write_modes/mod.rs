//! Ways of writing records durably, and what each asks of the device.
//!
//! A log, a queue, a database: all write a record, make it durable, and write the next. What that
//! costs depends on how the file was prepared ([`Way`]) and how the record is made durable
//! ([`Sync`]). This measures every combination on a real file system, each record timed, and tells
//! for one record what the device was asked: by its own counters, and by the kernel's trace of
//! its requests, which also knows who asked: the program, the journal, or others.
//!
//! Each file is written twice; the second pass finds blocks that were written before.
//!
//! # Sources
//! \[Weil15\] for recycled files, \[WriteZeroes25\] for those the device zeroes, \[PgTestFsync\] for
//! the kind of table.

mod measure;
pub(crate) mod place;
mod plan;
mod prepare;
mod ratios;
mod rows;

use std::path::PathBuf;
use std::time::Duration;

pub use plan::{Modes, Sync, VirtualDisk, Way};

use crate::error::Result;
use crate::host::Host;
use crate::report::Report;
use crate::rounds::turns;
use crate::trace::Tracing;
use crate::watch::Watcher;
use measure::{Limits, finish, pass};
use place::Place;
use plan::{Cell, cells};
use prepare::{LOG, OLD, Ready, prepare, remove};
use rows::{BAR, COLUMNS, PASSES, Sum};

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to measure in, or to make the virtual disks in.
    pub dir: PathBuf,
    /// File systems to make and measure one after the other, as root; none is `dir` itself.
    pub virtual_disks: Vec<VirtualDisk>,
    /// Only these; none are all.
    pub modes: Vec<Modes>,
    /// The sizes of a record.
    pub record_bytes: Vec<u64>,
    /// How many records a pass over a file writes, at most.
    pub records: u64,
    /// How often each is measured, in turn.
    pub rounds: usize,
    /// How long all rounds of a row may write, at most.
    pub time_per_row: Duration,
}

impl Options {
    /// The defaults, in `dir`: about a minute on a solid-state disk, longer on a busy machine.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            virtual_disks: Vec::new(),
            modes: Vec::new(),
            record_bytes: vec![512, 4 << 10, 64 << 10],
            records: 64,
            rounds: 5,
            time_per_row: Duration::from_secs(2),
        }
    }
}

/// Measures. Everything it made is gone when it returns, and also when the process is killed.
///
/// # Errors
/// [`crate::Error::Cancelled`] when it was told to stop; a full disk; a virtual disk that cannot
/// be made. Without root there is no trace, which the report says; that is no error.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let cells = cells(&options.modes, &options.record_bytes);
    let mut report = Report::new("write-modes", Host::here(), COLUMNS, BAR);
    report.notes.push(note(options));
    let places = options.virtual_disks.len().max(1);
    for number in 0..places {
        watcher.check()?;
        let place = match options.virtual_disks.get(number) {
            None => Place::below(&options.dir, &[LOG, OLD])?,
            Some(kind) => {
                let longest = cells.iter().map(|cell| cell.file_bytes(options.records)).max();
                Place::on_virtual_disk(*kind, &options.dir, longest.unwrap_or(0))?
            }
        };
        let run = Run { options, cells: &cells, place: &place, watcher, number, places };
        run.carry_out(&mut report)?;
        report.host.storage.push(place.facts.clone());
        for (name, ratio) in ratios::of(&report, &place.name) {
            let name = if places > 1 { format!("{}_{name}", place.name) } else { name };
            report.ratios.insert(name, ratio);
        }
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { rounds, records, .. } = options;
    let device = if options.virtual_disks.is_empty() {
        " Whoever else uses the device is in its counters and in metadata and others too."
    } else {
        ""
    };
    format!(
        "Rounds: {rounds}, each way in turn, of up to {records} records. Numbers are medians of the \
         rounds, p99 is that of all records. Everything from \"B written\" on is for one record: \
         the device's counters (B written, syncs, reads, requests), and the trace of its requests \
         (writes: our thread's; journal; metadata outside of it; others; FUA). Pass 2 writes the same file again. direct-dsync pads records to 4,096 B. \
         What is \"-\" was not measured. A \
         ratio \"a_vs_b\" is how many times faster a's median record of the first pass is than b's.{device}"
    )
}

/// The measuring of one file system.
struct Run<'a> {
    options: &'a Options,
    cells: &'a [Cell],
    place: &'a Place,
    watcher: &'a dyn Watcher,
    number: usize,
    places: usize,
}

impl Run<'_> {
    fn carry_out(&self, report: &mut Report) -> Result<()> {
        let (place, cells) = (self.place, self.cells);
        let tracing = place.tracing().map_err(|why| {
            let why = crate::error::chain(&why);
            report.notes.push(format!(
                "{}: who wrote what was not measured, which needs root and the kernel's tracing: {why}.",
                place.name
            ));
        });
        let tracing = tracing.ok();
        let mut sums: Vec<[Sum; PASSES]> = Vec::new();
        sums.resize_with(cells.len(), Default::default);
        let mut lost = 0;
        for turn in turns(self.options.rounds, cells.len()) {
            let cell = &cells[turn.which];
            let steps = turn.of * self.places;
            let what = format!("{}: {cell}", place.name);
            self.watcher.step(self.number * turn.of + turn.done, steps, &what);
            self.watcher.check()?;
            lost += self.one(cell, tracing.as_ref(), &mut sums[turn.which])?;
        }
        if lost > 0 {
            report.notes.push(format!("{}: the trace lost {lost} events.", place.name));
        }
        // Sorted by sync and size, then the first pass over all ways, then the second.
        for group in cells.chunk_by(|a, b| (a.sync, a.record_bytes) == (b.sync, b.record_bytes)) {
            let first = cells.iter().position(|cell| *cell == group[0]).unwrap_or(0);
            for number in 0..PASSES {
                let rows = group.iter().zip(&sums[first..]);
                report.rows.extend(rows.map(|(c, sum)| sum[number].row(&place.name, c, number)));
            }
        }
        Ok(())
    }

    /// One turn of one cell: the file is made, written as often as there are passes, and removed.
    fn one(&self, cell: &Cell, tracing: Option<&Tracing>, sums: &mut [Sum; PASSES]) -> Result<u64> {
        let rounds = u32::try_from(self.options.rounds).unwrap_or(u32::MAX).max(1);
        let time = self.options.time_per_row / rounds;
        let mut limits = Limits { records: self.options.records, time };
        let mut ready = prepare(self.place, cell, self.options.records)?;
        let mut lost = 0;
        for sum in sums {
            if let Ready::Not(why) = ready {
                sum.cannot(why);
                continue;
            }
            let pass = pass(self.place, cell, &mut ready, limits, tracing, self.watcher)?;
            lost += pass.lost_events;
            limits.records = pass.records;
            sum.add(&pass);
            finish(self.place, &ready)?;
        }
        drop(ready);
        remove(self.place)?;
        Ok(lost)
    }
}
