//! Measures durable puts of small files: into the file store, a group commit, files and databases.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haul_disk::{Device, Disk, error_chain};
use haul_measure::{Result, Watcher};
use haul_units::parse_time;

use super::contenders::{FILE_BYTES, GroupCommit, ObjectStore, SyncedFiles};
use crate::benchmark::Benchmark;
use crate::contest::{Contest, Entry, Field, Outcome, Stage, best_of_families, new_report, number};
use crate::log::rivals::{NOT_BUILT, Rivals, SMALL_FILES};
use crate::log::{Contender, Failure, Load, Sample, Scratch, drive, failed};
use crate::options::{count, length, rounds, size_in};
use crate::report::Report;
use crate::write_modes::VirtualDisk;
use crate::write_modes::target_fs::TargetFs;

/// The benchmark `small-files`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct SmallFilesBench {
    /// Directory for the test files and the images of virtual disks, which needs some GiB
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// File systems to create in image files and measure instead: ext4, ext4-nojournal, xfs, btrfs
    ///
    /// Needs root. Each request also passes the file system of DIR, so times are comparable only
    /// with each other; the bytes are those of the virtual disk alone.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub virtual_disk: Vec<VirtualDisk>,
    /// Numbers of threads that put
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,64")]
    #[arg(value_parser = count(1..=1024))]
    pub writers: Vec<usize>,
    /// Lengths of a file
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB,16KiB,64KiB")]
    #[arg(value_parser = file_bytes)]
    pub sizes: Vec<usize>,
    /// Length from which the store writes an object to a file of its own
    #[arg(long, value_name = "SIZE", default_value = "4MiB")]
    #[arg(value_parser = size_in(64 << 10..=16 << 20, "64KiB to 16MiB"))]
    pub big_object: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_time)]
    pub seconds: Duration,
    /// Path of haul-bench-compare, the program that drives the databases
    ///
    /// By default it is searched for beside haul-bench and in PATH; without it no database is
    /// measured. See docs/log-bench.md for how to build it.
    #[arg(long, value_name = "PROGRAM")]
    pub rivals: Option<PathBuf>,
}

fn file_bytes(text: &str) -> Result<usize, String> {
    length(text, 16 << 20, "1 B to 16MiB")
}

/// The target of the puts.
#[derive(Debug, Clone, PartialEq)]
enum Target {
    /// The file store of Haul, storing new objects.
    Store,
    /// The file store of Haul, overwriting objects.
    Overwriting,
    /// Batches written to one file whose blocks were written before.
    Floor,
    /// Batches written to new blocks.
    NewBlocks,
    /// A new file for each put, synced together with its directory.
    Files,
    /// A database, by the name of its form (configuration) in `haul-bench-compare`.
    Rival(String),
}

impl Target {
    /// Returns the name in rows, and that in ratios: for a rival that of its family, which all of
    /// its forms share.
    fn names(&self) -> (&str, &str) {
        match self {
            Self::Store => ("haul", "store"),
            Self::Overwriting => ("haul: overwriting", "overwriting"),
            Self::Floor => ("floor: group commit", "floor"),
            Self::NewBlocks => ("floor: new blocks", "new_blocks"),
            Self::Files => ("file, fsync", "files"),
            Self::Rival(form) => (form, form.split('/').next().unwrap_or(form)),
        }
    }
}

/// A target under a load.
#[derive(Debug, Clone, PartialEq)]
struct Strategy {
    target: Target,
    file_bytes: usize,
    writers: usize,
}

impl Strategy {
    fn group(&self) -> String {
        format!("{} bytes, {} writers", self.file_bytes, self.writers)
    }
}

/// One measurement, with the length of a file.
#[derive(Debug, Clone)]
struct Round {
    sample: Sample,
    file_bytes: usize,
}

fn rate(round: &Round) -> Option<f64> {
    Some(round.sample.rate())
}

/// Returns the bytes written to the device for each byte of the files.
fn amplification(round: &Round) -> Option<f64> {
    Some(round.sample.each(round.sample.device_bytes)? / round.file_bytes as f64)
}

