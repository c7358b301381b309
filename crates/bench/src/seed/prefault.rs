//! Measures writing from memory that is used for the first time against memory that was touched
//! before.
//!
//! Text 000 compares blocks that a file system must allocate first with memory that the kernel must
//! map first, which `bzero` does ahead of time.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use haul_disk::{Disk, Durability, File, Open, PAGE_BYTES, write_full};
use haul_measure::{Result, Watcher};

use super::require_space;
use super::thread_counts::ThreadCounts;
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::host::Host;
use crate::named::named;
use crate::options::{rounds, size};
use crate::report::{Column, Report};
use crate::write_modes::target_fs::TargetFs;

/// Options of `haul bench seed prefault`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Length of the memory that a round writes from, 64MiB or more
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = memory_size)]
    pub size: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "9", value_parser = rounds())]
    pub rounds: usize,
}

fn memory_size(text: &str) -> Result<u64, String> {
    size(text, 64 << 20..=1 << 40, "64MiB to 1TiB")
}

const NAME: &str = "data";

/// The length of the part of the file that is overwritten repeatedly, so that the page cache needs
/// no new pages.
const FILE_BYTES: u64 = 4 << 20;

const MIB: f64 = 1024.0 * 1024.0;

named! {
    /// The state of the memory before the round.
    enum Memory {
        /// Allocated, but never touched: the kernel maps each page at the first store.
        Fresh = "fresh",
        /// Each page was touched before the clock started.
        Touched = "touched before",
    }
}

named! {
    /// The work on each page.
    enum Work {
        /// The page is filled.
        Fill = "fill",
        /// The page is filled and written to a file, without a sync.
        Write = "fill and pwrite",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    work: Work,
    memory: Memory,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.work, self.memory)
    }
}

#[derive(Debug, Clone, Copy)]
struct Round {
    bytes: u64,
    time: Duration,
    minor_faults: Option<u64>,
}

const BAR: &str = "mib_per_s";

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("work", "work", |strategy| strategy.work.name().into()),
    Field::label("memory", "memory", |strategy| strategy.memory.name().into()),
    Field::spread(Column::number("mib_per_s", "MiB/s", 0), 3, rate),
    Field::median(Column::number("page_ns", "ns a page", 0).ranked(1), |round| {
        Some(round.time.as_secs_f64() * 1e9 * PAGE_BYTES as f64 / round.bytes as f64)
    }),
    Field::median(Column::number("faults_per_mib", "minor faults/MiB", 2), |round| {
        Some(round.minor_faults? as f64 * MIB / round.bytes as f64)
    }),
];

fn rate(round: &Round) -> Option<f64> {
    Some(round.bytes as f64 / MIB / round.time.as_secs_f64())
}

/// Runs the experiment. The file is removed when this returns, and also when the process is killed.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and the errors of the disk.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    require_space(&options.dir, FILE_BYTES)?;
    let place = TargetFs::below(&options.dir, &[NAME])?;
    let mut report = Report::new("seed prefault", Host::here(), columns(FIELDS), BAR);
    report.host.storage.push(place.facts.clone());
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    let file = place.disk.create(NAME, Open::default())?;
    write_full(&*file, &vec![0; usize::try_from(FILE_BYTES).unwrap_or(0)], 0)?;
    file.sync(Durability::Everything)?;
    let all = Work::ALL.map(|work| Memory::ALL.map(|memory| Strategy { work, memory }));
    let mut contest = Contest::new(FIELDS, all.into_iter().flatten());
    contest.run(&Stage::only(options.rounds, watcher), |strategy| {
        measure(&*file, *strategy, options.size).map(Outcome::Measured)
    })?;
    contest.report(&mut report, "", |strategy| strategy.work.name().to_owned());
    for (name, work) in [("fill", Work::Fill), ("pwrite", Work::Write)] {
        let [fresh, touched] = Memory::ALL.map(|memory| Strategy { work, memory });
        report.ratio(format!("touched_vs_fresh_{name}"), contest.ratio(&touched, &fresh, rate));
    }
    Ok(report)
}

fn measure(file: &dyn File, strategy: Strategy, bytes: u64) -> Result<Round> {
    // The allocator takes zeroed memory of more than 32 MiB from the kernel each time, and does not
    // touch it: the kernel maps a page at the first store.
    let mut memory = vec![0_u8; usize::try_from(bytes).unwrap_or(0)];
    if strategy.memory == Memory::Touched {
        memory.chunks_mut(PAGE_BYTES).for_each(|page| page[0] = 1);
    }
    let (before, started) = (ThreadCounts::now(), Instant::now());
    for (at, page) in (0..).step_by(PAGE_BYTES).zip(memory.chunks_mut(PAGE_BYTES)) {
        page.fill(b'n');
        if strategy.work == Work::Write {
            write_full(file, page, at % FILE_BYTES)?;
        }
    }
    let time = started.elapsed();
    let minor_faults = ThreadCounts::now().since(&before).minor_faults;
    // The pages are read, so that the compiler keeps the stores.
    std::hint::black_box(&memory);
    Ok(Round { bytes, time, minor_faults })
}

impl Options {
    fn note(&self) -> String {
        format!(
            "Each round fills {} MiB of new memory page by page; \"pwrite\" also writes each page \
             to a file in the page cache, without a sync. {} interleaved rounds. A minor fault \
             maps a page, or several, into the memory of the process. A ratio \"touched_vs_fresh\" \
             is the rate with memory that was touched before divided by that with fresh memory. \
             The text has no figure.",
            self.size >> 20,
            self.rounds,
        )
    }
}
