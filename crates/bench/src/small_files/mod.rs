//! Compares durable puts of small files into a file store with files, with a plain group commit, and
//! with databases.
//!
//! Every put is durable when its call returns. The floor is the least that a batch of puts can
//! cost: their bytes, collected from all writers, are written to blocks that were written before,
//! with one write and one sync for each batch.

pub mod churn;
pub(crate) mod directory;
pub(crate) mod fill;
pub(crate) mod group_commit;
pub(crate) mod objects;
pub mod reads;
pub mod scale;
mod store;
mod strategy;
mod synced_files;

use std::path::{Path, PathBuf};
use std::time::Duration;

use haul_disk::{Device, Disk, error_chain, probe};
use haul_measure::{Error, Result, Watcher};
use haul_units::parse_time;

use crate::contest::{Contest, Outcome, Stage, columns};
use crate::host::{Host, StorageFacts};
use crate::log::rivals::{NOT_BUILT, Rivals, SMALL_FILES};
use crate::log::{Contender, Failure, Load, Sample, Scratch, drive};
use crate::options::{count, rounds, size};
use crate::report::Report;
use crate::write_modes::VirtualDisk;
use crate::write_modes::target_fs::TargetFs;
use group_commit::GroupCommit;
pub use objects::key;
use store::ObjectStore;
use strategy::{BAR, FIELDS, Round, Strategy, Target, add_ratios, rate};
use synced_files::SyncedFiles;

/// Options of `haul bench small-files`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
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
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = big_object_bytes)]
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
    let bytes = size(text, 1..=16 << 20, "1 B to 16MiB")?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

fn big_object_bytes(text: &str) -> Result<u64, String> {
    size(text, 64 << 10..=16 << 20, "64KiB to 16MiB")
}

/// The bytes of an image for the files of one measurement.
const VIRTUAL_DISK_BYTES: u64 = 4 << 30;

/// The targets beside the databases.
const OWN_TARGETS: [Target; 5] =
    [Target::Store, Target::Overwriting, Target::Floor, Target::NewBlocks, Target::Files];

/// Runs the benchmark. All files are removed when this returns.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and an error if a directory or a
/// virtual disk cannot be used, or a target fails.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let rivals = options.rivals.as_deref().map(Rivals::query).transpose()?;
    let plan = Plan { options, rivals };
    let mut report = Report::new("small-files", Host::here(), columns(FIELDS), BAR);
    report.notes.push(note(options));
    if plan.rivals.is_none() {
        report.notes.push(format!("databases are {NOT_BUILT}"));
    }
    let name = format!("haul-bench-small-files.{}", std::process::id());
    if options.virtual_disk.is_empty() {
        let storage = probe(&options.dir)?;
        let name_of_fs = storage.file_system.to_string();
        report.host.storage.push(StorageFacts::of(&name_of_fs, &storage));
        let stage = Stage { name: &name_of_fs, number: 0, of: 1, rounds: options.rounds, watcher };
        let scratch = Scratch::new(&options.dir, &name)?;
        plan.measure_on(&scratch, storage.device.as_ref(), &stage, "", &mut report)?;
    }
    let of = options.virtual_disk.len();
    for (number, kind) in options.virtual_disk.iter().enumerate() {
        let place = TargetFs::on_virtual_disk(*kind, &options.dir, VIRTUAL_DISK_BYTES)?;
        report.host.storage.push(place.facts.clone());
        let stage = Stage { name: &place.name, number, of, rounds: options.rounds, watcher };
        let scratch = Scratch::new(place.disk.root(), &name)?;
        let prefix = if of > 1 { format!("{}_", place.name) } else { String::new() };
        let device = place.storage.device.as_ref();
        plan.measure_on(&scratch, device, &stage, &prefix, &mut report)?;
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    format!(
        "{} interleaved rounds of {} s in new directories; every put is durable when its call \
         returns. The floor collects the bytes of all writers and writes them with one write and \
         one sync into blocks that were written before, or into blocks that were only reserved. \
         \"overwriting\" replaces objects of 256 MiB in all in turn. bytes/byte: bytes written to \
         the device, by all programs, for each byte of the files.",
        options.rounds,
        options.seconds.as_secs_f64(),
    )
}

