//! Forwards message bodies in one direction of an HTTP session, according to their framing.
//!
//! A [`Flow`] moves bodies of a known length and bodies that end with the connection. For a chunked
//! body, this module parses the chunk framing and writes new framing; a `Flow` moves the data of
//! large chunks.

use std::io;

use haul_http1::{
    Chunk, ChunkLimits, ChunkedDecoder, Framing, HttpError, LAST_CHUNK, write_chunk_size,
};
use haul_reactor::IoStatus;

use super::receive_buffer::ReceiveBuffer;
use crate::flow::{FailedSide, Flow, Stop, Stream};
use crate::thread_context::ThreadContext;
use crate::transfer_mode::LARGE_BYTES;

/// One direction of a session, with the received bytes that are not parsed yet.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) flow: Flow,
    pub(crate) received: ReceiveBuffer,
    body: Body,
}

/// The framing of the current body.
#[derive(Debug)]
enum Body {
    /// A body of known length; EOF of the source before its end is an error.
    Length,
    /// A body that ends at EOF of its source.
    UntilClose,
    Chunked(Chunked),
    /// There is no body, or all of a chunked body was parsed and passed to the flow.
    Done,
}

/// The state of a chunked body.
#[derive(Debug)]
struct Chunked {
    chunks: ChunkedDecoder,
    /// The number of data bytes of the current chunk that the flow moves; 0 if the flow moves none.
    flow_bytes: u64,
    /// The maximum number of data bytes in the part of the body that is not forwarded yet.
    data_max: u64,
    writes_chunks: bool,
}

/// Options of a body that its message head does not determine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyOptions {
    /// Limits of the chunk framing.
    pub(crate) limits: ChunkLimits,
    /// The length in bytes of the longest accepted body; `None`: unlimited.
    pub(crate) bytes_max: Option<u64>,
    /// `true` if a chunked body is forwarded in chunks; clients of HTTP/1.0 get only the data.
    pub(crate) writes_chunks: bool,
}

/// The progress of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The whole body was written.
    Done,
    /// The body waits for the source or the destination, or its byte budget is used up. The budget
    /// limits the bytes moved at once, so that other connections run, too.
    Stopped(Stop),
    /// The source reached EOF before the end of the body.
    Truncated,
}

/// The reason why a body cannot be completed.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The socket of one side failed.
    Disconnected(FailedSide),
    /// The framing is invalid, or the body is too long.
    Refused(HttpError),
}

impl From<FailedSide> for BodyError {
    fn from(side: FailedSide) -> Self {
        Self::Disconnected(side)
    }
}

impl From<HttpError> for BodyError {
    fn from(refused: HttpError) -> Self {
        Self::Refused(refused)
    }
}

const TOO_LONG: HttpError = HttpError::new(413, "the request body exceeds the configured limit");

impl Channel {
    /// Creates a channel that moves no bytes before [`Self::begin`].
    pub(crate) fn new(mut flow: Flow) -> Self {
        flow.set_length(Some(0));
        Self { flow, received: ReceiveBuffer::default(), body: Body::Done }
    }

    /// Begins the body that follows a head. `out` holds the head; the part of the body that was
    /// already received is appended to `out`.
    ///
    /// # Errors
    /// Returns an error if the body is too long or its framing is invalid.
    pub(crate) fn begin(
        &mut self,
        framing: Framing,
        options: BodyOptions,
        out: &mut Vec<u8>,
    ) -> Result<(), HttpError> {
        let data_max = options.bytes_max.unwrap_or(u64::MAX);
        self.flow.set_length(Some(0));
        self.body = match framing {
            Framing::Length(bytes) if bytes > data_max => return Err(TOO_LONG),
            Framing::Length(bytes) => {
                let moved = self.received.take_into(out, bytes);
                self.flow.set_length(Some(bytes - moved));
                Body::Length
            }
            Framing::UntilClose => {
                self.received.take_into(out, u64::MAX);
                self.flow.set_length(None);
                Body::UntilClose
            }
            Framing::Chunked => Body::Chunked(Chunked {
                chunks: ChunkedDecoder::new(options.limits),
                flow_bytes: 0,
                data_max,
                writes_chunks: options.writes_chunks,
            }),
        };
        self.scan(out)
    }

    /// Returns `true` if the body ends with the connection.
    pub(crate) fn is_until_close(&self) -> bool {
        matches!(self.body, Body::UntilClose)
    }

