//! Measures the commit path of the log on a model of a disk: a file in memory whose sync takes 120
//! microseconds. On such a disk, the rate depends only on the log and the scheduler.
//!
//! ```text
//! cargo run --release -p haul-append-log --example model_disk -- THREADS TICKETS [SECONDS]
//! ```
//!
//! Each thread appends records of 4 KiB. It waits for the oldest of its records as soon as TICKETS
//! of them are not acknowledged. The model must be in a directory of a tmpfs, by default /dev/shm.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::collections::VecDeque;
use std::error::Error;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haul_append_log::{Log, Options, Position, SpacePriority, SyncMethod, Ticket};
use haul_disk::{Allocation, Disk, Durability, File, Locked, Open, OsDisk, Result};
use rustix::time::{ClockId, clock_gettime};

const SYNC: Duration = Duration::from_micros(120);
const RECORD_BYTES: usize = 4096;

/// A disk whose files sleep for [`SYNC`] instead of syncing.
#[derive(Debug)]
struct ModelDisk(OsDisk);

#[derive(Debug)]
struct ModelFile(Arc<dyn File>);

impl Disk for ModelDisk {
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        Ok(Arc::new(ModelFile(self.0.open(name, how)?)))
    }

    fn create(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        Ok(Arc::new(ModelFile(self.0.create(name, how)?)))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.0.create_dir(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.0.remove(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.0.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.0.sync_dir(dir)
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Locked> {
        self.0.lock(name, holder)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.0.free_bytes()
    }

    fn root(&self) -> &Path {
        Path::new("/nonexistent/model")
    }
}

impl File for ModelFile {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_some(buffer, offset)
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        self.0.write_some(bytes, offset)
    }

    fn bytes(&self) -> Result<u64> {
        self.0.bytes()
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        self.0.resize(bytes)
    }

    fn allocate(&self, how: Allocation, offset: u64, bytes: u64) -> Result<()> {
        self.0.allocate(how, offset, bytes)
    }

    fn sync(&self, _what: Durability) -> Result<()> {
        thread::sleep(SYNC);
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Removes old segments, so that their files are recycled.
fn remove_old(log: &Log) -> haul_append_log::Result<()> {
    let last = log.segments().last().map_or(0, |segment| segment.number);
    log.truncate_front(haul_append_log::Lsn::new(last.saturating_sub(1), 0)).map(drop)
}

fn write_until(log: &Log, tickets_max: usize, end: Instant) -> haul_append_log::Result<u64> {
    let record = [7; RECORD_BYTES];
    let mut tickets: VecDeque<Ticket> = VecDeque::new();
    let mut records = 0;
    while Instant::now() < end {
        tickets.push_back(log.append(&[&record], SpacePriority::Ordinary)?);
        if tickets.len() >= tickets_max
            && let Some(oldest) = tickets.pop_front()
        {
            oldest.wait()?;
            records += 1;
        }
    }
    Ok(records)
}

fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Returns the voluntary and involuntary context switches of all threads of this process.
fn switches() -> std::io::Result<u64> {
    let mut all = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let status = std::fs::read_to_string(task?.path().join("status"))?;
        let of = |line: &str| line.split_once("ctxt_switches:").map(|it| it.1.trim().to_owned());
        all +=
            status.lines().filter_map(of).filter_map(|text| text.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(all)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (threads, tickets, seconds) = (number(0, 16)?, number(1, 1)?, number(2, 2)?);
    // A sleep must not take longer than a sync of the model.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    let dir =
        tempfile::tempdir_in(std::env::var("HAUL_MODEL_DIR").as_deref().unwrap_or("/dev/shm"))?;
    let options = Options {
        sync_method: Some(SyncMethod::Buffered),
        segment_bytes: 64 << 20,
        ..Options::default()
    };
    let disk = Arc::new(ModelDisk(OsDisk::open(dir.path())?));
    let (log, _) = Log::open(disk, options, &mut |_: Position, _: &[u8]| {})?;
    let end = Instant::now() + Duration::from_secs(seconds as u64);
    let (began, cpu_before, stats) = (Instant::now(), cpu(), log.stats());
    let (records, switches) = thread::scope(|scope| -> haul_append_log::Result<(u64, u64)> {
        let writers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| write_until(&log, tickets, end))).collect();
        let mut switched = 0;
        while Instant::now() < end {
            remove_old(&log)?;
            thread::sleep(Duration::from_millis(5));
            switched = switches().unwrap_or(switched).max(switched);
        }
        let written = writers.into_iter().map(|writer| writer.join().map_err(|_panic| ()));
        Ok((written.flatten().flatten().sum(), switched))
    })?;
    let (took, used) = (began.elapsed(), cpu().saturating_sub(cpu_before));
    let batches = log.stats().batches - stats.batches;
    let each = |number: f64| number / records as f64;
    println!(
        "{threads} threads, {tickets} tickets: {:.0} records/s, {:.1} records a batch, {:.0} us a \
         batch, {:.2} us CPU and {:.2} switches a record",
        records as f64 / took.as_secs_f64(),
        records as f64 / batches as f64,
        took.as_secs_f64() * 1e6 / batches as f64,
        each(used.as_secs_f64() * 1e6),
        each(switches as f64),
    );
    Ok(())
}
