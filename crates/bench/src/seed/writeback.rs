//! Shows how many pages the kernel writes at a time when memory is short, and when the background
//! limit of dirty pages is exceeded.
//!
//! Text 003: when memory is short, the kernel writes about 1,024 dirty pages at a time.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Disk, Open, write_full};
use haul_measure::{Error, Result, Spread, Watcher};

use super::{compare, require_space};
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::host::Host;
use crate::memory_limit::MemoryLimit;
use crate::named::named;
use crate::options::{file_size, rounds, size};
use crate::pacing::dirty::DirtyLimits;
use crate::report::{Column, Report};
use crate::trace::{Line, Tracing};
use crate::write_modes::VirtualDisk;
use crate::write_modes::target_fs::TargetFs;

/// Options of `haul bench seed writeback`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the image of a virtual disk with ext4
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Memory of this program, page cache included, while memory is short
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = memory_size)]
    pub memory: u64,
    /// Dirty limit of the kernel in the other rows, of which the background limit is half; affects
    /// the whole machine
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = file_size)]
    pub dirty_limit: u64,
    /// Number of bytes to write in one measurement, without a sync
    #[arg(long = "bytes", value_name = "SIZE", default_value = "512MiB", value_parser = file_size)]
    pub bytes: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

fn memory_size(text: &str) -> Result<u64, String> {
    size(text, 64 << 20..=1 << 40, "64MiB to 1TiB")
}

named! {
    /// The reason why the kernel writes dirty pages.
    enum Cause {
        /// A cgroup limits the memory of the writer.
        Memory = "little memory",
        /// The dirty pages exceed the background limit.
        Background = "background limit",
    }
}

/// The events of one round; numbers are of pages.
#[derive(Debug, Clone, Default, PartialEq)]
struct Round {
    /// The reasons that the kernel gives for its works.
    reasons: BTreeSet<String>,
    /// The pages to write of each work that has a limit.
    works: Vec<f64>,
    /// The number of works.
    count: u64,
    /// The pages that one call may write of a file, and those that it wrote.
    allowed: Vec<f64>,
    wrote: Vec<f64>,
    /// The pages of each write request to the device.
    requests: Vec<f64>,
}

const BAR: &str = "pages_per_call";

const FIELDS: &[Field<Cause, Round>] = &[
    Field::label("cause", "cause", |cause| cause.name().into()),
    Field::summary(Column::text("reasons", "reasons"), |rounds| {
        let all: BTreeSet<_> = rounds.iter().flat_map(|round| round.reasons.clone()).collect();
        all.into_iter().collect::<Vec<_>>().join(", ").into()
    }),
    Field::median(Column::number("works", "works", 0).ranked(2), |it| Some(it.count as f64)),
    Field::median(Column::number("pages_per_work", "pages of a work", 0).ranked(1), |round| {
        median(&round.works)
    }),
    Field::median(Column::number("calls", "calls", 0).ranked(2), |it| Some(it.wrote.len() as f64)),
    Field::median(Column::number("pages_allowed", "pages allowed", 0), pages_allowed),
    Field::spread(Column::number("pages_per_call", "pages of a call", 0), 3, pages_per_call),
    Field::median(Column::number("pages_longest", "most pages", 0), |round| {
        round.wrote.iter().copied().reduce(f64::max)
    }),
    Field::median(Column::number("pages_per_request", "pages of a request", 0), |round| {
        median(&round.requests)
    }),
];

fn median(numbers: &[f64]) -> Option<f64> {
    Spread::of(numbers).map(|spread| spread.median)
}

fn pages_allowed(round: &Round) -> Option<f64> {
    median(&round.allowed)
}

fn pages_per_call(round: &Round) -> Option<f64> {
    median(&round.wrote)
}

/// The name of the file that is written.
const NAME: &str = "bulk";
const CHUNK_BYTES: usize = 1 << 20;
const PAGE_BYTES: u64 = 4096;
/// The number from which on a number of pages means no limit.
const UNLIMITED: f64 = 1e15;
const SECTORS_PER_PAGE: f64 = 8.0;

/// The time for which the kernel may continue to write after the last call of the writer.
const SETTLE: Duration = Duration::from_millis(500);

/// Runs the experiment on a virtual disk. The disk is removed and the limits are restored when this
/// returns, and also when the process is killed.
///
/// # Errors
/// Returns [`Error::Missing`] without root, the memory cgroup or the kernel's tracing, and
/// [`Error::Cancelled`] if the watcher cancels.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    require_space(&options.dir, options.bytes + (512 << 20))?;
    let place = TargetFs::on_virtual_disk(VirtualDisk::Ext4, &options.dir, options.bytes)?;
    let missing = || Error::Missing("the device of the virtual disk is unknown".to_owned());
    let device = place.storage.device.as_ref().ok_or_else(missing)?;
    let tracing = Tracing::new()?;
    tracing.watch_writeback(device)?;
    let mut report = Report::new("seed writeback", Host::here(), columns(FIELDS), BAR);
    report.host.storage.push(place.facts.clone());
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    let mut contest = Contest::new(FIELDS, Cause::ALL);
    contest.run(&Stage::only(options.rounds, watcher), |cause| {
        measure(&place, &tracing, *cause, options, watcher).map(Outcome::Measured)
    })?;
    contest.report(&mut report, "", |_| String::new());
    for (suffix, cause) in [("memory", Cause::Memory), ("background", Cause::Background)] {
        let allowed = contest.samples(&cause, pages_allowed);
        report.amount(format!("pages_allowed_{suffix}"), allowed);
        let wrote = contest.samples(&cause, pages_per_call);
        report.amount(format!("pages_per_call_{suffix}"), wrote);
    }
    compare(&mut report, "", &[("pages_per_call_memory", 1024.0)]);
    Ok(report)
}

