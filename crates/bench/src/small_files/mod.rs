//! Compares durable puts of small files into a file store with files and with a plain group commit.
//!
//! Every put is durable when its call returns. The floor is the least that a batch of puts can
//! cost: their bytes, collected from all writers, are written to blocks that were written before,
//! with one write and one sync for each batch.

mod group_commit;
mod store;
mod synced_files;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haul_disk::{Device, Disk, error_chain, probe};
use haul_measure::{Error, Result, Watcher, load};
use haul_units::parse_time;

use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::host::{Host, StorageFacts};
use crate::log::{Contender, Failure, Load, Sample, Scratch, drive};
use crate::named::named;
use crate::options::{count, rounds, size};
use crate::report::{Column, Report};
use crate::write_modes::VirtualDisk;
use crate::write_modes::target_fs::TargetFs;
use group_commit::GroupCommit;
use store::ObjectStore;
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
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "3", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_time)]
    pub seconds: Duration,
}

fn file_bytes(text: &str) -> Result<usize, String> {
    let bytes = size(text, 1..=1 << 20, "1 B to 1MiB")?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

/// The bytes of an image for the files of one measurement.
const VIRTUAL_DISK_BYTES: u64 = 4 << 30;

named! {
    /// The target of the puts.
    enum Target {
        /// The file store of Haul.
        Store = "haul",
        /// Batches written to one file whose blocks were written before.
        Floor = "floor: group commit",
        /// A new file for each put, synced together with its directory.
        Files = "file, fsync",
    }
}

/// A target under a load.
#[derive(Debug, Clone, Copy, PartialEq)]
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

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group(), self.target.name())
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

const BAR: &str = "puts_per_s";

/// The columns of the table: medians of the rounds.
const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("target", "target", |strategy| strategy.target.name().into()),
    Field::parameter(Column::number("file_bytes", "bytes", 0), |strategy| {
        (strategy.file_bytes as f64).into()
    }),
    Field::parameter(Column::number("writers", "writers", 0), |strategy| {
        (strategy.writers as f64).into()
    }),
    Field::spread(Column::number("puts_per_s", "puts/s", 0), 5, rate),
    Field::median(Column::number("p50_us", "p50 µs", 0), |round| round.sample.p50_us),
    Field::median(Column::number("p99_us", "p99 µs", 0), |round| round.sample.p99_us),
    Field::median(Column::number("cpu_us_per_put", "CPU µs", 1), |round| {
        Some(round.sample.each(round.sample.cpu_seconds)? * 1e6)
    }),
    Field::median(Column::number("device_bytes_per_byte", "bytes/byte", 2), amplification),
    Field::median(Column::number("device_writes_per_put", "writes", 2).ranked(3), |round| {
        round.sample.each(round.sample.device_writes)
    }),
    Field::median(Column::number("device_syncs_per_put", "syncs", 3).ranked(3), |round| {
        round.sample.each(round.sample.device_syncs)
    }),
];

/// Runs the benchmark. All files are removed when this returns.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and an error if a directory or a
/// virtual disk cannot be used, or a target fails.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("small-files", Host::here(), columns(FIELDS), BAR);
    report.notes.push(note(options));
    report.notes.extend(load());
    let name = format!("haul-bench-small-files.{}", std::process::id());
    if options.virtual_disk.is_empty() {
        let storage = probe(&options.dir)?;
        let name_of_fs = storage.file_system.to_string();
        report.host.storage.push(StorageFacts::of(&name_of_fs, &storage));
        let stage = Stage { name: &name_of_fs, number: 0, of: 1, rounds: options.rounds, watcher };
        let scratch = Scratch::new(&options.dir, &name)?;
        measure_on(&scratch, storage.device.as_ref(), &stage, options, "", &mut report)?;
    }
    let of = options.virtual_disk.len();
    for (number, kind) in options.virtual_disk.iter().enumerate() {
        let place = TargetFs::on_virtual_disk(*kind, &options.dir, VIRTUAL_DISK_BYTES)?;
        report.host.storage.push(place.facts.clone());
        let stage = Stage { name: &place.name, number, of, rounds: options.rounds, watcher };
        let scratch = Scratch::new(place.disk.root(), &name)?;
        let prefix = if of > 1 { format!("{}_", place.name) } else { String::new() };
        let device = place.storage.device.as_ref();
        measure_on(&scratch, device, &stage, options, &prefix, &mut report)?;
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    format!(
        "{} interleaved rounds of {} s in new directories; every put is durable when its call \
         returns. The floor collects the bytes of all writers and writes them with one write and \
         one sync into blocks that were written before. bytes/byte: bytes written to the device, by \
         all programs, for each byte of the files.",
        options.rounds,
        options.seconds.as_secs_f64(),
    )
}

fn measure_on(
    scratch: &Scratch,
    device: Option<&Device>,
    stage: &Stage<'_>,
    options: &Options,
    prefix: &str,
    report: &mut Report,
) -> Result<()> {
    let strategies = options.sizes.iter().flat_map(|&file_bytes| {
        options.writers.iter().flat_map(move |&writers| {
            Target::ALL.map(|target| Strategy { target, file_bytes, writers })
        })
    });
    let mut contest = Contest::new(FIELDS, strategies);
    contest.run(stage, |strategy| {
        let measured = measure(strategy, scratch.path(), device, options.seconds);
        let failed = |failure: Failure| {
            Error::Missing(format!("cannot measure {strategy}: {}", error_chain(&*failure)))
        };
        let sample = measured.map_err(failed)?;
        Ok(Outcome::Measured(Round { sample, file_bytes: strategy.file_bytes }))
    })?;
    contest.report(report, stage.name, Strategy::group);
    add_ratios(&contest, prefix, report);
    Ok(())
}

fn measure(
    strategy: &Strategy,
    dir: &Path,
    device: Option<&Device>,
    measure: Duration,
) -> Result<Sample, Failure> {
    let scratch = Scratch::new(dir, "files")?;
    let Strategy { target, file_bytes, writers } = *strategy;
    let load = Load { writers, record_bytes: file_bytes, settle: measure / 4, measure };
    let contender: Box<dyn Contender> = match target {
        Target::Store => Box::new(ObjectStore::open(scratch.path())?),
        Target::Floor => Box::new(GroupCommit::open(scratch.path(), file_bytes, writers)?),
        Target::Files => Box::new(SyncedFiles::open(scratch.path(), writers)?),
    };
    rustix::fs::sync();
    drive(&*contender, &load, device)
}

/// Adds the rate of the store divided by those of the other targets, and the bytes it writes.
fn add_ratios(contest: &Contest<Strategy, Round>, prefix: &str, report: &mut Report) {
    let stores = contest.entries.iter().map(|entry| entry.strategy);
    for store in stores.filter(|strategy| strategy.target == Target::Store) {
        let Strategy { file_bytes, writers, .. } = store;
        for (key, target) in [("floor", Target::Floor), ("files", Target::Files)] {
            let ratio = contest.ratio(&store, &Strategy { target, ..store }, rate);
            report.ratio(format!("{prefix}store_vs_{key}_{file_bytes}_{writers}w"), ratio);
        }
        let bytes = contest.median(&store, amplification);
        report.ratio(format!("{prefix}device_bytes_per_byte_{file_bytes}_{writers}w"), bytes);
    }
}