/// The columns of the table: medians of the rounds.
const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("target", "target", |strategy| strategy.target.names().0.into()),
    number("file_bytes", "bytes", 0).label(|it| it.file_bytes.into()),
    number("writers", "writers", 0).label(|it| it.writers.into()),
    number("puts_per_s", "puts/s", 0).spread(5, rate),
    number("p50_us", "p50 µs", 0).median(|round| round.sample.p50_us),
    number("p99_us", "p99 µs", 0).median(|round| round.sample.p99_us),
    number("cpu_us_per_put", "CPU µs", 1)
        .median(|it| Some(it.sample.each(it.sample.cpu_seconds)? * 1e6)),
    number("device_bytes_per_byte", "bytes/byte", 2).median(amplification),
    number("device_writes_per_put", "writes", 2)
        .rank(3)
        .median(|it| it.sample.each(it.sample.device_writes)),
    number("device_syncs_per_put", "syncs", 3)
        .rank(3)
        .median(|it| it.sample.each(it.sample.device_syncs)),
];

/// Adds the rate of the store divided by those of the other targets, and the bytes it writes. A
/// rival counts in its fastest form.
fn add_ratios(contest: &Contest<Strategy, Round>, prefix: &str, report: &mut Report) {
    let stores = contest.entries.iter().filter(|entry| entry.strategy.target == Target::Store);
    for store in stores {
        let Strategy { file_bytes, writers, .. } = store.strategy;
        let is_same_load = |entry: &&Entry<Strategy, Round>| {
            entry.strategy.file_bytes == file_bytes && entry.strategy.writers == writers
        };
        let family = |entry: &Entry<Strategy, Round>| entry.strategy.target.names().1.to_owned();
        let entries = contest.entries.iter().filter(is_same_load);
        for (family, best) in best_of_families(entries, family, rate) {
            if family != Target::Store.names().1 {
                let name = format!("{prefix}store_vs_{family}_{file_bytes}_{writers}w");
                report.ratio(name, store.ratio(best, rate));
            }
        }
        let name = format!("{prefix}device_bytes_per_byte_{file_bytes}_{writers}w");
        report.amount(name, store.samples(amplification));
    }
}

/// The bytes of an image for the files of one measurement.
const VIRTUAL_DISK_BYTES: u64 = 4 << 30;

impl Benchmark for SmallFilesBench {
    const NAME: &'static str = "small-files";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let rivals = self.rivals.as_deref().map(Rivals::query).transpose()?;
        let mut report = new_report(Self::NAME, FIELDS, self.note());
        if rivals.is_none() {
            report.notes.push(format!("databases are {NOT_BUILT}"));
        }
        let places = TargetFs::all(&self.virtual_disk, &self.dir, VIRTUAL_DISK_BYTES)?;
        let mut loads = Vec::new();
        for place in &places {
            for &file_bytes in &self.sizes {
                loads.extend(self.writers.iter().map(|&writers| (place, file_bytes, writers)));
            }
        }
        let of = loads.len();
        for (number, (place, file_bytes, writers)) in loads.into_iter().enumerate() {
            let name = format!("haul-bench-small-files.{}", std::process::id());
            let scratch = Scratch::new(place.disk.root(), &name)?;
            let device = place.storage.device.as_ref();
            let stage = Stage { name: &place.name, number, of, rounds: self.rounds, watcher };
            let targets = targets(rivals.as_ref());
            let strategy = |target| Strategy { target, file_bytes, writers };
            let mut contest = Contest::new(FIELDS, targets.into_iter().map(strategy));
            let is_floor = |strategy: &Strategy| strategy.target == Target::Floor;
            let counted = contest.run_above_floor(&stage, is_floor, rate, |strategy| {
                let rivals = rivals.as_ref();
                match self.measure(strategy, scratch.path(), device, rivals, watcher) {
                    Ok(sample) => Ok(Outcome::Measured(Round { sample, file_bytes })),
                    Err(failure) if matches!(strategy.target, Target::Rival(_)) => {
                        watcher.check()?;
                        Ok(Outcome::Skipped(error_chain(&*failure)))
                    }
                    Err(failure) => {
                        Err(failed(format!("measure {}", strategy.target.names().0))(failure))
                    }
                }
            })?;
            let group = contest.entries[0].strategy.group();
            report.notes.push(counted.note(&group));
            contest.report(&mut report, &place.name, Strategy::group);
            let prefix = if places.len() > 1 { format!("{}_", place.name) } else { String::new() };
            add_ratios(&contest, &prefix, &mut report);
        }
        report.host.storage.extend(places.iter().map(|place| place.facts.clone()));
        Ok(report)
    }
}