    /// Moves bytes of the body until one side would block or `budget` is used up, and subtracts the
    /// bytes read from `budget`.
    ///
    /// # Errors
    /// Returns an error if the body cannot be completed.
    pub(crate) fn run(
        &mut self,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
        thread: &mut ThreadContext,
        budget: &mut usize,
    ) -> Result<Progress, BodyError> {
        loop {
            match (self.flow.run(from, to, thread, budget)?, &self.body) {
                (Stop::Complete, Body::Chunked(_)) => {}
                (Stop::Complete, _) | (Stop::Eof, Body::UntilClose) => return Ok(Progress::Done),
                (Stop::Eof, _) => return Ok(Progress::Truncated),
                (stop, _) => return Ok(Progress::Stopped(stop)),
            }
            if self.received.is_empty() {
                if *budget == 0 {
                    return Ok(Progress::Stopped(Stop::BudgetUsed));
                }
                match self.receive(from, thread).map_err(|_gone| FailedSide::Source)? {
                    IoStatus::WouldBlock => return Ok(Progress::Stopped(Stop::SourceEmpty)),
                    IoStatus::Bytes(0) => return Ok(Progress::Truncated),
                    IoStatus::Bytes(bytes) => *budget = budget.saturating_sub(bytes),
                }
            }
            let mut out = Vec::new();
            self.scan(&mut out)?;
            self.flow.prepend(out);
        }
    }

    /// Reads once into the receive buffer.
    ///
    /// # Errors
    /// Returns an error if the read fails.
    pub(crate) fn receive(
        &mut self,
        from: &mut dyn Stream,
        thread: &mut ThreadContext,
    ) -> io::Result<IoStatus> {
        let moved = self.received.receive(from, &mut thread.scratch)?;
        if let IoStatus::Bytes(bytes @ 1..) = moved {
            self.flow.count_copied(bytes, thread);
        }
        Ok(moved)
    }

    /// Parses the chunk framing of the received bytes, and writes new framing and the data to
    /// `out`. The data of a large chunk that was not received yet is left to the flow.
    fn scan(&mut self, out: &mut Vec<u8>) -> Result<(), HttpError> {
        let Body::Chunked(chunked) = &mut self.body else { return Ok(()) };
        chunked.end_flow(out);
        loop {
            let (frame_bytes, chunk) = chunked.chunks.scan(self.received.bytes())?;
            self.received.consume(frame_bytes);
            match chunk {
                Chunk::Data(left) if left > chunked.data_max => return Err(TOO_LONG),
                Chunk::Data(left) if !self.received.is_empty() => {
                    chunked.take(left, &mut self.received, out)
                }
                Chunk::Data(left) if left >= LARGE_BYTES as u64 => {
                    chunked.begin_flow(left, out);
                    self.flow.set_length(Some(left));
                    return Ok(());
                }
                Chunk::Data(_) | Chunk::Incomplete => return Ok(()),
                Chunk::End => {
                    if chunked.writes_chunks {
                        out.extend_from_slice(LAST_CHUNK);
                    }
                    self.body = Body::Done;
                    return Ok(());
                }
            }
        }
    }
}

impl Chunked {
    /// Forwards the received part of a chunk's data as a separate chunk.
    fn take(&mut self, left: u64, received: &mut ReceiveBuffer, out: &mut Vec<u8>) {
        let bytes = left.min(received.bytes().len() as u64);
        self.write_size(bytes, out);
        received.take_into(out, bytes);
        self.write_end(out);
        self.advance(bytes);
    }

    fn begin_flow(&mut self, bytes: u64, out: &mut Vec<u8>) {
        self.write_size(bytes, out);
        self.flow_bytes = bytes;
    }

    /// Ends a chunk whose data the flow has moved, if there is one.
    fn end_flow(&mut self, out: &mut Vec<u8>) {
        if self.flow_bytes > 0 {
            self.write_end(out);
            self.advance(self.flow_bytes);
            self.flow_bytes = 0;
        }
    }

    fn advance(&mut self, bytes: u64) {
        self.chunks.advance(bytes);
        self.data_max -= bytes;
    }

    fn write_size(&self, bytes: u64, out: &mut Vec<u8>) {
        if self.writes_chunks {
            write_chunk_size(out, bytes);
        }
    }

    fn write_end(&self, out: &mut Vec<u8>) {
        if self.writes_chunks {
            out.extend_from_slice(b"\r\n");
        }
    }
}
