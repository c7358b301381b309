//! Measures durable records on ext4 with a journal and without it, in the same rounds.
//!
//! Text 000 finds no difference: 15.56 s with a journal, 15.63 s without. The two file systems are
//! on virtual disks in the same directory, so that the drift of the machine cancels out in the
//! ratio of each round.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use haul_measure::{Result, Watcher, turns};

use super::{compare, require_space};
use crate::contest::{Contest, Field, Stage, columns};
use crate::host::Host;
use crate::options::rounds;
use crate::report::{Column, Report};
use crate::write_modes::target_fs::TargetFs;
use crate::write_modes::{Cell, Limits, Pass, Preparation, Sync, VirtualDisk, measure_passes};

/// Options of `haul bench seed journal`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the images of the two virtual disks
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Number of records of 4 KiB that are written in one pass over a file
    #[arg(long, value_name = "N", default_value = "64")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub records: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "15", value_parser = rounds())]
    pub rounds: usize,
}

const DISKS: [VirtualDisk; 2] = [VirtualDisk::Ext4, VirtualDisk::Ext4NoJournal];
const PREPARATIONS: [Preparation; 2] = [Preparation::Append, Preparation::ZeroRange];
const SYNCS: [Sync; 2] = [Sync::Fdatasync, Sync::Fsync];
const PASSES: [usize; 2] = [1, 2];
const RECORD_BYTES: u64 = 4096;

/// The space of the metadata and the journal of both virtual disks.
const SPACE_BYTES: u64 = 256 << 20;

/// A virtual disk, and a mode of writing a file on it, in one of the passes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    disk: VirtualDisk,
    cell: Cell,
    pass: usize,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, pass {}", self.disk, self.cell, self.pass)
    }
}

const BAR: &str = "median_us";

const FIELDS: &[Field<Strategy, Pass>] = &[
    Field::label("sync", "sync", |strategy| strategy.cell.sync.name().into()),
    Field::label("way", "preparation", |strategy| strategy.cell.preparation.name().into()),
    Field::parameter(Column::number("pass", "pass", 0), |strategy| (strategy.pass as f64).into()),
    Field::label("disk", "file system", |strategy| strategy.disk.name().into()),
    Field::spread(Column::number("median_us", "µs", 1), 4, median_us),
    Field::median(Column::number("journal_writes", "journal", 2), |pass| {
        pass.each(pass.traffic?.journal.writes)
    }),
    Field::median(Column::number("metadata_writes", "metadata", 2).ranked(1), |pass| {
        pass.each(pass.traffic?.metadata.writes)
    }),
    Field::median(Column::number("device_syncs", "syncs", 2), |pass| {
        pass.each(pass.counters?.syncs)
    }),
];

fn median_us(pass: &Pass) -> Option<f64> {
    pass.latencies.percentile_us(50.0)
}

/// Runs the experiment. The virtual disks are removed when this returns, and also when the process
/// is killed.
///
/// # Errors
/// Returns [`crate::Error::Missing`] without root or space, [`crate::Error::Cancelled`] if the
/// watcher cancels, and the errors of the disk.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let file_bytes = options.records * RECORD_BYTES;
    require_space(&options.dir, SPACE_BYTES + 8 * file_bytes)?;
    let mut report = Report::new("seed journal", Host::here(), columns(FIELDS), BAR);
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    let mut places = Vec::new();
    for disk in DISKS {
        let place = TargetFs::on_virtual_disk(disk, &options.dir, file_bytes)?;
        report.host.storage.push(place.facts.clone());
        let tracing = place.tracing().ok();
        places.push((disk, place, tracing));
    }
    let mut contest = Contest::new(FIELDS, strategies());
    let measured: Vec<_> =
        places.iter().flat_map(|place| cells().map(move |cell| (place, cell))).collect();
    let stage = Stage::only(options.rounds, watcher);
    let limits = Limits { records: options.records, time: Duration::MAX };
    for turn in turns(options.rounds, measured.len()) {
        let (place, cell) = measured[turn.which];
        let (disk, place, tracing) = place;
        stage.step(turn, &format!("{disk}: {cell}"))?;
        let passes = measure_passes(place, &cell, limits, tracing.as_ref(), watcher)?;
        for (pass, outcome) in PASSES.into_iter().zip(passes) {
            let strategy = Strategy { disk: *disk, cell, pass };
            let which = contest.entries.iter().position(|entry| entry.strategy == strategy);
            if let Some(which) = which {
                contest.record(which, outcome);
            }
        }
    }
    contest.report(&mut report, "", |it| format!("{}, {}", it.cell, it.pass));
    add_ratios(&contest, &mut report);
    Ok(report)
}

fn cells() -> impl Iterator<Item = Cell> {
    let of = |sync| {
        PREPARATIONS.map(|preparation| Cell { sync, record_bytes: RECORD_BYTES, preparation })
    };
    SYNCS.into_iter().flat_map(of)
}

/// Returns all strategies; those that differ only in the journal are adjacent.
fn strategies() -> impl Iterator<Item = Strategy> {
    cells().flat_map(|cell| {
        PASSES.into_iter().flat_map(move |pass| DISKS.map(|disk| Strategy { disk, cell, pass }))
    })
}

/// Adds the latency with a journal divided by that without it, for each mode and pass.
fn add_ratios(contest: &Contest<Strategy, Pass>, report: &mut Report) {
    for with in strategies().filter(|it| it.disk == VirtualDisk::Ext4) {
        let without = Strategy { disk: VirtualDisk::Ext4NoJournal, ..with };
        let Cell { sync, preparation, .. } = with.cell;
        let mut name = format!("nojournal_vs_journal_{preparation}_{sync}").replace('-', "_");
        if with.pass > 1 {
            name += "_second";
        }
        report.ratio(name, contest.ratio(&with, &without, median_us));
    }
    compare(report, "", &[("nojournal_vs_journal_zero_range_fsync", 15.56 / 15.63)]);
}

impl Options {
    fn note(&self) -> String {
        format!(
            "New ext4 file systems on two virtual disks, one without a journal; {} interleaved \
             rounds of {} records of 4 KiB, each synced. Pass 2 overwrites the file. µs is the \
             median latency of a record; journal, metadata and syncs are requests per record. A \
             ratio is the latency with a journal divided by that without it, in the first pass \
             unless its name ends with \"second\". The text: 15.56 s with a journal, 15.63 s \
             without.",
            self.rounds, self.records,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Outcome;

    #[test]
    fn ratios_compare_the_same_mode_and_pass() {
        let mut contest = Contest::new(FIELDS, strategies());
        for which in 0..contest.entries.len() {
            let us = match contest.entries[which].strategy.disk {
                VirtualDisk::Ext4 => 300,
                _ => 100,
            };
            let mut pass = Pass::default();
            pass.latencies.record(Duration::from_micros(us));
            contest.record(which, Outcome::Measured(pass));
        }
        let mut report = Report::new("seed journal", Host::default(), columns(FIELDS), BAR);
        add_ratios(&contest, &mut report);
        assert_eq!(report.ratios.len(), 8);
        for (name, ratio) in &report.ratios {
            assert!((ratio.value - 3.0).abs() < 0.01, "{name}: {ratio}");
        }
        assert!(report.ratios.contains_key("nojournal_vs_journal_zero_range_fsync"));
        assert!(report.ratios.contains_key("nojournal_vs_journal_append_fdatasync_second"));
    }
}
