//! One direction of a connection: moves bytes from a source socket to a destination socket.
//!
//! A flow reads only after it has written everything it read before, so it buffers at most one
//! burst, in a pipe or in memory. A flow with nothing buffered has neither a pipe nor a buffer.

mod stream;

use haul_pipe::{DrainOutcome, Filled, Lease};
use haul_reactor::{IoStatus, Socket};

use crate::stats::DirectionCounters;
use crate::thread_context::{COPY_BYTES_MAX, ThreadContext};
use crate::transfer_mode::{MethodSelector, TransferMethod};
pub(crate) use stream::Stream;
use stream::write;

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the client to the target.
    Up,
    /// From the target to the client.
    Down,
}

/// The reason why a flow stopped moving bytes for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The source has no bytes to read now, and nothing is buffered.
    SourceEmpty,
    /// The destination accepts no bytes now.
    DestinationFull,
    /// The source is at EOF, and all its bytes were written.
    Eof,
    /// All bytes of the length set by [`Flow::set_length`] were written.
    Complete,
    /// The byte budget is used up; the source may have more.
    BudgetUsed,
}

/// The side whose socket failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedSide {
    /// The source failed. The bytes not yet read from the source are lost.
    Source,
    /// The destination failed. The buffered bytes cannot be delivered.
    Destination,
}

/// The bytes that a flow has read and not yet written.
#[derive(Debug, Default)]
enum Buffered {
    #[default]
    Empty,
    /// The bytes of the vector that begin at this offset.
    Memory(Vec<u8>, usize),
    Pipe(Lease),
}

/// The state of one direction of a connection: its buffered bytes, method and length limit.
#[derive(Debug)]
pub(crate) struct Flow {
    direction: Direction,
    selector: MethodSelector,
    buffered: Buffered,
    source_is_eof: bool,
    /// `true` if the last splice promised the kernel more bytes (`SPLICE_F_MORE`).
    is_corked: bool,
    /// The bytes still to be read from the source; `None` without a length limit.
    remaining: Option<u64>,
    /// Bytes read from the source.
    read_bytes: u64,
    /// Bytes written to the destination.
    written_bytes: u64,
}

