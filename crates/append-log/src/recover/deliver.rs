//! Reading many segments: by several threads, delivered in order by one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use haul_disk::{Disk, Durability, File, evict};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::lsn::Position;
use crate::options::Options;
use crate::read::feeder::Windows;
use crate::read::scan::{Known, Scan, scan};
use crate::recover::replay::{Recovered, Replay};
use crate::segments::Segment;
use crate::ways::Ways;

/// How many bytes of payloads are handed over at a time, and how often a reader may be ahead.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNKS_AHEAD: usize = 32;

/// What a log is read with.
pub(crate) struct Reading<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) ways: &'a Ways,
    pub(crate) options: &'a Options,
    pub(crate) replay: &'a mut dyn Replay,
    pub(crate) recovered: &'a mut Recovered,
}

impl Reading<'_> {
    /// The file of a segment, for reading it from the medium.
    pub(crate) fn settled(&self, segment: &Segment) -> Result<Arc<dyn File>> {
        settled(self.disk, self.ways, segment)
    }
}

/// The file of a segment, for reading it from the medium, with all that was on its way there.
pub(crate) fn settled(disk: &dyn Disk, ways: &Ways, segment: &Segment) -> Result<Arc<dyn File>> {
    segment.file.sync(Durability::Data)?;
    let file = segment.sequential(disk, true)?;
    // What a failed sync left in memory is not on the medium. A file without a descriptor is
    // simulated, and has no page cache.
    if !ways.reads_direct && file.descriptor().is_some() {
        evict(&*file, 0, u64::MAX)?;
    }
    Ok(file)
}

/// Records on their way from a reading thread to the one that delivers them.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Each with the length of its payload in `bytes`, and whether it checks out.
    records: Vec<(Position, bool)>,
}

impl Chunk {
    fn deliver(&self, replay: &mut dyn Replay) {
        let mut bytes = &self.bytes[..];
        for (at, checks_out) in &self.records {
            let (payload, rest) = bytes.split_at(at.payload_bytes as usize);
            if *checks_out {
                replay.record(*at, payload);
            } else {
                replay.damaged(*at, payload);
            }
            bytes = rest;
        }
    }
}

/// Gathers records into chunks.
struct Collector<'a> {
    chunk: Chunk,
    full: &'a SyncSender<Chunk>,
    empty: &'a Mutex<Vec<Chunk>>,
}

impl Collector<'_> {
    fn add(&mut self, at: Position, payload: &[u8], checks_out: bool) {
        self.chunk.bytes.extend_from_slice(payload);
        self.chunk.records.push((at, checks_out));
        if self.chunk.bytes.len() >= CHUNK_BYTES || self.chunk.records.len() >= CHUNK_BYTES / 64 {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let empty = self.empty.lock().pop().unwrap_or_default();
        let full = std::mem::replace(&mut self.chunk, empty);
        // Nobody listens any more after an error elsewhere: then nothing is to be delivered.
        drop(self.full.send(full));
    }
}

impl Replay for Collector<'_> {
    fn record(&mut self, at: Position, payload: &[u8]) {
        self.add(at, payload, true);
    }

    fn damaged(&mut self, at: Position, payload: &[u8]) {
        self.add(at, payload, false);
    }
}

/// A segment to read, and where its chunks and in the end what was found go.
struct Job {
    segment: Arc<Segment>,
    known: Known,
    full: SyncSender<Chunk>,
    found: SyncSender<Result<Scan>>,
}

/// Reads segments and delivers their records in order; what is ahead of the order
/// is bounded: [`CHUNKS_AHEAD`] chunks a thread.
pub(crate) fn deliver(
    reading: &mut Reading<'_>,
    segments: Vec<(Arc<Segment>, Known)>,
) -> Result<Vec<(Arc<Segment>, Scan)>> {
    let (disk, ways) = (reading.disk, reading.ways);
    let threads = segments.len().min(reading.options.recovery_threads as usize);
    let mut jobs = Vec::new();
    let mut results = Vec::new();
    for (segment, known) in segments {
        let (full, chunks) = sync_channel(CHUNKS_AHEAD);
        let (found, outcome) = sync_channel(1);
        jobs.push(Job { segment: Arc::clone(&segment), known, full, found });
        results.push((segment, chunks, outcome));
    }
    jobs.reverse();
    let (jobs, empty) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let windows = Windows::default();
    let read_jobs = || {
        // Not in one line with the loop: the lock would be held through its body.
        let next = || jobs.lock().pop();
        while let Some(job) = next() {
            let mut collector =
                Collector { chunk: Chunk::default(), full: &job.full, empty: &empty };
            let outcome = settled(disk, ways, &job.segment)
                .and_then(|file| scan(&job.segment, &file, job.known, &windows, &mut collector));
            collector.hand_over();
            drop(job.found.send(outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(read_jobs);
        }
        let take_all = |(segment, chunks, outcome)| {
            let scan = take(reading, &empty, &chunks, &outcome)?;
            Ok((segment, scan))
        };
        let taken = results.into_iter().map(take_all).collect();
        // After an error the readers have nobody to read for.
        jobs.lock().clear();
        taken
    })
}

/// Delivers what one reader hands over, up to the end of its segment.
fn take(
    reading: &mut Reading<'_>,
    empty: &Mutex<Vec<Chunk>>,
    chunks: &Receiver<Chunk>,
    outcome: &Receiver<Result<Scan>>,
) -> Result<Scan> {
    for mut chunk in chunks {
        chunk.deliver(reading.replay);
        chunk.bytes.clear();
        chunk.records.clear();
        empty.lock().push(chunk);
    }
    let ended = Error::Invalid("a thread that read the log ended early");
    let mut scan = outcome.recv().unwrap_or(Err(ended))?;
    reading.recovered.records += scan.records;
    reading.recovered.damage.append(&mut scan.damage);
    Ok(scan)
}
