//! Measures reads of objects in the file store, cold and hot, beside reads of plain pages.

use std::fmt;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{DeviceCounters, Open, PAGE_BYTES, read_full};
use haul_file_store::{GetMany, Options as StoreOptions, Store};
use haul_measure::{Latencies, Result, Watcher};
use haul_testing::{Random, noise};
use haul_units::parse_time;

use super::objects::{Numbered, evict_below, fill, key};
use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::host::Host;
use crate::log::{Failure, Scratch, failed, process_cpu};
use crate::named::named;
use crate::options::{count as number_of, rounds, size};
use crate::reads::{Load, Reads, joined};
use crate::report::{Column, Report};
use crate::test_file::TestFile;

/// The length of the objects of which a range is read: long, but in volumes with default options.
const RANGE_OBJECT_BYTES: u64 = 3 << 20;
/// The length of the range.
const RANGE_BYTES: u64 = 100;

/// The benchmark `small-files-get`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct SmallFilesGetBench {
    /// Directory for the test files, which needs four times the data size by default
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Lengths of the objects that are read whole
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB,16KiB")]
    #[arg(value_parser = object_bytes)]
    pub sizes: Vec<u64>,
    /// Bytes of the objects of each length, and of the file of the floor; 16MiB or more
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = data_bytes)]
    pub data_size: u64,
    /// Number of threads that read
    #[arg(long, value_name = "N", default_value = "32", value_parser = number_of(1..=1024))]
    pub threads: usize,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Maximum duration of one measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub seconds: Duration,
}

impl SmallFilesGetBench {
    /// Returns the reads to measure: of whole objects, and of a range.
    fn cases(&self) -> Vec<Case> {
        let whole = self.sizes.iter().map(|&bytes| Case { object_bytes: bytes, read_bytes: bytes });
        let range = Case { object_bytes: RANGE_OBJECT_BYTES, read_bytes: RANGE_BYTES };
        whole.chain([range]).collect()
    }
}

fn object_bytes(text: &str) -> Result<u64, String> {
    size(text, 64..=1 << 20, "64 B to 1MiB")
}

fn data_bytes(text: &str) -> Result<u64, String> {
    Ok(size(text, 16 << 20..=1 << 40, "16MiB to 1TiB")? >> 20 << 20)
}

/// The length of the objects and of the bytes that are read of each.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Case {
    object_bytes: u64,
    read_bytes: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object_bytes, read_bytes } = self;
        if self.is_whole() {
            write!(f, "objects of {object_bytes} bytes")
        } else {
            write!(f, "{read_bytes} of {object_bytes} bytes")
        }
    }
}

impl Case {
    /// Returns `true` if whole objects are read.
    fn is_whole(self) -> bool {
        self.object_bytes == self.read_bytes
    }

    /// Returns the bucket of the objects.
    fn bucket(self) -> String {
        format!("objects-{}", self.object_bytes)
    }

    /// Returns the number of objects in `data_bytes` bytes of objects.
    fn objects(self, data_bytes: u64) -> u64 {
        (data_bytes / self.object_bytes).max(1)
    }
}

named! {
    /// The source of the bytes: the device (cold) or the page cache (hot).
    enum Cache {
        Cold = "cold",
        Hot = "hot",
    }
}

named! {
    /// The target of the reads.
    enum Target {
        /// The file store of Haul, with one call for each object or range.
        Store = "haul",
        /// The file store of Haul, with one thread and one call for many objects.
        Many = "haul: get_many",
        /// `pread` of whole pages at random offsets of one file.
        Floor = "floor: pread",
        /// `pread` of one page more: the head of a needle and its data begin within a page.
        FloorWithHead = "floor: 1 page more",
    }
}

impl Target {
    /// Returns `true` if the target is measured with these reads.
    fn reads(self, case: Case) -> bool {
        match self {
            Self::Store | Self::Floor => true,
            Self::Many | Self::FloorWithHead => case.is_whole(),
        }
    }
}

/// A target, the bytes that it reads, and their source.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    cache: Cache,
    case: Case,
    target: Target,
}

impl Strategy {
    fn group(&self) -> String {
        self.case.to_string()
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.cache, self.case, self.target)
    }
}

/// The reads of one round.
struct Round {
    reads: Reads,
    cpu_seconds: f64,
    /// Bytes read from the device during the round, including those of other programs.
    device_bytes: Option<f64>,
}

