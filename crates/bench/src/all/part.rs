//! The parts of `haul bench all`: benchmarks that can be run alone, and their options.

use std::path::Path;

use haul_measure::{Result, Watcher};

use crate::benchmark::{Benchmark, parsed};
use crate::file_read::{RandomReadBench, SequentialReadBench};
use crate::log::LogBench;
use crate::named::named;
use crate::pacing::PacingBench;
use crate::page_cache::{AppCacheBench, DirectOrCachedBench};
use crate::random_write::RandomWriteBench;
use crate::read_order::ReadOrderBench;
use crate::report::Report;
use crate::splice::SpliceBench;
use crate::write_modes::WriteModesBench;

named! {
    /// A part of the run: a benchmark with options for a few seconds.
    pub enum Part {
        /// The raw figures of the disk.
        Disk = "disk",
        /// Modes of durable writes.
        WriteModes = "write-modes",
        /// The same on a new ext4 with a journal.
        Journal = "journal",
        /// ext4 with a journal and without one.
        JournalCost = "journal-cost",
        /// Random reads by many readers.
        RandomRead = "random-read",
        /// Sequential reads.
        SequentialRead = "sequential-read",
        /// Direct reads and the page cache with limited memory.
        DirectOrCached = "direct-or-cached",
        /// A cache of the application, and scans.
        AppCache = "app-cache",
        /// Small synced writes during bulk writes.
        Pacing = "pacing",
        /// Orders of reading on a simulated drive.
        ReadOrder = "read-order",
        /// Orders of writing on a simulated drive.
        RandomWrite = "random-write",
        /// A file sent to a socket.
        Splice = "splice",
        /// The append log.
        Log = "log",
    }
}

/// The options of a part, and what it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// The options of the benchmark, without the directory.
    pub(super) options: &'static str,
    /// The expected seconds on an SSD.
    pub(super) seconds: u64,
    /// The space of the files in MiB.
    pub(super) space_mib: u64,
}

/// The limits of the whole run in seconds.
pub(super) const SECONDS_MAX: u64 = 600;
pub(super) const SECONDS_MAX_QUICK: u64 = 60;

/// The options, seconds and MiB of the parts.
#[rustfmt::skip]
const FULL: [(Part, &str, u64, u64); 13] = [
    (Part::Disk, "", 10, 512),
    (Part::WriteModes, "--modes none,fdatasync,fsync,direct-dsync --sizes 4KiB --seconds-per-row 1s", 50, 64),
    (Part::Journal, "--virtual-disk ext4 --modes fdatasync,fsync --sizes 512,4KiB --seconds-per-row 1s", 50, 640),
    (Part::JournalCost, "--virtual-disk ext4,ext4-nojournal --modes zero-range+fsync --sizes 4KiB", 12, 1280),
    (Part::RandomRead, "--file-size 512MiB --readers 1,4,16,64 --seconds 150ms", 40, 512),
    (Part::SequentialRead, "--sizes 64KiB --windows 8MiB --advice normal,random", 40, 256),
    (Part::DirectOrCached, "--memory 256MiB --data-percent 50,100,200,400,600 --seconds 300ms", 80, 1536),
    (Part::AppCache, "--cold-percent 400 --seconds 1s", 70, 1152),
    (Part::Pacing, "--bulk 512MiB --alone 1s", 60, 512),
    (Part::ReadOrder, "--drive deskstar-7k1000.c --files 2000 --threads 1,4", 20, 0),
    (Part::RandomWrite, "--drive deskstar-7k1000.c --records 4000 --batches 4000 --file-size 256MiB", 50, 0),
    (Part::Splice, "--sizes 1KiB,1MiB --seconds 100ms", 5, 0),
    (Part::Log, "--writers 1,16 --seconds 400ms", 40, 512),
];

