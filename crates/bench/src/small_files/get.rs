//! Measures reads of objects in the file store, cold and hot, beside reads of plain pages.

use std::fmt;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{DeviceCounters, Open, PAGE_BYTES, read_full};
use haul_file_store::{Options as StoreOptions, Store};
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

/// The benchmark `small-files-get`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct SmallFilesGetBench {
    /// Directory for the store and the file of the floor, which needs three times the data
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Lengths of an object
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB,16KiB")]
    #[arg(value_parser = object_bytes)]
    pub sizes: Vec<u64>,
    /// Bytes of all objects of a length, and of the file of the floor
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = data_bytes)]
    pub data_size: u64,
    /// Number of threads that read
    #[arg(long, value_name = "N", default_value = "32", value_parser = number_of(1..=1024))]
    pub threads: usize,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement; a cold one ends when a quarter of the objects is read
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub seconds: Duration,
}

fn object_bytes(text: &str) -> Result<u64, String> {
    size(text, 64..=1 << 20, "64 B to 1MiB")
}

fn data_bytes(text: &str) -> Result<u64, String> {
    Ok(size(text, 16 << 20..=1 << 40, "16MiB to 1TiB")? >> 20 << 20)
}

named! {
    enum Cache {
        /// Files are evicted before the round, and each object is read once.
        Cold = "cold",
        /// The objects were read before.
        Hot = "hot",
    }
}

named! {
    enum Target {
        Store = "haul",
        /// As many whole pages as an object has, at random places of a plain file.
        Floor = "floor: pread",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    cache: Cache,
    bytes: u64,
    target: Target,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, objects of {} bytes: {}", self.cache, self.bytes, self.target)
    }
}

struct Round {
    reads: Reads,
    cpu_seconds: f64,
    device_bytes: Option<f64>,
}

const BAR: &str = "gets_per_s";

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("target", "target", |strategy| strategy.target.name().into()),
    Field::parameter(Column::number("object_bytes", "object", 0), |it| it.bytes.into()),
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

/// A round reads at most this part of the objects.
const PART: usize = 4;
const SEED: u64 = 7;

impl Benchmark for SmallFilesGetBench {
    const NAME: &'static str = "small-files-get";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        watcher.step(0, 1, "writing the files");
        let file = TestFile::new(&self.dir, self.data_size, watcher)?;
        let objects = Objects::new(self, watcher)?;
        let host = Host::here().with_storage("", &file.storage);
        let mut report = Report::new(Self::NAME, host, columns(FIELDS), BAR);
        report.notes.push(format!(
            "{} interleaved rounds of up to {} ms by {} threads. Cold: the files are evicted from \
             the page cache before each round, and a round reads at most a quarter of the objects, \
             each once. Hot: a quarter of the objects, read before. The floor reads as many whole \
             pages as an object has at random offsets of a file of {} MiB, cold with O_DIRECT \
             where the disk supports it. Device reads and bytes are per read, and include other \
             programs.",
            self.rounds,
            self.seconds.as_millis(),
            self.threads,
            self.data_size >> 20,
        ));
        let of = Cache::ALL.len() * self.sizes.len();
        let all =
            Cache::ALL.into_iter().flat_map(|cache| self.sizes.iter().map(move |it| (cache, *it)));
        for (number, (cache, bytes)) in all.enumerate() {
            let strategies = Target::ALL.map(|target| Strategy { cache, bytes, target });
            let mut contest = Contest::new(FIELDS, strategies);
            let stage = Stage { number, of, ..Stage::only(self.rounds, watcher) };
            let is_floor = |strategy: &Strategy| strategy.target == Target::Floor;
            let rounds = contest.run_above_floor(&stage, is_floor, rate, |strategy| {
                let failed = failed(format!("measure {strategy}"));
                self.measure(&objects, &file, strategy).map(Outcome::Measured).map_err(failed)
            })?;
            report.notes.push(rounds.note(&format!("{cache}, {bytes} B")));
            contest.report(&mut report, cache.name(), |it| it.bytes.to_string());
            let [store, floor] = strategies;
            let ratio = contest.ratio(&store, &floor, rate);
            report.ratio(format!("store_vs_floor_{bytes}_of_{bytes}_{cache}"), ratio);
        }
        Ok(report)
    }
}

impl SmallFilesGetBench {
    fn load(&self, bytes: u64) -> Load {
        Load {
            // A disk reads whole pages.
            read_bytes: bytes.next_multiple_of(PAGE_BYTES as u64),
            data_bytes: self.data_size,
            time: self.seconds,
            interval: Duration::ZERO,
        }
    }

