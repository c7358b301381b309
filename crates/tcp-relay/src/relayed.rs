//! One relayed connection: what it waits for, and what it does then.
//!
//! A side that ends properly is told to the other one, after the last byte. A side that is reset,
//! or goes for whatever other reason, resets the other one: what is not complete never looks as if
//! it were.

use std::sync::Arc;
use std::time::Instant;

use haul_reactor::{Connection, Hub, Moved, Next, Side, Socket, TcpOptions};

use crate::config::Limits;
use crate::connect::{Connecting, Progress};
use crate::flow::{Broken, Core, Direction, Flow, Stop};
use crate::http::HttpOptions;
use crate::proxy::{self, Ends, Read, Version};
use crate::sockets::ends_of;
use crate::stats::Ended;
use crate::target::{Targets, Using};

/// What all connections of a relay have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) targets: Arc<Targets>,
    pub(crate) limits: Limits,
    pub(crate) tcp: TcpOptions,
    pub(crate) proxy_out: Option<Version>,
    pub(crate) http: Option<HttpOptions>,
}

/// A connection and its two sockets.
#[derive(Debug)]
pub(crate) struct Relayed {
    near: Socket,
    far: Option<Socket>,
    stage: Stage,
    up: Flow,
    down: Flow,
    /// The direction that cannot deliver any more, while the other one is brought to its end.
    lost: Option<Direction>,
    /// When a byte moved last.
    moved_at: Instant,
    ended: Option<Ended>,
}

#[derive(Debug)]
enum Stage {
    /// Nothing was done yet.
    Accepted,
    /// A PROXY header must come first; what of it has come.
    Header {
        bytes: Vec<u8>,
        deadline: Instant,
    },
    Connecting(Connecting),
    Relaying {
        _using: Using,
    },
}

/// What to do next, or how the connection ended. `None`: the next stage begins.
type Step = Result<Option<Next>, Ended>;

impl Relayed {
    /// A connection that was accepted just now. With `is_headed` a PROXY header says who the
    /// client is; otherwise its socket does.
    pub(crate) fn new(
        near: Socket,
        is_headed: bool,
        shared: &Shared,
        core: &Core,
        now: Instant,
    ) -> Self {
        let stage = if is_headed {
            let deadline = now + shared.limits.proxy_time_max;
            Stage::Header { bytes: Vec::new(), deadline }
        } else {
            Stage::Accepted
        };
        let (up, down) = (Flow::new(Direction::Up, core), Flow::new(Direction::Down, core));
        Self { near, far: None, stage, up, down, lost: None, moved_at: now, ended: None }
    }

    /// Does what can be done now.
    pub(crate) fn go_on<M>(&mut self, shared: &Shared, core: &mut Core, hub: &Hub<'_, M>) -> Next {
        let how = loop {
            let step = match &self.stage {
                Stage::Header { .. } => self.read_header(shared, hub),
                Stage::Accepted => self.begin(&ends_of(&self.near), Vec::new(), shared, hub),
                Stage::Connecting(_) => self.connect(hub),
                Stage::Relaying { .. } => self.relay(shared, core, hub.now()),
            };
            match step {
                Ok(None) => {}
                Ok(Some(next)) => return next,
                Err(how) => break how,
            }
        };
        self.ended = Some(how);
        Next::Close
    }

    /// Closes both sockets. Both peers see that they were cut off, unless both had ended.
    pub(crate) fn close(self) -> Ended {
        let how = self.ended.unwrap_or(Ended::Drained);
        if how != Ended::Clean {
            self.near.reset();
            self.far.map(Socket::reset).unwrap_or_default();
        }
        how
    }

