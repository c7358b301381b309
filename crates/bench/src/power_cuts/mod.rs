//! Cuts the power of a simulated drive while records are written to a file, and counts those that
//! survive.
//!
//! The drive has a volatile write cache: of the writes since the last flush, each survives, is lost,
//! or survives in some of its sectors, as the seed decides. The file system is the kernel's.
//!
//! # Sources
//! \[Pillai14\] on the order in which file systems write; `docs/spinning-disk.md` on the drive.

mod options;
mod records;

use std::collections::BTreeMap;
use std::process::Command;

use haul_disk::OsDisk;
use haul_disk_sim::{Backing, MountedFs, SpinningDisk};
use haul_measure::{Error, Result, Watcher};
use haul_testing::Random;

use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::report::Report;
use crate::simulated::start;
use records::Found;

pub use options::{FileSystem, PowerCutsBench, Preparation, Sync};

/// The columns of the table: sums over the power cuts.
const FIELDS: &[Field<Case, Counts>] = &[
    Field::label("prepared", "file", |case| case.preparation.name().into()),
    Field::label("synced", "synced", |case| case.sync.name().into()),
    number("cuts", "cuts", 0).sum(|_| 1),
    number("durable_records", "durable", 0).sum(|counts| counts.durable),
    number("lost_records", "lost", 0).sum(|counts| counts.lost),
    number("holes", "cuts with a hole", 0).sum(|counts| counts.has_hole.into()),
    number("other_records", "torn or other", 0).rank(1).sum(|counts| counts.other),
    number("repaired", "repaired", 0).rank(2).sum(|counts| counts.is_repaired.into()),
    number("unusable", "unusable", 0).rank(2).sum(|counts| counts.is_unusable.into()),
    number("overwritten_records", "overwritten", 0).sum(|counts| counts.overwritten),
];

/// The records after a power cut, and the state of the file system.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Records whose sync had returned.
    durable: u64,
    /// Durable records that are not in the file.
    lost: u64,
    /// `true` if a record is in the file, and an earlier one is not.
    has_hole: bool,
    /// Places that have neither their record nor zeros, such as a part of the record.
    other: u64,
    /// `true` if the file system was not consistent before it was repaired.
    is_repaired: bool,
    /// `true` if the file system could not be mounted, or a second file not be written.
    is_unusable: bool,
    /// Records that were in the file, until a second file was written.
    overwritten: u64,
}

/// One row: the file system, the file and the time of syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    fs: FileSystem,
    preparation: Preparation,
    sync: Sync,
    records: usize,
}

/// So many times more records are written if all are synced at once, so that they take many requests.
const UNSYNCED: usize = 64;

impl Benchmark for PowerCutsBench {
    const NAME: &'static str = "power-cuts";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let mut report = new_report(Self::NAME, FIELDS, note(self));
        let drive = self.drive.with_physical_sectors(self.physical_sector);
        let disk = start(&drive, self.disk_size, Backing::Memory)?;
        for (number, fs) in self.file_systems.iter().copied().enumerate() {
            let cases: Vec<_> = cases(fs, self.records).collect();
            let mut contest = Contest::new(FIELDS, cases.iter().copied());
            let of = self.file_systems.len();
            let stage = Stage { name: fs.name(), number, of, rounds: self.cuts, watcher };
            let (mut requests, mut done) = (BTreeMap::new(), 0);
            contest.run(&stage, |case| {
                let seed = self.seed.wrapping_add(done / cases.len() as u64);
                done += 1;
                if !requests.contains_key(case) {
                    // The programs of another file system may be installed.
                    match count_requests(&disk, *case) {
                        Err(Error::Missing(why)) => return Ok(Outcome::Skipped(why)),
                        counted => requests.insert(*case, counted?),
                    };
                }
                let (counts, failure) = cut_power(&disk, *case, requests[case], seed)?;
                if let Some(failure) = failure.filter(|_| fs.is_consistent()) {
                    let Case { preparation, sync, .. } = case;
                    report.notes.push(format!(
                        "{fs}, {preparation}, synced {sync}, seed {seed}: {failure}"
                    ));
                }
                Ok(Outcome::Measured(counts))
            })?;
            contest.report(&mut report, fs.name(), |_| String::new());
        }
        Ok(report)
    }
}

/// Returns the number of requests that writing all records takes.
fn count_requests(disk: &SpinningDisk, case: Case) -> Result<u64> {
    let mounted = case.mount_new(disk)?;
    let file = records::prepare(&OsDisk::open(mounted.path())?, case.preparation, case.records)?;
    let before = disk.counters().requests;
    records::write(&*file, case.sync, 0, case.records);
    Ok((disk.counters().requests - before).max(1))
}

impl Case {
    /// Formats the disk and mounts it.
    fn mount_new(self, disk: &SpinningDisk) -> Result<MountedFs<'_>> {
        disk.mkfs(self.fs.kind(), self.fs.mkfs_options()).map_err(Error::Missing)?;
        self.mount(disk)
    }

    fn mount(self, disk: &SpinningDisk) -> Result<MountedFs<'_>> {
        disk.mount(self.fs.kind(), self.fs.mount_options()).map_err(Error::Missing)
    }
}

