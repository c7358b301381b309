//! Measures a file store on a simulated spinning disk: cold GETs and durable PUTs, alone, side by side,
//! and beside scrub and compaction.
//!
//! # Sources
//! \[Jacobson91\] on the order of requests; `docs/spinning-disk.md` on the limits of the results.

use std::iter;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::DeviceKind;
use haul_disk_sim::{Backing, Drive as Model, Kind, Request, SECTOR_BYTES, ServedRead};
use haul_file_store::{Attributes, Options as StoreOptions, Precondition, Store};
use haul_measure::{Latencies, Result, Watcher};
use haul_testing::{Random, noise};
use haul_units::parse_time;

use super::objects::{fill, key, numbered};
use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::log::{Failure, failed};
use crate::named::named;
use crate::options::{count, rounds, size_in};
use crate::reads::joined;
use crate::report::Report;
use crate::simulated::{Drive, EXT4, SimulatedDisk};

/// The benchmark `spinning-store`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct SpinningStoreBench {
    /// Model of the simulated drive
    #[arg(long, value_name = "NAME", default_value = "travelstar-7k320")]
    pub drive: Drive,
    /// Let reads and syncs take no turns, as on a solid-state disk
    #[arg(long)]
    pub no_turns: bool,
    /// Size of the simulated disk, of which half is filled with objects, in memory
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    #[arg(value_parser = size_in(1 << 30..=1 << 40, "1GiB to 1TiB"))]
    pub disk_size: u64,
    /// Number of GETs in flight
    #[arg(long, value_name = "N", default_value = "32", value_parser = count(1..=1024))]
    pub gets: usize,
    /// Duration of one measurement in the time of the drive
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_time)]
    pub seconds: Duration,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "3", value_parser = rounds())]
    pub rounds: usize,
}

named! {
    /// What uses the disk at the same time. "Work" is scrub and compaction.
    enum Load {
        Gets = "GETs",
        Puts = "PUTs",
        GetsPuts = "GETs, PUTs",
        All = "GETs, PUTs, work",
    }
}

/// The results of one round, in the time of the drive.
#[derive(Debug, Default)]
struct Round {
    seconds: f64,
    /// The rate at which the model of the drive serves random reads.
    bound: f64,
    gets: Latencies,
    puts: Latencies,
}

impl Round {
    fn each_s(&self, number: u64) -> Option<f64> {
        Some(number as f64 / self.seconds)
    }

    fn part_of_bound(&self) -> Option<f64> {
        Some(self.each_s(self.gets.count())? / self.bound).filter(|part| *part > 0.0)
    }

    fn put_p99_ms(&self) -> Option<f64> {
        Some(self.puts.percentile_us(99.0)? / 1e3)
    }
}

const FIELDS: &[Field<Load, Round>] = &[
    Field::label("load", "load", |it| it.name().into()),
    number("gets_per_s", "GETs/s", 0).median(|it| it.each_s(it.gets.count())),
    number("part_of_bound", "of the bound", 2).spread(4, Round::part_of_bound),
    number("get_p99_ms", "GET p99 ms", 0).median(|it| Some(it.gets.percentile_us(99.0)? / 1e3)),
    number("put_p50_ms", "PUT p50 ms", 0).median(|it| Some(it.puts.percentile_us(50.0)? / 1e3)),
    number("put_p99_ms", "PUT p99 ms", 0).spread(4, Round::put_p99_ms),
    number("puts_per_s", "PUTs/s", 0).median(|it| it.each_s(it.puts.count())),
];

const BUCKET: &str = "files";
const OBJECT_BYTES: usize = 4096;
/// The bytes that an object takes in a volume.
const NEEDLE_BYTES: u64 = 4224;
const VOLUME_BYTES: u64 = 32 << 20;
/// The PUTs that start in a second, evenly spaced, and the threads of which each executes one.
const PUTS_PER_S: u32 = 50;
const WRITERS: usize = 64;
/// The time before a measurement in which the load already runs.
const WARM_UP: Duration = Duration::from_secs(3);
/// The number of reads from which the bound is computed.
const BOUND_READS: usize = 5000;

/// A simulated drive with a store.
struct Station<'a> {
    bench: &'a SpinningStoreBench,
    disk: SimulatedDisk,
    /// The number of objects that were stored at first.
    objects: u64,
    content: Vec<u8>,
}