    fn measure(
        &self,
        objects: &Objects,
        file: &TestFile,
        strategy: &Strategy,
    ) -> Result<Round, Failure> {
        let device = file.storage.device.as_ref();
        let counters = || device.and_then(|device| DeviceCounters::of(device).ok());
        let (load, is_cold) = (self.load(strategy.bytes), strategy.cache == Cache::Cold);
        let numbers = match strategy.target {
            Target::Store => self.prepare(objects, strategy.bytes, is_cold)?,
            Target::Floor if is_cold => file.make_cold().map(|()| Vec::new())?,
            Target::Floor => {
                file.read_through_cache(file.bytes, &haul_measure::Silent)?;
                Vec::new()
            }
        };
        let (before, cpu) = (counters(), process_cpu());
        let reads = match strategy.target {
            Target::Store => {
                objects.read(strategy.bytes, self.threads, load.time, &numbers, is_cold)?
            }
            Target::Floor => {
                let direct = is_cold && file.is_direct(load.read_bytes);
                let file = file.open(Open { direct, random: true, ..Open::default() })?;
                let read = |buffer: &mut [u8], offset| -> Result<()> {
                    Ok(read_full(&*file, buffer, offset).map(drop)?)
                };
                load.run(vec![read; self.threads])?
            }
        };
        let cpu_seconds = process_cpu().saturating_sub(cpu).as_secs_f64();
        let device = counters().zip(before).map(|(after, before)| after.since(&before));
        let device_bytes = device.map(|device| device.read_bytes as f64);
        let reads = Reads { device_reads: device.map(|device| device.reads), ..reads };
        Ok(Round { reads, cpu_seconds, device_bytes })
    }

    /// Returns the numbers of a part of the objects in random order, evicted or read before.
    fn prepare(&self, objects: &Objects, bytes: u64, is_cold: bool) -> Result<Vec<u64>, Failure> {
        let mut numbers: Vec<u64> = (0..(self.data_size / bytes).max(1)).collect();
        let mut random = Random(SEED);
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, random.index(at + 1));
        }
        numbers.truncate(numbers.len().div_ceil(PART));
        match is_cold {
            true => evict_below(objects.scratch.path())?,
            false => {
                objects.read(bytes, self.threads, Duration::MAX, &numbers, true)?;
            }
        }
        Ok(numbers)
    }
}

/// A store with a bucket for each length of objects.
struct Objects {
    store: Store,
    content: Vec<u8>,
    scratch: Scratch,
}

fn bucket(bytes: u64) -> String {
    format!("objects-{bytes}")
}

impl Objects {
    fn new(bench: &SmallFilesGetBench, watcher: &dyn Watcher) -> Result<Self> {
        let name = format!("haul-bench-small-files-get.{}", std::process::id());
        let scratch = Scratch::new(&bench.dir, &name)?;
        let opened = Store::open(&scratch.path().join("store"), StoreOptions::default());
        let (store, _recovered) = opened.map_err(|error| failed("create a store")(error.into()))?;
        let longest = bench.sizes.iter().copied().max().unwrap_or(0);
        let content = noise(SEED, usize::try_from(longest).unwrap_or(usize::MAX));
        let objects = Self { store, content, scratch };
        for (number, bytes) in bench.sizes.iter().copied().enumerate() {
            watcher.check()?;
            watcher.step(number, bench.sizes.len(), &format!("storing objects of {bytes} bytes"));
            let filled = objects.fill(bytes, (bench.data_size / bytes).max(1));
            filled.map_err(failed("store the objects"))?;
        }
        Ok(objects)
    }

    fn fill(&self, bytes: u64, count: u64) -> Result<(), Failure> {
        self.store.create_bucket(&bucket(bytes))?;
        let content = &self.content[..usize::try_from(bytes)?];
        fill(&self.store, &bucket(bytes), Numbered { content }, 0..count)
    }

    /// Reads the objects with these numbers by several threads, once or until the time is over.
    fn read(
        &self,
        bytes: u64,
        threads: usize,
        time: Duration,
        numbers: &[u64],
        is_once: bool,
    ) -> Result<Reads, Failure> {
        let (next, start, bucket) = (AtomicUsize::new(0), Barrier::new(threads), bucket(bytes));
        let length = usize::try_from(bytes)?;
        let read = || -> Result<(Latencies, Instant, Instant), Failure> {
            let mut latencies = Latencies::default();
            start.wait();
            let began = Instant::now();
            while began.elapsed() < time {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if is_once && at >= numbers.len() {
                    break;
                }
                let number = numbers[at % numbers.len()];
                let (key, called) = (key(number), Instant::now());
                let read = self.store.get(&bucket, &key)?.read(0, length)?;
                latencies.record(called.elapsed());
                // The first bytes of an object are its number.
                let is_right = read.first_chunk() == Some(&number.to_le_bytes());
                if !is_right || read[8..] != self.content[8..length] {
                    return Err(format!("{key} has wrong bytes").into());
                }
            }
            Ok((latencies, began, Instant::now()))
        };
        let parts = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&read)).collect();
            threads.into_iter().map(joined).collect::<Result<Vec<_>, Failure>>()
        })?;
        Ok(Reads::of(&parts))
    }
}
