//! Compares durable random page writes of 16 threads: a page file against pwrite and fdatasync.
//! `cargo run --release -p haul-sorted-write --example durable -- DIR WRITES`
#![expect(clippy::print_stdout, reason = "a program that prints measurements")]

use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::Instant;

use haul_disk::{Disk, Durability, Open, OsDisk, write_full};
use haul_sorted_write::{PageFile, PageFileOptions};

const WRITERS: u64 = 16;
const PAGE: usize = 4096;
const PAGES: u64 = 64 << 10;
const ROUNDS: usize = 5;

type AnyResult<T> = Result<T, Box<dyn Error>>;

/// Returns the offset of the n-th write of a thread. The offsets are spread over the file.
fn page_offset(thread: u64, n: u64) -> u64 {
    (n * WRITERS + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15) % PAGES * PAGE as u64
}

/// Returns the seconds that `writes` writes by each thread take.
fn timed(writes: u64, write: impl Fn(u64, &[u8]) -> bool + Sync) -> AnyResult<f64> {
    let started = Instant::now();
    let is_ok = thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|thread| {
                let write = &write;
                scope.spawn(move || (0..writes).all(|n| write(page_offset(thread, n), &[7; PAGE])))
            })
            .collect();
        threads.into_iter().all(|thread| thread.join().unwrap_or(false))
    });
    if is_ok { Ok(started.elapsed().as_secs_f64()) } else { Err("a write failed".into()) }
}

fn run(dir: &Path, writes: u64) -> AnyResult<()> {
    let disk = OsDisk::open(dir)?;
    for name in ["plain", "paged"] {
        std::fs::write(dir.join(name), vec![1; PAGE * usize::try_from(PAGES)?])?;
        disk.open(name, Open::default())?.sync(Durability::Everything)?;
    }
    let bytes = PAGES * PAGE as u64;
    let (paged, _) = PageFile::open_path(dir.join("paged"), bytes, PageFileOptions::default())?;
    let plain = disk.open("plain", Open::default())?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let baseline = timed(writes, |offset, bytes| {
            let written = write_full(&*plain, bytes, offset);
            written.and_then(|()| plain.sync(Durability::Data)).is_ok()
        })?;
        let page_file = timed(writes, |offset, bytes| {
            paged.write(offset, bytes).is_ok_and(|ticket| ticket.wait().is_ok())
        })?;
        let started = Instant::now();
        paged.checkpoint()?;
        let checkpoint = started.elapsed().as_secs_f64();
        let ratio = baseline / (page_file + checkpoint);
        println!(
            "pwrite + fdatasync {baseline:.3} s, page file {page_file:.3} s + checkpoint {checkpoint:.3} s: {ratio:.1}"
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("{WRITERS} writers, checkpoint included: {:.1} times as fast", ratios[ROUNDS / 2]);
    println!("{:?}\n{:?}", paged.stats(), paged.log_stats().batches);
    paged.close()?;
    Ok(())
}

fn main() -> AnyResult<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("usage: durable DIR [WRITES]")?;
    let writes = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let dir = Path::new(&dir).join("durable-example");
    std::fs::create_dir(&dir)?;
    let result = run(&dir, writes);
    std::fs::remove_dir_all(&dir)?;
    result
}
