//! Repeats the test program of the first text: a file of 1 GiB, written twice in records of 4 KiB,
//! for each preparation of the file and each sync of a record.
//!
//! Text 000 compares a growing, a reserved and a filled file, with and without `fsync`, and with
//! and without a journal of ext4.

use std::path::PathBuf;
use std::time::Duration;

use haul_measure::{Result, Watcher};

use super::{compare, require_space};
use crate::contest::{Contest, Field, Stage, columns};
use crate::host::Host;
use crate::options::{rounds, size};
use crate::report::{Column, Ratio, Report};
use crate::write_modes::target_fs::TargetFs;
use crate::write_modes::{
    Cell, LOG, Limits, OLD, Pass, Preparation, Strategy, Sync, VirtualDisk, measure_on,
};

/// Options of `haul bench seed fill`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test file and the images of virtual disks
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Measure new file systems in image files: ext4, ext4-nojournal, xfs, btrfs
    ///
    /// Also ext4-ordered, ext4-writeback and ext4-journal, by the mount option data of ext4. The
    /// images are in DIR, whose file system is then not measured. Needs root.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub virtual_disk: Vec<VirtualDisk>,
    /// Length of the file in rows without a sync
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = length)]
    pub bytes: u64,
    /// Length of the file in rows with a sync of each record, at most --bytes
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = length)]
    pub synced_bytes: u64,
    /// Write 1 GiB in all rows, as the text does; hours on a slow disk
    #[arg(long)]
    pub whole: bool,
    /// Length of a record, such as 512
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = record_size)]
    pub record: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "3", value_parser = rounds())]
    pub rounds: usize,
    /// Treat the write cache of virtual disks as protected from power cuts
    ///
    /// The kernel then never requests that the device empties its write cache, as on a controller
    /// with a battery.
    #[arg(long, requires = "virtual_disk")]
    pub protected_cache: bool,
}

fn length(text: &str) -> Result<u64, String> {
    size(text, 4 << 10..=1 << 40, "4KiB to 1TiB")
}

fn record_size(text: &str) -> Result<u64, String> {
    size(text, 1..=16 << 20, "1 B to 16MiB")
}

/// The length of the file in the text.
const TEXT_BYTES: u64 = 1 << 30;

/// The preparations and syncs that the text compares.
const PREPARATIONS: [Preparation; 4] =
    [Preparation::Append, Preparation::Fallocate, Preparation::ZeroRange, Preparation::Filled];
const SYNCS: [Sync; 5] =
    [Sync::Nothing, Sync::Fdatasync, Sync::Fsync, Sync::OpenDatasync, Sync::OpenSync];

/// A preparation, a sync and a pass.
type Mode = (Preparation, Sync, usize);

/// Ratios of two modes: the latency of the second mode divided by that of the first; with the ratio
/// of the times in the text.
const RATIOS: [(&str, Mode, Mode, f64); 7] = {
    use Preparation::{Append, Fallocate, Filled, ZeroRange};
    use Sync::{Fdatasync, Fsync, Nothing};
    [
        (
            "second_vs_first_zero_range_fsync",
            (ZeroRange, Fsync, 2),
            (ZeroRange, Fsync, 1),
            15.56 / 8.76,
        ),
        (
            "second_vs_first_zero_range_fdatasync",
            (ZeroRange, Fdatasync, 2),
            (ZeroRange, Fdatasync, 1),
            15.07 / 8.42,
        ),
        (
            "second_vs_first_zero_range_none",
            (ZeroRange, Nothing, 2),
            (ZeroRange, Nothing, 1),
            1.30 / 1.21,
        ),
        (
            "fdatasync_vs_fsync_zero_range",
            (ZeroRange, Fdatasync, 1),
            (ZeroRange, Fsync, 1),
            15.56 / 15.07,
        ),
        ("none_vs_fsync_zero_range", (ZeroRange, Nothing, 1), (ZeroRange, Fsync, 1), 15.56 / 1.30),
        ("filled_vs_append_fsync", (Filled, Fsync, 1), (Append, Fsync, 1), 16.92 / 4.03),
        ("fallocate_vs_append_fsync", (Fallocate, Fsync, 1), (Append, Fsync, 1), 16.92 / 13.47),
    ]
};

const BAR: &str = "s_per_gib";

const FIELDS: &[Field<Strategy, Pass>] = &[
    Field::label("sync", "sync", |strategy| strategy.cell.sync.name().into()),
    Field::parameter(Column::number("pass", "pass", 0), |strategy| (strategy.pass as f64).into()),
    Field::label("way", "preparation", |strategy| strategy.cell.preparation.name().into()),
    Field::spread(Column::number("s_per_gib", "s/GiB", 2), 7, s_per_gib),
    Field::median(Column::number("median_us", "µs", 1).ranked(4), median_us),
    Field::median(Column::number("data_writes", "writes", 2).ranked(2), |pass| {
        pass.each(pass.traffic?.data.writes)
    }),
    Field::median(Column::number("journal_writes", "journal", 2), |pass| {
        pass.each(pass.traffic?.journal.writes)
    }),
    Field::median(Column::number("journal_bytes", "journal B", 0).ranked(5), |pass| {
        pass.each(pass.traffic?.journal.bytes)
    }),
    Field::median(Column::number("metadata_writes", "metadata", 2).ranked(3), |pass| {
        pass.each(pass.traffic?.metadata.writes)
    }),
    Field::median(Column::number("device_syncs", "syncs", 2).ranked(1), |pass| {
        pass.each(pass.counters?.syncs)
    }),
    Field::median(Column::number("device_reads", "reads", 2).ranked(6), |pass| {
        pass.each(pass.counters?.reads)
    }),
    Field::median(Column::number("records", "records", 0).ranked(8), |pass| {
        Some(pass.records as f64)
    }),
];

