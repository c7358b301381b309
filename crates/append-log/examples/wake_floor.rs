//! Measures how often threads can wait for a shared sync of 120 microseconds, without a log: an
//! upper bound of `model_disk` with one ticket for each thread.
//!
//! ```text
//! cargo run --release -p haul-append-log --example wake_floor -- THREADS [SECONDS]
//! ```
//!
//! Each thread copies a record of 4 KiB and waits. The last one sleeps instead of the sync, and
//! wakes all others with one call. There are no lock, checksum and write, and each batch is full.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{futex, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};

const SYNC: Duration = Duration::from_micros(120);
const RECORD_BYTES: usize = 4096;

#[derive(Default)]
struct Batch {
    /// The number of synced batches, on which the threads wait.
    synced: AtomicU32,
    /// The number of records in the batch that is being filled.
    records: AtomicU32,
    is_over: AtomicBool,
}

impl Batch {
    /// Ends the batch and wakes all threads.
    fn wake_all(&self) {
        self.synced.fetch_add(1, Ordering::SeqCst);
        futex::wake(&self.synced, futex::Flags::PRIVATE, i32::MAX.unsigned_abs()).ok();
    }

    /// Adds records until the end, one to each batch. Returns the number of records.
    fn write(&self, place: &Mutex<[u8; RECORD_BYTES]>, threads: u32) -> u64 {
        let record = [7; RECORD_BYTES];
        let mut records = 0;
        while !self.is_over.load(Ordering::SeqCst) {
            let synced = self.synced.load(Ordering::SeqCst);
            if let Ok(mut place) = place.lock() {
                place.copy_from_slice(&record);
            }
            if self.records.fetch_add(1, Ordering::SeqCst) + 1 == threads {
                thread::sleep(SYNC);
                self.records.store(0, Ordering::SeqCst);
                self.wake_all();
            }
            while self.synced.load(Ordering::SeqCst) == synced {
                futex::wait(&self.synced, futex::Flags::PRIVATE, synced, None).ok();
            }
            records += 1;
        }
        records
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (threads, seconds) = (number(0, 16)?, number(1, 2)?);
    // A sleep must not take longer than a sync of the model.
    set_current_timer_slack(NonZeroU64::new(1))?;
    let cpu = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let places: Vec<_> = (0..threads).map(|_| Mutex::new([0; RECORD_BYTES])).collect();
    let (batch, began, cpu_before) = (Batch::default(), Instant::now(), cpu());
    let records: u64 = thread::scope(|scope| {
        let batch = &batch;
        let start = |place| scope.spawn(move || batch.write(place, threads));
        let writers: Vec<_> = places.iter().map(start).collect();
        thread::sleep(Duration::from_secs(seconds.into()));
        batch.is_over.store(true, Ordering::SeqCst);
        // Threads of an incomplete batch would wait forever.
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            batch.wake_all();
            thread::sleep(SYNC);
        }
        writers.into_iter().filter_map(|writer| writer.join().ok()).sum()
    });
    let (took, used) = (began.elapsed().as_secs_f64(), (cpu() - cpu_before).as_secs_f64());
    let (each, a_batch) = (1e6 * used / records as f64, 1e6 * took * f64::from(threads));
    println!(
        "{threads} threads: {:.0} records/s, {:.0} us a batch, {each:.2} us CPU a record",
        records as f64 / took,
        a_batch / records as f64,
    );
    Ok(())
}
