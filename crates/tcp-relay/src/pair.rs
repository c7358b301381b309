//! Both directions between two sockets, until both have ended.
//!
//! A side that ends properly is told to the other one, after the last byte. When one side takes
//! nothing any more, what it said before is still brought to the other one; then both are cut off.

use std::time::Instant;

use haul_reactor::{Next, Socket};

use crate::config::Limits;
use crate::flow::{Broken, Core, Direction, Flow, Stop};
use crate::stats::Ended;

/// The flows, and what is known of both.
#[derive(Debug)]
pub(crate) struct Pair {
    up: Flow,
    down: Flow,
    /// The direction that cannot deliver any more, while the other one is brought to its end.
    lost: Option<Direction>,
    /// When a byte moved last.
    moved_at: Instant,
}

impl Pair {
    /// Two flows, and what goes first up and down.
    pub(crate) fn new(first: [Vec<u8>; 2], core: &Core, now: Instant) -> Self {
        let [up, down] = [Direction::Up, Direction::Down].map(|way| Flow::new(way, core));
        let mut pair = Self { up, down, lost: None, moved_at: now };
        let [up, down] = first;
        pair.up.put(up);
        pair.down.put(down);
        pair
    }

    /// Moves what can be moved now.
    ///
    /// # Errors
    /// How it is over.
    pub(crate) fn go_on(
        &mut self,
        [near, far]: [&mut Socket; 2],
        limits: &Limits,
        core: &mut Core,
        now: Instant,
    ) -> Result<Next, Ended> {
        let (before, had_lost) = (self.moved_bytes(), self.lost);
        let up = self.run(Direction::Up, [&mut *near, &mut *far], limits, core)?;
        let down = self.run(Direction::Down, [&mut *far, &mut *near], limits, core)?;
        if self.moved_bytes() != before {
            self.moved_at = now;
        }
        // The last words may have come since the other direction was run.
        if self.lost != had_lost {
            return Ok(Next::Again);
        }
        // What was said before a reset is delivered if it is taken at once.
        let is_stuck = |stop, source: &Socket| stop == Some(Stop::TargetFull) && source.is_broken();
        if is_stuck(up, near) || is_stuck(down, far) {
            return Err(Ended::Reset);
        }
        let is_full = |stop| matches!(stop, Some(Stop::TargetFull | Stop::ShareUsed));
        if self.lost.is_some() && !is_full(up) && !is_full(down) {
            return Err(Ended::Reset);
        }
        if self.up.has_ended() && self.down.has_ended() {
            return Err(Ended::Clean);
        }
        if [up, down].contains(&Some(Stop::ShareUsed)) {
            return Ok(Next::Again);
        }
        let is_half = self.up.has_ended() || self.down.has_ended() || self.lost.is_some();
        let (time_max, how) = match is_half {
            true => (limits.half_closed_time_max, Ended::HalfClosed),
            false => (limits.idle_time_max, Ended::Idle),
        };
        let deadline = time_max.map(|time| self.moved_at + time);
        match deadline {
            Some(deadline) if now >= deadline => Err(how),
            _ => Ok(Next::Wait(deadline)),
        }
    }

    fn moved_bytes(&self) -> u64 {
        self.up.moved_bytes() + self.down.moved_bytes()
    }

    /// Runs one direction; `None` when it is lost.
    fn run(
        &mut self,
        direction: Direction,
        [from, to]: [&mut Socket; 2],
        limits: &Limits,
        core: &mut Core,
    ) -> Result<Option<Stop>, Ended> {
        if self.lost == Some(direction) {
            return Ok(None);
        }
        let flow = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        let had_ended = flow.has_ended();
        let mut share = limits.share_bytes;
        match flow.run(from, to, core, &mut share) {
            // A socket that failed once tells an end next: it is none.
            Ok(Stop::Ended) if !had_ended && self.lost.is_some() => Err(Ended::Reset),
            Ok(Stop::Ended) if !had_ended => match to.shut_write() {
                Ok(()) => Ok(Some(Stop::Ended)),
                Err(_) => Err(Ended::Reset),
            },
            Ok(stop) => Ok(Some(stop)),
            Err(Broken::Source) => Err(Ended::Reset),
            Err(Broken::Target) if self.lost.is_some() => Err(Ended::Reset),
            // What that side said before it went is still told to the other one.
            Err(Broken::Target) => {
                flow.give_up();
                self.lost = Some(direction);
                Ok(None)
            }
        }
    }
}