/// Returns the time of the writes and syncs of a GiB.
fn s_per_gib(pass: &Pass) -> Option<f64> {
    Some(pass.time.as_secs_f64() * TEXT_BYTES as f64 / pass.bytes as f64)
}

fn median_us(pass: &Pass) -> Option<f64> {
    pass.latencies.percentile_us(50.0)
}

impl Options {
    /// Returns the length of the file in rows with this sync.
    fn bytes_of(&self, sync: Sync) -> u64 {
        match sync {
            _ if self.whole => TEXT_BYTES,
            Sync::Nothing => self.bytes,
            _ => self.synced_bytes.min(self.bytes),
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let record_bytes = self.record;
        let of = |sync| PREPARATIONS.map(|preparation| Cell { sync, record_bytes, preparation });
        SYNCS.into_iter().flat_map(of).collect()
    }

    fn limits(&self, cell: &Cell) -> Limits {
        let records = (self.bytes_of(cell.sync) / self.record).max(1);
        Limits { records, time: Duration::MAX }
    }

    fn note(&self) -> String {
        let cache = match self.protected_cache {
            true => " The kernel takes the write cache of the device as protected.",
            false => "",
        };
        format!(
            "{} interleaved rounds. Each file is written twice in records of {} B: {} MiB without \
             a sync, {:.2} MiB if each record is synced (the text: 1,024 MiB; --whole). s/GiB is \
             the time of all writes and syncs, converted to 1 GiB if less was written. Requests \
             are per record. Numbers are medians of the rounds. A ratio \"a_vs_b\" is the median \
             latency of b divided by that of a, which the stalls of a busy machine hardly \
             affect.{cache}",
            self.rounds,
            self.record,
            self.bytes_of(Sync::Nothing) >> 20,
            self.bytes_of(Sync::Fsync) as f64 / f64::from(1 << 20),
        )
    }
}

/// Runs the experiment. All files are removed when this returns, and also when the process is
/// killed.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, [`crate::Error::Missing`] if space
/// is missing or a virtual disk cannot be created, and the errors of the disk.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let longest = options.bytes_of(Sync::Nothing);
    require_space(&options.dir, 2 * longest)?;
    let cells = options.cells();
    let mut report = Report::new("seed fill", Host::here(), columns(FIELDS), BAR);
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    let of = options.virtual_disk.len().max(1);
    let mut fsync_us = Vec::new();
    for number in 0..of {
        let kind = options.virtual_disk.get(number).copied();
        let place = match kind {
            None => TargetFs::below(&options.dir, &[LOG, OLD])?,
            Some(kind) => TargetFs::on_virtual_disk(kind, &options.dir, longest)?,
        };
        let protected = || place.set("write_cache", "write through");
        let _setting = options.protected_cache.then(protected).transpose()?;
        let stage = Stage { name: &place.name, number, of, rounds: options.rounds, watcher };
        let limits = |cell: &Cell| options.limits(cell);
        let contest = measure_on(&place, &stage, FIELDS, &cells, &limits, &mut report)?;
        contest.report(&mut report, &place.name, |it| format!("{} {}", it.cell.sync, it.pass));
        report.host.storage.push(place.facts.clone());
        let prefix = if of > 1 { format!("{}_", place.name) } else { String::new() };
        add_ratios(&contest, options.record, &prefix, &mut report);
        let first = strategy((Preparation::ZeroRange, Sync::Fsync, 1), options.record);
        fsync_us.push((kind, contest.samples(&first, median_us)));
    }
    let of = |wanted| fsync_us.iter().find(|it| it.0 == Some(wanted))?.1.clone();
    let journal = of(VirtualDisk::Ext4).zip(of(VirtualDisk::Ext4NoJournal));
    if let Some((with, without)) = journal {
        const NAME: &str = "nojournal_vs_journal_zero_range_fsync";
        report.ratio(NAME, Ratio::of(with, without));
        compare(&mut report, "", &[(NAME, 15.56 / 15.63)]);
    }
    Ok(report)
}

fn strategy((preparation, sync, pass): Mode, record_bytes: u64) -> Strategy {
    Strategy { cell: Cell { sync, record_bytes, preparation }, pass }
}

fn add_ratios(contest: &Contest<Strategy, Pass>, record: u64, prefix: &str, report: &mut Report) {
    for (name, fast, slow, _) in RATIOS {
        let (fast, slow) = (strategy(fast, record), strategy(slow, record));
        report.ratio(format!("{prefix}{name}"), contest.ratio(&slow, &fast, median_us));
    }
    compare(report, prefix, &RATIOS.map(|(name, _, _, text)| (name, text)));
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn whole_rows_have_the_length_of_the_text() {
        let lengths = |line: &str| {
            let options = Options::parse_from(line.split(' '));
            [Sync::Nothing, Sync::Fsync].map(|sync| options.bytes_of(sync))
        };
        assert_eq!(lengths("fill --dir d"), [256 << 20, 1 << 20]);
        assert_eq!(lengths("fill --dir d --bytes 1MiB"), [1 << 20; 2]);
        assert_eq!(lengths("fill --dir d --whole"), [1 << 30; 2]);
    }

    #[test]
    fn time_is_converted_to_a_gib() {
        let pass = Pass { bytes: 1 << 28, time: Duration::from_secs(4), ..Pass::default() };
        assert_eq!(s_per_gib(&pass), Some(16.0));
    }
}
