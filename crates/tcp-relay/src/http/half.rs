//! One direction of an exchange: what follows a head, moved as its frame says.
//!
//! Bodies of a known length, and those up to the end, are a [`Flow`] of so many bytes. Of a chunked
//! body the frame is read and written anew; the data of a large chunk is a flow, too.

use std::io;

use haul_http1::{Chunk, ChunkLimits, Chunks, Framing, LAST_CHUNK, Refused, write_chunk_size};
use haul_reactor::{Moved, Socket};

use super::inbox::Inbox;
use crate::choice::LARGE_BYTES;
use crate::flow::{Broken, Core, Flow, Stop};

/// One direction, with what was received and belongs to no message yet.
#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) flow: Flow,
    pub(crate) inbox: Inbox,
    body: Body,
}

/// How the rest of a body is found.
#[derive(Debug)]
enum Body {
    /// The flow knows; its source must not end before it is complete.
    Counted,
    /// The flow ends with its source.
    UntilClose,
    Chunked(Chunked),
    /// All of it is with the flow.
    Over,
}

/// What is known of a chunked body.
#[derive(Debug)]
struct Chunked {
    chunks: Chunks,
    /// Data of a chunk that was left to the flow.
    left_to_flow: u64,
    /// How many bytes of data there may still be.
    data_max: u64,
    writes_frame: bool,
}

/// What of a body its head does not say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taking {
    /// How much of the frame is taken.
    pub(crate) limits: ChunkLimits,
    /// How much of the data is taken.
    pub(crate) bytes_max: Option<u64>,
    /// Whether the target is sent chunks, if these are; version 1.0 gets the data alone.
    pub(crate) writes_frame: bool,
}

/// How far a body was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of it is with the target.
    Done,
    /// It waits for the source, the target, or its turn.
    Stopped(Stop),
    /// The source ended before the body did.
    Truncated,
}

/// Why a body cannot be moved to its end.
#[derive(Debug)]
pub(crate) enum Failed {
    /// One side is gone.
    Broken(Broken),
    /// Its frame is wrong.
    Refused(Refused),
}

impl From<Broken> for Failed {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

const TOO_LONG: Refused = Refused::new(413, "the body is longer than is allowed here");

impl Half {
    /// Nothing is moved before a body begins.
    pub(crate) fn new(mut flow: Flow) -> Self {
        flow.expect(Some(0));
        Self { flow, inbox: Inbox::default(), body: Body::Over }
    }

    /// Begins with the body that follows a head, and writes to `out`, behind that head, what of it
    /// was received already.
    ///
    /// # Errors
    /// It is too long, or its frame is wrong.
    pub(crate) fn begin(
        &mut self,
        framing: Framing,
        taking: Taking,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let data_max = taking.bytes_max.unwrap_or(u64::MAX);
        self.flow.expect(Some(0));
        self.body = match framing {
            Framing::Length(bytes) if bytes > data_max => return Err(TOO_LONG),
            Framing::Length(bytes) => {
                let moved = self.inbox.move_to(out, bytes);
                self.flow.expect(Some(bytes - moved));
                Body::Counted
            }
            Framing::UntilClose => {
                self.inbox.move_to(out, u64::MAX);
                self.flow.expect(None);
                Body::UntilClose
            }
            Framing::Chunked => Body::Chunked(Chunked {
                chunks: Chunks::new(taking.limits),
                left_to_flow: 0,
                data_max,
                writes_frame: taking.writes_frame,
            }),
        };
        self.scan(out)
    }

    /// Whether only the end of the connection tells where the body ends.
    pub(crate) fn is_until_close(&self) -> bool {
        matches!(self.body, Body::UntilClose)
    }

