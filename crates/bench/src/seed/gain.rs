//! Compares how much durable writes and reads of one disk gain from the best method over the naive
//! one.
//!
//! Text 000: writing is harder to speed up than reading.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{
    AlignedBuf, Disk, Durability, File, Open, OsDisk, PAGE_BYTES, error_chain, fill, read_full,
    write_full,
};
use haul_measure::{Error, Result, Watcher};
use haul_units::parse_time;

use super::require_space;
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::guardian::Guardian;
use crate::host::Host;
use crate::log::{Failure, Load as WriteLoad, drive};
use crate::named::named;
use crate::options::{count, file_size, rounds};
use crate::reads::{Load, joined};
use crate::report::{Column, Ratio, Report, Samples};
use crate::small_files::group_commit::GroupCommit;
use crate::test_file::{TestFile, check};

/// Options of `haul bench seed gain`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test files
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Length of the file that is read
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = file_size)]
    pub file_size: u64,
    /// Number of writers that share a sync, and of readers at random offsets
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(2..=1024))]
    pub depth: usize,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Maximum duration of one measurement, such as 1s
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub seconds: Duration,
}

/// The length of the file that is overwritten by one writer.
const OVERWRITTEN_BYTES: u64 = 16 << 20;
const PAGE: u64 = PAGE_BYTES as u64;
/// The length of a long direct read, and the number of threads that read so.
const LONG_BYTES: u64 = 1 << 20;
const LONG_READERS: u64 = 4;

named! {
    /// A method of writing or reading; the first one of each task is the naive one.
    enum Method {
        /// Each record extends the file, and `fsync` follows.
        Append = "append + fsync, one writer",
        /// Blocks that were written before are overwritten with `O_DIRECT | O_DSYNC`.
        Overwrite = "overwrite, O_DIRECT|O_DSYNC, one writer",
        /// The records of many writers are written to such blocks with one write and one sync.
        Group = "overwrite, group commit",
        /// `pread` with `O_DIRECT` at random offsets.
        One = "random 4 KiB, one reader",
        /// The same with many threads.
        Many = "random 4 KiB, many readers",
        /// `pread` of 4 KiB through the page cache, with the readahead of the kernel.
        Buffered = "sequential, 4 KiB through the page cache",
        /// `pread` of 1 MiB with `O_DIRECT` by four threads.
        Long = "sequential, 1 MiB direct, four readers",
        /// `pread` of 4 KiB of a file that is in the page cache.
        Cached = "sequential, 4 KiB, all cached",
    }
}

impl Method {
    const fn task(self) -> &'static str {
        match self {
            Self::Append | Self::Overwrite | Self::Group => "durable writes of 4 KiB",
            Self::One | Self::Many => "random reads",
            Self::Buffered | Self::Long | Self::Cached => "sequential reads",
        }
    }
}

/// The operations of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    operations: f64,
    bytes_per_operation: u64,
    seconds: f64,
}

const BAR: &str = "mb_per_s";

const FIELDS: &[Field<Method, Round>] = &[
    Field::label("task", "task", |method| method.task().into()),
    Field::label("way", "method", |method| method.name().into()),
    Field::spread(Column::number("mb_per_s", "MB/s", 2), 3, rate),
    Field::median(Column::number("operations_per_s", "calls/s", 0), |round| {
        Some(round.operations / round.seconds)
    }),
    Field::total(Column::number("operations", "calls", 0).ranked(5), |rounds| {
        Some(rounds.iter().map(|round| round.operations).sum())
    }),
];

fn rate(round: &Round) -> Option<f64> {
    let bytes = round.operations * round.bytes_per_operation as f64;
    Some(bytes / 1e6 / round.seconds).filter(|rate| *rate > 0.0)
}

/// Runs the experiment. All files are removed when this returns, and also when the process is
/// killed.
///
/// # Errors
/// Returns [`Error::Cancelled`] if the watcher cancels, and an error if the disk fails or a read
/// returns wrong bytes.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    require_space(&options.dir, options.file_size + (1 << 30))?;
    watcher.step(0, 1, "writing the files");
    let bench = Bench::new(options, watcher)?;
    let host = Host::here().with_storage("", &bench.file.storage);
    let mut report = Report::new("seed gain", host, columns(FIELDS), BAR);
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    let mut contest = Contest::new(FIELDS, Method::ALL);
    contest.run(&Stage::only(options.rounds, watcher), |method| {
        if matches!(method, Method::One | Method::Many | Method::Long)
            && !bench.file.is_direct(PAGE)
        {
            return Outcome::skipped("no direct I/O here");
        }
        bench.measure(*method).map(Outcome::Measured)
    })?;
    contest.report(&mut report, "", |method| method.task().to_owned());
    add_ratios(&contest, &mut report);
    Ok(report)
}

