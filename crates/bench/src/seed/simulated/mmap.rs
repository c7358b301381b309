//! Writes random pages through a mapping and `msync`, and with `pwrite` and `fdatasync`, on a
//! simulated spinning drive and on the disk of a directory.
//!
//! Text 000 sets mappings aside for durable writes. A page that is stored through a mapping must be
//! in memory, so that the kernel reads each page before its first byte is stored.

use std::path::PathBuf;

use haul_disk::probe;
use haul_measure::{Result, Watcher};

use super::super::{preset, require_space};
use crate::contest::{Contest, Outcome, Stage, columns};
use crate::host::Host;
use crate::options::{count, file_size, rounds};
use crate::random_write::{
    BAR, Cell, Disk, DriveOrNone, FIELDS, Index, Method, Options as WriteOptions, Round, Shape,
    SimulatedDrive, Strategy, per_s,
};
use crate::report::Report;

/// Options of `haul bench seed mmap`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory on a real disk to measure too
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Model of the simulated drive, or "none"
    #[arg(long, value_name = "NAME", default_value = "deskstar-7k1000.c")]
    pub drive: DriveOrNone,
    /// Number of pages of 4 KiB to write and sync together
    #[arg(long, value_name = "N", default_value = "5000", value_parser = count(1..=10_000_000))]
    pub pages: usize,
    /// Length of the file that they are written to
    #[arg(long = "bytes", value_name = "SIZE", default_value = "1GiB", value_parser = file_size)]
    pub file_size: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

/// The methods, in the order of the rows.
const METHODS: [Method; 4] = [Method::Random, Method::Mapped, Method::Sorted, Method::SortedMapped];

/// The length of the index, which this experiment does not write.
const INDEX_BYTES: u64 = 1 << 20;

/// Runs the experiment. The simulated disk and the files are removed when this returns, and also
/// when the process is killed.
///
/// # Errors
/// Returns [`crate::Error::Missing`] without root or FUSE for a simulated drive,
/// [`crate::Error::Cancelled`] if the watcher cancels, and an error if bytes differ from those
/// written.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let Options { pages: records, file_size, rounds, .. } = *options;
    let write: WriteOptions = preset("random-write --shapes pages", None)?;
    let write = WriteOptions { records, file_size, index_size: INDEX_BYTES, ..write };
    let mut report = Report::new("seed mmap", Host::here(), columns(FIELDS), BAR);
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    report.seed = Some(write.seed);
    watcher.step(0, 1, "writing the files");
    let of = usize::from(options.drive.0.is_some()) + usize::from(options.dir.is_some());
    let stage = |number| Stage { name: "", number, of, rounds, watcher };
    if let Some(drive) = &options.drive.0 {
        let mut disk = SimulatedDrive::new(&write, drive, watcher)?;
        let table = format!("{} (simulated), ext4", drive.name());
        measure(&mut report, &table, "simulated", records, &stage(0), |cell| {
            disk.measure(&write, cell, watcher)
        })?;
    }
    if let Some(dir) = &options.dir {
        require_space(dir, file_size)?;
        report.host = report.host.with_storage("", &probe(dir)?);
        let mut disk = Disk::new(&write, dir, watcher)?;
        let table = format!("disk, {}", disk.storage.file_system);
        measure(&mut report, &table, "disk", records, &stage(of - 1), |cell| {
            disk.measure(&write, cell, watcher)
        })?;
    }
    Ok(report)
}

/// Measures all methods on one disk, and adds their rows and ratios.
fn measure(
    report: &mut Report,
    table: &str,
    prefix: &str,
    batch: usize,
    stage: &Stage<'_>,
    mut measure: impl FnMut(Cell) -> Result<Round>,
) -> Result<()> {
    let cell = |method| Cell { shape: Shape::Pages, method, index: Index::None, batch };
    let mut contest = Contest::new(FIELDS, METHODS.map(|method| Strategy::of(cell(method))));
    contest.run(stage, |strategy| {
        let Some(cell) = strategy.cell else { return Outcome::skipped("") };
        measure(cell).map(Outcome::Measured)
    })?;
    contest.report(report, table, |_| String::new());
    let [pwrite, mapped, sorted, sorted_mapped] = &contest.entries[..] else { return Ok(()) };
    for (name, a, b) in [
        ("pwrite_vs_mmap", pwrite, mapped),
        ("sorted_pwrite_vs_sorted_mmap", sorted, sorted_mapped),
        ("sorted_mmap_vs_mmap", sorted_mapped, mapped),
        ("sorted_pwrite_vs_pwrite", sorted, pwrite),
    ] {
        report.ratio(format!("{prefix}_{name}"), a.ratio(b, per_s));
    }
    let reads = |round: &Round| round.reads;
    report.amount(format!("{prefix}_reads_per_mapped_page"), mapped.samples(reads));
    report.amount(format!("{prefix}_reads_per_written_page"), pwrite.samples(reads));
    Ok(())
}

impl Options {
    fn note(&self) -> String {
        let Self { pages, file_size, rounds, .. } = self;
        format!(
            "{pages} pages of 4 KiB at random places of a file of {} MiB that was written before, \
             all durable at the end; cold caches; {rounds} interleaved rounds. \"mapped\" copies \
             the pages into a shared mapping and ends with msync, the others call pwrite and end \
             with fdatasync; \"sorted\" begins with the lowest offset. Rates on the simulated \
             drive are by its own clock. Requests, bytes, syncs and seeks are per page; those of \
             the disk include other programs. A ratio \"a_vs_b\" is the rate of a divided by that \
             of b. The text: mappings are set aside, without a figure.",
            file_size >> 20,
        )
    }
}
