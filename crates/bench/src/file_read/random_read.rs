//! Measures random reads of one file with several methods and increasing numbers of readers.
//!
//! Cold reads use `O_DIRECT`, so each cold read reads from the device. Warm reads find the file in
//! the page cache. Every read is timed and verified.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, File, Open, Ring, RingOp, RingRequest, read_full, warm};
use haul_measure::{Error, Latencies, Result, Watcher};
use haul_testing::Random;
use haul_units::parse_time;

use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::fio;
use crate::named::named;
use crate::options::{count, file_size, pages, rounds};
use crate::reads::{Load, Reads};
use crate::report::Report;
use crate::test_file::{NO_DIRECT_IO, TestFile, check};

/// The benchmark `random-read`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct RandomReadBench {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Length of a read, a multiple of 4KiB, at most 64MiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = pages)]
    pub size: u64,
    /// Length of the test file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = file_size)]
    pub file_size: u64,
    /// Numbers of concurrent readers; each number is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "1,2,4,8,16,32,64,128,256", value_parser = count(1..=4096))]
    pub readers: Vec<usize>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 1s
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_time)]
    pub seconds: Duration,
}

named! {
    /// The method by which the readers read the file.
    pub(super) enum Method {
        /// `pread` on one descriptor that all readers share.
        SharedPread = "pread, shared descriptor",
        /// `pread` on a separate descriptor for each reader.
        OwnPread = "pread, own descriptors",
        /// `lseek` and `read` on one descriptor, under a lock.
        LockedSeek = "seek + read, locked",
        /// One thread with one io_uring, and as many reads in flight as there are readers.
        Ring = "io_uring, one thread",
    }
}

named! {
    /// The source of the bytes: the device (cold) or the page cache (warm).
    pub(super) enum Cache {
        Cold = "cold",
        Warm = "warm",
    }
}

/// A method of reading, with a number of readers and the source of the bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    cache: Cache,
    readers: usize,
    method: Method,
    read_bytes: u64,
    file_bytes: u64,
}

impl Point {
    /// Returns the options of fio for the same reads; `None` for reads under a lock.
    fn fio_options(&self) -> Option<String> {
        let Self { cache, readers, method, read_bytes, file_bytes } = self;
        let engine = match method {
            Method::SharedPread | Method::OwnPread => {
                format!("--ioengine=psync --thread --numjobs={readers} --group_reporting")
            }
            Method::LockedSeek => return None,
            Method::Ring => format!("--ioengine=io_uring --iodepth={readers}"),
        };
        let cache = match cache {
            Cache::Cold => "--direct=1",
            Cache::Warm => "--invalidate=0 --pre_read=1",
        };
        Some(format!(
            "--rw=randread --bs={read_bytes} --size={file_bytes} {engine} {cache} --time_based \
             --runtime=2"
        ))
    }
}

const FIELDS: &[Field<Point, Reads>] = &[
    number("readers", "readers", 0).label(|it| it.readers.into()),
    Field::label("way", "method", |point| point.method.name().into()),
    number("reads_per_s", "reads/s", 0).spread(6, Reads::per_second),
    number("mb_per_s", "MB/s", 1).rank(5).median(Reads::megabytes_per_second),
    number("median_us", "µs", 1).percentile_us(50.0, |it| &it.latencies),
    number("p99_us", "p99 µs", 1).rank(1).percentile_us(99.0, |it| &it.latencies),
    number("p999_us", "p99.9 µs", 1).rank(2).percentile_us(99.9, |it| &it.latencies),
    number("device_reads", "device reads", 2).rank(3).median(Reads::device_reads_each),
    number("reads", "reads", 0).rank(7).sum(|round| round.latencies.count()),
    fio::COLUMN.label(|point| fio::cell(point.fio_options())),
];

