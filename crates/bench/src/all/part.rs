//! Lists the parts of `haul bench all`: for each one its benchmark, options, time and space.

use std::path::Path;

use clap::Parser;
use haul_measure::{Error, Result, Watcher};

use crate::file_read::{random_read, sequential_read};
use crate::named::named;
use crate::page_cache::{app_cache, direct_or_cached};
use crate::report::Report;
use crate::seed::{journal, splice};
use crate::{log, pacing, random_write, read_order, write_modes};

named! {
    /// A part of `haul bench all`.
    pub enum Part {
        /// The disk itself: durable writes, random reads by queue depth, rates.
        Disk = "disk",
        /// `haul bench write-modes` on the file system of the directory.
        WriteModes = "write-modes",
        /// `haul bench write-modes` on a new ext4 with a journal, and the block trace of a record.
        Journal = "journal",
        /// `haul bench seed journal`, with a journal and without it in the same rounds.
        JournalCost = "journal-cost",
        /// `haul bench random-read`.
        RandomRead = "random-read",
        /// `haul bench sequential-read`.
        SequentialRead = "sequential-read",
        /// `haul bench direct-or-cached`.
        DirectOrCached = "direct-or-cached",
        /// `haul bench app-cache`.
        AppCache = "app-cache",
        /// `haul bench pacing`.
        Pacing = "pacing",
        /// `haul bench read-order`, on a simulated spinning disk.
        ReadOrder = "read-order",
        /// `haul bench random-write`, on a simulated spinning disk.
        RandomWrite = "random-write",
        /// `haul bench seed splice`.
        Splice = "splice",
        /// `haul bench log`.
        Log = "log",
    }
}

/// The options of a part in one of the two modes, and what it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// The options of the benchmark besides the directory.
    pub(super) options: &'static str,
    /// The expected duration on a solid-state disk in seconds.
    pub(super) seconds: u64,
    /// The free space that the files of the part need, in MiB.
    pub(super) space_mib: u64,
}

/// The longest duration of a whole run in seconds: of all parts, and with `--quick`.
pub(super) const SECONDS_MAX: u64 = 600;
pub(super) const SECONDS_MAX_QUICK: u64 = 60;

const fn plan(options: &'static str, seconds: u64, space_mib: u64) -> Option<Plan> {
    Some(Plan { options, seconds, space_mib })
}

impl Part {
    /// Returns the plan of the part; `None` if the part is not in this mode.
    pub(super) const fn plan(self, is_quick: bool) -> Option<Plan> {
        if is_quick { self.quick() } else { self.full() }
    }

    const fn full(self) -> Option<Plan> {
        match self {
            Self::Disk => plan("", 10, 512),
            Self::WriteModes => plan(
                "--modes none,fdatasync,fsync,direct-dsync --sizes 4KiB --seconds-per-row 1s",
                50,
                64,
            ),
            Self::Journal => plan(
                "--virtual-disk ext4 --modes fdatasync,fsync --sizes 512,4KiB --seconds-per-row 1s",
                50,
                640,
            ),
            Self::JournalCost => plan("--rounds 5", 12, 640),
            Self::RandomRead => {
                plan("--file-size 512MiB --readers 1,4,16,64 --seconds 150ms", 40, 512)
            }
            Self::SequentialRead => {
                plan("--sizes 64KiB --windows 8MiB --advice normal,random", 40, 256)
            }
            Self::DirectOrCached => {
                plan("--memory 256MiB --data-percent 50,100,200,400,600 --seconds 300ms", 80, 1536)
            }
            Self::AppCache => plan("--cold-percent 400 --seconds 1s", 70, 1152),
            Self::Pacing => plan("--bulk 512MiB --alone 1s", 60, 512),
            Self::ReadOrder => {
                plan("--drive deskstar-7k1000.c --files 2000 --threads 1,4 --time-scale 0", 20, 0)
            }
            Self::RandomWrite => plan(
                "--drive deskstar-7k1000.c --records 4000 --batches 4000 --file-size 256MiB \
                 --writers 1 --seconds 200ms",
                50,
                0,
            ),
            Self::Splice => plan("--sizes 1KiB,1MiB --seconds 100ms", 5, 0),
            Self::Log => {
                plan("--writers 1,16 --seconds 400ms --rotations 50 --recovery 0", 40, 512)
            }
        }
    }

