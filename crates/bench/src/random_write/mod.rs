//! Measures batches of random writes with several methods, and page writes that are durable one by
//! one.
//!
//! Records of 100 B to 4 KiB are written to random offsets of a big file in batches of one to a
//! million. Each batch is durable before the next one begins. The writes are measured without an
//! index, and with an entry for each record in a small index file. Times on a simulated drive are
//! by the drive's own clock; times on a real disk are by the wall clock. Then many threads write
//! random pages, each durable when its call returns: with a page file
//! (`haul_sorted_write::PageFile`, which writes to a log first), with plain files that sync each
//! write, and with databases.
//!
//! # Sources
//! \[Coffman72\] on sweeps; `docs/random-writes.md` has the results.

mod disk;
mod drive;
mod files;
mod method;
mod options;
mod output;
mod pages;
mod records;
mod table;

use std::path::Path;
use std::str::FromStr;

use haul_disk::{error_chain, probe};
use haul_measure::{Error, Result, Watcher};

use crate::benchmark::Benchmark;
use crate::contest::{Contest, CountedRounds, Outcome, Stage, columns};
use crate::host::Host;
use crate::log::rivals::{PAGES, Rivals};
use crate::log::{Failure, Sample, Scratch, drive as drive_load};
use crate::memory_limit::MemoryLimit;
use crate::report::Report;
use crate::simulated::Drive;
use pages::Writer;
use table::{add_ratios_of_methods, add_ratios_of_pages};

use disk::Disk;
use drive::SimulatedDrive;
pub use method::Method;
pub use options::{DriveOrNone, RandomWriteBench};
pub use pages::Places;
pub use records::Shape;
use table::{BAR, FIELDS, Round, Strategy, per_s};

impl Benchmark for RandomWriteBench {
    const NAME: &'static str = "random-write";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let mut report = Report::new(Self::NAME, Host::here(), columns(FIELDS), BAR);
        if let Some(dir) = &self.dir {
            report.host = report.host.with_storage("", &probe(dir)?);
        }
        report.notes.push(note(self));
        report.seed = Some(self.seed);
        let _limit = self.memory_limit.map(MemoryLimit::new).transpose()?;
        let drives = self.drive.iter().filter_map(|drive| drive.0.as_ref());
        for (number, drive) in drives.enumerate() {
            let prefix = match number {
                0 => "spinning".to_owned(),
                _ => format!("spinning_{}", drive.name()),
            };
            measure_drive(self, drive, &prefix, watcher, &mut report)?;
        }
        if let Some(dir) = &self.dir {
            measure_dir(self, dir, watcher, &mut report)?;
        }
        Ok(report)
    }
}

fn note(options: &RandomWriteBench) -> String {
    let RandomWriteBench {
        records,
        batches_max,
        file_size,
        index_size,
        rounds,
        time_scale,
        seed,
        ..
    } = options;
    let (shortest, longest) = Shape::Records.bytes(options.record_size).into_inner();
    let lengths = match shortest == longest {
        true => shortest.to_string(),
        false => format!("{shortest} to {longest}"),
    };
    let limit = options.memory_limit.map_or(String::new(), |bytes| {
        format!("; at most {} MiB of memory, page cache included", bytes >> 20)
    });
    format!(
        "{records} records of {lengths} B, at most {batches_max} batches, at random offsets of a \
         file of {} MiB (seed {seed}), with an entry of 64 B each in an index of {} MiB; a batch is \
         durable before the next one begins; cold caches{limit}; {rounds} interleaved rounds, medians. \
         Times of simulated drives are by their own clock (service; time scale {time_scale}). \
         Requests, bytes, syncs and seeks are per record. \"bound\" is the least time of one sweep \
         that reads each unit written in part and one that writes all, without rotational latency \
         (docs/random-writes.md). Pages: rates include the final checkpoint, acknowledged rates do \
         not. A ratio \"a_vs_b\" is the rate of a divided by that of b.",
        file_size >> 20,
        index_size >> 20,
    )
}

/// Measures all methods and page writers on a simulated drive, and computes the lower bound of the
/// time for each batch length.
fn measure_drive(
    options: &RandomWriteBench,
    drive: &Drive,
    prefix: &str,
    watcher: &dyn Watcher,
    report: &mut Report,
) -> Result<()> {
    let name = drive.name();
    watcher.step(0, 1, &format!("{name}: writing the files"));
    let mut disk = SimulatedDrive::new(options, drive, watcher)?;
    let stage = Stage { name, ..Stage::only(options.rounds, watcher) };
    for shape in options.shapes.iter().copied() {
        let table = format!("{name} (simulated), ext4, {shape}");
        measure_shape(options, shape, &table, prefix, &stage, report, |strategy| {
            Ok(Outcome::Measured(match strategy.cell {
                Some(cell) => disk.measure(options, cell, watcher)?,
                None => disk.bound(options, shape, strategy.batch)?,
            }))
        })?;
    }
    for writers in &options.writers {
        // The writer `floor`, which writes contiguous pages, is left out: it is a bound only for
        // disks without rotational latency.
        let all = Writer::ALL.into_iter().filter(|writer| *writer != Writer::Floor);
        let names = all.map(|writer| Strategy::pages(writer.name()));
        let mut contest = Contest::new(FIELDS, names);
        contest.run(&stage, |strategy| {
            let writer = Writer::from_str(&strategy.name).map_err(Error::Missing)?;
            let round = disk.write_pages(options, writer, *writers).map_err(failed)?;
            Ok(Outcome::Measured(round))
        })?;
        contest.report(report, &format!("{name} (simulated), {}", pages_table(*writers)), group);
        add_ratios_of_pages(&format!("{prefix}_"), &contest, *writers, report);
    }
    Ok(())
}

