//! Reads uncached data asynchronously, on the thread of a worker. A stream is one request being
//! read; the ring is that of io_uring.

use std::io;
use std::num::NonZeroU64;
use std::rc::Rc;

use haul_disk::{PAGE_BYTES, RingOp, RingRequest};
use rustix::fs::{Advice, OFlags, fadvise, fcntl_setfl};
use rustix::io::Errno;

use super::buffers::{BUFFER_BYTES_MAX, Buffers};
use super::consumer::Consumer;
use super::engine::{Completion, Engine, Request, read_sync};
use super::options::CacheMode;
use super::request::ReadSummary;
use super::stream::{Part, Piece, Stream};
use super::worker::{PIECE_BYTES, Worker};
use crate::error::Error;

impl<C: Consumer> Worker<'_, C> {
    pub(super) fn start_async(&mut self, mut stream: Stream<C::State>) {
        let (depth, ring) = (self.pass.depth, self.run.options.ring);
        let engine = self.engine.get_or_insert_with(|| Engine::new(depth, ring));
        self.count.cold += 1;
        if self.no_wait.is_none() && engine.is_ring() {
            // Without `RWF_NOWAIT` support, `O_NONBLOCK` makes ring reads fail with `EAGAIN`, so
            // clear it.
            fcntl_setfl(&**stream.fd(), OFlags::empty()).ok();
        }
        stream.start_async();
        let free = self.streams.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.streams.push(None);
            self.streams.len() - 1
        });
        self.streams[index] = Some(stream);
        self.submittable.push_back(index);
    }

    /// Submits reads until all are submitted, the queue is full, or the buffer memory is used up.
    pub(super) fn submit(&mut self) {
        while let Some(index) = self.submittable.front().copied() {
            self.pass_holes(index);
            let Some(stream) = self.streams[index].as_mut() else {
                self.submittable.pop_front();
                continue;
            };
            let Some(engine) = self.engine.as_mut().filter(|engine| !engine.is_full()) else {
                return;
            };
            let Some(part) = stream.next_part() else {
                self.submittable.pop_front();
                continue;
            };
            // The length of a direct read must be a multiple of the block size.
            let bytes = if stream.is_direct() {
                part.bytes.next_multiple_of(PAGE_BYTES).min(BUFFER_BYTES_MAX)
            } else {
                part.bytes
            };
            let buffer = match self.buffers.take(bytes) {
                Some(buffer) => buffer,
                // No read is in flight, so all buffers hold completed reads that wait for this part
                // to be delivered first: only another buffer allows progress.
                None if engine.in_flight() == 0 => self.buffers.take_unlimited(bytes),
                None => return stream.put_back(part),
            };
            let request = RingRequest {
                op: match self.uncached && !stream.is_direct() {
                    true => RingOp::ReadUncached,
                    false => RingOp::Read,
                },
                file: Rc::clone(stream.fd()),
                offset: part.offset,
                buffer,
                bytes,
                tag: index as u64,
            };
            let read_ahead = self.run.options.cache == CacheMode::Normal;
            match engine.push(request, read_ahead) {
                Ok(()) => stream.read_submitted(),
                Err(request) => {
                    stream.put_back(part);
                    return self.buffers.release(request.buffer);
                }
            }
        }
    }

    /// Processes a completed read. A failed read is retried if `may_retry`.
    pub(super) fn complete(&mut self, completion: Completion, may_retry: bool) {
        let Completion { request: read, outcome } = completion;
        let index = usize::try_from(read.tag).unwrap_or(usize::MAX);
        let Some(mut stream) = self.streams.get_mut(index).and_then(Option::take) else {
            return self.buffers.release(read.buffer);
        };
        stream.read_completed();
        let part = Part { offset: read.offset, bytes: read.bytes };
        let error = match outcome {
            _ if stream.has_ended() => {
                self.buffers.release(read.buffer);
                None
            }
            Ok(0) if read.offset < stream.end => {
                self.buffers.release(read.buffer);
                Some(self.shrunk(&stream, read.offset))
            }
            Ok(bytes) => {
                stream.complete(part, read.buffer, bytes);
                None
            }
            Err(error) => match self.retry(&stream, read, &error, may_retry) {
                Some(completion) => {
                    stream.read_submitted();
                    self.streams[index] = Some(stream);
                    return self.complete(completion, false);
                }
                None => Some(self.failed(&stream, error)),
            },
        };
        match error {
            Some(error) => self.end_stream(&mut stream, Err(error)),
            None => self.deliver(&mut stream),
        }
        if !stream.has_ended() || stream.has_reads_in_flight() {
            self.streams[index] = Some(stream);
            if !self.submittable.contains(&index) {
                self.submittable.push_back(index);
            }
        }
    }

    /// Retries a failed read synchronously, without the feature that the file system rejected.
    /// Returns `None` if the error cannot be avoided by a retry.
    fn retry(
        &mut self,
        stream: &Stream<C::State>,
        mut read: Request,
        error: &io::Error,
        may_retry: bool,
    ) -> Option<Completion> {
        match Errno::from_io_error(error).filter(|_| may_retry) {
            Some(Errno::INVAL) if stream.is_direct() => {
                // The blocks of the device are larger than a page, or the file system supports no
                // direct reads: fall back to the page cache.
                fcntl_setfl(&*read.file, OFlags::empty()).ok();
            }
            Some(Errno::OPNOTSUPP) if read.op == RingOp::ReadUncached => {
                self.uncached = false;
                read.op = RingOp::Read;
            }
            Some(Errno::AGAIN | Errno::INTR) => {}
            _ => {
                self.buffers.release(read.buffer);
                return None;
            }
        }
        Some(read_sync(read))
    }

    /// Delivers completed reads and passed holes to the consumer, in order.
    pub(super) fn deliver(&mut self, stream: &mut Stream<C::State>) {
        while let Some(piece) = stream.next_piece() {
            let (buffer, bytes) = match piece {
                Piece::Data(buffer, bytes) => (buffer, bytes),
                Piece::Zeros(bytes) => match self.deliver_zeros(stream, bytes) {
                    Some(outcome) => return self.end_stream(stream, outcome),
                    None => continue,
                },
            };
            self.count.bytes += bytes as u64;
            let request = stream.request;
            // Split the buffer into pieces that fit into the CPU cache.
            let is_break = stream.state_mut().is_some_and(|state| {
                let mut parts = buffer[..bytes].chunks(PIECE_BYTES);
                parts.any(|part| self.run.consumer.piece(state, request, part).is_break())
            });
            self.buffers.release(buffer);
            if is_break {
                return self.end_stream(stream, Ok(stream.summary()));
            }
            self.report_if_due();
            if self.run.is_stopped() {
                return self.end_stream(stream, Err(self.stopped(stream)));
            }
        }
        if stream.is_done() && !stream.has_ended() {
            self.end_stream(stream, Ok(stream.summary()));
        }
    }

    pub(super) fn end_stream(
        &mut self,
        stream: &mut Stream<C::State>,
        outcome: Result<ReadSummary, Error>,
    ) {
        stream.abort().for_each(|buffer| self.buffers.release(buffer));
        if self.run.options.cache == CacheMode::Preserve && !self.uncached && stream.was_cold() {
            let bytes = NonZeroU64::new(stream.bytes());
            // An error is ignored: the pages merely stay in the page cache.
            fadvise(&**stream.fd(), stream.start, bytes, Advice::DontNeed).ok();
        }
        self.end(stream.take_state(), stream.request, outcome);
    }

    /// Ends all streams after a ring failure.
    pub(super) fn abort(&mut self, error: haul_disk::Error) {
        let error = Error::from(error);
        self.engine = Some(Engine::new(self.pass.depth, false));
        self.submittable.clear();
        for index in 0..self.streams.len() {
            if let Some(mut stream) = self.streams[index].take()
                && !stream.has_ended()
            {
                self.end_stream(&mut stream, Err(error.clone()));
            }
        }
        self.buffers = Buffers::new(self.pass.memory_bytes);
    }
}