fn add_ratios(contest: &Contest<Method, Round>, report: &mut Report) {
    let gain = |best, naive| contest.ratio(&best, &naive, rate);
    let write = gain(Method::Group, Method::Append);
    let random = gain(Method::Many, Method::One);
    let sequential = gain(Method::Long, Method::Buffered);
    let factors = |ratio: &Option<Ratio>, name: &str| {
        let [best, naive] = &ratio.as_ref()?.samples[..] else { return None };
        let both = best.rounds.iter().zip(naive.rounds.values());
        let rounds = both.map(|((number, best), naive)| (*number, best / naive)).collect();
        Some(Samples { name: name.to_owned(), rounds })
    };
    let [of_write, of_random, of_sequential] = [
        factors(&write, "gain of durable writes"),
        factors(&random, "gain of random reads"),
        factors(&sequential, "gain of sequential reads"),
    ];
    let compared = |a: Option<Samples>, b: Option<Samples>| Ratio::of(a?, b?);
    report.ratio("random_read_gain_vs_write_gain", compared(of_random, of_write.clone()));
    report.ratio("sequential_read_gain_vs_write_gain", compared(of_sequential, of_write));
    report.ratio("write_gain", write);
    report.ratio("write_gain_one_writer", gain(Method::Overwrite, Method::Append));
    report.ratio("random_read_gain", random);
    report.ratio("sequential_read_gain", sequential);
    report.ratio("cached_read_gain", gain(Method::Cached, Method::Buffered));
}

/// The files of the experiment.
struct Bench<'a> {
    options: &'a Options,
    file: TestFile,
    overwritten: Arc<dyn File>,
    group: GroupCommit,
    disk: OsDisk,
    _guardian: Guardian,
}

/// The names of the file that grows and of the one that is overwritten by one writer.
const GROWING: &str = "growing";
const OVERWRITTEN: &str = "overwritten";

impl<'a> Bench<'a> {
    fn new(options: &'a Options, watcher: &dyn Watcher) -> Result<Self> {
        let file = TestFile::new(&options.dir, options.file_size, watcher)?;
        let (path, guardian) = Guardian::of_tree(&options.dir, "haul-bench-gain")?;
        let disk = OsDisk::open(&path)?;
        fill(&*disk.create(OVERWRITTEN, Open::default())?, OVERWRITTEN_BYTES)?;
        let open = Open { direct: true, dsync: true, ..Open::default() };
        let overwritten = disk.open(OVERWRITTEN, open)?;
        let group = group(&path, options.depth)?;
        Ok(Self { options, file, overwritten, group, disk, _guardian: guardian })
    }

    fn measure(&self, method: Method) -> Result<Round> {
        let (time, bytes) = (self.options.seconds, self.file.bytes);
        match method {
            Method::Append => self.append(time),
            Method::Overwrite => {
                let page = page();
                timed(time, PAGE, u64::MAX, |number| {
                    let at = number * PAGE % OVERWRITTEN_BYTES;
                    Ok(write_full(&*self.overwritten, &page, at)?)
                })
            }
            Method::Group => self.commit(),
            Method::One => self.read_randomly(1),
            Method::Many => self.read_randomly(self.options.depth),
            Method::Buffered | Method::Cached => {
                self.file.make_cold()?;
                if method == Method::Cached {
                    self.file.read_through_cache(bytes, &haul_measure::Silent)?;
                }
                let file = self.file.open(Open::default())?;
                let mut page = AlignedBuf::zeroed(PAGE_BYTES);
                timed(time, PAGE, bytes / PAGE, |number| {
                    read_full(&*file, &mut page, number * PAGE)?;
                    check(&page, number * PAGE)
                })
            }
            Method::Long => self.read_long(),
        }
    }

    fn append(&self, time: Duration) -> Result<Round> {
        let file = self.disk.create(GROWING, Open::default())?;
        self.disk.sync_dir("")?;
        let page = page();
        let round = timed(time, PAGE, u64::MAX, |number| {
            write_full(&*file, &page, number * PAGE)?;
            Ok(file.sync(Durability::Everything)?)
        });
        drop(file);
        self.disk.remove(GROWING)?;
        round
    }

