//! Measures a lifecycle sweep: keys listed and deleted per second, and the latency of concurrent
//! writers and readers.
//!
//! `cargo run --release -p haul-file-store --example sweep -- DIR OBJECTS`
#![expect(clippy::print_stdout, reason = "the example prints its measurements")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_file_store::{
    Attributes, Expiry, Lifecycle, LifecycleRule, Options, Precondition, Store, TimeSource,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const BUCKET: &str = "bucket";
const DAY: Duration = Duration::from_hours(24);
const WRITERS: u64 = 4;

fn put(store: &Store, key: &str) {
    let content = [7; 1000];
    drop(store.put(BUCKET, key, &content, &Attributes::new(), &Precondition::None));
}

/// Stores the objects from many threads, which share syncs.
fn fill(store: &Store, objects: u64) {
    const THREADS: u64 = 64;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in (thread..objects).step_by(usize::try_from(THREADS).unwrap_or(1)) {
                    put(store, &format!("old/{number:09}"));
                }
            });
        }
    });
}

/// Replaces and reads objects until `end` returns `true`. Returns the sorted latencies of both.
fn work(store: &Store, end: impl Fn() -> bool + Sync) -> [Vec<Duration>; 2] {
    let is_over = AtomicBool::new(false);
    let mut latencies = [Vec::new(), Vec::new()];
    thread::scope(|scope| {
        let worker = |number: u64| {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut latencies = [Vec::new(), Vec::new()];
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = format!("work/{number}/{}", round % 1000);
                    let began = Instant::now();
                    put(store, &key);
                    latencies[0].push(began.elapsed());
                    let began = Instant::now();
                    drop(store.get(BUCKET, &key));
                    latencies[1].push(began.elapsed());
                }
                latencies
            })
        };
        let workers: Vec<_> = (0..WRITERS).map(worker).collect();
        while !end() {
            thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Ordering::Relaxed);
        for found in workers.into_iter().filter_map(|worker| worker.join().ok()) {
            for (all, found) in latencies.iter_mut().zip(found) {
                all.extend(found);
            }
        }
    });
    latencies.iter_mut().for_each(|all| all.sort_unstable());
    latencies
}

fn print(what: &str, latencies: &[Vec<Duration>; 2]) {
    let [puts, gets] = latencies.each_ref().map(|all| {
        let at = |percent: usize| all.get(all.len() * percent / 100).copied().unwrap_or_default();
        let (p50, p99) = (at(50), at(99));
        format!("{} times, p50 {p50:.1?}, p99 {p99:.1?}", all.len())
    });
    println!("{what}: put {puts}; get {gets}");
}

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("missing DIR")?);
    let objects = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(200_000);
    let now = Arc::new(AtomicU64::new(1 << 40));
    let options = Options {
        time: TimeSource::Manual(Arc::clone(&now)),
        lifecycle_check_every: Duration::from_millis(10),
        ..Options::default()
    };
    let (store, _) = Store::open(&dir, options)?;
    store.create_bucket(BUCKET)?;
    fill(&store, objects);
    let began = Instant::now();
    print("without a sweep", &work(&store, || began.elapsed() > Duration::from_secs(5)));

    let rule = |prefix: &str, days: u32| LifecycleRule {
        enabled: true,
        prefix: prefix.to_owned(),
        expire: Some(Expiry::After(DAY * days)),
        ..LifecycleRule::default()
    };
    store.set_lifecycle(BUCKET, &Lifecycle { rules: vec![rule("", 100)] })?;
    let sweeps = || store.stats().lifecycle.sweeps;
    while sweeps() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let began = Instant::now();
    let listed = store.expirable(BUCKET, &mut |_| true)?.scanned_keys;
    println!("listing: {:.0} keys/s", listed as f64 / began.elapsed().as_secs_f64());
    let next_day = || now.fetch_add(24 * 3_600_000, Ordering::Relaxed);
    let (began, before) = (Instant::now(), sweeps());
    next_day();
    print("during a sweep that deletes nothing", &work(&store, || sweeps() > before));
    println!("it took {:.1?}", began.elapsed());

    let (began, before) = (Instant::now(), store.stats().lifecycle);
    store.set_lifecycle(BUCKET, &Lifecycle { rules: vec![rule("old/", 1)] })?;
    let expired = || store.stats().lifecycle.expired_objects - before.expired_objects;
    print("during a sweep that deletes objects", &work(&store, || expired() == objects));
    println!("it deleted {:.0} objects/s", expired() as f64 / began.elapsed().as_secs_f64());
    store.close()?;
    Ok(())
}
