//! Reads segments on several threads, and delivers their records in order on one thread.

use std::sync::Arc;

use haul_disk::{Disk, Durability, File, evict};
use haul_sync::mpsc::{Receiver, SyncSender, sync_channel};
use haul_sync::{Mutex, thread};

use crate::error::{Error, Result};
use crate::lsn::Position;
use crate::options::Options;
use crate::read::read_ahead::Windows;
use crate::read::scan::{EndState, Scan, SegmentState, scan};
use crate::replay::{Recovered, Replay};
use crate::segments::Segment;
use crate::strategy::WriteStrategy;

/// The number of payload bytes in a chunk, the unit that reading threads pass to the delivering
/// thread, and the number of chunks that a reading thread may be ahead of the delivering thread. A
/// longer chunk, with a long record, counts as several.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNKS_AHEAD: usize = 32;

/// The maximum capacity in bytes at which a chunk is used again.
const KEPT_BYTES_MAX: usize = 4 * CHUNK_BYTES;

/// The recovery inputs, and the report to which reading adds its results.
pub(crate) struct ReplayContext<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) strategy: &'a WriteStrategy,
    pub(crate) options: &'a Options,
    pub(crate) replay: &'a mut dyn Replay,
    pub(crate) recovered: &'a mut Recovered,
}

impl ReplayContext<'_> {
    /// Syncs a segment and opens its file so that reads return only durable bytes.
    pub(crate) fn open_durable(&self, segment: &Segment) -> Result<Arc<dyn File>> {
        open_durable(self.disk, self.strategy, segment)
    }
}

/// Syncs a segment and opens its file so that reads return only durable bytes.
pub(crate) fn open_durable(
    disk: &dyn Disk,
    strategy: &WriteStrategy,
    segment: &Segment,
) -> Result<Arc<dyn File>> {
    segment.file.sync(Durability::Data)?;
    let file = segment.sequential(disk, true)?;
    // The page cache may hold bytes that are not durable, because of a failed sync, so it is
    // evicted unless reads bypass it. A simulated file has no descriptor and no page cache.
    if !strategy.reads_direct && file.descriptor().is_some() {
        evict(&*file, 0, u64::MAX)?;
    }
    Ok(file)
}

/// Records passed from a reading thread to the delivering thread.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// The record positions, each with `true` if the record is valid. `bytes` contains the
    /// payloads, concatenated.
    records: Vec<(Position, bool)>,
}

impl Chunk {
    fn deliver(&self, replay: &mut dyn Replay) {
        let mut bytes = &self.bytes[..];
        for (at, is_valid) in &self.records {
            let (payload, rest) = bytes.split_at(at.payload_bytes as usize);
            if *is_valid {
                replay.record(*at, payload);
            } else {
                replay.damaged(*at, payload);
            }
            bytes = rest;
        }
    }
}

/// A [`Replay`] that collects a segment's records into chunks and sends them to the delivering
/// thread.
struct Collector<'a> {
    chunk: Chunk,
    full: &'a SyncSender<Chunk>,
    empty: &'a Mutex<Vec<Chunk>>,
}

impl Collector<'_> {
    fn add(&mut self, at: Position, payload: &[u8], is_valid: bool) {
        self.chunk.bytes.extend_from_slice(payload);
        self.chunk.records.push((at, is_valid));
        if self.chunk.bytes.len() >= CHUNK_BYTES || self.chunk.records.len() >= CHUNK_BYTES / 64 {
            self.send();
        }
    }

    fn send(&mut self) {
        let empty = self.empty.lock().pop().unwrap_or_default();
        let full = std::mem::replace(&mut self.chunk, empty);
        let more = (full.bytes.len() / CHUNK_BYTES).saturating_sub(1);
        // Sending fails if the receiver was dropped after an error in another segment. Nothing more
        // is delivered then, so the error is ignored.
        drop(self.full.send(full));
        // A long chunk counts as several: empty chunks take the remaining places.
        (0..more).for_each(|_| drop(self.full.send(Chunk::default())));
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

/// A segment to be read, and the channels for its chunks and its scan.
struct Job {
    segment: Arc<Segment>,
    /// The first offset to read.
    from: u32,
    state: SegmentState,
    full: SyncSender<Chunk>,
    scan: SyncSender<Result<Scan>>,
}

/// Reads segments and delivers their records in order. Each reading thread is at most
/// [`CHUNKS_AHEAD`] chunks ahead of the delivery.
pub(crate) fn deliver(
    context: &mut ReplayContext<'_>,
    segments: Vec<(Arc<Segment>, SegmentState)>,
) -> Result<Vec<(Arc<Segment>, Scan)>> {
    let (disk, strategy) = (context.disk, context.strategy);
    let threads = segments.len().min(context.options.recovery_threads as usize);
    let mut jobs = Vec::new();
    let mut results = Vec::new();
    for (segment, state) in segments {
        let (full, chunks) = sync_channel(CHUNKS_AHEAD);
        let (scan, outcome) = sync_channel(1);
        let from = context.replay.known_end(segment.info());
        jobs.push(Job { segment: Arc::clone(&segment), from, state, full, scan });
        results.push((segment, chunks, outcome));
    }
    jobs.reverse();
    let (jobs, empty) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let windows = Windows::default();
    let read_jobs = || {
        // The closure releases the lock before the loop body. With the expression in `while let`,
        // the lock would be held during the loop body.
        let next = || jobs.lock().pop();
        while let Some(job) = next() {
            let mut collector =
                Collector { chunk: Chunk::default(), full: &job.full, empty: &empty };
            let part = (job.from, job.state);
            let outcome = open_durable(disk, strategy, &job.segment)
                .and_then(|file| scan(&job.segment, &file, part, &windows, &mut collector));
            collector.send();
            drop(job.scan.send(outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(read_jobs);
        }
        let take_all = |(segment, chunks, outcome)| {
            let scan = deliver_segment(context, &segment, (&empty, &chunks, &outcome))?;
            Ok((segment, scan))
        };
        let taken = results.into_iter().map(take_all).collect();
        // After an error in one segment, the reading threads need not read the remaining segments.
        jobs.lock().clear();
        taken
    })
}

/// Delivers one segment's chunks until the segment was read completely.
fn deliver_segment(
    context: &mut ReplayContext<'_>,
    segment: &Arc<Segment>,
    (empty, chunks, outcome): (&Mutex<Vec<Chunk>>, &Receiver<Chunk>, &Receiver<Result<Scan>>),
) -> Result<Scan> {
    for mut chunk in chunks {
        chunk.deliver(context.replay);
        // A long record's memory is not kept, and an empty chunk has none.
        if (1..=KEPT_BYTES_MAX).contains(&chunk.bytes.capacity()) {
            chunk.bytes.clear();
            chunk.records.clear();
            empty.lock().push(chunk);
        }
    }
    let ended = Error::Invalid("a thread that read the log ended early");
    let mut scan = outcome.recv().unwrap_or(Err(ended))?;
    if scan.end_state == EndState::Sealed {
        segment.end_at(scan.end);
    }
    context.recovered.records += scan.records;
    context.recovered.damage.append(&mut scan.damage);
    Ok(scan)
}
