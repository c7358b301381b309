//! Measures the latencies and device requests of several modes of writing records durably.
//!
//! A log, a queue and a database write a record, sync it, and write the next one. The cost depends
//! on the preparation of the file ([`Preparation`]) and on the sync ([`Sync`]). This benchmark
//! measures every combination (a mode) on a real file system. It times each record and counts the
//! requests to the device per record, in two ways: with the counters of the device, and with the
//! kernel's block trace, which separates the program's writes from those of the journal and of
//! other programs.
//!
//! Each file is written twice; the second pass overwrites blocks that the first pass has written.
//!
//! # Sources
//! \[Weil15\] on recycled files, \[WriteZeroes25\] on files zeroed by the device, \[PgTestFsync\]
//! on the layout of the table.

mod measure;
mod modes;
mod passes;
mod prepare;
mod ratios;
mod table;
pub(crate) mod target_fs;
pub(crate) mod timeline;
mod virtual_disk;

use std::path::PathBuf;
use std::time::Duration;

use haul_measure::{Result, Watcher};
use haul_units::parse_time;

pub(crate) use measure::{Limits, Pass, Writer};
pub(crate) use modes::Cell;
pub use modes::{Modes, Preparation, Sync};
pub(crate) use passes::{Strategy, measure_on, measure_passes};
pub(crate) use prepare::{LOG, OLD, prepare, remove};
pub use virtual_disk::VirtualDisk;

use crate::contest::{Stage, columns};
use crate::fio::{self, Checker};
use crate::host::Host;
use crate::options::{rounds, size};
use crate::report::Report;
use modes::cells;
use ratios::add_ratios;
use table::{BAR, FIELDS};
use target_fs::TargetFs;

/// Options of `haul bench write-modes`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test files and the images of virtual disks
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Measure new file systems in image files: ext4, ext4-nojournal, xfs, btrfs
    ///
    /// Also ext4-ordered, ext4-writeback and ext4-journal, by the mount option data of ext4.
    /// The images are in DIR, whose file system is then not measured. Needs root. No other program
    /// uses these virtual disks, so counts are exact. Each request also passes the file system of
    /// DIR, so times on virtual disks are comparable only with each other.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub virtual_disk: Vec<VirtualDisk>,
    /// Measure only these preparations, syncs or combinations [default: all]
    ///
    /// Such as append,recycled+fdatasync: all syncs of the preparation append, and the preparation
    /// recycled with the sync fdatasync.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<Modes>,
    /// Record lengths, 1 B to 16MiB; each length is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "512,4KiB,64KiB")]
    #[arg(value_parser = record_size)]
    pub sizes: Vec<u64>,
    /// Maximum number of records written in one pass over a file
    #[arg(long, value_name = "N", default_value = "64")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub records: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Maximum duration of all rounds of a row; slow disks write fewer records
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    pub seconds_per_row: Duration,
    /// Also run the command lines of fio in the column fio, and show its figures
    ///
    /// The column has for each row that fio can measure the command for the same work. FILE stands
    /// for the file. Without this option, fio is not run.
    #[arg(long, value_name = "PROGRAM")]
    pub check_with: Option<Checker>,
}

fn record_size(text: &str) -> Result<u64, String> {
    size(text, 1..=16 << 20, "1 B to 16MiB")
}