    fn read_header<M>(&mut self, shared: &Shared, hub: &Hub<'_, M>) -> Step {
        let Stage::Header { bytes, deadline } = &mut self.stage else { return Ok(None) };
        let mut buffer = [0; 512];
        loop {
            match proxy::read(bytes) {
                Ok(Read::Partial) => {}
                Ok(Read::Whole { ends, header_bytes }) => {
                    let early = bytes.split_off(header_bytes);
                    return self.begin(&ends, early, shared, hub);
                }
                Err(_) => return Err(Ended::BadProxy),
            }
            match self.near.read(&mut buffer) {
                Ok(Moved::Bytes(0)) | Err(_) => return Err(Ended::BadProxy),
                Ok(Moved::Bytes(more)) => bytes.extend_from_slice(&buffer[..more]),
                Ok(Moved::WouldBlock) if hub.now() < *deadline => {
                    return Ok(Some(Next::Wait(Some(*deadline))));
                }
                Ok(Moved::WouldBlock) => return Err(Ended::BadProxy),
            }
        }
    }

    /// It is known who the client is, and what it said already.
    fn begin<M>(&mut self, ends: &Ends, early: Vec<u8>, shared: &Shared, hub: &Hub<'_, M>) -> Step {
        let mut first = shared.proxy_out.map_or_else(Vec::new, |form| proxy::write(form, ends));
        first.extend_from_slice(&early);
        self.up.put(first);
        let attempts = shared.targets.attempts(ends.client(), hub.now());
        let connecting = Connecting::new(attempts, shared.tcp, shared.limits.connect_time_max);
        self.stage = Stage::Connecting(connecting);
        Ok(None)
    }

    fn connect<M>(&mut self, hub: &Hub<'_, M>) -> Step {
        let Stage::Connecting(connecting) = &mut self.stage else { return Ok(None) };
        match connecting.go_on(&mut self.far, hub) {
            Progress::Waiting(deadline) => Ok(Some(Next::Wait(Some(deadline)))),
            Progress::NoTarget => Err(Ended::NoTarget),
            Progress::Connected(using) => {
                self.moved_at = hub.now();
                self.stage = Stage::Relaying { _using: using };
                Ok(None)
            }
        }
    }

    fn relay(&mut self, shared: &Shared, core: &mut Core, now: Instant) -> Step {
        let before = self.up.moved_bytes() + self.down.moved_bytes();
        let up = self.run(Direction::Up, shared, core)?;
        let down = self.run(Direction::Down, shared, core)?;
        if self.up.moved_bytes() + self.down.moved_bytes() != before {
            self.moved_at = now;
        }
        let is_full = |stop| matches!(stop, Some(Stop::TargetFull | Stop::ShareUsed));
        if self.lost.is_some() && !is_full(up) && !is_full(down) {
            return Err(Ended::Reset);
        }
        if self.up.has_ended() && self.down.has_ended() {
            return Err(Ended::Clean);
        }
        if [up, down].contains(&Some(Stop::ShareUsed)) {
            return Ok(Some(Next::Again));
        }
        let is_half = self.up.has_ended() || self.down.has_ended() || self.lost.is_some();
        let (time_max, how) = match is_half {
            true => (shared.limits.half_closed_time_max, Ended::HalfClosed),
            false => (shared.limits.idle_time_max, Ended::Idle),
        };
        let deadline = time_max.map(|time| self.moved_at + time);
        match deadline {
            Some(deadline) if now >= deadline => Err(how),
            _ => Ok(Some(Next::Wait(deadline))),
        }
    }

    /// Runs one direction; `None` when it is lost.
    fn run(
        &mut self,
        direction: Direction,
        shared: &Shared,
        core: &mut Core,
    ) -> Result<Option<Stop>, Ended> {
        let Some(far) = self.far.as_mut() else { return Err(Ended::Reset) };
        if self.lost == Some(direction) {
            return Ok(None);
        }
        let (flow, from, to) = match direction {
            Direction::Up => (&mut self.up, &mut self.near, far),
            Direction::Down => (&mut self.down, far, &mut self.near),
        };
        let had_ended = flow.has_ended();
        let mut share = shared.limits.share_bytes;
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
            // What the target said before it went is still told to the source.
            Err(Broken::Target) => {
                flow.give_up();
                self.lost = Some(direction);
                Ok(None)
            }
        }
    }
}

impl Connection for Relayed {
    fn socket(&mut self, side: Side) -> Option<&mut Socket> {
        match side {
            Side::Near => Some(&mut self.near),
            Side::Far => self.far.as_mut(),
        }
    }
}