    /// Moves what can be moved now, up to `share`, which is lowered by what was taken.
    ///
    /// # Errors
    /// It cannot be moved to its end.
    pub(crate) fn run(
        &mut self,
        from: &mut Socket,
        to: &mut Socket,
        core: &mut Core,
        share: &mut usize,
    ) -> Result<Progress, Failed> {
        loop {
            match (self.flow.run(from, to, core, share)?, &self.body) {
                (Stop::Complete, Body::Chunked(_)) => {}
                (Stop::Complete, _) | (Stop::Ended, Body::UntilClose) => return Ok(Progress::Done),
                (Stop::Ended, _) => return Ok(Progress::Truncated),
                (stop, _) => return Ok(Progress::Stopped(stop)),
            }
            if self.inbox.is_empty() {
                if *share == 0 {
                    return Ok(Progress::Stopped(Stop::ShareUsed));
                }
                match self.receive(from, core).map_err(|_gone| Broken::Source)? {
                    Moved::WouldBlock => return Ok(Progress::Stopped(Stop::SourceEmpty)),
                    Moved::Bytes(0) => return Ok(Progress::Truncated),
                    Moved::Bytes(bytes) => *share = share.saturating_sub(bytes),
                }
            }
            let mut out = Vec::new();
            self.scan(&mut out)?;
            self.flow.put(out);
        }
    }

    /// Takes what has come into the inbox.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn receive(&mut self, from: &mut Socket, core: &mut Core) -> io::Result<Moved> {
        let moved = self.inbox.receive(from, &mut core.scratch)?;
        if let Moved::Bytes(bytes @ 1..) = moved {
            self.flow.copied(bytes, core);
        }
        Ok(moved)
    }

    /// Reads the frame of what was received, and writes it anew to `out` with the data. The data of
    /// a large chunk that is still to come is left to the flow.
    fn scan(&mut self, out: &mut Vec<u8>) -> Result<(), Refused> {
        let Body::Chunked(chunked) = &mut self.body else { return Ok(()) };
        chunked.end_flow(out);
        loop {
            let (frame_bytes, chunk) = chunked.chunks.scan(self.inbox.bytes())?;
            self.inbox.skip(frame_bytes);
            match chunk {
                Chunk::Data(left) if left > chunked.data_max => return Err(TOO_LONG),
                Chunk::Data(left) if !self.inbox.is_empty() => {
                    chunked.take(left, &mut self.inbox, out)
                }
                Chunk::Data(left) if left >= LARGE_BYTES as u64 => {
                    chunked.begin_flow(left, out);
                    self.flow.expect(Some(left));
                    return Ok(());
                }
                Chunk::Data(_) | Chunk::Unfinished => return Ok(()),
                Chunk::End => {
                    if chunked.writes_frame {
                        out.extend_from_slice(LAST_CHUNK);
                    }
                    self.body = Body::Over;
                    return Ok(());
                }
            }
        }
    }
}

impl Chunked {
    /// Takes the data there is as a chunk of its own.
    fn take(&mut self, left: u64, inbox: &mut Inbox, out: &mut Vec<u8>) {
        let bytes = left.min(inbox.bytes().len() as u64);
        self.write_size(bytes, out);
        inbox.move_to(out, bytes);
        self.write_end(out);
        self.passed(bytes);
    }

    fn begin_flow(&mut self, bytes: u64, out: &mut Vec<u8>) {
        self.write_size(bytes, out);
        self.left_to_flow = bytes;
    }

    /// What was left to the flow is with the target.
    fn end_flow(&mut self, out: &mut Vec<u8>) {
        if self.left_to_flow > 0 {
            self.write_end(out);
            self.passed(self.left_to_flow);
            self.left_to_flow = 0;
        }
    }

    fn passed(&mut self, bytes: u64) {
        self.chunks.passed(bytes);
        self.data_max -= bytes;
    }

    fn write_size(&self, bytes: u64, out: &mut Vec<u8>) {
        if self.writes_frame {
            write_chunk_size(out, bytes);
        }
    }

    fn write_end(&self, out: &mut Vec<u8>) {
        if self.writes_frame {
            out.extend_from_slice(b"\r\n");
        }
    }
}