fn targets(rivals: Option<&Rivals>) -> Vec<Target> {
    use Target::{Files, Floor, NewBlocks, Overwriting, Store};
    let forms = rivals.into_iter().flat_map(|rivals| rivals.with_prefix(SMALL_FILES));
    let rivals = forms.map(|form| Target::Rival(form.to_owned()));
    [Store, Overwriting, Floor, NewBlocks, Files].into_iter().chain(rivals).collect()
}

impl SmallFilesBench {
    fn note(&self) -> String {
        format!(
            "{} interleaved rounds of {} s in new directories; every put is durable when its call \
             returns. The floor collects the bytes of all writers and writes them with one write and \
             one sync into blocks that were written before, or into blocks that were only reserved. \
             \"overwriting\" replaces objects of 256 MiB in all in turn. bytes/byte: bytes written to \
             the device, by all programs, for each byte of the files.",
            self.rounds,
            self.seconds.as_secs_f64(),
        )
    }

    fn measure(
        &self,
        strategy: &Strategy,
        dir: &Path,
        device: Option<&Device>,
        rivals: Option<&Rivals>,
        watcher: &dyn Watcher,
    ) -> Result<Sample, Failure> {
        let scratch = Scratch::new(dir, "files")?;
        let dir = scratch.path();
        let Strategy { target, file_bytes, writers } = strategy;
        let (file_bytes, writers, measure) = (*file_bytes, *writers, self.seconds);
        let load = Load { writers, record_bytes: file_bytes, settle: measure / 4, measure };
        let big = self.big_object;
        let contender: Box<dyn Contender> = match target {
            Target::Store => Box::new(ObjectStore::open(dir, u64::MAX, big)?),
            Target::Overwriting => {
                let keys = (FILE_BYTES / file_bytes as u64).max(1);
                Box::new(ObjectStore::open(dir, keys, big)?)
            }
            Target::Floor | Target::NewBlocks => {
                let new_blocks = *target == Target::NewBlocks;
                Box::new(GroupCommit::open(dir, file_bytes, writers, new_blocks)?)
            }
            Target::Files => Box::new(SyncedFiles::open(dir, writers)?),
            Target::Rival(form) => {
                let rivals = rivals.ok_or(NOT_BUILT)?;
                let form = format!("{SMALL_FILES}{form}");
                return rivals.measure(&form, dir, &load, watcher);
            }
        };
        rustix::fs::sync();
        drive(&*contender, &load, device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rival_counts_in_its_fastest_form_and_failed_forms_do_not_count() {
        let rival = |form: &str| Target::Rival(form.to_owned());
        let targets = [
            (Target::Store, Some(600.0)),
            (Target::Floor, Some(1200.0)),
            (rival("lmdb"), Some(100.0)),
            (rival("lmdb/batched"), Some(300.0)),
            (rival("sqlite"), None),
        ];
        let strategy = |target| Strategy { target, file_bytes: 4096, writers: 16 };
        let strategies = targets.iter().map(|(target, _)| strategy(target.clone()));
        let mut contest = Contest::new(FIELDS, strategies);
        let round = |appends| {
            let device_bytes = Some(appends * 8192.0);
            let sample = Sample { appends, seconds: 1.0, device_bytes, ..Sample::default() };
            Round { sample, file_bytes: 4096 }
        };
        contest.record_all(targets.iter().map(|(_, rate)| [rate.map(round)]));
        let mut report = new_report("small-files", FIELDS, String::new());
        add_ratios(&contest, "", &mut report);
        report.assert_ratios(&[
            ("device_bytes_per_byte_4096_16w", 2.0),
            ("store_vs_floor_4096_16w", 0.5),
            ("store_vs_lmdb_4096_16w", 2.0),
        ]);
    }
}
