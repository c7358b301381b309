//! What follows when client and target have left HTTP: bytes both ways.

use std::time::Instant;

use haul_reactor::{Next, Socket};

use super::connection::{Around, End, HttpRelayed, Stage, Step};
use crate::flow::{Flow, Stop};
use crate::stats::Ended;

impl HttpRelayed {
    /// Begins with the head that says so; what came behind both heads follows it.
    pub(super) fn begin_tunnel(&mut self, mut head: Vec<u8>, now: Instant) {
        self.down.inbox.move_to(&mut head, u64::MAX);
        self.down.flow.put(head);
        self.down.flow.expect(None);
        let mut early = Vec::new();
        self.up.inbox.move_to(&mut early, u64::MAX);
        self.up.flow.put(early);
        self.up.flow.expect(None);
        self.moved_at = now;
        self.stage = Stage::Tunnel;
    }

    pub(super) fn tunnel<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let Self { near, far: Some(far), up, down, .. } = self else {
            return Err(End::cut(Ended::Reset));
        };
        let before = up.flow.moved_bytes() + down.flow.moved_bytes();
        let stops = [
            run(&mut up.flow, near, &mut far.socket, around)?,
            run(&mut down.flow, &mut far.socket, near, around)?,
        ];
        let now = around.hub.now();
        if up.flow.moved_bytes() + down.flow.moved_bytes() != before {
            self.moved_at = now;
        }
        if stops == [Stop::Ended; 2] {
            return Err(End::clean(Ended::Clean));
        }
        if stops.contains(&Stop::ShareUsed) {
            return Ok(Some(Next::Again));
        }
        let limits = &around.shared.limits;
        let (time_max, how) = match stops.contains(&Stop::Ended) {
            true => (limits.half_closed_time_max, Ended::HalfClosed),
            false => (limits.idle_time_max, Ended::Idle),
        };
        let deadline = time_max.map(|time| self.moved_at + time);
        match deadline {
            Some(deadline) if now >= deadline => Err(End::cut(how)),
            _ => Ok(Some(Next::Wait(deadline))),
        }
    }
}

/// Moves one direction; its end is told to the other side.
fn run<M>(
    flow: &mut Flow,
    from: &mut Socket,
    to: &mut Socket,
    around: &mut Around<'_, '_, M>,
) -> Result<Stop, End> {
    let cut = End::cut(Ended::Reset);
    let had_ended = flow.has_ended();
    let mut share = around.shared.limits.share_bytes;
    let stop = flow.run(from, to, around.core, &mut share).map_err(|_broken| cut)?;
    if stop == Stop::Ended && !had_ended {
        to.shut_write().map_err(|_gone| cut)?;
    }
    Ok(stop)
}
