//! One direction of a connection: bytes from a socket to another one.
//!
//! A flow takes from its source only when all it took before is with its target, so what it holds
//! is one burst at most. What it holds is in a pipe or in memory, and it has neither when it holds
//! nothing.

use std::io::IoSlice;
use std::sync::Arc;

use haul_pipe::{Drained, Filled, Lease, PipePool};
use haul_reactor::{Moved, Socket};

use crate::choice::{Choice, Moving, Way};
use crate::stats::{Counters, MovedCounters};

/// What all flows of a thread use.
#[derive(Debug)]
pub(crate) struct Core {
    /// Where what is copied lies for a moment.
    pub(crate) scratch: Box<[u8]>,
    /// The pipes.
    pub(crate) pool: PipePool,
    /// What is counted.
    pub(crate) counters: Arc<Counters>,
    /// Which ways may be taken.
    pub(crate) moving: Moving,
}

/// The most that is copied at once.
const SCRATCH_BYTES: usize = 64 << 10;

impl Core {
    /// With nothing counted yet.
    pub(crate) fn new(pool: PipePool, moving: Moving) -> Self {
        let scratch = vec![0; SCRATCH_BYTES].into_boxed_slice();
        Self { scratch, pool, counters: Arc::default(), moving }
    }
}

/// Which of the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From whoever connected to the target.
    Up,
    /// From the target.
    Down,
}

/// Why a flow stopped for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing more came, and nothing is held.
    SourceEmpty,
    /// The target takes no more.
    TargetFull,
    /// The source has ended, and all of it is with the target.
    Ended,
    /// As many bytes as were asked for are with the target.
    Complete,
    /// The share is used up; there may be more to do.
    ShareUsed,
}

/// The connection failed on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Where bytes come from: what came before is with the target, or lost.
    Source,
    /// Where they go: what is held cannot be delivered.
    Target,
}

/// What was taken and could not be handed on at once.
#[derive(Debug, Default)]
enum Held {
    #[default]
    Nothing,
    /// Bytes from this place on.
    Memory(Vec<u8>, usize),
    Pipe(Lease),
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Flow {
    direction: Direction,
    choice: Choice,
    held: Held,
    has_ended: bool,
    /// The kernel was told that more would follow.
    is_held_back: bool,
    /// How many bytes are still to be taken; none: all there are.
    left: Option<u64>,
    /// How many were taken, and how many handed on.
    moved_bytes: u64,
}

impl Flow {
    /// A flow of all bytes there are.
    pub(crate) fn new(direction: Direction, core: &Core) -> Self {
        let choice = Choice::new(core.moving);
        Self {
            direction,
            choice,
            held: Held::Nothing,
            has_ended: false,
            is_held_back: false,
            left: None,
            moved_bytes: 0,
        }
    }

    /// Bytes that go to the target before anything else does.
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        debug_assert!(matches!(self.held, Held::Nothing), "only what holds nothing takes more");
        if !bytes.is_empty() {
            self.held = Held::Memory(bytes, 0);
        }
    }

    /// Takes so many bytes and no more, besides those that were put; then it is complete. `None`:
    /// all there are.
    pub(crate) fn expect(&mut self, bytes: Option<u64>) {
        self.left = bytes;
        self.choice.expect(bytes.unwrap_or(0));
    }