const BAR: &str = "gets_per_s";

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("target", "target", |strategy| strategy.target.name().into()),
    Field::parameter(Column::number("object_bytes", "object", 0), |strategy| {
        (strategy.case.object_bytes as f64).into()
    }),
    Field::parameter(Column::number("read_bytes", "bytes", 0), |strategy| {
        (strategy.case.read_bytes as f64).into()
    }),
    Field::spread(Column::number("gets_per_s", "reads/s", 0), 5, rate),
    Field::percentile_us(Column::number("p50_us", "p50 µs", 1), 50.0, latencies),
    Field::percentile_us(Column::number("p99_us", "p99 µs", 1), 99.0, latencies),
    Field::median(Column::number("cpu_us_per_get", "CPU µs", 1), |round| {
        Some(round.cpu_seconds * 1e6 / count(round))
    }),
    Field::median(Column::number("device_reads_per_get", "device reads", 2), |round| {
        round.reads.device_reads_each()
    }),
    Field::median(Column::number("device_bytes_per_get", "device bytes", 0), |round| {
        Some(round.device_bytes? / count(round))
    }),
    Field::total(Column::number("gets", "reads", 0).ranked(6), |rounds| {
        Some(rounds.iter().map(count).sum())
    }),
];

fn count(round: &Round) -> f64 {
    round.reads.latencies.count() as f64
}

fn rate(round: &Round) -> Option<f64> {
    round.reads.per_second()
}

fn latencies(round: &Round) -> &Latencies {
    &round.reads.latencies
}

impl Benchmark for SmallFilesGetBench {
    const NAME: &'static str = "small-files-get";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        watcher.step(0, 1, "writing the files");
        let file = TestFile::new(&self.dir, self.data_size, watcher)?;
        let cases = self.cases();
        let targets = Targets::new(self, &file, &cases, watcher)?;
        let host = Host::here().with_storage("", &file.storage);
        let mut report = Report::new(Self::NAME, host, columns(FIELDS), BAR);
        report.notes.push(note(self));
        let of = Cache::ALL.len() * cases.len();
        let all =
            Cache::ALL.into_iter().flat_map(|cache| cases.iter().map(move |case| (cache, *case)));
        for (number, (cache, case)) in all.enumerate() {
            let all = Target::ALL.into_iter().filter(|target| target.reads(case));
            let mut contest =
                Contest::new(FIELDS, all.map(|target| Strategy { cache, case, target }));
            let stage = Stage { number, of, ..Stage::only(self.rounds, watcher) };
            let is_floor = |strategy: &Strategy| strategy.target == Target::Floor;
            let rounds = contest.run_above_floor(&stage, is_floor, rate, |strategy| {
                measure(&targets, &file, strategy)
            })?;
            let what = format!("{cache}, {} B of {} B", case.read_bytes, case.object_bytes);
            report.notes.push(rounds.note(&what));
            contest.report(&mut report, cache.name(), Strategy::group);
            add_ratios(&contest, cache, case, &mut report);
        }
        Ok(report)
    }
}

fn note(options: &SmallFilesGetBench) -> String {
    format!(
        "{} interleaved rounds of up to {} ms by {} threads, get_many by one thread with \
         {BATCH_KEYS} keys in a call; its latencies are from the call to the return of each object. \
         Cold: the files are evicted from the \
         page cache before each round, and a round reads at most a quarter of the objects, each \
         once. Hot: a quarter of the objects, read before. The floor reads whole pages at random \
         offsets of a file of {} MiB, cold with O_DIRECT where the disk supports it: as many as an \
         object has, or one more, because a needle begins within a page. A range is \
         read from objects of {RANGE_OBJECT_BYTES} bytes. Device reads and bytes are per read, and \
         include other programs.",
        options.rounds,
        options.seconds.as_millis(),
        options.threads,
        options.data_size >> 20,
    )
}

fn measure(targets: &Targets<'_>, file: &TestFile, strategy: &Strategy) -> Result<Outcome<Round>> {
    let counters = || {
        let device = file.storage.device.as_ref()?;
        DeviceCounters::of(device).ok()
    };
    let is_cold = strategy.cache == Cache::Cold;
    let (case, what) = (strategy.case, || format!("measure {strategy}"));
    let numbers = match strategy.target {
        Target::Store | Target::Many => {
            targets.prepare_store(case, is_cold).map_err(|it| failed(what())(it))?
        }
        Target::Floor | Target::FloorWithHead => {
            targets.prepare_floor(is_cold)?;
            Vec::new()
        }
    };
    let (before, cpu) = (counters(), process_cpu());
    let reads = match strategy.target {
        Target::Store => targets.read(case, &targets.load(case), &numbers, is_cold),
        Target::Many => targets.read_many(case, &numbers, is_cold),
        Target::Floor => targets.read_floor(case, 0, is_cold).map_err(Failure::from),
        Target::FloorWithHead => {
            targets.read_floor(case, PAGE_BYTES as u64, is_cold).map_err(Failure::from)
        }
    };
    let reads = reads.map_err(failed(what()))?;
    let cpu_seconds = process_cpu().saturating_sub(cpu).as_secs_f64();
    let device = counters().zip(before).map(|(after, before)| after.since(&before));
    let device_reads = device.map(|device| device.reads);
    let device_bytes = device.map(|device| device.read_bytes as f64);
    let reads = Reads { device_reads, ..reads };
    Ok(Outcome::Measured(Round { reads, cpu_seconds, device_bytes }))
}

