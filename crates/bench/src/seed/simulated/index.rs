//! Measures an index that is written between sorted records, after them, and only once from memory,
//! on a simulated spinning drive.
//!
//! Text 003: the writes of an index between the records move the arm away from them, so that both
//! take far more than the sum of both alone. Small data therefore belongs into a cache of the
//! application, and is not synced in between.

use haul_measure::{Result, Watcher};

use super::super::preset;
use crate::contest::{Contest, Field, Figure, Outcome, Stage, columns};
use crate::host::Host;
use crate::options::{count, file_size, rounds};
use crate::random_write::{
    Cell, Index, Method, Options as WriteOptions, Round, Shape, SimulatedDrive, Strategy,
};
use crate::report::{Column, Ratio, Report, Samples};
use crate::simulated::Drive;

/// Options of `haul bench seed index`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Model of the simulated drive
    #[arg(long, value_name = "NAME", default_value = "deskstar-7k1000.c")]
    pub drive: Drive,
    /// Number of records of 100 B
    #[arg(long, value_name = "N", default_value = "4000", value_parser = count(1..=100_000_000))]
    pub records: usize,
    /// Number of records that are sorted, written and synced together
    #[arg(long, value_name = "N", default_value = "1000", value_parser = count(1..=100_000_000))]
    pub batch: usize,
    /// Length of the file that they are written to
    #[arg(long = "bytes", value_name = "SIZE", default_value = "1GiB", value_parser = file_size)]
    pub file_size: u64,
    /// Length of the index, which gets an entry of 64 B for each record
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = file_size)]
    pub index_size: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

/// The place of the index entries.
const MODES: [Index; 5] =
    [Index::None, Index::Alone, Index::Mixed, Index::Separate, Index::InMemory];

const BAR: &str = "service_s";

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("index", "index", |strategy| strategy.index.into()),
    Field::median(Column::number("records", "records", 0).ranked(1), |round| Some(round.records)),
    Field::spread(Column::number("service_s", "service s", 2), 5, service_s),
    Field::median(Column::number("seeks", "seeks", 3), |round| round.seeks),
    Field::median(Column::number("travel_cylinders", "cylinders", 0).ranked(4), |round| {
        round.travel_cylinders
    }),
    Field::median(Column::number("reads", "reads", 3).ranked(2), |round| round.reads),
    Field::median(Column::number("writes", "writes", 3).ranked(2), |round| round.writes),
    Field::median(Column::number("syncs", "syncs", 4).ranked(3), |round| round.syncs),
];

fn service_s(round: &Round) -> Option<f64> {
    round.service_s
}

fn seeks(round: &Round) -> Option<f64> {
    round.seeks
}

/// Runs the experiment. The simulated disk is removed when this returns, and also when the process
/// is killed.
///
/// # Errors
/// Returns [`crate::Error::Missing`] without root or FUSE, [`crate::Error::Cancelled`] if the
/// watcher cancels, and an error if bytes differ from those written.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let Options { records, batch, file_size, index_size, rounds, .. } = *options;
    let write: WriteOptions = preset("random-write --record-size 100 --shapes records", None)?;
    let write = WriteOptions { records, file_size, index_size, batches_max: records, ..write };
    let mut report = Report::new("seed index", Host::here(), columns(FIELDS), BAR);
    report.notes.push(options.note());
    report.seed = Some(write.seed);
    watcher.step(0, 1, "writing the files");
    let mut disk = SimulatedDrive::new(&write, &options.drive, watcher)?;
    let cell = |index| Cell { shape: Shape::Records, method: Method::Sorted, index, batch };
    let mut contest = Contest::new(FIELDS, MODES.map(|index| Strategy::of(cell(index))));
    contest.run(&Stage::only(rounds, watcher), |strategy| {
        let Some(cell) = strategy.cell else { return Outcome::skipped("") };
        disk.measure(&write, cell, watcher).map(Outcome::Measured)
    })?;
    let table = format!("{} (simulated), ext4", options.drive.name());
    contest.report(&mut report, &table, |_| String::new());
    add_ratios(&contest, &mut report);
    Ok(report)
}

fn add_ratios(contest: &Contest<Strategy, Round>, report: &mut Report) {
    let figures: [(&str, Figure<Round>); 2] = [("", service_s), ("_seeks", seeks)];
    for (suffix, of) in figures {
        let samples = |index: Index| {
            let entry = contest.entries.iter().find(|it| it.strategy.index == index.name());
            entry?.samples(of)
        };
        let [data, alone, mixed, apart, in_memory] = MODES.map(samples);
        let sum = data.zip(alone).map(|(data, alone)| {
            let both = data.rounds.iter().zip(alone.rounds.values());
            let rounds = both.map(|((number, data), alone)| (*number, data + alone)).collect();
            Samples { name: "the sum of both alone".to_owned(), rounds }
        });
        for (name, dividend, divisor) in [
            ("mixed_vs_sum", &mixed, &sum),
            ("apart_vs_sum", &apart, &sum),
            ("mixed_vs_apart", &mixed, &apart),
            ("mixed_vs_in_memory", &mixed, &in_memory),
        ] {
            let both = dividend.clone().zip(divisor.clone());
            let ratio = both.and_then(|(dividend, divisor)| Ratio::of(dividend, divisor));
            report.ratio(format!("{name}{suffix}"), ratio);
        }
    }
}

impl Options {
    fn note(&self) -> String {
        let Self { records, batch, file_size, index_size, rounds, .. } = self;
        format!(
            "{records} records of 100 B at random offsets of a file of {} MiB, sorted in batches \
             of {batch}, which are durable before the next one begins; an entry of 64 B for each \
             at a random place of an index of {} MiB; cold caches; {rounds} interleaved rounds by \
             the clock of the simulated drive (service). Index: \"no\" writes the records, \
             \"alone\" the entries and syncs each batch, \"mixed\" each entry after its record, \
             \"apart\" the entries of a batch after its records, \"in memory\" the entries once \
             and sorted, after all batches. Seeks, reads, writes and syncs are per record. A ratio \
             is the time of the first divided by that of the second, with \"_seeks\" their seeks; \
             sum is that of \"no\" and \"alone\". The text has no figure: mixed takes far more \
             than the sum (above 1).",
            file_size >> 20,
            index_size >> 20,
        )
    }
}