fn cases(fs: FileSystem, records: usize) -> impl Iterator<Item = Case> {
    Preparation::ALL.into_iter().flat_map(move |preparation| {
        Sync::ALL.map(|sync| {
            let times = if sync == Sync::Once { UNSYNCED } else { 1 };
            Case { fs, preparation, sync, records: records * times }
        })
    })
}

/// Formats the disk, writes records until the power is cut, and looks for them. Also returns the
/// reason why the file system is unusable, if it is.
fn cut_power(
    disk: &SpinningDisk,
    case: Case,
    requests: u64,
    seed: u64,
) -> Result<(Counts, Option<String>)> {
    let Case { fs, preparation, sync, records } = case;
    let mounted = case.mount_new(disk)?;
    let place = OsDisk::open(mounted.path())?;
    let file = records::prepare(&place, preparation, records)?;
    disk.power_cut_after(Random(seed).below(requests), seed);
    let durable = records::write(&*file, sync, seed, records);
    // Unless the requests were too few this time.
    disk.power_cut(seed).map_err(Error::Missing)?;
    drop((file, place, mounted));
    disk.power_on().map_err(Error::Missing)?;

    let is_repaired = fs == FileSystem::Ext4NoJournal && repair(disk.device())?;
    let mounted = match case.mount(disk) {
        Err(error) => {
            let found = vec![Found::Other; records];
            let counts = Counts { is_unusable: true, ..Counts::of(&found, durable) };
            return Ok((counts, Some(format!("{error}; {}", findings(fs, disk.device())))));
        }
        Ok(mounted) => mounted,
    };
    let place = OsDisk::open(mounted.path())?;
    let found = records::find(&place, seed, records)?;
    let written = records::write_later(&place, records * records::RECORD_BYTES);
    let later = records::find(&place, seed, records)?;
    let is_overwritten =
        |(before, later): &(&Found, &Found)| **before == Found::Record && **later != Found::Record;
    let counts = Counts {
        is_repaired,
        is_unusable: written.is_err(),
        overwritten: found.iter().zip(&later).filter(is_overwritten).count() as u64,
        ..Counts::of(&found, durable)
    };
    Ok((counts, written.err().map(|error| error.to_string())))
}

/// Returns the first lines of a check, which changes nothing, of a file system that could not be
/// mounted.
fn findings(fs: FileSystem, device: &str) -> String {
    const LINES: usize = 6;
    let (program, option) = match fs.kind() {
        "xfs" => ("xfs_repair", "-n"),
        _ => ("e2fsck", "-fn"),
    };
    match Command::new(program).args([option, device]).output() {
        Err(error) => format!("cannot start {program}: {error}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            format!("{program} {option}: {}", lines.take(LINES).collect::<Vec<_>>().join(" "))
        }
    }
}

/// Repairs an ext4 file system; returns `true` if it had errors.
fn repair(device: &str) -> Result<bool> {
    let missing = |error| Error::Missing(format!("cannot start e2fsck: {error}"));
    let output = Command::new("e2fsck").args(["-fy", device]).output().map_err(missing)?;
    match output.status.code() {
        Some(0) => Ok(false),
        // Errors were corrected.
        Some(1 | 2) => Ok(true),
        code => {
            let text = String::from_utf8_lossy(&output.stdout);
            Err(Error::Missing(format!("e2fsck ended with {code:?}: {}", text.trim())))
        }
    }
}

impl Counts {
    fn of(found: &[Found], durable: usize) -> Self {
        let is_record = |found: &Found| *found == Found::Record;
        let last = found.iter().rposition(is_record).unwrap_or(0);
        Self {
            durable: durable as u64,
            lost: found[..durable].iter().filter(|found| !is_record(found)).count() as u64,
            has_hole: !found[..last].iter().all(is_record),
            other: found.iter().filter(|found| **found == Found::Other).count() as u64,
            ..Self::default()
        }
    }
}

fn note(options: &PowerCutsBench) -> String {
    format!(
        "up to {} records of {} B ({UNSYNCED} times as many if they are synced all at once) are \
         written to a file whose name is durable, and synced by fdatasync; the power is cut at a \
         random request of the drive, whose write cache is volatile and whose physical sectors \
         have {} B. A hole: a record is in the file, and an earlier one is not. Unusable: the file \
         system cannot be mounted, or no second file be written. Overwritten: records that the \
         second file destroyed, because their blocks were free",
        options.records,
        records::RECORD_BYTES,
        options.physical_sector,
    )
}

#[cfg(test)]
mod tests {
    use super::Found::{Missing, Other, Record, Zeros};
    use super::*;

    #[test]
    fn lost_records_and_holes_are_counted() {
        let of = |found: &[Found], durable| {
            let Counts { lost, has_hole, other, .. } = Counts::of(found, durable);
            (lost, has_hole, other)
        };
        assert_eq!(of(&[Record, Record, Zeros, Missing], 2), (0, false, 0));
        assert_eq!(of(&[Record, Zeros, Record, Missing], 1), (0, true, 0));
        assert_eq!(of(&[Record, Other, Missing], 3), (2, false, 1));
        assert_eq!(of(&[Missing, Missing], 0), (0, false, 0));
    }
}