/// Adds the rates of the store divided by those of the floors.
fn add_ratios(contest: &Contest<Strategy, Round>, cache: Cache, case: Case, report: &mut Report) {
    let strategy = |target| Strategy { cache, case, target };
    let Case { object_bytes, read_bytes } = case;
    for (name, a, b) in [
        ("store_vs_floor", Target::Store, Target::Floor),
        ("store_vs_floor_with_head", Target::Store, Target::FloorWithHead),
        ("many_vs_store", Target::Many, Target::Store),
        ("many_vs_floor_with_head", Target::Many, Target::FloorWithHead),
    ] {
        if a.reads(case) && b.reads(case) {
            let ratio = contest.ratio(&strategy(a), &strategy(b), rate);
            report.ratio(format!("{name}_{read_bytes}_of_{object_bytes}_{cache}"), ratio);
        }
    }
}

/// The number of keys in a call.
const BATCH_KEYS: usize = 1000;

/// The number of threads that store the objects.
/// A round reads one of this many objects, so that an object shares few pages with objects that
/// were read before it.
const PART: usize = 4;
/// The seed of the order in which the objects are read.
const SEED: u64 = 7;

/// The store and the file that are read.
struct Targets<'a> {
    options: &'a SmallFilesGetBench,
    file: &'a TestFile,
    store: Store,
    content: Vec<u8>,
    scratch: Scratch,
}

impl<'a> Targets<'a> {
    /// Creates a store with the objects of all cases, in a new directory.
    fn new(
        options: &'a SmallFilesGetBench,
        file: &'a TestFile,
        cases: &[Case],
        watcher: &dyn Watcher,
    ) -> Result<Self> {
        let name = format!("haul-bench-small-files-get.{}", std::process::id());
        let scratch = Scratch::new(&options.dir, &name)?;
        let opened = Store::open(&scratch.path().join("store"), StoreOptions::default());
        let (store, _recovered) = opened.map_err(|error| failed("create a store")(error.into()))?;
        let longest = cases.iter().map(|case| case.object_bytes).max().unwrap_or(0);
        let content = noise(SEED, usize::try_from(longest).unwrap_or(usize::MAX));
        let targets = Self { options, file, store, content, scratch };
        for (number, case) in cases.iter().enumerate() {
            watcher.check()?;
            watcher.step(number, cases.len(), &format!("storing {case}"));
            targets.fill(*case).map_err(failed("store the objects"))?;
        }
        Ok(targets)
    }

    fn fill(&self, case: Case) -> Result<(), Failure> {
        let bucket = case.bucket();
        self.store.create_bucket(&bucket)?;
        let content = &self.content[..usize::try_from(case.object_bytes)?];
        let objects = Numbered { content };
        fill(&self.store, &bucket, objects, 0..case.objects(self.options.data_size))
    }