/// The parameters of all rounds.
struct Plan<'a> {
    options: &'a Options,
    rivals: Option<Rivals>,
}

impl Plan<'_> {
    /// Returns all targets under each load.
    fn loads(&self) -> Vec<Vec<Strategy>> {
        let rivals = self.rivals.iter().flat_map(|rivals| rivals.with_prefix(SMALL_FILES));
        let rivals = rivals.map(|form| Target::Rival(form.to_owned()));
        let targets: Vec<_> = OWN_TARGETS.into_iter().chain(rivals).collect();
        let mut loads = Vec::new();
        for &file_bytes in &self.options.sizes {
            for &writers in &self.options.writers {
                let strategy = |target: &Target| {
                    let target = target.clone();
                    Strategy { target, file_bytes, writers }
                };
                loads.push(targets.iter().map(strategy).collect());
            }
        }
        loads
    }

    fn measure_on(
        &self,
        scratch: &Scratch,
        device: Option<&Device>,
        stage: &Stage<'_>,
        prefix: &str,
        report: &mut Report,
    ) -> Result<()> {
        let loads = self.loads();
        let of = stage.of * loads.len();
        for (number, load) in (stage.number * loads.len()..).zip(loads) {
            let stage = Stage { number, of, ..*stage };
            self.measure_load(load, scratch, device, &stage, prefix, report)?;
        }
        Ok(())
    }

    fn measure_load(
        &self,
        load: Vec<Strategy>,
        scratch: &Scratch,
        device: Option<&Device>,
        stage: &Stage<'_>,
        prefix: &str,
        report: &mut Report,
    ) -> Result<()> {
        let group = load.first().map(Strategy::group).unwrap_or_default();
        let mut contest = Contest::new(FIELDS, load);
        let is_floor = |strategy: &Strategy| strategy.target == Target::Floor;
        let rounds = contest.run_above_floor(stage, is_floor, rate, |strategy| {
            let measured = self.measure(strategy, scratch.path(), device, stage.watcher);
            let file_bytes = strategy.file_bytes;
            match measured {
                Ok(sample) => Ok(Outcome::Measured(Round { sample, file_bytes })),
                Err(_) if stage.watcher.is_cancelled() => Err(Error::Cancelled),
                Err(failure) if matches!(strategy.target, Target::Rival(_)) => {
                    Ok(Outcome::Skipped(error_chain(&*failure)))
                }
                Err(failure) => Err(Error::Missing(format!(
                    "cannot measure {strategy}: {}",
                    error_chain(&*failure)
                ))),
            }
        })?;
        report.notes.push(rounds.note(&group));
        contest.report(report, stage.name, Strategy::group);
        add_ratios(&contest, prefix, report);
        Ok(())
    }

    fn measure(
        &self,
        strategy: &Strategy,
        dir: &Path,
        device: Option<&Device>,
        watcher: &dyn Watcher,
    ) -> Result<Sample, Failure> {
        let scratch = Scratch::new(dir, "files")?;
        let dir = scratch.path();
        let Strategy { target, file_bytes, writers } = strategy;
        let (file_bytes, writers, measure) = (*file_bytes, *writers, self.options.seconds);
        let load = Load { writers, record_bytes: file_bytes, settle: measure / 4, measure };
        let big = self.options.big_object;
        let contender: Box<dyn Contender> = match target {
            Target::Store => Box::new(ObjectStore::of_new_objects(dir, big)?),
            Target::Overwriting => {
                Box::new(ObjectStore::of_overwritten_objects(dir, file_bytes, big)?)
            }
            Target::Floor => Box::new(GroupCommit::open(dir, file_bytes, writers)?),
            Target::NewBlocks => Box::new(GroupCommit::on_new_blocks(dir, file_bytes, writers)?),
            Target::Files => Box::new(SyncedFiles::open(dir, writers)?),
            Target::Rival(form) => {
                let rivals = self.rivals.as_ref().ok_or(NOT_BUILT)?;
                let form = format!("{SMALL_FILES}{form}");
                return rivals.measure(&form, dir, &load, &[], watcher);
            }
        };
        rustix::fs::sync();
        drive(&*contender, &load, device)
    }
}