    const fn quick(self) -> Option<Plan> {
        match self {
            Self::Disk => plan("", 4, 128),
            Self::WriteModes => plan(
                "--modes append+fdatasync,append+fsync,fallocate+fdatasync,fallocate+fsync,\
                 filled+none,filled+fdatasync,filled+fsync,zero-range+fdatasync,zero-range+fsync,\
                 recycled+fdatasync --sizes 4KiB --records 16 --seconds-per-row 200ms",
                6,
                16,
            ),
            Self::Journal => plan(
                "--virtual-disk ext4 --modes append+fdatasync,fallocate+fdatasync,recycled+fdatasync \
                 --sizes 512,4KiB --records 16 --seconds-per-row 150ms",
                5,
                640,
            ),
            Self::JournalCost => plan("--rounds 5 --records 16", 3, 320),
            Self::RandomRead => plan("--file-size 64MiB --readers 1,64 --seconds 30ms", 4, 64),
            Self::SequentialRead => {
                plan("--file-size 24MiB --sizes 64KiB --windows 8MiB --advice normal,random", 4, 24)
            }
            Self::DirectOrCached => {
                plan("--memory 64MiB --data-percent 50,100,600 --readers 16 --seconds 40ms", 8, 384)
            }
            Self::AppCache => plan("--memory 64MiB --cold-percent 300 --seconds 150ms", 6, 256),
            Self::Pacing => plan("--bulk 32MiB --alone 200ms", 5, 32),
            Self::ReadOrder => plan(
                "--drive deskstar-7k1000.c --files 300 --dirs 8 --disk-size 1GiB --threads 1,4 \
                 --time-scale 0",
                3,
                0,
            ),
            Self::RandomWrite => plan(
                "--drive deskstar-7k1000.c --records 300 --batches 1000 --file-size 32MiB \
                 --writers 1 --seconds 50ms",
                5,
                0,
            ),
            Self::Splice => plan("--sizes 1KiB,1MiB --seconds 20ms", 1, 0),
            Self::Log => None,
        }
    }

    /// Runs the benchmark of the part with the options of `plan` in `dir`.
    ///
    /// # Errors
    /// Returns the errors of the benchmark.
    pub(super) fn run(
        self,
        plan: Plan,
        dir: &Path,
        watcher: &dyn Watcher,
    ) -> Result<Option<Report>> {
        let report = match self {
            Self::Disk => return Ok(None),
            Self::WriteModes | Self::Journal => {
                write_modes::run(&parsed(plan, Some(dir))?, watcher)?
            }
            Self::JournalCost => journal::run(&parsed(plan, Some(dir))?, watcher)?,
            Self::RandomRead => random_read::run(&parsed(plan, Some(dir))?, watcher)?,
            Self::SequentialRead => sequential_read::run(&parsed(plan, Some(dir))?, watcher)?,
            Self::DirectOrCached => direct_or_cached::run(&parsed(plan, Some(dir))?, watcher)?,
            Self::AppCache => app_cache::run(&parsed(plan, Some(dir))?, watcher)?,
            Self::Pacing => pacing::run(&parsed(plan, Some(dir))?, watcher)?,
            Self::ReadOrder => read_order::run(&parsed(plan, None)?, watcher)?,
            Self::RandomWrite => random_write::run(&parsed(plan, None)?, watcher)?,
            Self::Splice => splice::run(&parsed(plan, None)?, watcher)?,
            Self::Log => log::run(&parsed(plan, Some(dir))?, watcher)?,
        };
        Ok(Some(Report { bench: self.name().to_owned(), ..report }))
    }

    /// Returns the command line that runs the same benchmark alone; `None` for [`Part::Disk`].
    pub(super) fn command(self, plan: Plan) -> Option<String> {
        let (name, dir) = match self {
            Self::Disk => return None,
            Self::Journal => (Self::WriteModes.name(), " --dir DIR"),
            Self::JournalCost => ("seed journal", " --dir DIR"),
            Self::Splice => ("seed splice", ""),
            Self::ReadOrder | Self::RandomWrite => (self.name(), ""),
            _ => (self.name(), " --dir DIR"),
        };
        Some(format!("haul bench {name}{dir} {}", plan.options))
    }
}

/// Parses the options of a benchmark.
fn parsed<T: Parser>(plan: Plan, dir: Option<&Path>) -> Result<T> {
    let words = ["haul bench"].into_iter().chain(plan.options.split_whitespace());
    let words = words.map(std::ffi::OsString::from);
    let dir = dir.map(|dir| ["--dir".into(), dir.as_os_str().to_owned()]);
    let parsed = T::try_parse_from(words.chain(dir.into_iter().flatten()));
    parsed.map_err(|error| Error::Missing(format!("invalid options: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_all_parts_are_valid() {
        for part in Part::ALL {
            for plan in [part.plan(false), part.plan(true)].into_iter().flatten() {
                let dir = Some(Path::new("d"));
                let parses = match part {
                    Part::Disk => true,
                    Part::WriteModes | Part::Journal => {
                        parsed::<write_modes::Options>(plan, dir).is_ok()
                    }
                    Part::JournalCost => parsed::<journal::Options>(plan, dir).is_ok(),
                    Part::Splice => parsed::<splice::Options>(plan, None).is_ok(),
                    Part::RandomRead => parsed::<random_read::Options>(plan, dir).is_ok(),
                    Part::SequentialRead => parsed::<sequential_read::Options>(plan, dir).is_ok(),
                    Part::DirectOrCached => parsed::<direct_or_cached::Options>(plan, dir).is_ok(),
                    Part::AppCache => parsed::<app_cache::Options>(plan, dir).is_ok(),
                    Part::Pacing => parsed::<pacing::Options>(plan, dir).is_ok(),
                    Part::ReadOrder => parsed::<read_order::Options>(plan, None).is_ok(),
                    Part::RandomWrite => parsed::<random_write::Options>(plan, None).is_ok(),
                    Part::Log => parsed::<log::Options>(plan, dir).is_ok(),
                };
                assert!(parses, "{part}: {}", plan.options);
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