/// Runs the benchmark. All files are removed when this returns, and also when the process is
/// killed.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and an error if the disk is full or
/// a virtual disk cannot be created. Without root there is no trace, which the report notes; this
/// is no error.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let cells = cells(&options.modes, &options.sizes);
    let rounds = u32::try_from(options.rounds).unwrap_or(u32::MAX).max(1);
    let limits = Limits { records: options.records, time: options.seconds_per_row / rounds };
    let mut report = Report::new("write-modes", Host::here(), columns(FIELDS), BAR);
    report.notes.push(note(options));
    let of = options.virtual_disk.len().max(1);
    for number in 0..of {
        watcher.check()?;
        let place = match options.virtual_disk.get(number) {
            None => TargetFs::below(&options.dir, &[LOG, OLD])?,
            Some(kind) => {
                let longest = cells.iter().map(|cell| cell.file_bytes(options.records)).max();
                TargetFs::on_virtual_disk(*kind, &options.dir, longest.unwrap_or(0))?
            }
        };
        let stage = Stage { name: &place.name, number, of, rounds: options.rounds, watcher };
        let contest = measure_on(&place, &stage, FIELDS, &cells, &|_| limits, &mut report)?;
        contest.report(&mut report, &place.name, |Strategy { cell, pass }| {
            format!("{} {} {pass}", cell.sync, cell.record_bytes)
        });
        report.host.storage.push(place.facts.clone());
        let prefix = if of > 1 { format!("{}_", place.name) } else { String::new() };
        add_ratios(&contest, &prefix, &mut report);
    }
    if options.check_with.is_some() && options.virtual_disk.is_empty() {
        fio::check(&mut report, fio::Figure::OperationsPerSecond, &options.dir, watcher)?;
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { rounds, records, .. } = options;
    let device = if options.virtual_disk.is_empty() {
        " The counters, metadata and others include other programs."
    } else {
        ""
    };
    format!(
        "{rounds} interleaved rounds of up to {records} records. Numbers are medians of the rounds, \
         p99 is that of all records. From \"B written\" on they are per record: the device's \
         counters (B written, syncs, reads, requests) and the block trace (writes: of the measured \
         thread; journal; metadata outside of it; others; FUA). Pass 2 overwrites the file. \
         direct-dsync pads records to 4,096 B. \"-\" was not measured. A ratio \"a_vs_b\" is the \
         median latency of b divided by that of a, in the first pass unless it names another.{device}"
    )
}

#[cfg(test)]
pub(super) mod tests {
    use haul_disk::DeviceCounters;

    use super::passes::contest;
    use super::*;
    use crate::contest::{Contest, Outcome};
    use crate::trace::Traffic;

    pub(super) const CELL: Cell =
        Cell { sync: Sync::Fdatasync, record_bytes: 4096, preparation: Preparation::Append };

    pub(super) fn pass(records: u64, us: u64, journal: Option<u64>) -> Outcome<Pass> {
        let mut pass =
            Pass { records, time: Duration::from_micros(us * records), ..Pass::default() };
        (0..records).for_each(|_| pass.latencies.record(Duration::from_micros(us)));
        pass.counters = Some(DeviceCounters { writes: 2 * records, ..DeviceCounters::default() });
        pass.traffic = journal.map(|writes| {
            let mut traffic = Traffic::default();
            traffic.journal.writes = writes;
            traffic
        });
        Outcome::Measured(pass)
    }

    pub(super) fn report(contest: &Contest<Strategy, Pass>) -> Report {
        let mut report = Report::new("write-modes", Host::default(), columns(FIELDS), BAR);
        contest.report(&mut report, "ext4", |_| String::new());
        report
    }

    #[test]
    fn counts_are_per_record_and_medians_of_the_rounds() {
        let mut contest = contest(FIELDS, &[CELL]);
        for (records, us, journal) in [(10, 100, 30), (20, 1000, 60), (10, 200, 31)] {
            contest.record(1, pass(records, us, Some(journal)));
        }
        let report = report(&contest);
        for (key, expected) in [
            ("median_us", 200.0),
            ("p99_us", 1000.0),
            ("records_per_s", 5000.0),
            ("records_per_s_max", 10000.0),
            ("device_write_requests", 2.0),
            ("journal_writes", 3.0),
            ("records", 40.0),
            ("pass", 2.0),
        ] {
            let got = report.value(&report.rows[1], key).unwrap().number().unwrap();
            assert!((got / expected - 1.0).abs() < 2e-3, "{key}: {got}");
        }
    }

    #[test]
    fn round_without_a_trace_has_no_journal_writes() {
        let mut contest = contest(FIELDS, &[CELL]);
        contest.record(0, pass(10, 100, Some(30)));
        contest.record(0, pass(10, 100, None));
        contest.record(1, Outcome::Skipped("not supported".to_owned()));
        let report = report(&contest);
        let number = |key| report.value(&report.rows[0], key).unwrap().number();
        assert_eq!(number("journal_writes"), None);
        assert_eq!(number("device_write_requests"), Some(2.0));
        assert_eq!(report.rows[1].state.as_deref(), Some("not supported"));
    }
}
