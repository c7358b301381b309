//! Overwrites a store many times over, and prints what that costs.
//!
//! ```text
//! truncate -s 1536M image && mkfs.ext4 -q image && mount -o loop image /mnt
//! cargo run --release -p haul-file-store --example churn -- /mnt/store live=75 times=10 zipf
//! ```
//! First the store is filled until `live` percent of its usable space hold objects, then keys are
//! overwritten until `times` the usable space was written. Device bytes come from the counters of
//! the block device under the directory: they are exact where nothing else uses it. "Idle"
//! latencies are those of the same threads while the store is filled, when nothing is compacted.
//!
//! Writers store as fast as they can, or `rate` objects a second together. Then a latency counts
//! from when the call was due, so that a call held up by the one before it shows that.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program to measure with, which may fail and prints"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use haul_file_store::{Attributes, Error, Options, Precondition, Store};
use haul_testing::Random;

const BUCKET: &str = "churn";

/// What the head of a needle and its record add to an object's bytes.
const OVERHEAD_BYTES: u64 = 200;

/// What the command line chose.
struct Args {
    dir: PathBuf,
    live_percent: u64,
    times: u64,
    volume_bytes: u64,
    object_bytes: u64,
    writers: u64,
    /// Objects a second by all writers together.
    rate: Option<u64>,
    is_zipf: bool,
    seed: u64,
}