impl Flow {
    /// Creates a flow without a length limit.
    pub(crate) fn new(direction: Direction, thread: &ThreadContext) -> Self {
        let selector = MethodSelector::new(thread.transfer_mode);
        Self {
            direction,
            selector,
            buffered: Buffered::Empty,
            source_is_eof: false,
            is_corked: false,
            remaining: None,
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// Buffers `bytes`, which are written before any byte of the source. The flow must have nothing
    /// buffered.
    pub(crate) fn prepend(&mut self, bytes: Vec<u8>) {
        debug_assert!(matches!(self.buffered, Buffered::Empty), "prepended to buffered bytes");
        if !bytes.is_empty() {
            self.buffered = Buffered::Memory(bytes, 0);
        }
    }

    /// Limits the flow to `bytes` bytes from the source, not counting prepended ones; `None`
    /// removes the limit.
    pub(crate) fn set_length(&mut self, bytes: Option<u64>) {
        self.remaining = bytes;
        self.selector.set_length(bytes.unwrap_or(0));
    }

    /// Returns the number of buffered bytes.
    pub(crate) fn buffered_bytes(&self) -> usize {
        match &self.buffered {
            Buffered::Empty => 0,
            Buffered::Memory(bytes, sent) => bytes.len() - sent,
            Buffered::Pipe(lease) => lease.pending_bytes(),
        }
    }

    /// Returns the number of bytes read plus the number of bytes written: it grows whenever a byte
    /// moves.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.read_bytes + self.written_bytes
    }

    /// Returns the number of bytes written to the destination.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Returns `true` if the source is at EOF and nothing is buffered.
    pub(crate) fn is_finished(&self) -> bool {
        self.source_is_eof && matches!(self.buffered, Buffered::Empty)
    }

    /// Drops the buffered bytes; a leased pipe that holds bytes is closed.
    pub(crate) fn discard_buffered(&mut self) {
        self.buffered = Buffered::Empty;
    }

    /// Moves bytes until one side would block or `budget` is used up, and subtracts the bytes read
    /// from `budget`.
    ///
    /// # Errors
    /// Returns the side that failed; the flow must not be run again.
    pub(crate) fn run(
        &mut self,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
        thread: &mut ThreadContext,
        budget: &mut usize,
    ) -> Result<Stop, FailedSide> {
        let stop = self.run_on(from, to, thread, budget);
        if !matches!(stop, Ok(Stop::DestinationFull | Stop::BudgetUsed)) {
            self.uncork(to);
        }
        stop
    }

    /// Makes the kernel send a partial TCP segment that it holds back because of `SPLICE_F_MORE`.
    fn uncork(&mut self, to: &mut dyn Stream) {
        if std::mem::take(&mut self.is_corked)
            && let Some(socket) = to.plain()
        {
            socket.push();
        }
    }

    fn run_on(
        &mut self,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
        thread: &mut ThreadContext,
        budget: &mut usize,
    ) -> Result<Stop, FailedSide> {
        loop {
            if !self.drain_buffered(to, thread)? {
                return Ok(Stop::DestinationFull);
            }
            if self.source_is_eof {
                return Ok(Stop::Eof);
            }
            if self.remaining == Some(0) {
                return Ok(Stop::Complete);
            }
            if !from.is_readable() {
                return Ok(Stop::SourceEmpty);
            }
            // Bytes read now could not be written, so they stay in the source's socket.
            if !to.is_writable() {
                return Ok(Stop::DestinationFull);
            }
            if *budget == 0 {
                return Ok(Stop::BudgetUsed);
            }
            let bytes_read = match (self.selector.method(), from.plain(), to.plain()) {
                (TransferMethod::Splice, Some(from), Some(to)) => self.splice(from, to, thread)?,
                // Bytes that must be encrypted or decrypted cannot be spliced.
                _ => self.copy(from, to, thread)?,
            };
            *budget = budget.saturating_sub(bytes_read);
        }
    }

    /// Writes the buffered bytes; returns `true` if none are left.
    pub(crate) fn write_buffered(
        &mut self,
        to: &mut dyn Stream,
        thread: &mut ThreadContext,
    ) -> Result<bool, FailedSide> {
        let is_empty = self.drain_buffered(to, thread)?;
        if is_empty {
            self.uncork(to);
        }
        Ok(is_empty)
    }

    fn drain_buffered(
        &mut self,
        to: &mut dyn Stream,
        thread: &mut ThreadContext,
    ) -> Result<bool, FailedSide> {
        match &mut self.buffered {
            Buffered::Empty => return Ok(true),
            Buffered::Memory(bytes, sent) => {
                let more = write(to, &bytes[*sent..]).map_err(|_why| FailedSide::Destination)?;
                *sent += more;
                self.written_bytes += more as u64;
                if *sent < bytes.len() {
                    return Ok(false);
                }
            }
            Buffered::Pipe(lease) => {
                let Some(to) = to.plain() else { return Err(FailedSide::Destination) };
                let before = lease.pending_bytes();
                let drained = drain(lease, to, self.is_corked);
                self.written_bytes += (before - lease.pending_bytes()) as u64;
                match drained {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(error) if error.is_refusal() => return self.copy_out_of_pipe(to, thread),
                    Err(_) => return Err(FailedSide::Destination),
                }
            }
        }
        self.buffered = Buffered::Empty;
        Ok(true)
    }

    /// Copies the content of the pipe to memory and writes it from there, because the destination
    /// does not support splice; returns `true` if nothing is left.
    fn copy_out_of_pipe(
        &mut self,
        to: &mut dyn Stream,
        thread: &mut ThreadContext,
    ) -> Result<bool, FailedSide> {
        self.disable_splice(thread);
        let Buffered::Pipe(mut lease) = std::mem::take(&mut self.buffered) else { return Ok(true) };
        let mut bytes = vec![0; lease.pending_bytes()];
        let mut read = 0;
        while read < bytes.len() {
            read += lease.read(&mut bytes[read..]).map_err(|_closed| FailedSide::Source)?;
        }
        self.buffered = Buffered::Memory(bytes, 0);
        self.drain_buffered(to, thread)
    }

    /// Returns the maximum length of the next read: `most` bytes, or fewer if the length limit
    /// leaves fewer.
    fn read_limit(&self, most: usize) -> usize {
        let remaining = self.remaining.unwrap_or(u64::MAX);
        usize::try_from(remaining).map_or(most, |remaining| remaining.min(most))
    }

    /// Reads once into memory and writes the bytes read; returns their number.
    fn copy(
        &mut self,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
        thread: &mut ThreadContext,
    ) -> Result<usize, FailedSide> {
        let limit = self.read_limit(thread.scratch.len());
        let buffer = &mut thread.scratch[..limit];
        let bytes = match from.read(buffer).map_err(|_why| FailedSide::Source)? {
            IoStatus::WouldBlock => return Ok(0),
            IoStatus::Bytes(0) => {
                self.source_is_eof = true;
                return Ok(0);
            }
            IoStatus::Bytes(bytes) => bytes,
        };
        self.record_read(TransferMethod::Copy, bytes, bytes == limit, thread);
        let sent = write(to, &thread.scratch[..bytes]).map_err(|_why| FailedSide::Destination)?;
        self.written_bytes += sent as u64;
        if sent < bytes {
            self.buffered = Buffered::Memory(thread.scratch[sent..bytes].to_vec(), 0);
        }
        Ok(bytes)
    }

    /// Splices once into a pipe and from there to the destination; returns the number of bytes
    /// read.
    fn splice(
        &mut self,
        from: &mut Socket,
        to: &mut Socket,
        thread: &mut ThreadContext,
    ) -> Result<usize, FailedSide> {
        let large_enough = |lease: &Lease| lease.capacity_bytes() >= COPY_BYTES_MAX;
        let Some(mut lease) = thread.pool.lease().ok().filter(large_enough) else {
            thread.counters.no_pipe.add(1);
            return self.copy(from, to, thread);
        };
        let limit = self.read_limit(lease.capacity_bytes());
        let bytes = match lease.fill(&*from, limit) {
            Ok(Filled::Bytes(bytes)) => bytes,
            // At urgent data a splice reports EOF or no bytes; only a read returns the urgent byte.
            Ok(Filled::End) => return self.copy(from, to, thread),
            Ok(_) if from.has_urgent_data() => return self.copy(from, to, thread),
            Ok(Filled::SourceEmpty | Filled::PipeFull) => {
                from.clear_readable();
                return Ok(0);
            }
            Err(error) if error.is_refusal() => {
                self.disable_splice(thread);
                return Ok(0);
            }
            Err(_) => return Err(FailedSide::Source),
        };
        self.record_read(TransferMethod::Splice, bytes, bytes == limit, thread);
        // `SPLICE_F_MORE` makes the kernel send full segments only: it holds the last bytes of a
        // large burst back until the next burst, which saves up to one segment per burst.
        self.is_corked = bytes >= COPY_BYTES_MAX;
        self.buffered = Buffered::Pipe(lease);
        self.drain_buffered(to, thread)?;
        Ok(bytes)
    }

    fn record_read(
        &mut self,
        method: TransferMethod,
        bytes: usize,
        filled_limit: bool,
        thread: &ThreadContext,
    ) {
        self.selector.record_burst(bytes, filled_limit);
        self.read_bytes += bytes as u64;
        if let Some(remaining) = &mut self.remaining {
            *remaining -= bytes as u64;
        }
        self.counters(thread).burst(method, bytes);
    }

    fn disable_splice(&mut self, thread: &ThreadContext) {
        self.selector.disable_splice();
        thread.counters.splice_refused.add(1);
    }

    /// Counts `bytes` bytes, which the caller itself has read from the source, as one copied burst.
    pub(crate) fn count_copied(&self, bytes: usize, thread: &ThreadContext) {
        self.counters(thread).burst(TransferMethod::Copy, bytes);
    }

    fn counters<'a>(&self, thread: &'a ThreadContext) -> &'a DirectionCounters {
        match self.direction {
            Direction::Up => &thread.counters.up,
            Direction::Down => &thread.counters.down,
        }
    }
}

/// Splices from the pipe until the destination would block; returns `true` if the pipe is empty.
fn drain(lease: &mut Lease, to: &mut Socket, more: bool) -> haul_pipe::Result<bool> {
    while lease.pending_bytes() > 0 {
        match lease.drain(&*to, lease.pending_bytes(), more) {
            Ok(DrainOutcome::Bytes(_)) => {}
            Ok(DrainOutcome::TargetFull) => {
                to.clear_writable();
                return Ok(false);
            }
            Err(error) => {
                if !error.is_refusal() {
                    to.mark_failed();
                }
                return Err(error);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