/// Measures all methods with one shape of records in interleaved rounds.
fn measure_shape(
    bench: &RandomWriteBench,
    shape: Shape,
    table: &str,
    prefix: &str,
    stage: &Stage<'_>,
    report: &mut Report,
    mut measure: impl FnMut(&Strategy) -> Result<Outcome<Round>>,
) -> Result<()> {
    let mut all = Vec::new();
    for batch in bench.cells(shape).chunk_by(|a, b| a.batch == b.batch) {
        all.extend(batch.iter().copied().map(Strategy::of));
        all.push(Strategy::bound(batch[0].batch));
    }
    let mut contest = Contest::new(FIELDS, all);
    contest.run(stage, |strategy| measure(strategy))?;
    contest.entries.retain(|entry| !entry.is_skipped());
    contest.report(report, table, group);
    add_ratios_of_methods(&ratio_prefix(prefix, shape), &contest, report);
    Ok(())
}

/// Returns the row group of a strategy.
fn group(strategy: &Strategy) -> String {
    strategy.group.clone()
}

/// Returns the beginning of the names of ratios of a shape.
fn ratio_prefix(disk: &str, shape: Shape) -> String {
    match shape {
        Shape::Records => disk.to_owned(),
        Shape::Pages => format!("{disk}_pages"),
    }
}

/// Measures all methods and page writers on the disk of a directory.
fn measure_dir(
    options: &RandomWriteBench,
    dir: &Path,
    watcher: &dyn Watcher,
    report: &mut Report,
) -> Result<()> {
    watcher.step(0, 1, "writing the files");
    let mut disk = Disk::new(options, dir, watcher)?;
    let stage = Stage::only(options.rounds, watcher);
    for shape in options.shapes.iter().copied() {
        let table = format!("disk, {}, {shape}", disk.storage.file_system);
        measure_shape(options, shape, &table, "disk", &stage, report, |strategy| {
            let Some(cell) = strategy.cell else { return Outcome::skipped("") };
            disk.measure(options, cell, watcher).map(Outcome::Measured)
        })?;
    }
    drop(disk);
    for writers in &options.writers {
        let (contest, rounds) = measure_pages(options, dir, *writers, &stage)?;
        report.notes.push(rounds.note(&pages_table(*writers)));
        contest.report(report, &pages_table(*writers), group);
        add_ratios_of_pages("", &contest, *writers, report);
    }
    Ok(())
}

fn pages_table(writers: usize) -> String {
    format!("random pages of 4 KiB, durable, {writers} writers")
}

fn failed(failure: Failure) -> Error {
    Error::other("measure page writes")(std::io::Error::other(failure))
}

/// Measures durable page writes with the page file, plain files and the installed databases.
fn measure_pages(
    options: &RandomWriteBench,
    dir: &Path,
    writers: usize,
    stage: &Stage<'_>,
) -> Result<(Contest<Strategy, Round>, CountedRounds)> {
    let rivals = options.rivals.as_deref().map(Rivals::query).transpose()?;
    let forms = rivals.iter().flat_map(|rivals| rivals.with_prefix(PAGES));
    let names = Writer::ALL.iter().map(|writer| writer.name()).chain(forms);
    let mut contest = Contest::new(FIELDS, names.map(Strategy::pages));
    let is_floor = |strategy: &Strategy| strategy.name == Writer::Floor.name();
    let rounds = contest.run_above_floor(stage, is_floor, per_s, |strategy| {
        let scratch = Scratch::new(dir, &format!("haul-bench-pages.{}", std::process::id()))?;
        if let Ok(writer) = Writer::from_str(&strategy.name) {
            let sample = write_pages(options, writer, writers, scratch.path()).map_err(failed)?;
            return Ok(Outcome::Measured(Round::of_sample(writers, &sample)));
        }
        let Some(rivals) = &rivals else { return Outcome::skipped("not built") };
        let pages = options.pages_size / 4096;
        let more = ["--pages".to_owned(), pages.to_string()];
        let (form, load) = (format!("{PAGES}{strategy}"), options.load(writers));
        match rivals.measure(&form, scratch.path(), &load, &more, stage.watcher) {
            Ok(sample) => Ok(Outcome::Measured(Round::of_sample(writers, &sample))),
            Err(failure) => Ok(Outcome::Skipped(error_chain(&*failure))),
        }
    })?;
    Ok((contest, rounds))
}

fn write_pages(
    options: &RandomWriteBench,
    writer: Writer,
    writers: usize,
    dir: &Path,
) -> Result<Sample, Failure> {
    let pages = options.pages_size / 4096;
    let contender = pages::open(writer, dir, writers, pages, &options.page_file())?;
    contender.warm_up()?;
    rustix::fs::sync();
    let device = probe(dir)?.device;
    if writer != Writer::Floor {
        return drive_load(&*contender, &options.load(writers), device.as_ref());
    }
    // Each call of the writer `floor` writes as many pages as there are `writers`, so one thread
    // makes all calls.
    let sample = drive_load(&*contender, &options.load(1), device.as_ref())?;
    Ok(Sample { appends: sample.appends * writers as f64, ..sample })
}
