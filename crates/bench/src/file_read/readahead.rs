//! Shows the windows of the kernel's readahead: the lengths of the reads that a reader of one file
//! causes, in their order.
//!
//! Text 003 describes a first window of two to four times the length of a read, which doubles up to
//! a maximum, and which any random read ends.

use std::path::PathBuf;

use haul_disk::{AlignedBuf, Disk, Open, evict};
use haul_measure::{Result, Watcher};

use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::named::named;
use crate::options::{file_size, pages};
use crate::reads::Offsets;
use crate::report::{Column, Report};
use crate::test_file::{check, fill, stamp};
use crate::trace::{Line, REQUESTS, Tracing};
use crate::write_modes::VirtualDisk;
use crate::write_modes::target_fs::TargetFs;

/// The benchmark `readahead`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct ReadaheadBench {
    /// Directory for the image of a virtual disk with ext4
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Readahead of the virtual disk in KiB; each is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "128,1024")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=1_048_576))]
    pub read_ahead_kb: Vec<u64>,
    /// Lengths of a read, multiples of 4KiB, at most 64MiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB,16KiB,32KiB")]
    #[arg(value_parser = pages)]
    pub sizes: Vec<u64>,
    /// Length of the test file
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = file_size)]
    pub file_size: u64,
}

named! {
    /// The order of the reads.
    enum Pattern {
        /// The beginning of the file, in ascending order.
        Sequential = "sequential",
        /// Ascending, with one read at the end of the file after a quarter of the file.
        Interrupted = "sequential, one random read",
        /// At random offsets.
        Random = "random",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    read_ahead_kb: u64,
    read_bytes: u64,
    pattern: Pattern,
}

/// The bytes that one call of the reader caused the kernel to read from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    /// The number of the call, from 0.
    call: u64,
    bytes: u64,
}

/// The windows of a pass, in their order.
#[derive(Debug, Clone)]
struct Round {
    windows: Vec<Window>,
    /// The number of the random call among the sequential ones.
    interrupted_at: Option<u64>,
}

/// The number of windows that a row lists.
const LISTED: usize = 12;

const FIELDS: &[Field<Strategy, Round>] = &[
    number("read_ahead_kib", "readahead KiB", 0).label(|it| (it.read_ahead_kb as f64).into()),
    number("read_kib", "read KiB", 0).label(|strategy| ((strategy.read_bytes >> 10) as f64).into()),
    Field::label("pattern", "reads", |strategy| strategy.pattern.name().into()),
    Column::text("windows_kib", "windows KiB")
        .total(|it| it.first().map(listed).unwrap_or_default().into()),
    number("first_kib", "first", 0).median(first_kib),
    number("next_kib", "next", 0).rank(3).median(next_kib),
    number("after_kib", "after the random read", 0)
        .rank(2)
        .median(|it| Some(kib(after(it)?.first()?))),
    number("largest_kib", "largest", 0).median(largest_kib),
    number("windows", "windows", 0).rank(1).median(|round| Some(round.windows.len() as f64)),
];

fn kib(window: &Window) -> f64 {
    window.bytes as f64 / 1024.0
}

fn first_kib(round: &Round) -> Option<f64> {
    round.windows.first().map(kib)
}

fn next_kib(round: &Round) -> Option<f64> {
    round.windows.get(1).map(kib)
}

fn largest_kib(round: &Round) -> Option<f64> {
    round.windows.iter().map(kib).reduce(f64::max)
}

/// Returns the windows after the random read.
fn after(round: &Round) -> Option<&[Window]> {
    let at = round.interrupted_at?;
    Some(&round.windows[round.windows.partition_point(|window| window.call <= at)..])
}

/// Returns the lengths of the first windows, with the random read in brackets; `…` stands for the
/// windows that are not listed.
fn listed(round: &Round) -> String {
    let text = |window: &Window| match round.interrupted_at == Some(window.call) {
        true => format!("[{}]", window.bytes >> 10),
        false => (window.bytes >> 10).to_string(),
    };
    let mut all: Vec<_> = round.windows.iter().take(LISTED).map(text).collect();
    if round.windows.len() > LISTED {
        all.push("…".to_owned());
    }
    all.join(" ")
}

