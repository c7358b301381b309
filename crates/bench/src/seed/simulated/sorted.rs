//! Measures random writes in arrival order and sorted, with and without an index, on a simulated
//! spinning drive.
//!
//! Text 003 writes 2,000,000 records of 100 B to random places of 100 GB: sorted in memory they
//! take a fifth of the time. Entries of an index that are written in between cost more than the
//! records and the index one after the other.
//!
//! The simulated drive takes no time for a request, but the kernel does: about a tenth of a
//! millisecond for each of the two requests of a record. With as many records as in the text, only
//! the sorted ones are all written; in arrival order a sample is.

use std::path::PathBuf;

use haul_measure::{Result, Watcher};

use super::super::{compare, preset, require_space};
use crate::contest::{Contest, Entry, Outcome, Stage, columns};
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
    /// Number of records in arrival order that are measured instead of all
    ///
    /// The least time of all records is computed: the reads of the sorted records, each as long as
    /// one of the sample, and the writes of the sorted records.
    #[arg(long, value_name = "N", value_parser = count(1..=100_000_000))]
    pub sample: Option<usize>,
    /// Write 2,000,000 records into 100 GB, with an index of 128 MB, as the text does
    ///
    /// Only the sorted records and the index alone, with a sample of 20,000 records. Takes about
    /// 10 GB in memory, or in --dir, as much of the page cache, and up to ten minutes.
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

/// The number of records in arrival order that are measured instead of all those of the text.
const SAMPLE: usize = 20_000;

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

    /// Returns the number of records of a sample in arrival order; `None` if all are measured.
    fn sample(&self) -> Option<usize> {
        self.sample.or_else(|| self.whole.then_some(SAMPLE))
    }

    /// Returns the modes that are measured with all records.
    fn modes(&self) -> impl Iterator<Item = (Method, Index)> {
        let (is_whole, has_sample) = (self.whole, self.sample().is_some());
        MODES.into_iter().filter(move |(method, index)| match index {
            Index::None => *method == Method::Sorted || !has_sample,
            Index::Mixed | Index::Separate => !is_whole,
            Index::Alone | Index::InMemory => true,
        })
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
    report.notes.push(note(&write, options.sample()));
    watcher.step(0, 1, "writing the files");
    let mut disk = SimulatedDrive::new(&write, &options.drive, watcher)?;
    let modes = options.modes().map(|mode| strategy(mode, &write));
    let mut contest = Contest::new(FIELDS, modes);
    contest.run(&Stage::only(1, watcher), |strategy| {
        let Some(cell) = strategy.cell else { return Outcome::skipped("") };
        disk.measure(&write, cell, watcher).map(Outcome::Measured)
    })?;
    if let Some(sample) = options.sample() {
        let sample = WriteOptions { records: sample.min(write.records), ..write.clone() };
        let least = least(&mut disk, &sample, &write, &contest, watcher)?;
        contest.entries.extend(least.entries);
    }
    let table = format!("{} (simulated), ext4", options.drive.name());
    contest.report(&mut report, &table, |_| String::new());
    add_ratios(&contest, &mut report);
    Ok(report)
}

fn strategy((method, index): (Method, Index), options: &WriteOptions) -> Strategy {
    Strategy::of(Cell { shape: Shape::Records, method, index, batch: options.records })
}

/// Returns the results of a method with an index.
fn entry<'a>(
    contest: &'a Contest<Strategy, Round>,
    name: &str,
    index: Index,
) -> Option<&'a Entry<Strategy, Round>> {
    let is = |entry: &&Entry<Strategy, Round>| {
        (entry.strategy.name.as_str(), entry.strategy.index) == (name, index.name())
    };
    contest.entries.iter().find(is)
}

