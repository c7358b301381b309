//! Measures random writes in arrival order and sorted, with and without an index, on a simulated
//! spinning drive.
//!
//! Text 003 writes 2,000,000 records of 100 B to random places of 100 GB: sorted in memory they
//! take a fifth of the time. Entries of an index that are written in between cost more than the
//! records and the index one after the other.

use std::path::PathBuf;

use haul_measure::{Result, Watcher};

use super::{compare, preset, require_space};
use crate::contest::{Contest, Outcome, Stage, columns};
use crate::host::Host;
use crate::options::{count, file_size};
use crate::random_write::{
    BAR, Cell, FIELDS, Index, Method, Options as WriteOptions, Round, Shape, SimulatedDrive,
    Strategy,
};
use crate::report::{Ratio, Report, Samples};
use crate::simulated::Drive;

/// Options of `haul bench seed sorted`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Model of the simulated drive
    #[arg(long, value_name = "NAME", default_value = "deskstar-7k1000.c")]
    pub drive: Drive,
    /// Number of records of 100 B
    #[arg(long, value_name = "N", default_value = "20000", value_parser = count(1..=100_000_000))]
    pub records: usize,
    /// Length of the file that they are written to
    #[arg(long = "bytes", value_name = "SIZE", default_value = "1GiB", value_parser = file_size)]
    pub file_size: u64,
    /// Length of the index, which gets an entry of 64 B for each record
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = file_size)]
    pub index_size: u64,
    /// Write 2,000,000 records into 100 GB, with an index of 128 MB, as the text does
    ///
    /// Takes about 10 GB in memory, or in --dir, and tens of minutes.
    #[arg(long, conflicts_with_all = ["records", "file_size", "index_size"])]
    pub whole: bool,
    /// Directory for the sparse image of the simulated disk [default: in memory]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// The order of the records, and the place of the index entries.
const MODES: [(Method, Index); 5] = [
    (Method::Random, Index::None),
    (Method::Sorted, Index::None),
    (Method::Random, Index::Alone),
    (Method::Sorted, Index::Mixed),
    (Method::Sorted, Index::Separate),
];

/// The length of a page, which is the least that a record makes the device store.
const PAGE_BYTES: u64 = 4096;

/// The figures of the text: more than two hours in arrival order, 1,645 s sorted, and 300 s for the
/// index alone.
const TEXT: [(&str, f64); 2] =
    [("sorted_vs_random", 5.0), ("index_alone_vs_sorted", 300.0 / 1645.0)];

impl Options {
    /// Returns the options of the benchmark whose parts this experiment uses.
    fn of_random_write(&self) -> Result<WriteOptions> {
        let options: WriteOptions =
            preset("random-write --record-size 100 --shapes records", None)?;
        let (records, file_size, index_size) = match self.whole {
            true => (2_000_000, 100_000_000_000 / PAGE_BYTES * PAGE_BYTES, 128_000_000),
            false => (self.records, self.file_size, self.index_size),
        };
        let image_dir = self.dir.clone();
        Ok(WriteOptions { records, file_size, index_size, image_dir, batches_max: 1, ..options })
    }
}

/// Runs the experiment. The simulated disk is removed when this returns, and also when the process
/// is killed.
///
/// # Errors
/// Returns [`crate::Error::Missing`] without root or FUSE, [`crate::Error::Cancelled`] if the
/// watcher cancels, and an error if bytes differ from those written.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let write = options.of_random_write()?;
    if let Some(dir) = &options.dir {
        require_space(dir, write.records as u64 * PAGE_BYTES + write.index_size)?;
    }
    let mut report = Report::new("seed sorted", Host::here(), columns(FIELDS), BAR);
    report.notes.push(note(&write));
    watcher.step(0, 1, "writing the files");
    let mut disk = SimulatedDrive::new(&write, &options.drive, watcher)?;
    let batch = write.records;
    let cells = MODES.map(|(method, index)| Cell { shape: Shape::Records, method, index, batch });
    let mut contest = Contest::new(FIELDS, cells.map(Strategy::of));
    contest.run(&Stage::only(1, watcher), |strategy| {
        let Some(cell) = strategy.cell else { return Outcome::skipped("") };
        disk.measure(&write, cell, watcher).map(Outcome::Measured)
    })?;
    let table = format!("{} (simulated), ext4", options.drive.name());
    contest.report(&mut report, &table, |_| String::new());
    add_ratios(&contest, &mut report);
    Ok(report)
}

fn add_ratios(contest: &Contest<Strategy, Round>, report: &mut Report) {
    let seconds = |mode: (Method, Index)| {
        let is = |cell: Cell| (cell.method, cell.index) == mode;
        let mut entries = contest.entries.iter();
        entries.find(|entry| entry.strategy.cell.is_some_and(is))?.samples(|round| round.service_s)
    };
    let [random, sorted, alone, mixed, apart] = MODES.map(seconds);
    let sum = sorted.as_ref().zip(alone.as_ref()).map(|(sorted, alone)| {
        let both = sorted.rounds.values().zip(alone.rounds.values());
        Samples::new("the sum of both", both.map(|(sorted, alone)| sorted + alone))
    });
    for (name, dividend, divisor) in [
        ("sorted_vs_random", &random, &sorted),
        ("index_alone_vs_sorted", &alone, &sorted),
        ("mixed_vs_sum", &mixed, &sum),
        ("apart_vs_sum", &apart, &sum),
    ] {
        let both = dividend.clone().zip(divisor.clone());
        report.ratio(name, both.and_then(|(dividend, divisor)| Ratio::of(dividend, divisor)));
    }
    compare(report, "", &TEXT);
}

fn note(options: &WriteOptions) -> String {
    let WriteOptions { records, file_size, index_size, seed, .. } = options;
    format!(
        "{records} records of 100 B at random offsets of a file of {} MiB (seed {seed}), all in \
         one batch; an entry of 64 B for each at a random place of an index of {} MiB; cold \
         caches; one round by the clock of the simulated drive (service). Index: \"alone\" writes \
         the entries and no records, \"mixed\" each entry after its record, \"apart\" all entries \
         after all records. sorted_vs_random is the time in arrival order divided by that in \
         sorted order; the other ratios are times of the first divided by the second; sum is the \
         time of the sorted records without an index and of the index alone. The text: over 2 \
         hours at random, 1,645 s sorted, 300 s the index alone, and far more than their sum if \
         they are mixed.",
        file_size >> 20,
        index_size >> 20,
    )
}