/// The name of the test file.
const NAME: &str = "data";

impl Benchmark for ReadaheadBench {
    const NAME: &'static str = "readahead";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let place = TargetFs::on_virtual_disk(VirtualDisk::Ext4, &self.dir, self.file_size)?;
        let mut report = new_report(Self::NAME, FIELDS, self.note());
        report.host.storage.push(place.facts.clone());
        fill(&*place.disk.create(NAME, Open::default())?, self.file_size, watcher, stamp)?;
        place.settle()?;
        let tracing = place.tracing(REQUESTS)?;
        let of = |read_ahead_kb: &u64| {
            let read_ahead_kb = *read_ahead_kb;
            self.sizes.iter().flat_map(move |&read_bytes| {
                Pattern::ALL.map(|pattern| Strategy { read_ahead_kb, read_bytes, pattern })
            })
        };
        let mut contest = Contest::new(FIELDS, self.read_ahead_kb.iter().flat_map(of));
        contest.run(&Stage::only(1, watcher), |strategy| {
            let _setting = place.set("read_ahead_kb", &strategy.read_ahead_kb.to_string())?;
            read(&place, &tracing, strategy, self.file_size).map(Outcome::Measured)
        })?;
        contest.report(&mut report, "", |it| format!("{} {}", it.read_ahead_kb, it.read_bytes));
        add_ratios(&contest, &mut report);
        Ok(report)
    }
}

/// Reads the file, which is not cached at the start, and traces the requests of each call.
fn read(
    place: &TargetFs,
    tracing: &Tracing,
    strategy: &Strategy,
    file_bytes: u64,
) -> Result<Round> {
    let file = place.disk.open(NAME, Open { read_only: true, ..Open::default() })?;
    evict(&*file, 0, u64::MAX)?;
    let (offsets, interrupted_at) = offsets(strategy, file_bytes);
    let mut buffer = AlignedBuf::zeroed(usize::try_from(strategy.read_bytes).unwrap_or(usize::MAX));
    tracing.start()?;
    for (call, offset) in offsets.into_iter().enumerate() {
        tracing.mark(&call.to_string())?;
        haul_disk::read_full(&*file, &mut buffer, offset)?;
        check(&buffer, offset)?;
    }
    let windows = windows(&tracing.stop_text()?);
    Ok(Round { windows, interrupted_at })
}

/// The maximum length of the part of the file that is read in ascending order.
const SEQUENTIAL_BYTES: u64 = 8 << 20;

/// The maximum number of random reads.
const RANDOM_READS: usize = 64;

/// Returns the offsets of all reads, and the number of the random read of
/// [`Pattern::Interrupted`].
fn offsets(strategy: &Strategy, file_bytes: u64) -> (Vec<u64>, Option<u64>) {
    let Strategy { read_bytes, pattern, .. } = *strategy;
    let count = file_bytes.min(SEQUENTIAL_BYTES) / read_bytes;
    let mut all: Vec<_> = (0..count).map(|number| number * read_bytes).collect();
    match pattern {
        Pattern::Sequential => (all, None),
        Pattern::Interrupted => {
            let at = count / 4;
            let last = file_bytes / read_bytes * read_bytes - read_bytes;
            all.insert(usize::try_from(at).unwrap_or(0), last);
            (all, Some(at))
        }
        Pattern::Random => {
            let mut random = Offsets::new(read_bytes, file_bytes, 1);
            (all.iter().take(RANDOM_READS).map(|_| random.next()).collect(), None)
        }
    }
}

