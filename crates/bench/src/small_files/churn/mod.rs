//! Overwrites objects at random on a file system that is nearly full: the rate of puts, latencies of
//! both sides, the bytes written to the device for each byte stored, and the space that is used.
//!
//! A store that appends must move live objects to reclaim the space of overwritten ones, and the
//! cost rises with the share of live bytes. Each measurement has a new file system in an image file,
//! so the counters of its device are exact.

mod load;
mod options;
mod pattern;
mod strategy;
mod target;

use std::path::Path;

use haul_disk::{Disk, error_chain};
use haul_measure::{Error, Result, Watcher};

use crate::contest::{Contest, Outcome, Stage, columns};
use crate::host::Host;
use crate::log::Failure;
use crate::report::Report;
use crate::write_modes::VirtualDisk;
use crate::write_modes::target_fs::TargetFs;
use load::Bench;
pub use options::Options;
use strategy::{BAR, FIELDS, Round, Strategy, add_ratios};
use target::{Kind, open};

/// The bytes that an object takes beside its content: the head of its needle, its key, the header
/// of its record and its entry in the index, about.
const OVERHEAD_BYTES: u64 = 160;

/// Runs the benchmark. All files are removed when this returns.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and an error if a file system cannot
/// be created, or the store fails otherwise than by refusing a put.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("small-files-churn", Host::here(), columns(FIELDS), BAR);
    report.notes.push(note(options));
    report.seed = Some(options.seed);
    let of = options.virtual_disk.len();
    for (number, &kind) in options.virtual_disk.iter().enumerate() {
        let usable_bytes = usable_bytes(options, kind, &mut report)?;
        let mut contest = Contest::new(FIELDS, strategies(options));
        let stage = Stage { name: kind.name(), number, of, rounds: options.rounds, watcher };
        contest.run(&stage, |strategy| {
            let measured = measure(options, kind, usable_bytes, strategy, watcher);
            match measured {
                Ok(round) => Ok(Outcome::Measured(round)),
                Err(_) if watcher.is_cancelled() => Err(Error::Cancelled),
                Err(failure) if strategy.kind != Kind::Store => {
                    Ok(Outcome::Skipped(error_chain(&*failure)))
                }
                Err(failure) => Err(Error::Missing(format!(
                    "cannot measure {strategy}: {}",
                    error_chain(&*failure)
                ))),
            }
        })?;
        contest.report(&mut report, kind.name(), Strategy::group);
        let prefix = if of > 1 { format!("{kind}_") } else { String::new() };
        add_ratios(&contest, &prefix, &mut report);
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    format!(
        "Each row has a new file system of {} MiB in an image file. {} writers first store the \
         objects, and then overwrite random ones until they have stored {} times the usable space, \
         or for {} s; each put is durable when its call returns. Fill p99: while the objects are \
         first stored. bytes/byte: bytes written to the device for each byte that is overwritten. \
         space/live: used space after the overwrites, for each byte of the objects. Usable space: \
         the free space of a new file system less two volumes of {} MiB.",
        options.disk_size >> 20,
        options.writers,
        options.times,
        options.seconds.as_secs(),
        options.volume >> 20,
    )
}

fn strategies(options: &Options) -> Vec<Strategy> {
    let mut strategies = Vec::new();
    for &pattern in &options.patterns {
        for &live_percent in &options.live {
            strategies.extend(Kind::ALL.map(|kind| Strategy { kind, live_percent, pattern }));
        }
    }
    strategies
}

/// Returns the free space of a new file system less the two volumes that a store reserves. All
/// targets store the same number of objects.
fn usable_bytes(options: &Options, kind: VirtualDisk, report: &mut Report) -> Result<u64> {
    let place = TargetFs::on_image(kind, &options.dir, options.disk_size, &[])?;
    report.host.storage.push(place.facts.clone());
    Ok(place.disk.free_bytes()?.unwrap_or(0).saturating_sub(2 * options.volume))
}

fn measure(
    options: &Options,
    disk: VirtualDisk,
    usable_bytes: u64,
    strategy: &Strategy,
    watcher: &dyn Watcher,
) -> Result<Round, Failure> {
    let each_bytes = options.object + OVERHEAD_BYTES;
    let objects = usable_bytes * strategy.live_percent as u64 / 100 / each_bytes;
    if objects == 0 {
        return Err("the disk is too small for a single object".into());
    }
    let place = TargetFs::on_image(
        disk,
        &options.dir,
        options.disk_size,
        mkfs_options(strategy.kind, disk),
    )?;
    let root = place.disk.root().to_path_buf();
    let free_before = place.disk.free_bytes()?.unwrap_or(0);
    let target = open(strategy.kind, &root, objects, options)?;
    let bench = Bench { target: &*target, objects, options, watcher };
    let filled = bench.fill(&place)?;
    let overwrites = options.times as u64 * usable_bytes / each_bytes;
    let overwritten = bench.overwrite(&place, overwrites, strategy.pattern)?;
    bench.verify()?;
    drop(target);
    let used_bytes = free_before.saturating_sub(free_after(&place, &root)?);
    let space_per_live = used_bytes as f64 / (objects * options.object) as f64;
    Ok(Round { filled, overwritten, space_per_live })
}

/// Returns options of mkfs that a target needs: ext4 has an inode for each 16 KiB by default.
fn mkfs_options(kind: Kind, disk: VirtualDisk) -> &'static [&'static str] {
    match (kind, disk) {
        (Kind::Files, disk) if disk.file_system() == "ext4" => &["-i4096"],
        _ => &[],
    }
}

fn free_after(place: &TargetFs, root: &Path) -> Result<u64, Failure> {
    let what = || format!("no free space is known of {}", root.display());
    place.settle()?;
    Ok(place.disk.free_bytes()?.ok_or_else(what)?)
}