/// The same for `--quick`, which has no part `log`.
#[rustfmt::skip]
const QUICK: [(Part, &str, u64, u64); 12] = [
    (Part::Disk, "", 4, 128),
    (Part::WriteModes, "--modes append+fdatasync,append+fsync,fallocate+fdatasync,fallocate+fsync,filled+none,filled+fdatasync,filled+fsync,zero-range+fdatasync,zero-range+fsync,recycled+fdatasync --sizes 4KiB --records 16 --seconds-per-row 200ms", 6, 16),
    (Part::Journal, "--virtual-disk ext4 --modes append+fdatasync,fallocate+fdatasync,recycled+fdatasync --sizes 512,4KiB --records 16 --seconds-per-row 150ms", 5, 640),
    (Part::JournalCost, "--virtual-disk ext4,ext4-nojournal --modes zero-range+fsync --sizes 4KiB --records 16", 3, 1280),
    (Part::RandomRead, "--file-size 64MiB --readers 1,64 --seconds 30ms", 4, 64),
    (Part::SequentialRead, "--file-size 24MiB --sizes 64KiB --windows 8MiB --advice normal,random", 4, 24),
    (Part::DirectOrCached, "--memory 64MiB --data-percent 50,100,600 --readers 16 --seconds 40ms", 8, 384),
    (Part::AppCache, "--memory 64MiB --cold-percent 300 --seconds 150ms", 6, 256),
    (Part::Pacing, "--bulk 32MiB --alone 200ms", 5, 32),
    (Part::ReadOrder, "--drive deskstar-7k1000.c --files 300 --dirs 8 --disk-size 1GiB --threads 1,4", 3, 0),
    (Part::RandomWrite, "--drive deskstar-7k1000.c --records 300 --batches 1000 --file-size 32MiB", 5, 0),
    (Part::Splice, "--sizes 1KiB,1MiB --seconds 20ms", 1, 0),
];

impl Part {
    /// Returns the plan of a part; `None` if a quick run leaves it out.
    pub(super) fn plan(self, is_quick: bool) -> Option<Plan> {
        let mut plans = if is_quick { QUICK.iter() } else { FULL.iter() };
        let (_, options, seconds, space_mib) = plans.find(|plan| plan.0 == self)?;
        Some(Plan { options, seconds: *seconds, space_mib: *space_mib })
    }

    /// Runs the benchmark of a part; returns `None` for [`Self::Disk`], which is none.
    pub(super) fn run(
        self,
        plan: Plan,
        dir: &Path,
        watcher: &dyn Watcher,
    ) -> Result<Option<Report>> {
        let report = match self {
            Self::Disk => return Ok(None),
            Self::WriteModes | Self::Journal | Self::JournalCost => {
                report::<WriteModesBench>(plan, Some(dir), watcher)
            }
            Self::RandomRead => report::<RandomReadBench>(plan, Some(dir), watcher),
            Self::SequentialRead => report::<SequentialReadBench>(plan, Some(dir), watcher),
            Self::DirectOrCached => report::<DirectOrCachedBench>(plan, Some(dir), watcher),
            Self::AppCache => report::<AppCacheBench>(plan, Some(dir), watcher),
            Self::Pacing => report::<PacingBench>(plan, Some(dir), watcher),
            Self::ReadOrder => report::<ReadOrderBench>(plan, None, watcher),
            Self::RandomWrite => report::<RandomWriteBench>(plan, None, watcher),
            Self::Splice => report::<SpliceBench>(plan, None, watcher),
            Self::Log => report::<LogBench>(plan, Some(dir), watcher),
        };
        Ok(Some(Report { bench: self.name().to_owned(), ..report? }))
    }

    /// Returns the command that runs a part alone.
    pub(super) fn command(self, plan: Plan) -> String {
        let name = match self {
            Self::Journal | Self::JournalCost => Self::WriteModes.name(),
            _ => self.name(),
        };
        let has_dir = !matches!(self, Self::ReadOrder | Self::RandomWrite | Self::Splice);
        let dir = if has_dir { " --dir DIR" } else { "" };
        format!("haul bench {name}{dir} {}", plan.options)
    }
}

fn report<B: Benchmark>(plan: Plan, dir: Option<&Path>, watcher: &dyn Watcher) -> Result<Report> {
    parsed::<B>(plan.options, dir)?.run(watcher)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Cancelled;

    impl Watcher for Cancelled {
        fn is_cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn options_of_all_parts_are_valid() {
        let dir = tempfile::tempdir().unwrap();
        for part in Part::ALL {
            for plan in [part.plan(false), part.plan(true)].into_iter().flatten() {
                let ended = part.run(plan, dir.path(), &Cancelled).map(|report| report.is_some());
                let why = format!("{ended:?}");
                assert!(!why.contains("invalid options"), "{part}: {why}");
            }
        }
    }

    #[test]
    fn expected_durations_fit_into_the_limits() {
        for (is_quick, limit) in [(false, SECONDS_MAX), (true, SECONDS_MAX_QUICK)] {
            let plans = Part::ALL.into_iter().filter_map(|part| part.plan(is_quick));
            let seconds: u64 = plans.map(|plan| plan.seconds).sum();
            // The rest is for parts that take longer than expected.
            assert!((limit / 2..=limit * 9 / 10).contains(&seconds), "{is_quick}: {seconds}");
        }
    }
}