/// GETs read two objects of five. The others may be deleted, so that compaction has work.
fn is_kept(number: u64) -> bool {
    number % 5 < 2
}

impl<'a> Station<'a> {
    fn new(bench: &'a SpinningStoreBench) -> Result<Self> {
        let disk = SimulatedDisk::new(&bench.drive, bench.disk_size, Backing::Memory, EXT4)?;
        let objects = bench.disk_size / 2 / NEEDLE_BYTES;
        let station = Self { bench, disk, objects, content: noise(1, OBJECT_BYTES) };
        station.change(|store| {
            store.create_bucket(BUCKET)?;
            fill(store, BUCKET, &station.content, objects)
        })?;
        Ok(station)
    }

    fn open(&self, dir: &Path, scrub_bytes_per_second: u64) -> Result<Store, Failure> {
        let kinds = [DeviceKind::Rotational, DeviceKind::SolidState];
        let options = StoreOptions {
            volume_bytes: VOLUME_BYTES,
            scrub_bytes_per_second,
            disk_kind: Some(kinds[usize::from(self.bench.no_turns)]),
            ..StoreOptions::default()
        };
        Ok(Store::open(&dir.join("store"), options)?.0)
    }

    /// Changes the store in no time of the drive.
    fn change(&self, change: impl Fn(&Store) -> Result<(), Failure>) -> Result<()> {
        let mounted = self.disk.mount()?;
        let changed = || {
            let store = self.open(&mounted.path(), 0)?;
            change(&store)?;
            Ok(store.close()?)
        };
        changed().map_err(failed("change the store"))
    }

    /// Deletes objects in some volumes, which compaction then empties.
    fn make_garbage(&self, store: &Store, round: u64) -> Result<(), Failure> {
        let count = self.bench.seconds.as_secs() * VOLUME_BYTES / NEEDLE_BYTES;
        let from = round * count % self.objects;
        let deleted = (from..self.objects.min(from + count)).filter(|it| !is_kept(*it));
        let keys: Vec<_> = deleted.map(key).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        let batches = keys.chunks(1000).flat_map(|keys| store.delete_many(BUCKET, keys));
        batches.into_iter().try_for_each(|deleted| Ok(deleted.map(drop)?))
    }

    fn measure(&self, load: Load, round: u64) -> Result<Round> {
        if load == Load::All {
            self.change(|store| self.make_garbage(store, round))?;
        }
        let mounted = self.disk.mount_cold()?;
        self.disk.set_time_scale(1.0)?;
        let outcome = self.run(load, round, &mounted.path());
        self.disk.set_time_scale(0.0)?;
        outcome.map_err(failed("use the store"))
    }

    fn run(&self, load: Load, round: u64, dir: &Path) -> Result<Round, Failure> {
        let store = &self.open(dir, if load == Load::All { 4 << 20 } else { 0 })?;
        let (disk, next_put) = (self.disk.device(), &AtomicU32::new(0));
        let began = disk.now();
        let (from, until) = (began + WARM_UP, began + WARM_UP + self.bench.seconds);
        let get = |random: &mut Random| {
            let kept = iter::repeat_with(|| random.below(self.objects)).find(|it| is_kept(*it));
            let (number, began) = (kept.unwrap_or(0), disk.now());
            let bytes = store.get(BUCKET, &key(number))?.read(0, OBJECT_BYTES)?;
            match bytes[..] == numbered(&self.content, number) {
                true => Ok(began),
                false => Err(format!("{} has wrong bytes", key(number)).into()),
            }
        };
        let put = || {
            let number = next_put.fetch_add(1, Ordering::Relaxed);
            disk.wait_until(began + Duration::from_secs(number.into()) / PUTS_PER_S);
            let (began, key) = (disk.now(), format!("new/{round}/{number}"));
            store.put(BUCKET, &key, &self.content, &Attributes::new(), &Precondition::None)?;
            Ok(began)
        };
        let repeat = |operation: &mut dyn FnMut() -> Result<Duration, Failure>| {
            let mut times = Latencies::default();
            while disk.now() < until {
                let (began, ended) = (operation()?, disk.now());
                if (from..until).contains(&ended) {
                    // The clock may step back to the last reply.
                    times.record(ended.saturating_sub(began));
                }
            }
            Ok(times)
        };
        let result = thread::scope(|scope| {
            let gets = if load == Load::Puts { 0 } else { self.bench.gets };
            let puts = if load == Load::Gets { 0 } else { WRITERS };
            let gets = (0..gets as u64).map(|client| {
                let mut random = Random(round << 32 | client);
                scope.spawn(move || repeat(&mut || get(&mut random)))
            });
            let puts = (0..puts).map(|_| scope.spawn(move || repeat(&mut || put())));
            let (gets, puts): (Vec<_>, Vec<_>) = (gets.collect(), puts.collect());
            disk.wait_until(from);
            disk.record_reads();
            disk.wait_until(until);
            let bound = bound(self.bench, &disk.take_reads(), round);
            let (gets, puts) = (gets.into_iter().map(joined), puts.into_iter().map(joined));
            Ok(Round {
                seconds: self.bench.seconds.as_secs_f64(),
                bound,
                gets: sum(gets)?,
                puts: sum(puts)?,
            })
        });
        // Closing writes a checkpoint, which need not take the time of the drive.
        self.disk.set_time_scale(0.0)?;
        result
    }
}