    fn commit(&self) -> Result<Round> {
        let measure = self.options.seconds;
        let load = WriteLoad {
            writers: self.options.depth,
            record_bytes: PAGE_BYTES,
            settle: measure / 10,
            measure,
        };
        let sample = drive(&self.group, &load, None).map_err(failed)?;
        let (operations, seconds) = (sample.appends, sample.seconds);
        Ok(Round { operations, bytes_per_operation: PAGE, seconds })
    }

    fn read_randomly(&self, readers: usize) -> Result<Round> {
        let file = self.file.open(Open { direct: true, ..Open::default() })?;
        let load = Load {
            read_bytes: PAGE,
            data_bytes: self.file.bytes,
            time: self.options.seconds,
            interval: Duration::ZERO,
        };
        let read = |buffer: &mut [u8], offset| -> Result<()> {
            Ok(read_full(&*file, buffer, offset).map(drop)?)
        };
        let reads = load.run(vec![read; readers])?;
        let (operations, seconds) = (reads.latencies.count() as f64, reads.time.as_secs_f64());
        Ok(Round { operations, bytes_per_operation: PAGE, seconds })
    }

    /// Reads the file in ascending order with four threads, each of which reads every fourth part.
    fn read_long(&self) -> Result<Round> {
        let file = self.file.open(Open { direct: true, ..Open::default() })?;
        let (time, parts) = (self.options.seconds, self.file.bytes / LONG_BYTES);
        let started = Instant::now();
        let read = |reader: u64| {
            let mut buffer = AlignedBuf::zeroed(usize::try_from(LONG_BYTES).unwrap_or(usize::MAX));
            timed(time, LONG_BYTES, parts / LONG_READERS, |number| {
                let at = (number * LONG_READERS + reader) * LONG_BYTES;
                read_full(&*file, &mut buffer, at)?;
                check(&buffer, at)
            })
        };
        let rounds = thread::scope(|scope| {
            let read = &read;
            let threads: Vec<_> =
                (0..LONG_READERS).map(|reader| scope.spawn(move || read(reader))).collect();
            threads.into_iter().map(joined).collect::<Result<Vec<_>>>()
        })?;
        let operations = rounds.iter().map(|round| round.operations).sum();
        let seconds = started.elapsed().as_secs_f64();
        Ok(Round { operations, bytes_per_operation: LONG_BYTES, seconds })
    }
}

/// Returns the bytes of a record, which are not zeros: a device may store these without a write.
fn page() -> AlignedBuf {
    let mut page = AlignedBuf::zeroed(PAGE_BYTES);
    page.fill(b'n');
    page
}

fn group(dir: &Path, writers: usize) -> Result<GroupCommit> {
    let dir = dir.join("group");
    fs::create_dir(&dir).map_err(Error::other(format!("create {}", dir.display())))?;
    GroupCommit::open(&dir, PAGE_BYTES, writers).map_err(failed)
}

fn failed(failure: Failure) -> Error {
    Error::Missing(format!("cannot write with a group commit: {}", error_chain(&*failure)))
}

/// Calls `body` with the numbers from 0 up to `count` until the time has passed.
fn timed(
    time: Duration,
    bytes_per_operation: u64,
    count: u64,
    mut body: impl FnMut(u64) -> Result<()>,
) -> Result<Round> {
    let (started, mut number) = (Instant::now(), 0);
    while number < count && (number == 0 || started.elapsed() < time) {
        body(number)?;
        number += 1;
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(Round { operations: number as f64, bytes_per_operation, seconds })
}

impl Options {
    fn note(&self) -> String {
        let Self { file_size, depth, rounds, seconds, .. } = self;
        format!(
            "One disk; a file of {} MiB is read, not in the page cache at the start but in the row \
             \"all cached\"; {depth} writers share syncs, {depth} readers read at random; {rounds} \
             interleaved rounds of up to {} ms. A gain is the rate of the best method divided by \
             that of the first one of its task: append + fsync, one reader, 4 KiB through the page \
             cache. \"read_gain_vs_write_gain\" divides the gains of each round: above 1, reads \
             gain more. The text has no factor, only that writing is harder to speed up (above 1).",
            file_size >> 20,
            seconds.as_millis(),
        )
    }
}