    /// Evicts the store from the page cache, or reads the objects of the round into it. Returns the
    /// numbers of these objects, in random order.
    fn prepare_store(&self, case: Case, is_cold: bool) -> Result<Vec<u64>, Failure> {
        let mut numbers: Vec<u64> = (0..case.objects(self.options.data_size)).collect();
        let mut random = Random(SEED);
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, random.index(at + 1));
        }
        numbers.truncate(numbers.len().div_ceil(PART));
        if is_cold {
            evict_below(self.scratch.path())?;
        } else {
            let warm = Load { time: Duration::MAX, ..self.load(case) };
            self.read(case, &warm, &numbers, true)?;
        }
        Ok(numbers)
    }

    fn load(&self, case: Case) -> Load {
        Load {
            // A disk reads whole pages.
            read_bytes: case.read_bytes.next_multiple_of(PAGE_BYTES as u64),
            data_bytes: self.options.data_size,
            time: self.options.seconds,
            interval: Duration::ZERO,
        }
    }

    fn read(
        &self,
        case: Case,
        load: &Load,
        numbers: &[u64],
        is_once: bool,
    ) -> Result<Reads, Failure> {
        let (next, start) = (AtomicUsize::new(0), Barrier::new(self.options.threads));
        let read = |seed: u64| -> Result<(Latencies, Instant, Instant), Failure> {
            let (mut latencies, mut random) = (Latencies::default(), Random(seed));
            start.wait();
            let began = Instant::now();
            while began.elapsed() < load.time {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if is_once && at >= numbers.len() {
                    break;
                }
                let number = numbers[at % numbers.len()];
                latencies.record(self.get(case, number, &mut random)?);
            }
            Ok((latencies, began, Instant::now()))
        };
        let parts = thread::scope(|scope| {
            let seeds = 0..self.options.threads as u64;
            let read = &read;
            let threads: Vec<_> = seeds.map(|seed| scope.spawn(move || read(seed))).collect();
            threads.into_iter().map(joined).collect::<Result<Vec<_>, Failure>>()
        })?;
        Ok(Reads::of(&parts))
    }

    /// Reads an object, or a random range of it; returns the duration.
    fn get(&self, case: Case, number: u64, random: &mut Random) -> Result<Duration, Failure> {
        let from = random.below(case.object_bytes - case.read_bytes + 1);
        let bytes = usize::try_from(case.read_bytes)?;
        let (bucket, key) = (case.bucket(), key(number));
        let began = Instant::now();
        let read = match case.is_whole() {
            true => self.store.get(&bucket, &key)?.read(0, bytes)?,
            false => self.store.get_range(&bucket, &key, from, bytes)?,
        };
        let time = began.elapsed();
        self.check(case, number, from, &read)?;
        Ok(time)
    }

    /// Returns an error if the bytes that were read at `from` are not those of the object.
    fn check(&self, case: Case, number: u64, from: u64, read: &[u8]) -> Result<(), Failure> {
        let (bytes, first) = (usize::try_from(case.read_bytes)?, usize::try_from(from)?);
        let expected = &self.content[first..first + bytes];
        // The first bytes of an object are its number.
        let skipped = 8_usize.saturating_sub(first);
        let is_right = read.len() == bytes
            && read[skipped..] == expected[skipped..]
            && (first > 0 || read.first_chunk() == Some(&number.to_le_bytes()));
        if is_right { Ok(()) } else { Err(format!("{} has wrong bytes", key(number)).into()) }
    }

    /// Evicts the file of the floor from the page cache, or reads it into the cache.
    fn prepare_floor(&self, is_cold: bool) -> Result<()> {
        if is_cold {
            self.file.make_cold()
        } else {
            self.file.read_through_cache(self.file.bytes, &haul_measure::Silent)
        }
    }

    /// Reads pages at random offsets of the file until the time has passed, `more` bytes more than
    /// of an object.
    fn read_floor(&self, case: Case, more: u64, is_cold: bool) -> Result<Reads> {
        let mut load = self.load(case);
        load.read_bytes += more;
        let direct = is_cold && self.file.is_direct(load.read_bytes);
        let file = self.file.open(Open { direct, random: true, ..Open::default() })?;
        let read = |buffer: &mut [u8], offset| -> Result<()> {
            Ok(read_full(&*file, buffer, offset).map(drop)?)
        };
        load.run(vec![read; self.options.threads])
    }

    /// Reads the objects in one thread until the time has passed: each once, or again and again.
    /// The latency of an object is the time from the call to its return by the iterator.
    fn read_many(&self, case: Case, numbers: &[u64], is_once: bool) -> Result<Reads, Failure> {
        let (bucket, bytes) = (case.bucket(), usize::try_from(case.read_bytes)?);
        let mut latencies = Latencies::default();
        let began = Instant::now();
        'rounds: loop {
            for batch in numbers.chunks(BATCH_KEYS) {
                if began.elapsed() >= self.options.seconds {
                    break 'rounds;
                }
                let keys: Vec<String> = batch.iter().map(|number| key(*number)).collect();
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                let called = Instant::now();
                let objects: GetMany<'_> = self.store.get_many(&bucket, &keys);
                for (index, object) in objects {
                    let read = object?.read(0, bytes)?;
                    latencies.record(called.elapsed());
                    self.check(case, batch[index], 0, &read)?;
                }
            }
            if is_once {
                break;
            }
        }
        Ok(Reads::of(&[(latencies, began, Instant::now())]))
    }
}
