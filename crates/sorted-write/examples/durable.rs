//! Durable writes of random pages by 16 threads: a page file beside pwrite and fdatasync, in turns.
//! `cargo run --release -p haul-sorted-write --example durable -- DIR WRITES`
#![expect(clippy::print_stdout, reason = "a program that tells figures")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use haul_disk::{Disk, Durability, Open, OsDisk, write_full};
use haul_sorted_write::{PageFile, PageFileOptions};

const WRITERS: u64 = 16;
const PAGE: usize = 4096;
const PAGES: u64 = 64 << 10;
const ROUNDS: usize = 5;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A page for the n-th write of a thread, spread over the file.
fn place(thread: u64, n: u64) -> u64 {
    (n * WRITERS + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15) % PAGES * PAGE as u64
}

/// Seconds for so many writes of each thread.
fn timed(writes: u64, write: impl Fn(u64, &[u8]) -> bool + Sync) -> Outcome<f64> {
    let begun = Instant::now();
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|thread| {
                let write = &write;
                scope.spawn(move || (0..writes).all(|n| write(place(thread, n), &[7; PAGE])))
            })
            .collect();
        threads.into_iter().all(|thread| thread.join().unwrap_or(false))
    });
    if all { Ok(begun.elapsed().as_secs_f64()) } else { Err("a write failed".into()) }
}

fn run(dir: &Path, writes: u64) -> Outcome<()> {
    let disk = OsDisk::open(dir)?;
    std::fs::create_dir(dir.join("log"))?;
    for name in ["plain", "paged"] {
        std::fs::write(dir.join(name), vec![1; PAGE * usize::try_from(PAGES)?])?;
        disk.open(name, Open::default())?.sync(Durability::Everything)?;
    }
    let log: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.join("log"))?);
    let (paged, _) = PageFile::open(&disk, "paged", &log, PageFileOptions::default())?;
    let plain = disk.open("plain", Open::default())?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let usual = timed(writes, |offset, bytes| {
            let written = write_full(&*plain, bytes, offset);
            written.and_then(|()| plain.sync(Durability::Data)).is_ok()
        })?;
        let ours = timed(writes, |offset, bytes| {
            paged.write(offset, bytes).is_ok_and(|ticket| ticket.wait().is_ok())
        })?;
        let begun = Instant::now();
        paged.checkpoint()?;
        let checkpoint = begun.elapsed().as_secs_f64();
        let ratio = usual / (ours + checkpoint);
        println!(
            "pwrite + fdatasync {usual:.3} s, page file {ours:.3} s + {checkpoint:.3} s: {ratio:.1}"
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("{WRITERS} writers, checkpoint included: {:.1} times as fast", ratios[ROUNDS / 2]);
    println!("{:?}\n{:?}", paged.stats(), paged.log_stats().batches);
    paged.close()?;
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("name a directory")?;
    let writes = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let dir = Path::new(&dir).join("durable-example");
    std::fs::create_dir(&dir)?;
    let outcome = run(&dir, writes);
    std::fs::remove_dir_all(&dir)?;
    outcome
}