/// Measures a sample of the records in arrival order, and returns its row, and a row with the least
/// time of all records: the reads and writes of the sorted records, but each read takes as long as
/// one of the sample. Both methods read and write the same pages, and arrival order cannot make the
/// writes faster.
fn least(
    disk: &mut SimulatedDrive,
    sample: &WriteOptions,
    all: &WriteOptions,
    sorted: &Contest<Strategy, Round>,
    watcher: &dyn Watcher,
) -> Result<Contest<Strategy, Round>> {
    let name = format!("random, {} of {}", sample.records, all.records);
    let of_sample = Strategy { name, ..strategy((Method::Random, Index::None), sample) };
    let whole = Strategy { name: LEAST.to_owned(), cell: None, ..of_sample.clone() };
    let mut contest = Contest::new(FIELDS, [of_sample, whole]);
    let Some(cell) = contest.entries[0].strategy.cell else { return Ok(contest) };
    watcher.step(0, 1, "a sample in arrival order");
    let round = disk.measure(sample, cell, watcher)?;
    contest.record(0, Outcome::Measured(round));
    let sorted = entry(sorted, Method::Sorted.name(), Index::None);
    let sorted = sorted.and_then(|entry| entry.rounds.first());
    if let Some(seconds) = sorted.and_then(|sorted| least_s(&round, sorted)) {
        let whole = Round::of_service(1, all.records as f64, seconds).in_batches(all.records);
        contest.record(1, Outcome::Measured(whole));
    }
    Ok(contest)
}

/// Returns the time of the reads of `sorted`, if each takes as long as one of `sample`, and of the
/// writes of `sorted`.
fn least_s(sample: &Round, sorted: &Round) -> Option<f64> {
    let writing_s = sorted.service_s? - sorted.reading_s?;
    let read_s = sample.reading_s? / (sample.reads? * sample.records);
    Some(read_s * sorted.reads? * sorted.records + writing_s)
}

/// The name of the row with the least time in arrival order.
const LEAST: &str = "random, all: at least";

fn add_ratios(contest: &Contest<Strategy, Round>, report: &mut Report) {
    let seconds = |name: &str, index| entry(contest, name, index)?.samples(|round| round.service_s);
    let [random, sorted, alone, mixed, apart] =
        MODES.map(|(method, index)| seconds(method.name(), index));
    let random = random.or_else(|| seconds(LEAST, Index::None));
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

fn note(options: &WriteOptions, sample: Option<usize>) -> String {
    let WriteOptions { records, file_size, index_size, seed, .. } = options;
    let sampled = match sample {
        Some(sample) => format!(
            " In arrival order, {sample} records were measured. \"{LEAST}\" is computed: as many \
             reads as those of the sorted records, each as long as one of the sample, and the \
             writes of the sorted records, which are those of the same pages."
        ),
        None => String::new(),
    };
    format!(
        "{records} records of 100 B at random offsets of a file of {} MiB (seed {seed}), all in \
         one batch; an entry of 64 B for each at a random place of an index of {} MiB; cold \
         caches; one round by the clock of the simulated drive (service). Index: \"alone\" writes \
         the entries and no records, \"mixed\" each entry after its record, \"apart\" all entries \
         after all records. sorted_vs_random is the time in arrival order divided by that in \
         sorted order; the other ratios are times of the first divided by the second; sum is the \
         time of the sorted records without an index and of the index alone. The text: over 2 \
         hours at random, 1,645 s sorted, 300 s the index alone, and far more than their sum if \
         they are mixed.{sampled}",
        file_size >> 20,
        index_size >> 20,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_time_has_the_reads_of_the_sample_and_the_writes_of_the_sorted_records() {
        let round = |records, reads, reading_s, service_s| {
            let mut round = Round::of_service(1, records, service_s);
            (round.reads, round.reading_s) = (Some(reads), Some(reading_s));
            round
        };
        let (sample, sorted) = (round(10.0, 1.0, 20.0, 25.0), round(1000.0, 0.5, 100.0, 130.0));
        assert_eq!(least_s(&sample, &sorted), Some(2.0 * 500.0 + 30.0));
        assert_eq!(least_s(&Round::of_service(1, 1.0, 1.0), &sorted), None);
    }
}
