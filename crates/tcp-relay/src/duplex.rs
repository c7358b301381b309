//! Relays bytes in both directions between two sockets, until both directions have ended.
//!
//! The EOF of one side is forwarded to the other side after the last byte (half-close). When a
//! write to one side fails, the bytes that this side had sent before are delivered to the other
//! side first; then both sides are reset.

use std::time::Instant;

use haul_reactor::Next;

use crate::config::Limits;
use crate::end_reason::EndReason;
use crate::flow::{Direction, FailedSide, Flow, Stop, Stream};
use crate::thread_context::ThreadContext;

/// The flows of a connection, one for each direction.
#[derive(Debug)]
pub(crate) struct Duplex {
    up: Flow,
    down: Flow,
    /// The direction whose destination failed, while the other direction delivers its last bytes.
    failed: Option<Direction>,
    /// The last time a byte moved.
    moved_at: Instant,
}

impl Duplex {
    /// Creates the flows; `first` holds the bytes to send first, to the target and to the client.
    pub(crate) fn new(first: [Vec<u8>; 2], thread: &ThreadContext, now: Instant) -> Self {
        let [up, down] =
            [Direction::Up, Direction::Down].map(|direction| Flow::new(direction, thread));
        let mut duplex = Self { up, down, failed: None, moved_at: now };
        let [up, down] = first;
        duplex.up.prepend(up);
        duplex.down.prepend(down);
        duplex
    }

    /// Moves bytes in both directions as far as possible without blocking.
    ///
    /// # Errors
    /// Returns the reason why the connection has ended, which may be [`EndReason::Clean`].
    pub(crate) fn advance(
        &mut self,
        [client, upstream]: [&mut dyn Stream; 2],
        limits: &Limits,
        thread: &mut ThreadContext,
        now: Instant,
    ) -> Result<Next, EndReason> {
        let (before, had_failed) = (self.moved_bytes(), self.failed);
        let up = self.run(Direction::Up, [&mut *client, &mut *upstream], limits, thread)?;
        let down = self.run(Direction::Down, [&mut *upstream, &mut *client], limits, thread)?;
        if self.moved_bytes() != before {
            self.moved_at = now;
        }
        // The failed side may have sent its last bytes after the direction that reads from this
        // side ran, so this direction runs once more.
        if self.failed != had_failed {
            return Ok(Next::Yield);
        }
        // Bytes that a side sent before its reset are delivered only if the other side accepts them
        // at once.
        let is_stuck =
            |stop, source: &dyn Stream| stop == Some(Stop::DestinationFull) && source.has_error();
        if is_stuck(up, client) || is_stuck(down, upstream) {
            return Err(EndReason::Reset);
        }
        let is_full = |stop| matches!(stop, Some(Stop::DestinationFull | Stop::BudgetUsed));
        if self.failed.is_some() && !is_full(up) && !is_full(down) {
            return Err(EndReason::Reset);
        }
        if self.up.is_finished() && self.down.is_finished() && client.flush().unwrap_or(true) {
            return Err(EndReason::Clean);
        }
        if [up, down].contains(&Some(Stop::BudgetUsed)) {
            return Ok(Next::Yield);
        }
        let is_half_closed =
            self.up.is_finished() || self.down.is_finished() || self.failed.is_some();
        let (time_max, reason) = match is_half_closed {
            true => (limits.half_closed_time_max, EndReason::HalfClosed),
            false => (limits.idle_time_max, EndReason::Idle),
        };
        let deadline = time_max.map(|time| self.moved_at + time);
        match deadline {
            Some(deadline) if now >= deadline => Err(reason),
            _ => Ok(Next::Wait(deadline)),
        }
    }

    /// Returns the number of bytes written to the client.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.down.written_bytes()
    }

    fn moved_bytes(&self) -> u64 {
        self.up.moved_bytes() + self.down.moved_bytes()
    }

    /// Runs one direction; returns `None` if it has failed.
    fn run(
        &mut self,
        direction: Direction,
        [from, to]: [&mut dyn Stream; 2],
        limits: &Limits,
        thread: &mut ThreadContext,
    ) -> Result<Option<Stop>, EndReason> {
        if self.failed == Some(direction) {
            return Ok(None);
        }
        let flow = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        let was_finished = flow.is_finished();
        let mut budget = limits.budget_bytes;
        match flow.run(from, to, thread, &mut budget) {
            // After the kernel has reported the error of a socket once, reads from this socket
            // return EOF, although the stream is truncated.
            Ok(Stop::Eof) if !was_finished && self.failed.is_some() => Err(EndReason::Reset),
            Ok(Stop::Eof) if !was_finished => match to.shutdown_write() {
                Ok(()) => Ok(Some(Stop::Eof)),
                Err(_) => Err(EndReason::Reset),
            },
            Ok(stop) => Ok(Some(stop)),
            Err(FailedSide::Source) => Err(EndReason::Reset),
            Err(FailedSide::Destination) if self.failed.is_some() => Err(EndReason::Reset),
            // The other direction delivers the bytes that the failed side sent before its failure.
            Err(FailedSide::Destination) => {
                flow.discard_buffered();
                self.failed = Some(direction);
                Ok(None)
            }
        }
    }
}
