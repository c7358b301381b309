//! Measures batches of random writes with several methods.
//!
//! Records of 100 B to 4 KiB are written to random offsets of a big file in batches of one to a
//! million. Each batch is durable before the next one begins. The writes are measured without an
//! index, and with an entry for each record in a small index file. Times on a simulated drive are
//! by the drive's own clock; times on a real disk are by the wall clock.
//!
//! # Sources
//! \[Coffman72\] on sweeps; `docs/random-writes.md` has the results.

mod disk;
mod drive;
mod files;
mod method;
mod options;
mod output;
mod records;
mod table;

use haul_disk::probe;
use haul_measure::{Result, Watcher};

use crate::benchmark::Benchmark;
use crate::contest::{Contest, Outcome, Stage, new_report};
use crate::memory_limit::MemoryLimit;
use crate::report::Report;
use disk::Disk;
use drive::SimulatedDrive;
pub use method::{Index, Method};
pub use options::{DriveOrNone, RandomWriteBench};
pub use records::Shape;
use table::{FIELDS, Round, Strategy, add_ratios};

impl Benchmark for RandomWriteBench {
    const NAME: &'static str = "random-write";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let mut report = new_report(Self::NAME, FIELDS, note(self));
        if let Some(dir) = &self.dir {
            report.host = report.host.with_storage("", &probe(dir)?);
        }
        let _limit = self.memory_limit.map(MemoryLimit::new).transpose()?;
        let drives = self.drive.iter().filter_map(|drive| drive.0.as_ref());
        for (number, drive) in drives.enumerate() {
            let prefix = match number {
                0 => "spinning".to_owned(),
                _ => format!("spinning_{}", drive.name()),
            };
            let name = drive.name();
            watcher.step(0, 1, &format!("{name}: writing the files"));
            let mut disk = SimulatedDrive::new(self, drive, watcher)?;
            let stage = Stage { name, ..Stage::only(self.rounds, watcher) };
            for shape in self.shapes.iter().copied() {
                let table = format!("{name} (simulated), ext4, {shape}");
                measure_shape(self, shape, &table, &prefix, &stage, &mut report, |strategy| {
                    Ok(Outcome::Measured(match strategy.cell {
                        Some(cell) => disk.measure(cell)?,
                        None => disk.bound(shape, strategy.batch)?,
                    }))
                })?;
            }
        }
        if let Some(dir) = &self.dir {
            watcher.step(0, 1, "writing the files");
            let mut disk = Disk::new(self, dir, watcher)?;
            let stage = Stage::only(self.rounds, watcher);
            for shape in self.shapes.iter().copied() {
                let table = format!("disk, {}, {shape}", disk.fs.name);
                measure_shape(self, shape, &table, "disk", &stage, &mut report, |strategy| {
                    let Some(cell) = strategy.cell else { return Outcome::skipped("") };
                    disk.measure(cell).map(Outcome::Measured)
                })?;
            }
        }
        Ok(report)
    }
}

fn note(options: &RandomWriteBench) -> String {
    let RandomWriteBench { records, batches_max, file_size, index_size, rounds, .. } = options;
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
         file of {} MiB, with an entry of 64 B each in an index of {} MiB; a batch is \
         durable before the next one begins; cold caches{limit}; {rounds} interleaved rounds, medians. \
         Times of simulated drives are by their own clock (service). \
         Requests, bytes, syncs and seeks are per record. \"bound\" is the least time of one sweep \
         that reads each unit written in part and one that writes all, without rotational latency \
         (docs/random-writes.md). A ratio \"a_vs_b\" is the rate of a divided by that of b.",
        file_size >> 20,
        index_size >> 20,
    )
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
        let length = batch[0].batch;
        let cells = batch.iter().map(|cell| Some(*cell)).chain([None]);
        all.extend(cells.map(|cell| Strategy { batch: length, cell }));
    }
    let mut contest = Contest::new(FIELDS, all);
    contest.run(stage, |strategy| measure(strategy))?;
    contest.entries.retain(|entry| !entry.is_skipped());
    contest.report(report, table, |strategy| strategy.batch.to_string());
    let prefix = match shape {
        Shape::Records => prefix.to_owned(),
        Shape::Pages => format!("{prefix}_pages"),
    };
    add_ratios(&prefix, &contest, report);
    Ok(())
}
