//! One relayed connection: what it waits for, and what it does then.
//!
//! A side that is reset, or goes for whatever other reason, resets the other one: what is not
//! complete never looks as if it were.

use std::mem::take;
use std::sync::Arc;
use std::time::Instant;

use haul_reactor::{Connection, Hub, Next, Side, Socket, TcpOptions};

use crate::config::Limits;
use crate::connect::{Connecting, Progress};
use crate::flow::{Core, Direction, Flow};
use crate::http::HttpOptions;
use crate::opening::{Opened, Opening};
use crate::pair::Pair;
use crate::proxy::{self, Ends, Version};
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
    ended: Option<Ended>,
}

#[derive(Debug)]
enum Stage {
    /// It is not known who the client is.
    Opening(Opening),
    /// A target is looked for; what goes there first.
    Connecting(Connecting, Vec<u8>),
    Relaying {
        pair: Pair,
        _using: Using,
    },
}

/// What to do next, or how the connection ended. `None`: the next stage begins.
type Step = Result<Option<Next>, Ended>;

impl Relayed {
    /// A connection that was accepted just now.
    pub(crate) fn new(near: Socket, is_headed: bool, shared: &Shared, now: Instant) -> Self {
        let opening = Opening::new(is_headed, &shared.limits, now);
        Self { near, far: None, stage: Stage::Opening(opening), ended: None }
    }

    /// Does what can be done now.
    pub(crate) fn go_on<M>(&mut self, shared: &Shared, core: &mut Core, hub: &Hub<'_, M>) -> Next {
        let how = loop {
            let step = match &mut self.stage {
                Stage::Opening(_) => self.open(shared, core, hub),
                Stage::Connecting(..) => self.connect(core, hub),
                Stage::Relaying { pair, .. } => match self.far.as_mut() {
                    Some(far) => {
                        pair.go_on([&mut self.near, far], &shared.limits, core, hub.now()).map(Some)
                    }
                    None => Err(Ended::Reset),
                },
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

    fn open<M>(&mut self, shared: &Shared, core: &Core, hub: &Hub<'_, M>) -> Step {
        let Stage::Opening(opening) = &mut self.stage else { return Ok(None) };
        match opening.go_on(&mut self.near, hub.now()) {
            Ok(Opened::Waiting(deadline)) => Ok(Some(Next::Wait(Some(deadline)))),
            Ok(Opened::Known { ends, early }) => {
                if !early.is_empty() {
                    Flow::new(Direction::Up, core).copied(early.len(), core);
                }
                self.stage = begin(&ends, &early, shared, hub.now());
                Ok(None)
            }
            Err(_) => Err(Ended::BadProxy),
        }
    }

    fn connect<M>(&mut self, core: &Core, hub: &Hub<'_, M>) -> Step {
        let Stage::Connecting(connecting, first) = &mut self.stage else { return Ok(None) };
        match connecting.go_on(&mut self.far, hub) {
            Progress::Waiting(deadline) => Ok(Some(Next::Wait(Some(deadline)))),
            Progress::NoTarget => Err(Ended::NoTarget),
            Progress::Connected(using) => {
                let pair = Pair::new([take(first), Vec::new()], core, hub.now());
                self.stage = Stage::Relaying { pair, _using: using };
                Ok(None)
            }
        }
    }
}

/// It is known who the client is, and what it said already.
fn begin(ends: &Ends, early: &[u8], shared: &Shared, now: Instant) -> Stage {
    let mut first = shared.proxy_out.map_or_else(Vec::new, |form| proxy::write(form, ends));
    first.extend_from_slice(early);
    let attempts = shared.targets.attempts(ends.client(), now);
    let connecting = Connecting::new(attempts, shared.tcp, shared.limits.connect_time_max);
    Stage::Connecting(connecting, first)
}

impl Connection for Relayed {
    fn socket(&mut self, side: Side) -> Option<&mut Socket> {
        match side {
            Side::Near => Some(&mut self.near),
            Side::Far => self.far.as_mut(),
        }
    }
}
