//! Reads many records with few requests.

use std::ops::Range;
use std::sync::Arc;

use haul_disk::AlignedBuf;

use super::Log;
use crate::error::{Error, Result};
use crate::format::RECORD_HEADER_BYTES;
use crate::read::batch::plan::{Run, plan};
use crate::read::batch::queue::{Queue, RangeRead};
use crate::record::{BatchRecord, RecordRequest};
use crate::segments::Segment;

/// The number of bytes in flight at or above which no further request is started. 64 requests of
/// 256 KiB have this length.
const IN_FLIGHT_BYTES_MAX: u64 = 16 << 20;

/// An iterator over records that are read together. It returns each record as soon as it was read,
/// with its request's tag.
///
/// Up to 64 requests are in flight at a time, each of at most 256 KiB unless a single record is
/// longer. The reader thus takes at most 16 MiB of memory and one longer record, in addition to the
/// list of requests. The iterator uses an io_uring if the kernel supports it, and is bound to the
/// thread that created it. Segments that it is reading cannot be recycled, so on a nearly full disk
/// do not leave it unfinished for long.
#[derive(Debug)]
pub struct BatchReader<'a> {
    log: &'a Log,
    /// The requests in disk order.
    requests: Vec<RecordRequest>,
    runs: Vec<Run>,
    /// The number of runs that were started.
    started: usize,
    /// The runs that were started and not completed, as indexes of `runs`.
    in_flight: Vec<usize>,
    queue: Queue,
    current: Option<CompletedRun>,
    /// The total length in bytes of the runs that were started and not completed.
    in_flight_bytes: u64,
    disk_reads: u64,
    disk_read_bytes: u64,
}

/// A run that was read, and the records in it that were not returned yet.
#[derive(Debug)]
struct CompletedRun {
    /// `None` if the segment was removed.
    segment: Option<Arc<Segment>>,
    /// The bytes at segment offset `offset`, and the number of them that could be read.
    bytes: Option<(AlignedBuf, usize)>,
    offset: u32,
    requests: Range<usize>,
}

impl Log {
    /// Reads many records, each by its LSN, and returns them in the order in which the disk returns
    /// them. Records that lie close together are read with one request; several requests are in
    /// flight at once, in disk order.
    ///
    /// A record with at most [`RecordRequest::payload_bytes`] bytes of payload is verified as by
    /// [`Log::read`], and each record fails like that function. If a request for several records
    /// fails, each record is read again alone, so that an error concerns only its record.
    #[must_use]
    pub fn read_batch(&self, mut requests: Vec<RecordRequest>) -> BatchReader<'_> {
        let runs = plan(&mut requests);
        let queue = Queue::new(runs.len());
        BatchReader {
            log: self,
            requests,
            runs,
            started: 0,
            in_flight: Vec::new(),
            queue,
            current: None,
            in_flight_bytes: 0,
            disk_reads: 0,
            disk_read_bytes: 0,
        }
    }
}

impl BatchReader<'_> {
    /// Returns the number of requests made to the disk, and their total length in bytes.
    #[must_use]
    pub fn disk_reads(&self) -> (u64, u64) {
        (self.disk_reads, self.disk_read_bytes)
    }

    /// Starts runs until the queue is full. A run whose segment was removed becomes the current
    /// one.
    fn start(&mut self) {
        while self.current.is_none()
            && !self.queue.is_full()
            && self.in_flight_bytes < IN_FLIGHT_BYTES_MAX
            && self.started < self.runs.len()
        {
            let number = self.started;
            self.started += 1;
            let run = &self.runs[number];
            let Ok(segment) = self.log.segment(run.segment) else {
                let requests = run.requests.clone();
                let offset = run.offset;
                self.current = Some(CompletedRun { segment: None, bytes: None, offset, requests });
                return;
            };
            let bytes = run.bytes.min(segment.limit.saturating_sub(run.offset)) as usize;
            self.in_flight.push(number);
            self.in_flight_bytes += u64::from(run.bytes);
            self.count(bytes);
            let offset = self.runs[number].offset;
            self.queue.push(RangeRead { segment, offset, bytes, tag: number });
        }
    }

    /// Waits for a run; `None` if all were completed.
    fn complete(&mut self) -> Option<CompletedRun> {
        let Some(done) = self.queue.next() else {
            // The run was lost with the ring: its records are read one by one.
            let number = self.in_flight.pop()?;
            let Run { segment, offset, bytes, ref requests } = self.runs[number];
            self.in_flight_bytes -= u64::from(bytes);
            let segment = self.log.segment(segment).ok();
            return Some(CompletedRun { segment, bytes: None, offset, requests: requests.clone() });
        };
        self.in_flight.retain(|number| *number != done.tag);
        let run = &self.runs[done.tag];
        self.in_flight_bytes -= u64::from(run.bytes);
        Some(CompletedRun {
            segment: Some(done.segment),
            bytes: Some((done.buffer, done.bytes)),
            offset: run.offset,
            requests: run.requests.clone(),
        })
    }

    /// Returns the current run's next record.
    fn next_in_current(&mut self) -> Option<(u64, Result<BatchRecord>)> {
        let current = self.current.as_mut()?;
        let Some(number) = current.requests.next() else {
            let (buffer, _) = self.current.take()?.bytes?;
            self.queue.release(buffer);
            return None;
        };
        let request = self.requests[number];
        let record = match current.record(&request).transpose() {
            Some(record) => record,
            None => {
                let record = current.read_alone(&request);
                self.count(RECORD_HEADER_BYTES + request.payload_bytes as usize);
                record
            }
        };
        Some((request.tag, record))
    }

    fn count(&mut self, bytes: usize) {
        self.disk_reads += 1;
        self.disk_read_bytes += bytes as u64;
    }
}

impl Iterator for BatchReader<'_> {
    type Item = (u64, Result<BatchRecord>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.next_in_current() {
                return Some(found);
            }
            self.start();
            if self.current.is_none() {
                self.current = Some(self.complete()?);
            }
        }
    }
}

impl CompletedRun {
    fn segment(&self) -> Result<&Segment> {
        self.segment.as_deref().ok_or(Error::Invalid("the segment of the record was removed"))
    }

    /// Returns a request's record; `None` if its bytes were not read.
    fn record(&self, request: &RecordRequest) -> Result<Option<BatchRecord>> {
        let segment = self.segment()?;
        let Some((buffer, bytes)) = &self.bytes else { return Ok(None) };
        let from = (request.lsn.offset() - self.offset) as usize;
        segment.batch_record(request, buffer[..*bytes].get(from..).unwrap_or(&[]))
    }

    fn read_alone(&self, request: &RecordRequest) -> Result<BatchRecord> {
        self.segment()?.read_batch_record(request)
    }
}