impl Args {
    fn parse() -> Self {
        let mut args = Self {
            dir: PathBuf::new(),
            live_percent: 75,
            times: 10,
            volume_bytes: 16 << 20,
            object_bytes: 4096,
            writers: 16,
            rate: None,
            is_zipf: false,
            seed: 1,
        };
        for arg in std::env::args().skip(1) {
            let number = |text: &str| text.parse::<u64>().unwrap();
            match arg.split_once('=') {
                Some(("live", percent)) => args.live_percent = number(percent),
                Some(("times", times)) => args.times = number(times),
                Some(("volume", mib)) => args.volume_bytes = number(mib) << 20,
                Some(("object", bytes)) => args.object_bytes = number(bytes),
                Some(("writers", writers)) => args.writers = number(writers),
                Some(("rate", rate)) => args.rate = Some(number(rate)),
                Some(("seed", seed)) => args.seed = number(seed),
                _ if arg == "zipf" => args.is_zipf = true,
                _ => args.dir = PathBuf::from(arg),
            }
        }
        assert!(
            !args.dir.as_os_str().is_empty(),
            "usage: churn DIR [live=75] [times=10] [volume=16] [object=4096] [writers=16] [rate=] \
             [seed=1] [zipf]"
        );
        args
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn key(object: u64) -> String {
    format!("user/{:03x}/{object:010}", mix(object) & 0xfff)
}

fn unit(random: &mut Random) -> f64 {
    (random.number() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Ranks by the distribution of Zipf with exponent 0.99, as in YCSB (Gray et al., SIGMOD '94).
struct Zipf {
    objects: f64,
    theta: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(objects: u64) -> Self {
        let theta: f64 = 0.99;
        let zeta_of = |n: u64| (1..=n).map(|i| 1.0 / (i as f64).powf(theta)).sum::<f64>();
        let zeta = zeta_of(objects);
        let two_over_n = 2.0 / objects as f64;
        let eta = (1.0 - two_over_n.powf(1.0 - theta)) / (1.0 - zeta_of(2) / zeta);
        Self { objects: objects as f64, theta, zeta, eta }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
    fn draw(&self, random: &mut Random) -> u64 {
        let u = unit(random);
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(self.theta) {
            return 1;
        }
        let rank = self.objects * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - self.theta));
        (rank as u64).min(self.objects as u64 - 1)
    }
}

/// Latencies in microseconds.
#[derive(Default)]
struct Latencies(Vec<u32>);

impl Latencies {
    fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.time_since(Instant::now(), call)
    }

    fn time_since<T>(&mut self, began: Instant, call: impl FnOnce() -> T) -> T {
        let result = call();
        self.0.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
        result
    }

    fn print(mut self, what: &str) {
        self.0.sort_unstable();
        let at = |share: usize| {
            let place = (self.0.len() * share / 1000).min(self.0.len().saturating_sub(1));
            self.0.get(place).copied().unwrap_or(0)
        };
        let (p50, p99, p999) = (at(500), at(990), at(999));
        println!("{what}: {} calls, p50 {p50} us, p99 {p99} us, p99.9 {p999} us", self.0.len());
    }
}

/// Bytes written to the block device below a path.
fn device_bytes(path: &Path) -> u64 {
    let device = rustix::fs::stat(path).unwrap().st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let stat = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"));
    let sectors = stat.ok().and_then(|stat| stat.split_whitespace().nth(6)?.parse::<u64>().ok());
    sectors.unwrap_or(0) * 512
}

fn used_and_free(path: &Path) -> (u64, u64) {
    let status = rustix::fs::statvfs(path).unwrap();
    let used = status.f_blocks - status.f_bfree;
    (used * status.f_frsize, status.f_bavail * status.f_frsize)
}

struct Bench {
    args: Args,
    store: Store,
    objects: u64,
    next: AtomicU64,
    failed: AtomicU64,
    done: AtomicBool,
}

impl Bench {
    /// Lets the writers put `puts` objects while one thread reads; prints every ten seconds.
    fn phase(&self, what: &str, puts: u64, object: &(dyn Fn(u64, &mut Random) -> u64 + Sync)) {
        self.next.store(0, Relaxed);
        self.failed.store(0, Relaxed);
        self.done.store(false, Relaxed);
        let (began, before) = (Instant::now(), device_bytes(&self.args.dir));
        let (put_times, get_times) = thread::scope(|scope| {
            let writers: Vec<_> = (0..self.args.writers)
                .map(|writer| scope.spawn(move || self.write(puts, writer, began, object)))
                .collect();
            let reader = scope.spawn(|| self.read());
            let watcher = scope.spawn(|| self.watch(began, before));
            let mut put_times = Latencies::default();
            for writer in writers {
                put_times.0.extend(writer.join().unwrap().0);
            }
            self.done.store(true, Relaxed);
            watcher.thread().unpark();
            (put_times, reader.join().unwrap())
        });
        let seconds = began.elapsed().as_secs_f64();
        let stored = puts - self.failed.load(Relaxed);
        let user_bytes = stored * self.args.object_bytes;
        let device = device_bytes(&self.args.dir) - before;
        println!(
            "{what}: {stored} stored in {seconds:.1} s, {:.0} PUT/s, {} failed, {:.2} device bytes \
             per user byte",
            stored as f64 / seconds,
            self.failed.load(Relaxed),
            device as f64 / user_bytes.max(1) as f64
        );
        put_times.print(&format!("{what}: PUT"));
        get_times.print(&format!("{what}: GET"));
    }

    fn write(
        &self,
        puts: u64,
        writer: u64,
        began: Instant,
        object: &(dyn Fn(u64, &mut Random) -> u64 + Sync),
    ) -> Latencies {
        let mut random = Random(mix(self.args.seed * 1000 + writer + 1));
        let mut latencies = Latencies::default();
        let mut body = vec![0; usize::try_from(self.args.object_bytes).unwrap()];
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            if number >= puts {
                return latencies;
            }
            let key = key(object(number, &mut random));
            body[..8].copy_from_slice(&number.to_le_bytes());
            let put =
                || self.store.put(BUCKET, &key, &body, &Attributes::new(), &Precondition::None);
            let due = self.args.rate.map_or_else(Instant::now, |rate| {
                began + Duration::from_secs_f64(number as f64 / rate as f64)
            });
            thread::sleep(due.saturating_duration_since(Instant::now()));
            match latencies.time_since(due, put) {
                Ok(_) => {}
                Err(Error::Full { .. }) => {
                    self.failed.fetch_add(1, Relaxed);
                    thread::sleep(Duration::from_millis(1));
                }
                Err(other) => {
                    println!("a PUT failed: {other:?}");
                    self.failed.fetch_add(1, Relaxed);
                }
            }
        }
    }

    fn read(&self) -> Latencies {
        let mut random = Random(mix(self.args.seed));
        let mut latencies = Latencies::default();
        while !self.done.load(Relaxed) {
            let key = key(random.below(self.objects));
            let read = || self.store.get(BUCKET, &key).and_then(|found| found.read(0, usize::MAX));
            match latencies.time(read) {
                Ok(_) => {}
                Err(_not_stored_yet) => drop(latencies.0.pop()),
            }
            thread::sleep(Duration::from_micros(500));
        }
        latencies
    }

    fn watch(&self, began: Instant, device_before: u64) {
        let (mut puts, mut device) = (0, device_before);
        while !self.done.load(Relaxed) {
            thread::park_timeout(Duration::from_secs(10));
            let (puts_now, device_now) = (self.store.stats().puts, device_bytes(&self.args.dir));
            let (used, free) = used_and_free(&self.args.dir);
            let live = self.store.stats().live_volume_bytes;
            let new = puts_now.saturating_sub(puts);
            println!(
                "  {:4.0} s: {new} PUTs, {} failed, {} MiB free, {:.3} space / live, {:.2} device \
                 bytes per user byte",
                began.elapsed().as_secs_f64(),
                self.failed.load(Relaxed),
                free >> 20,
                used as f64 / live.max(1) as f64,
                (device_now - device) as f64 / (new * self.args.object_bytes).max(1) as f64
            );
            (puts, device) = (puts_now, device_now);
        }
    }
}

fn main() {
    let args = Args::parse();
    std::fs::create_dir_all(&args.dir).unwrap();
    let (_, free) = used_and_free(&args.dir);
    // Two volumes are kept for compaction.
    let usable = free.saturating_sub(2 * args.volume_bytes);
    let needle_bytes = args.object_bytes + OVERHEAD_BYTES;
    let objects = usable * args.live_percent / 100 / needle_bytes;
    let options = Options {
        volume_bytes: args.volume_bytes,
        big_object_bytes: 1 << 20,
        ..Options::default()
    };
    let (store, recovered) = Store::open(&args.dir, options).unwrap();
    // A store that is there already, such as a full one, is overwritten as it is.
    let is_new = recovered.objects == 0;
    let objects = if is_new { objects } else { recovered.objects };
    println!(
        "{} MiB usable, {objects} objects of {} bytes ({} % live), {}, seed {}",
        usable >> 20,
        args.object_bytes,
        args.live_percent,
        if args.is_zipf { "Zipf 0.99" } else { "uniform" },
        args.seed
    );
    if is_new {
        store.create_bucket(BUCKET).unwrap();
    }
    let zipf = Zipf::new(objects);
    let overwrites = args.times * if is_new { usable / needle_bytes } else { objects };
    let (next, failed, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let bench = Bench { args, store, objects, next, failed, done };
    if is_new {
        bench.phase("fill (idle)", objects, &|number, _| number);
    }
    let draw = |_: u64, random: &mut Random| match bench.args.is_zipf {
        true => mix(zipf.draw(random)) % objects,
        false => random.below(objects),
    };
    bench.phase("overwrite", overwrites, &draw);
    println!("{:?}", bench.store.stats());
    let last = bench.args.dir.clone();
    bench.store.close().unwrap();
    let (used, free) = used_and_free(&last);
    println!("closed: {} MiB used, {} MiB free", used >> 20, free >> 20);
}
