//! The end of a connection: the last words, and time for the client to read them.
//!
//! A socket that is closed while something unread is in it is reset by the kernel, and the client
//! may lose what it was told. So the end is said, and the client's own end awaited.

use std::time::{Duration, Instant};

use haul_http1::{Date, Refused};
use haul_reactor::{Moved, Next};

use super::answer;
use super::connection::{Around, End, HttpRelayed, Stage, Step};
use crate::stats::Ended;

/// The answer where there is no target.
pub(super) const NO_TARGET: Refused = Refused::new(503, "no server behind could be connected to");

/// How long the client's end is awaited.
const TIME_MAX: Duration = Duration::from_secs(5);
/// How much of what it still sends is read, to be thrown away.
const BYTES_MAX: usize = 4 << 20;

/// What is known of the end.
#[derive(Debug)]
pub(crate) struct Lingering {
    how: Ended,
    deadline: Instant,
    is_said: bool,
    read_bytes: usize,
}

impl HttpRelayed {
    /// Answers in the target's place, and ends the connection.
    pub(super) fn answer<M>(
        &mut self,
        refused: Refused,
        is_head: bool,
        around: &mut Around<'_, '_, M>,
    ) -> Step {
        around.core.counters.http.answer(refused.status);
        // A request that is not passed on to its end must not look whole.
        if let Some(far) = self.far.take() {
            far.socket.reset();
        }
        if self.down.flow.held_bytes() > 0 {
            return Err(End::cut(Ended::Reset));
        }
        let mut out = Vec::new();
        answer::write(&mut out, refused, is_head, &Date::of(std::time::SystemTime::now()));
        self.down.flow.put(out);
        let how = if refused.status == NO_TARGET.status { Ended::NoTarget } else { Ended::Clean };
        self.say_end(how, around)
    }

    /// Ends the connection after what the client is still to be told.
    pub(super) fn say_end<M>(&mut self, how: Ended, around: &Around<'_, '_, M>) -> Step {
        let deadline = around.hub.now() + around.options.body_time_max;
        self.stage = Stage::Lingering(Lingering { how, deadline, is_said: false, read_bytes: 0 });
        Ok(None)
    }

    pub(super) fn linger<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let now = around.hub.now();
        let Self { near, down, stage: Stage::Lingering(lingering), .. } = self else {
            return Ok(None);
        };
        let over = Err(End::clean(lingering.how));
        if !lingering.is_said {
            match down.flow.hand_on(near, around.core) {
                Ok(true) => {}
                Ok(false) if now < lingering.deadline => {
                    return Ok(Some(Next::Wait(Some(lingering.deadline))));
                }
                Ok(false) | Err(_) => return Err(End::cut(Ended::Reset)),
            }
            if near.shut_write().is_err() {
                return over;
            }
            lingering.is_said = true;
            lingering.deadline = now + TIME_MAX;
        }
        let mut share = around.shared.limits.share_bytes;
        while near.is_readable() && share > 0 {
            match near.read(&mut around.core.scratch) {
                Ok(Moved::Bytes(0)) | Err(_) => return over,
                Ok(Moved::Bytes(bytes)) => {
                    lingering.read_bytes += bytes;
                    share = share.saturating_sub(bytes);
                }
                Ok(Moved::WouldBlock) => {}
            }
        }
        if now >= lingering.deadline || lingering.read_bytes > BYTES_MAX {
            return over;
        }
        Ok(Some(if share > 0 { Next::Wait(Some(lingering.deadline)) } else { Next::Again }))
    }
}