/// Returns the windows in the text of a trace, in which a mark with its number precedes each call.
fn windows(text: &str) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut now = None;
    for line in text.lines().filter_map(Line::parse) {
        if let Some(mark) = line.mark() {
            now = mark.parse().ok().map(|call| (call, line.pid));
            continue;
        }
        let Some((call, own)) = now else { continue };
        let Some(operation) = line.operation().filter(|it| it.rwbs.starts_with('R')) else {
            continue;
        };
        if line.event != "block_bio_queue" || line.pid != own || operation.rwbs.contains('M') {
            continue;
        }
        let bytes = operation.sectors * 512;
        match windows.last_mut().filter(|window| window.call == call) {
            Some(window) => window.bytes += bytes,
            None => windows.push(Window { call, bytes }),
        }
    }
    windows
}

/// The figures of the text: the first window of reads of 4 KiB is up to four times a read, and the
/// next one is twice as long.
fn add_ratios(contest: &Contest<Strategy, Round>, report: &mut Report) {
    let pattern = Pattern::Sequential;
    let strategy = Strategy { read_ahead_kb: 128, read_bytes: 4096, pattern };
    let mut add = |name, of| report.amount(name, contest.samples(&strategy, of));
    add("first_vs_read_4k", |round| Some(first_kib(round)? / 4.0));
    add("next_vs_first_4k", |round| Some(next_kib(round)? / first_kib(round)?));
    add("largest_kib_4k", largest_kib);
}

impl ReadaheadBench {
    fn note(&self) -> String {
        format!(
            "The first 8 MiB, or 64 random places, of a file of {} MiB on a virtual disk with \
             ext4, read once with cold caches. A window is the number of bytes that one call of \
             read caused the kernel to read from the device, in the order of the calls; calls that \
             found their bytes in memory are left out. The random read is in brackets. Ratios are \
             of reads of 4 KiB with 128 KiB of readahead.",
            self.file_size >> 20,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_between_two_marks_are_a_window() {
        let text = "\
 haul-7 [001] .....  1.0: tracing_mark_write: instances/haul-7-0
 haul-7 [001] .....  1.0: block_bio_queue: 7,0 R 0 + 8 [haul]
 haul-7 [001] .....  1.1: tracing_mark_write: 0
 haul-7 [001] .....  1.1: block_bio_queue: 7,0 RM 8 + 8 [haul]
 haul-7 [001] .....  1.1: block_bio_queue: 7,0 R 80 + 8 [haul]
 haul-7 [001] .....  1.1: block_bio_queue: 7,0 RA 88 + 24 [haul]
 haul-7 [001] .....  1.1: block_rq_issue: 7,0 RA 16384 () 80 + 32 be,0,4 [haul]
 other-8 [001] .....  1.1: block_bio_queue: 7,0 R 0 + 8 [other]
 haul-7 [001] .....  1.2: tracing_mark_write: 1
 haul-7 [001] .....  1.3: tracing_mark_write: 2
 haul-7 [001] .....  1.3: block_bio_queue: 7,0 RA 112 + 64 [haul]
";
        let windows = windows(text);
        let expected = [(0, 16384), (2, 32768)].map(|(call, bytes)| Window { call, bytes });
        assert_eq!(windows, expected);
        let round = Round { windows, interrupted_at: Some(0) };
        assert_eq!((listed(&round), after(&round).unwrap().len()), ("[16] 32".to_owned(), 1));
    }

    #[test]
    fn interruption_is_one_read_at_the_end_of_the_file() {
        let of = |pattern| {
            let strategy = Strategy { read_ahead_kb: 0, read_bytes: 4096, pattern };
            offsets(&strategy, 8 * 4096)
        };
        let pages = |offsets: Vec<u64>| offsets.iter().map(|at| at / 4096).collect::<Vec<_>>();
        let (all, at) = of(Pattern::Interrupted);
        assert_eq!((pages(all), at), (vec![0, 1, 7, 2, 3, 4, 5, 6, 7], Some(2)));
        assert_eq!(pages(of(Pattern::Sequential).0), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(of(Pattern::Random).0.len(), 8);
    }
}
