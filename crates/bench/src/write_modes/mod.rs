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
mod prepare;
mod table;
pub(crate) mod target_fs;
mod virtual_disk;

use std::path::PathBuf;
use std::time::Duration;

use haul_measure::{Error, Result, Watcher, turns};
use haul_units::parse_time;

use measure::{Limits, Measurement, trace_record};
use modes::{Cell, cells};
pub use modes::{Modes, Preparation, Sync};
pub use virtual_disk::VirtualDisk;

use crate::benchmark::Benchmark;
use crate::contest::{Stage, new_report};
use crate::options::{rounds, size_in};
use crate::report::Report;
use crate::setting::Setting;
use crate::trace::{REQUESTS, Tracing};
use table::{FIELDS, Strategy, add_journal_cost, add_ratios, contest};
use target_fs::TargetFs;

/// The benchmark `write-modes`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct WriteModesBench {
    /// Directory for the test files and the images of virtual disks
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Measure new file systems in image files, in the same rounds: ext4, ext4-nojournal, xfs, btrfs
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
    #[arg(value_parser = size_in(1..=16 << 20, "1 B to 16MiB"))]
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
    /// Take the write cache of the virtual disks as protected, as with a battery
    #[arg(long, requires = "virtual_disk")]
    pub protected_cache: bool,
    /// Write the lines of the kernel's block trace of one record of each mode to FILE
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// A file system, and the block trace of its device.
struct Place {
    fs: TargetFs,
    tracing: Option<Tracing>,
    _protected_cache: Option<Setting>,
}

impl WriteModesBench {
    fn places(&self, cells: &[Cell], report: &mut Report) -> Result<Vec<Place>> {
        let longest = cells.iter().map(|cell| cell.file_bytes(self.records)).max().unwrap_or(0);
        let all = TargetFs::all(&self.virtual_disk, &self.dir, longest)?;
        let mut places = Vec::new();
        for fs in all {
            let protected = self.protected_cache.then(|| fs.set("write_cache", "write through"));
            let tracing = fs.tracing(REQUESTS).map_err(|why| {
                report.notes.push(format!(
                    "{}: writes are not attributed, which needs root and the kernel's tracing: {}.",
                    fs.name,
                    haul_disk::error_chain(&why)
                ));
            });
            report.host.storage.push(fs.facts.clone());
            let _protected_cache = protected.transpose()?.flatten();
            places.push(Place { fs, tracing: tracing.ok(), _protected_cache });
        }
        Ok(places)
    }
}

impl Benchmark for WriteModesBench {
    const NAME: &'static str = "write-modes";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let cells = cells(&self.modes, &self.sizes);
        let rounds = u32::try_from(self.rounds).unwrap_or(u32::MAX).max(1);
        let limits = Limits { records: self.records, time: self.seconds_per_row / rounds };
        let mut report = new_report(Self::NAME, FIELDS, note(self));
        let places = self.places(&cells, &mut report)?;
        let mut contests: Vec<_> = places.iter().map(|_| contest(&cells)).collect();
        let stage = Stage::only(self.rounds, watcher);
        for turn in turns(self.rounds, places.len() * cells.len()) {
            let (which, cell) = (turn.which / cells.len(), cells[turn.which % cells.len()]);
            let Place { fs, tracing, .. } = &places[which];
            stage.step(turn, &format!("{}: {cell}", fs.name))?;
            let on = Measurement { place: fs, tracing: tracing.as_ref(), limits, watcher };
            for (pass, outcome) in (1..).zip(on.passes(&cell)?) {
                contests[which].record_of(&Strategy { cell, pass }, outcome);
            }
        }
        for (Place { fs, .. }, contest) in places.iter().zip(&contests) {
            contest.report(&mut report, &fs.name, |Strategy { cell, pass }| {
                format!("{} {} {pass}", cell.sync, cell.record_bytes)
            });
            let prefix = if places.len() > 1 { format!("{}_", fs.name) } else { String::new() };
            add_ratios(contest, &prefix, &mut report);
        }
        let contest_on = |disk: VirtualDisk| {
            let at = places.iter().position(|place| place.fs.name == disk.name())?;
            Some(&contests[at])
        };
        let ext4 = contest_on(VirtualDisk::Ext4).zip(contest_on(VirtualDisk::Ext4NoJournal));
        if let Some((with, without)) = ext4 {
            add_journal_cost(with, without, &mut report);
        }
        if let Some(file) = &self.trace {
            let modes = places.iter().flat_map(|it| cells.iter().map(move |cell| (&it.fs, cell)));
            let lines =
                modes.map(|(fs, cell)| trace_record(fs, cell)).collect::<Result<String>>()?;
            let what = format!("write the trace to {}", file.display());
            std::fs::write(file, lines).map_err(Error::other(what))?;
        }
        Ok(report)
    }
}

fn note(options: &WriteModesBench) -> String {
    let WriteModesBench { rounds, records, .. } = options;
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
mod tests {
    use super::measure::Pass;
    use super::*;
    use crate::contest::Outcome;
    use crate::trace::Traffic;

    const CELL: Cell =
        Cell { sync: Sync::Fdatasync, record_bytes: 4096, preparation: Preparation::Append };

    fn pass(records: u64, us: u64, journal_writes: u64) -> Outcome<Pass> {
        let mut traffic = Traffic::default();
        traffic.journal.writes = journal_writes;
        let mut pass = Pass { records, traffic: Some(traffic), ..Pass::default() };
        (0..records).for_each(|_| pass.latencies.record(Duration::from_micros(us)));
        Outcome::Measured(pass)
    }

    #[test]
    fn ratios_are_of_pages_in_the_first_pass() {
        let recycled = Cell { preparation: Preparation::Recycled, ..CELL };
        let mut contest = contest(&[CELL, recycled, Cell { record_bytes: 512, ..CELL }]);
        contest.record(0, pass(2, 300, 5));
        contest.record(1, pass(2, 100, 0));
        contest.record(2, pass(1, 7, 9));
        contest.record(4, pass(1, 7, 9));
        let mut report = new_report("write-modes", FIELDS, String::new());
        add_ratios(&contest, "", &mut report);
        report.assert_ratios(&[
            ("recycled_vs_append_fdatasync_4k", 3.0),
            ("journal_writes_per_record_recycled_4k", 0.0),
            ("journal_writes_per_record_append_4k", 2.5),
        ]);
    }
}