/// Writes a new file without a sync, and traces the writeback of the kernel meanwhile.
fn measure(
    place: &TargetFs,
    tracing: &Tracing,
    cause: Cause,
    options: &Options,
    watcher: &dyn Watcher,
) -> Result<Round> {
    let file = place.disk.create(NAME, Open::default())?;
    place.settle()?;
    let mut chunk = AlignedBuf::zeroed(CHUNK_BYTES);
    chunk.fill(b'n');
    let limits = match cause {
        Cause::Memory => (Some(MemoryLimit::new(options.memory)?), None),
        Cause::Background => (None, Some(DirtyLimits::set(options.dirty_limit)?)),
    };
    tracing.start()?;
    for at in (0..options.bytes).step_by(CHUNK_BYTES) {
        watcher.check()?;
        write_full(&*file, &chunk, at)?;
    }
    let ended = Instant::now();
    while ended.elapsed() < SETTLE {
        watcher.check()?;
        thread::sleep(Duration::from_millis(10));
    }
    let round = Round::of(&tracing.stop_text()?);
    drop(limits);
    drop(file);
    place.disk.remove(NAME)?;
    place.settle()?;
    Ok(round)
}

impl Round {
    /// Returns the events in the text of a trace.
    fn of(text: &str) -> Self {
        let mut round = Self::default();
        for line in text.lines().filter_map(Line::parse) {
            let number = |name: &str| line.field(name)?.parse::<f64>().ok();
            match line.event {
                "writeback_start" => {
                    round.count += 1;
                    round.reasons.extend(line.field("reason").map(str::to_owned));
                    round.works.extend(number("nr_pages").filter(|pages| *pages < UNLIMITED));
                }
                "writeback_single_inode" => {
                    // A call that writes no page writes the inode alone.
                    let wrote = number("wrote").filter(|pages| *pages > 0.0);
                    if let Some((wrote, allowed)) = wrote.zip(number("to_write")) {
                        round.wrote.push(wrote);
                        round.allowed.push(allowed);
                    }
                }
                "block_rq_issue" => {
                    let data = |rwbs: &str| rwbs.starts_with('W') && !rwbs.contains('M');
                    let write = line.operation().filter(|operation| data(operation.rwbs));
                    round.requests.extend(write.map(|it| it.sectors as f64 / SECTORS_PER_PAGE));
                }
                _ => {}
            }
        }
        round
    }
}

impl Options {
    fn note(&self) -> String {
        format!(
            "{} MiB ({} pages of 4 KiB) are written to a new file on a virtual disk without a \
             sync; {} interleaved rounds. \"little memory\": a cgroup limits this program to {} \
             MiB, page cache included. \"background limit\": vm.dirty_bytes is {} MiB, and \
             vm.dirty_background_bytes half of it. A work is an order to write pages of the disk, \
             a call writes pages of one file for it: up to the allowed number, before it turns to \
             the next file (events writeback_start and writeback_single_inode of the kernel). The \
             text: about 1,024 pages at a time when memory is short.",
            self.bytes >> 20,
            self.bytes / PAGE_BYTES,
            self.rounds,
            self.memory >> 20,
            self.dirty_limit >> 20,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_work_call_and_request() {
        let text = "\
 kworker/u8:1-9 [001] .....  1.000000: writeback_start: bdi 7:0: sb_dev 0:0 nr_pages=5000 sync_mode=0 kupdate=0 range_cyclic=1 background=0 reason=vmscan cgroup_ino=1
 kworker/u8:1-9 [001] .....  1.000001: writeback_single_inode: bdi 7:0: ino=12 state=I_SYNC dirtied_when=1 age=0 index=0 to_write=2048 wrote=1024 cgroup_ino=1
 kworker/u8:1-9 [001] .....  1.000001: writeback_start: bdi 7:0: sb_dev 0:0 nr_pages=9223372036854775807 sync_mode=0 kupdate=0 range_cyclic=1 background=1 reason=background cgroup_ino=1
 kworker/u8:1-9 [001] .....  1.000002: writeback_single_inode: bdi 7:0: ino=2 state=I_SYNC dirtied_when=1 age=0 index=0 to_write=2048 wrote=0 cgroup_ino=1
 kworker/u8:1-9 [001] .....  1.000003: block_rq_issue: 7,0 W 524288 () 4096 + 1024 none,0,0 [kworker/u8:1]
 kworker/u8:1-9 [001] .....  1.000004: block_rq_issue: 7,0 WM 4096 () 8 + 8 none,0,0 [kworker/u8:1]
";
        let expected = Round {
            reasons: ["vmscan", "background"].map(str::to_owned).into(),
            works: vec![5000.0],
            count: 2,
            allowed: vec![2048.0],
            wrote: vec![1024.0],
            requests: vec![128.0],
        };
        assert_eq!(Round::of(text), expected);
    }
}