fn sum(all: impl Iterator<Item = Result<Latencies, Failure>>) -> Result<Latencies, Failure> {
    let mut sum = Latencies::default();
    for times in all {
        sum.add(&times?);
    }
    Ok(sum)
}

/// Returns the rate at which the model of the drive serves random reads, as many in flight as there
/// are GETs, as long as the median of `reads` and within their span.
fn bound(bench: &SpinningStoreBench, reads: &[ServedRead], seed: u64) -> f64 {
    let mut lengths: Vec<_> = reads.iter().map(|read| read.sectors).collect();
    lengths.sort_unstable();
    let Some(&sectors) = lengths.get(lengths.len() / 2) else { return 0.0 };
    let first = reads.iter().map(|read| read.sector).min().unwrap_or(0);
    let end = reads.iter().map(|read| read.sector + read.sectors).max().unwrap_or(0);
    let page = 4096 / SECTOR_BYTES;
    let mut random = Random(seed);
    let mut new = |arrived_ns| {
        let sector = first + random.below((end - first) / page) * page;
        Request { kind: Kind::Read, sector, sectors, arrived_ns }
    };
    let mut model = Model::new(bench.drive.parameters().clone(), bench.disk_size);
    let mut waiting: Vec<_> = (0..bench.gets).map(|_| new(0)).collect();
    for _ in 0..BOUND_READS {
        let chosen = waiting.remove(model.choose(&waiting).unwrap_or(0));
        waiting.push(new(model.serve(&chosen)));
    }
    BOUND_READS as f64 * 1e9 / model.free_ns() as f64
}

impl Benchmark for SpinningStoreBench {
    const NAME: &'static str = "spinning-store";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let mut report = new_report(Self::NAME, FIELDS, self.note());
        watcher.step(0, 1, "filling the store");
        let station = Station::new(self)?;
        let mut contest = Contest::new(FIELDS, Load::ALL);
        let mut round = 0;
        contest.run(&Stage::only(self.rounds, watcher), |load| {
            round += 1;
            station.measure(*load, round).map(Outcome::Measured)
        })?;
        let table = format!("{} (simulated), ext4", self.drive.name());
        contest.report(&mut report, &table, |_| String::new());
        for load in [Load::GetsPuts, Load::All] {
            let name = load.name().to_lowercase().replace(", ", "_");
            let ratio = contest.ratio(&load, &Load::Puts, Round::put_p99_ms);
            report.ratio(format!("put_p99_{name}_vs_puts"), ratio);
        }
        Ok(report)
    }
}

impl SpinningStoreBench {
    fn note(&self) -> String {
        let Self { disk_size, gets, seconds, rounds, .. } = self;
        format!(
            "Simulated (docs/spinning-disk.md). The disk has {} MiB and is half full of objects of \
             {OBJECT_BYTES} B in a store, which is opened with cold caches; {gets} GETs \
             in flight; {PUTS_PER_S} PUTs a second of new objects, durable when they return; work: \
             a scrub of 4 MiB/s, and compaction of volumes with three dead objects of five. {rounds} \
             interleaved rounds of {} s in the time of the drive, which stands still while this \
             process uses a processor. The bound: the rate at which the model of the drive alone \
             serves as many random reads at once, as long as those of the GETs, in the same span.",
            disk_size >> 20,
            seconds.as_secs_f64(),
        )
    }
}