    /// How many bytes it holds.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.held {
            Held::Nothing => 0,
            Held::Memory(bytes, sent) => bytes.len() - sent,
            Held::Pipe(lease) => lease.pending_bytes(),
        }
    }

    /// The bytes taken and the bytes handed on, added up: it rises while anything moves.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.moved_bytes
    }

    /// Whether the source has ended, and nothing is held.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended && matches!(self.held, Held::Nothing)
    }

    /// Lets go of what it holds: it will not be delivered.
    pub(crate) fn give_up(&mut self) {
        self.held = Held::Nothing;
    }

    /// Moves what can be moved now, until `share` bytes were taken, which is lowered by what was.
    ///
    /// # Errors
    /// When one side failed: no more can be moved this way.
    pub(crate) fn run(
        &mut self,
        from: &mut Socket,
        to: &mut Socket,
        core: &mut Core,
        share: &mut usize,
    ) -> Result<Stop, Broken> {
        let stop = self.run_on(from, to, core, share);
        if !matches!(stop, Ok(Stop::TargetFull | Stop::ShareUsed)) {
            self.push(to);
        }
        stop
    }

    /// Nothing follows at once: the kernel is to hold back nothing.
    fn push(&mut self, to: &mut Socket) {
        if std::mem::take(&mut self.is_held_back) {
            to.push();
        }
    }

    fn run_on(
        &mut self,
        from: &mut Socket,
        to: &mut Socket,
        core: &mut Core,
        share: &mut usize,
    ) -> Result<Stop, Broken> {
        loop {
            if !self.let_out(to, core)? {
                return Ok(Stop::TargetFull);
            }
            if self.has_ended {
                return Ok(Stop::Ended);
            }
            if self.left == Some(0) {
                return Ok(Stop::Complete);
            }
            if !from.is_readable() {
                return Ok(Stop::SourceEmpty);
            }
            // What could not be handed on would only be held.
            if !to.is_writable() {
                return Ok(Stop::TargetFull);
            }
            if *share == 0 {
                return Ok(Stop::ShareUsed);
            }
            let taken = match self.choice.way() {
                Way::Copy => self.copy(from, to, core)?,
                Way::Splice => self.splice(from, to, core)?,
            };
            *share = share.saturating_sub(taken);
        }
    }

    /// Hands on what is held. Whether nothing is held then.
    pub(crate) fn hand_on(&mut self, to: &mut Socket, core: &mut Core) -> Result<bool, Broken> {
        let is_all = self.let_out(to, core)?;
        if is_all {
            self.push(to);
        }
        Ok(is_all)
    }

    fn let_out(&mut self, to: &mut Socket, core: &mut Core) -> Result<bool, Broken> {
        match &mut self.held {
            Held::Nothing => return Ok(true),
            Held::Memory(bytes, sent) => {
                let more = write(to, &bytes[*sent..])?;
                *sent += more;
                self.moved_bytes += more as u64;
                if *sent < bytes.len() {
                    return Ok(false);
                }
            }
            Held::Pipe(lease) => {
                let before = lease.pending_bytes();
                let drained = drain(lease, to, self.is_held_back);
                self.moved_bytes += (before - lease.pending_bytes()) as u64;
                match drained {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(error) if error.is_refusal() => return self.unpipe(to, core),
                    Err(_) => return Err(Broken::Target),
                }
            }
        }
        self.held = Held::Nothing;
        Ok(true)
    }

    /// The target cannot be spliced to: what is in the pipe is copied out of it.
    fn unpipe(&mut self, to: &mut Socket, core: &mut Core) -> Result<bool, Broken> {
        self.refuse_splice(core);
        let Held::Pipe(mut lease) = std::mem::take(&mut self.held) else { return Ok(true) };
        let mut bytes = vec![0; lease.pending_bytes()];
        let mut read = 0;
        while read < bytes.len() {
            read += lease.read(&mut bytes[read..]).map_err(|_closed| Broken::Source)?;
        }
        self.held = Held::Memory(bytes, 0);
        self.let_out(to, core)
    }

    /// The most that may be taken at once.
    fn room(&self, most: usize) -> usize {
        self.left.map_or(most, |left| usize::try_from(left).map_or(most, |left| left.min(most)))
    }

    /// Takes what comes in one read, and hands it on.
    fn copy(
        &mut self,
        from: &mut Socket,
        to: &mut Socket,
        core: &mut Core,
    ) -> Result<usize, Broken> {
        let room = self.room(core.scratch.len());
        let buffer = &mut core.scratch[..room];
        let bytes = match from.read(buffer).map_err(|_why| Broken::Source)? {
            Moved::WouldBlock => return Ok(0),
            Moved::Bytes(0) => {
                self.has_ended = true;
                return Ok(0);
            }
            Moved::Bytes(bytes) => bytes,
        };
        self.taken(Way::Copy, bytes, bytes == room, core);
        let sent = write(to, &core.scratch[..bytes])?;
        if sent < bytes {
            self.held = Held::Memory(core.scratch[sent..bytes].to_vec(), 0);
        }
        Ok(bytes)
    }

    /// Takes what comes into a pipe at once, and hands it on.
    fn splice(
        &mut self,
        from: &mut Socket,
        to: &mut Socket,
        core: &mut Core,
    ) -> Result<usize, Broken> {
        let large_enough = |lease: &Lease| lease.capacity_bytes() >= SCRATCH_BYTES;
        let Some(mut lease) = core.pool.lease().ok().filter(large_enough) else {
            core.counters.no_pipe.add(1);
            return self.copy(from, to, core);
        };
        let room = self.room(lease.capacity_bytes());
        let bytes = match lease.fill(&*from, room) {
            Ok(Filled::Bytes(bytes)) => bytes,
            // Before urgent bytes a splice finds nothing, or an end: a read knows better.
            Ok(Filled::End) => return self.copy(from, to, core),
            Ok(_) if from.has_mark() => return self.copy(from, to, core),
            Ok(Filled::SourceEmpty | Filled::PipeFull) => {
                from.source_was_empty();
                return Ok(0);
            }
            Err(error) if error.is_refusal() => {
                self.refuse_splice(core);
                return Ok(0);
            }
            Err(_) => return Err(Broken::Source),
        };
        self.taken(Way::Splice, bytes, bytes == room, core);
        // While much comes, segments are sent when they are full: the last bytes of a burst go with
        // the next one. There are fewer of them, by up to one for each burst.
        self.is_held_back = bytes >= SCRATCH_BYTES;
        self.held = Held::Pipe(lease);
        self.let_out(to, core)?;
        Ok(bytes)
    }

    fn taken(&mut self, way: Way, bytes: usize, filled_room: bool, core: &Core) {
        self.choice.moved(bytes, filled_room);
        self.moved_bytes += bytes as u64;
        if let Some(left) = &mut self.left {
            *left -= bytes as u64;
        }
        self.counters(core).burst(way, bytes);
    }

    fn refuse_splice(&mut self, core: &Core) {
        self.choice.refuse_splice();
        core.counters.splice_refused.add(1);
    }

    /// Counts bytes of this direction that somebody else took from its source.
    pub(crate) fn copied(&self, bytes: usize, core: &Core) {
        self.counters(core).burst(Way::Copy, bytes);
    }

    fn counters<'a>(&self, core: &'a Core) -> &'a MovedCounters {
        match self.direction {
            Direction::Up => &core.counters.up,
            Direction::Down => &core.counters.down,
        }
    }
}

/// Writes as much as the target takes.
fn write(to: &mut Socket, bytes: &[u8]) -> Result<usize, Broken> {
    let mut sent = 0;
    while sent < bytes.len() {
        match to.write(&[IoSlice::new(&bytes[sent..])], false).map_err(|_why| Broken::Target)? {
            Moved::Bytes(more) => sent += more,
            Moved::WouldBlock => break,
        }
    }
    Ok(sent)
}

/// Lets out as much as the target takes. Whether the pipe is empty then.
fn drain(lease: &mut Lease, to: &mut Socket, more: bool) -> haul_pipe::Result<bool> {
    while lease.pending_bytes() > 0 {
        match lease.drain(&*to, lease.pending_bytes(), more) {
            Ok(Drained::Bytes(_)) => {}
            Ok(Drained::TargetFull) => {
                to.target_was_full();
                return Ok(false);
            }
            Err(error) => {
                if !error.is_refusal() {
                    to.has_failed();
                }
                return Err(error);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