impl Benchmark for RandomReadBench {
    const NAME: &'static str = "random-read";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let file = TestFile::new(&self.dir, self.file_size, watcher)?;
        let mut report = new_report(Self::NAME, FIELDS, note(self));
        report.host = report.host.with_storage("", &file.storage);
        // Cold reads are measured first, because their preparation evicts the file, and warm reads need
        // the file in the page cache.
        for (number, cache) in Cache::ALL.into_iter().enumerate() {
            let mut contest = contest(self, cache);
            let obstacle = prepare(self, &file, cache, watcher)?;
            let stage = Stage { number, of: Cache::ALL.len(), ..Stage::only(self.rounds, watcher) };
            contest.run(&stage, |point| match obstacle {
                Some(reason) => Outcome::skipped(reason),
                None => measure(self, &file, point),
            })?;
            contest.report(&mut report, cache.name(), |point| point.readers.to_string());
            add_ratios(&contest, cache, self, &mut report);
        }
        Ok(report)
    }
}

fn contest(options: &RandomReadBench, cache: Cache) -> Contest<Point, Reads> {
    let (read_bytes, file_bytes) = (options.size, options.file_size);
    let of = |readers: &usize| {
        let readers = *readers;
        Method::ALL.map(move |method| Point { cache, readers, method, read_bytes, file_bytes })
    };
    Contest::new(FIELDS, options.readers.iter().flat_map(of))
}

fn note(options: &RandomReadBench) -> String {
    let RandomReadBench { size, file_size, rounds, seconds, .. } = options;
    format!(
        "Reads of {size} B at random pages of a file of {} MiB; {rounds} interleaved rounds, {} ms \
         each. Cold: O_DIRECT; warm: the whole file in the page cache. Reads per second are \
         medians of the rounds, latencies those of all reads; device reads are per read, from the \
         counters of the device, which include other programs. A ratio \"a_vs_b\" is the rate of a \
         divided by that of b with that many readers.",
        file_size >> 20,
        seconds.as_millis()
    )
}

/// Evicts the file or reads it into the page cache; returns the reason if this state cannot be
/// measured.
fn prepare(
    options: &RandomReadBench,
    file: &TestFile,
    cache: Cache,
    watcher: &dyn Watcher,
) -> Result<Option<&'static str>> {
    match cache {
        Cache::Cold if !file.is_direct(options.size) => return Ok(Some(NO_DIRECT_IO)),
        Cache::Cold => file.make_cold()?,
        Cache::Warm => {
            warm(&*file.open(Open::default())?, 0, u64::MAX)?;
            file.read_through_cache(file.bytes, watcher)?;
            if file.in_memory()? < 1.0 {
                return Ok(Some("does not fit into memory"));
            }
        }
    }
    Ok(None)
}

fn measure(options: &RandomReadBench, file: &TestFile, point: &Point) -> Result<Outcome<Reads>> {
    let load = Load::new(options.size, options.file_size, options.seconds);
    let direct = point.cache == Cache::Cold;
    let (reads, device_reads) = file.count_reads(|| match point.method {
        Method::Ring => read_by_ring(file, direct, point.readers, &load),
        _ => read_by_threads(file, point, &load).map(Some),
    })?;
    match reads {
        Some(reads) => Ok(Outcome::Measured(Reads { device_reads, ..reads })),
        None => Outcome::skipped("no io_uring here"),
    }
}

fn read_by_threads(file: &TestFile, point: &Point, load: &Load) -> Result<Reads> {
    let Point { method, readers, .. } = *point;
    let direct = point.cache == Cache::Cold;
    let flags = Open { direct, random: true, ..Open::default() };
    if method == Method::LockedSeek {
        let file = Mutex::new(file.open_seekable(direct)?);
        let read = |buffer: &mut [u8], offset| {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(offset))
                .and_then(|_| file.read_exact(buffer))
                .map_err(Error::other("read the file"))
        };
        return load.run(vec![read; readers]);
    }
    let count = if method == Method::OwnPread { readers } else { 1 };
    let opened = (0..count).map(|_| file.open(flags)).collect::<Result<Vec<_>>>()?;
    let reader = |file: &dyn File, buffer: &mut [u8], offset| -> Result<()> {
        Ok(read_full(file, buffer, offset).map(drop)?)
    };
    let all = opened.iter().cycle().take(readers);
    load.run(all.map(|file| move |buffer: &mut [u8], at| reader(&**file, buffer, at)).collect())
}

