//! Several logical logs, called streams, that share the syncs of one append log.
//!
//! Each record begins with the number of its stream. The records of all streams that are appended
//! during a sync share the next one, so 64 streams with one writer each are about as fast as one
//! log with 64 writers. As separate logs, each of them would sync for itself, because fdatasync(2)
//! syncs one file.
//!
//! ```text
//! cargo run --release -p haul-append-log --example streams -- DIR [STREAMS] [SECONDS]
//! ```
//!
//! Prints the durable records a second of separate logs, of streams in one log, and of one log with
//! as many writers.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use haul_append_log::{Log, Lsn, Options, Position, Result, SpacePriority, Ticket};

const PAYLOAD: [u8; 1000] = [7; 1000];

/// A log with several streams.
struct Streams {
    log: Log,
    /// The LSN of each stream before which the caller needs no records.
    needed_from: Mutex<BTreeMap<u32, Lsn>>,
}

impl Streams {
    /// Opens the log and passes each record, without the number of its stream, to `replay`.
    fn open(dir: &Path, replay: &mut dyn FnMut(u32, Position, &[u8])) -> Result<Self> {
        let mut each = |at: Position, record: &[u8]| {
            if let Some((number, payload)) = record.split_first_chunk() {
                replay(u32::from_le_bytes(*number), at, payload);
            }
        };
        let (log, _) = Log::open_dir(dir, options(), &mut each)?;
        Ok(Self { log, needed_from: Mutex::default() })
    }

    fn append(&self, stream: u32, payload: &[u8]) -> Result<Ticket> {
        self.log.append(&[&stream.to_le_bytes(), payload], SpacePriority::Ordinary)
    }

    /// Declares that the records of `stream` before `lsn` are no longer needed. Removes the
    /// segments that no stream needs: the stream that is furthest behind determines how many are
    /// kept.
    fn release(&self, stream: u32, lsn: Lsn) -> Result<usize> {
        let mut needed_from = self.needed_from.lock().unwrap_or_else(|error| error.into_inner());
        needed_from.insert(stream, lsn);
        let oldest = needed_from.values().min().copied().unwrap_or_default();
        self.log.truncate_front(oldest)
    }
}

fn options() -> Options {
    let reserve_bytes = 1 << 20;
    Options { segment_bytes: 16 << 20, buffer_bytes: 1 << 20, reserve_bytes, ..Options::default() }
}

/// Calls `append` with the number of each writer on a thread for each, until the time is over.
/// Returns the records a second.
fn rate(
    writers: u32,
    time: Duration,
    append: impl Fn(u32) -> Result<Position> + Sync,
) -> Result<f64> {
    let began = Instant::now();
    let write = |writer| -> Result<u64> {
        let mut records = 0;
        while began.elapsed() < time {
            append(writer)?;
            records += 1;
        }
        Ok(records)
    };
    let write = &write;
    let records: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|n| scope.spawn(move || write(n))).collect();
        let counts = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(0)));
        counts.sum::<Result<u64>>()
    })?;
    Ok(records as f64 / began.elapsed().as_secs_f64())
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parent = arguments.first().ok_or("usage: streams DIR [STREAMS] [SECONDS]")?;
    let writers: u32 = arguments.get(1).map_or(Ok(64), |text| text.parse())?;
    let time = Duration::from_secs_f64(arguments.get(2).map_or(Ok(1.0), |text| text.parse())?);
    let dir = tempfile::tempdir_in(parent)?;

    let logs = (0..writers).map(|n| {
        let path = dir.path().join(format!("log-{n}"));
        Ok(Log::open_dir(path, options(), &mut |_: Position, _: &[u8]| {})?.0)
    });
    let logs: Vec<Log> = logs.collect::<Result<_>>()?;
    let separate = rate(writers, time, |n| {
        logs[n as usize].append(&[&PAYLOAD], SpacePriority::Ordinary)?.wait()
    })?;
    drop(logs);

    let path = dir.path().join("streams");
    let streams = Streams::open(&path, &mut |_, _, _| {})?;
    let shared = rate(writers, time, |n| streams.append(n, &PAYLOAD)?.wait())?;
    let end = streams.log.synced();
    (0..writers).try_for_each(|n| streams.release(n, end).map(drop))?;
    drop(streams);
    let mut kept: BTreeMap<u32, u64> = BTreeMap::new();
    drop(Streams::open(&path, &mut |stream, _, _| *kept.entry(stream).or_default() += 1)?);

    let one = Log::open_dir(dir.path().join("one"), options(), &mut |_: Position, _: &[u8]| {})?.0;
    let single = rate(writers, time, |_| one.append(&[&PAYLOAD], SpacePriority::Ordinary)?.wait())?;
    println!(
        "{writers} logs: {separate:.0} records/s; {writers} streams in one log: {shared:.0}; one \
         log with {writers} writers: {single:.0}; ratio {:.2}; {} streams are left in the last \
         segments",
        shared / single,
        kept.len(),
    );
    Ok(())
}
