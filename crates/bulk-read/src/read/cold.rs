//! The part of a worker that has requests under way: for what is not in memory.

use std::io;
use std::num::NonZeroU64;
use std::rc::Rc;

use haul_disk::{PAGE_BYTES, RingRead};
use rustix::fs::{Advice, OFlags, fadvise, fcntl_setfl};
use rustix::io::Errno;

use super::buffers::{BUFFER_BYTES_MAX, Buffers};
use super::engine::{Completion, Engine, Request, read_now};
use super::stream::{Part, Stream};
use super::worker::{PIECE_BYTES, Worker, finished};
use super::{Cache, Consumer, Finished};
use crate::error::Error;

impl<C: Consumer> Worker<'_, C> {
    pub(super) fn begin_cold(&mut self, mut stream: Stream<C::State>) {
        let (depth, ring) = (self.manner.depth, self.run.options.ring);
        let engine = self.engine.get_or_insert_with(|| Engine::new(depth, ring));
        self.count.cold += 1;
        if self.no_wait.is_none() && engine.is_ring() {
            // The ring would not wait for such a file where its file system cannot say "later".
            fcntl_setfl(&*stream.file.fd, OFlags::empty()).ok();
        }
        stream.go_on_by_requests();
        let free = self.streams.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.streams.push(None);
            self.streams.len() - 1
        });
        self.streams[index] = Some(stream);
        self.asking.push_back(index);
    }

    /// Asks for as much as there is room for.
    pub(super) fn ask(&mut self) {
        while let Some(index) = self.asking.front().copied() {
            let Some(stream) = self.streams[index].as_mut() else {
                self.asking.pop_front();
                continue;
            };
            let Some(engine) = self.engine.as_mut().filter(|engine| !engine.is_full()) else {
                return;
            };
            let Some(part) = stream.part() else {
                self.asking.pop_front();
                continue;
            };
            // Past the cache, whole blocks are asked for.
            let bytes = if stream.is_direct {
                part.bytes.next_multiple_of(PAGE_BYTES).min(BUFFER_BYTES_MAX)
            } else {
                part.bytes
            };
            let buffer = match self.buffers.take(bytes) {
                Some(buffer) => buffer,
                // All memory has come before its turn, and waits for this part.
                None if engine.in_flight() == 0 => self.buffers.take_anyway(bytes),
                None => return stream.put_back(part),
            };
            let request = RingRead {
                file: Rc::clone(&stream.file.fd),
                offset: part.offset,
                buffer,
                bytes,
                uncached: self.uncached && !stream.is_direct,
                tag: index as u64,
            };
            let read_ahead = self.run.options.cache == Cache::Keep;
            match engine.push(request, read_ahead) {
                Ok(()) => stream.in_flight += 1,
                Err(request) => {
                    stream.put_back(part);
                    return self.buffers.give(request.buffer);
                }
            }
        }
    }

    pub(super) fn arrived(&mut self, completion: Completion, may_retry: bool) {
        let Completion { read, outcome } = completion;
        let index = usize::try_from(read.tag).unwrap_or(usize::MAX);
        let Some(mut stream) = self.streams.get_mut(index).and_then(Option::take) else {
            return self.buffers.give(read.buffer);
        };
        stream.in_flight -= 1;
        let part = Part { offset: read.offset, bytes: read.bytes };
        let error = match outcome {
            _ if stream.state.is_none() => {
                self.buffers.give(read.buffer);
                None
            }
            Ok(0) if read.offset < stream.end => {
                self.buffers.give(read.buffer);
                Some(self.shrunk(&stream, read.offset))
            }
            Ok(bytes) => {
                stream.arrived(part, read.buffer, bytes);
                None
            }
            Err(error) => match self.retried(&stream, read, &error, may_retry) {
                Some(again) => {
                    stream.in_flight += 1;
                    self.streams[index] = Some(stream);
                    return self.arrived(again, false);
                }
                None => Some(self.failed(&stream, error)),
            },
        };
        match error {
            Some(error) => self.end_stream(&mut stream, Err(error)),
            None => self.pass_on(&mut stream),
        }
        if stream.state.is_some() || stream.in_flight > 0 {
            self.streams[index] = Some(stream);
            if !self.asking.contains(&index) {
                self.asking.push_back(index);
            }
        }
    }

    /// Reads in a plainer way what the file system would not read in this one.
    fn retried(
        &mut self,
        stream: &Stream<C::State>,
        mut read: Request,
        error: &io::Error,
        may_retry: bool,
    ) -> Option<Completion> {
        match Errno::from_io_error(error).filter(|_| may_retry) {
            Some(Errno::INVAL) if stream.is_direct => {
                // Its blocks are larger than ours, or it cannot: from now on by the cache.
                fcntl_setfl(&*read.file, OFlags::empty()).ok();
            }
            Some(Errno::OPNOTSUPP) if read.uncached => {
                self.uncached = false;
                read.uncached = false;
            }
            Some(Errno::AGAIN | Errno::INTR) => {}
            _ => {
                self.buffers.give(read.buffer);
                return None;
            }
        }
        Some(read_now(read))
    }

    /// Gives the consumer what has come, in order.
    fn pass_on(&mut self, stream: &mut Stream<C::State>) {
        while let Some((buffer, bytes)) = stream.piece() {
            self.count.bytes += bytes as u64;
            let want = stream.want;
            // In parts that stay in the processor's cache.
            let is_break = stream.state.as_mut().is_some_and(|state| {
                let mut parts = buffer[..bytes].chunks(PIECE_BYTES);
                parts.any(|part| self.run.consumer.piece(state, want, part).is_break())
            });
            self.buffers.give(buffer);
            if is_break {
                return self.end_stream(stream, Ok(finished(stream)));
            }
            self.tell_much();
            if self.run.is_stopped() {
                return self.end_stream(stream, Err(self.stopped(stream)));
            }
        }
        if stream.is_over() && stream.state.is_some() {
            self.end_stream(stream, Ok(finished(stream)));
        }
    }

    fn end_stream(&mut self, stream: &mut Stream<C::State>, outcome: Result<Finished, Error>) {
        stream.give_up().for_each(|buffer| self.buffers.give(buffer));
        if self.run.options.cache == Cache::Spare && !self.uncached && stream.was_cold {
            let bytes = NonZeroU64::new(stream.end - stream.start);
            // Advice that is not taken costs memory alone.
            fadvise(&*stream.file.fd, stream.start, bytes, Advice::DontNeed).ok();
        }
        self.end(stream.state.take(), stream.want, outcome);
    }

    /// Ends everything that is under way: the ring is of no use any more.
    pub(super) fn give_up(&mut self, error: haul_disk::Error) {
        let error = Error::from(error);
        self.engine = Some(Engine::new(self.manner.depth, false));
        self.asking.clear();
        for index in 0..self.streams.len() {
            if let Some(mut stream) = self.streams[index].take()
                && stream.state.is_some()
            {
                self.end_stream(&mut stream, Err(error.clone()));
            }
        }
        self.buffers = Buffers::new(self.manner.memory_bytes);
    }
}