/// Adds the ratios between the rates of the methods with the most readers, and the ratio of the
/// rate with the most readers to the rate with the fewest readers.
fn add_ratios(
    contest: &Contest<Point, Reads>,
    cache: Cache,
    options: &RandomReadBench,
    report: &mut Report,
) {
    let readers = options.readers.iter().copied();
    let (least, most) = (readers.clone().min().unwrap_or(1), readers.max().unwrap_or(1));
    let (read_bytes, file_bytes) = (options.size, options.file_size);
    let point = |method, readers| Point { cache, readers, method, read_bytes, file_bytes };
    let shared = point(Method::SharedPread, most);
    for (name, a, b) in [
        (format!("shared_vs_locked_{most}"), shared, point(Method::LockedSeek, most)),
        (format!("ring_vs_shared_{most}"), point(Method::Ring, most), shared),
        (format!("own_vs_shared_{most}"), point(Method::OwnPread, most), shared),
        (format!("shared_{most}_vs_{least}"), shared, point(Method::SharedPread, least)),
    ] {
        report.ratio(format!("{name}_{cache}"), contest.ratio(&a, &b, Reads::per_second));
    }
}

/// Keeps `depth` reads in flight until the time of `load` has passed, and measures each; returns
/// `None` if io_uring is not available.
fn read_by_ring(file: &TestFile, direct: bool, depth: usize, load: &Load) -> Result<Option<Reads>> {
    let file = file.open(Open { direct, random: true, ..Open::default() })?;
    let Some(fd) = file.descriptor() else { return Ok(None) };
    let mut ring = match Ring::new(u32::try_from(depth).unwrap_or(u32::MAX)) {
        Ok(ring) => ring,
        Err(error) if error.is_unsupported() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let bytes = usize::try_from(load.read_bytes).unwrap_or(usize::MAX);
    let mut buffers: Vec<_> = (0..depth).map(|_| AlignedBuf::zeroed(bytes)).collect();
    // The start time of each read in flight, by its tag.
    let mut begun = vec![Instant::now(); depth];
    let mut tags: Vec<usize> = (0..depth).collect();
    let mut random = Random(1);
    let mut latencies = Latencies::default();
    let started = Instant::now();
    loop {
        let is_over = started.elapsed() >= load.time;
        while !is_over && let (Some(tag), false) = (tags.last().copied(), ring.is_full()) {
            let Some(buffer) = buffers.pop() else { break };
            let offset = load.offset(&mut random);
            begun[tag] = Instant::now();
            let read =
                RingRequest { file: fd, offset, buffer, bytes, op: RingOp::Read, tag: tag as u64 };
            if ring.push(read).is_err() {
                break;
            }
            tags.pop();
        }
        let Some(done) = ring.wait()? else { break };
        let tag = usize::try_from(done.request.tag).unwrap_or(0);
        latencies.record(begun[tag].elapsed());
        let read = done.outcome.map_err(Error::other("read the file"))?;
        check(&done.request.buffer[..read.min(bytes)], done.request.offset)?;
        tags.push(tag);
        buffers.push(done.request.buffer);
    }
    let (time, read_bytes) = (started.elapsed(), load.read_bytes);
    Ok(Some(Reads { time, read_bytes, latencies, device_reads: None }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn reads(count: u64) -> [Option<Reads>; 1] {
        let mut reads = Reads { time: Duration::from_secs(1), ..Reads::default() };
        (0..count).for_each(|_| reads.latencies.record(Duration::from_micros(100)));
        [Some(reads)]
    }

    #[test]
    fn ratios_are_of_the_most_readers_and_of_measured_rows() {
        let options = RandomReadBench::parse_from(["", "--dir", "d", "--readers", "1,16"]);
        let mut cold = contest(&options, Cache::Cold);
        cold.record_all([10, 10, 10, 10, 160, 80, 40, 320].map(reads));
        let mut report = new_report("random-read", FIELDS, String::new());
        add_ratios(&cold, Cache::Cold, &options, &mut report);
        add_ratios(&contest(&options, Cache::Warm), Cache::Warm, &options, &mut report);
        report.assert_ratios(&[
            ("own_vs_shared_16_cold", 0.5),
            ("ring_vs_shared_16_cold", 2.0),
            ("shared_16_vs_1_cold", 16.0),
            ("shared_vs_locked_16_cold", 4.0),
        ]);
    }
}
