//! A request finds its target: the connection of the one before, or a new one.

use std::mem::replace;

use haul_http1::Refused;
use haul_reactor::{Next, Side, Socket};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::connection::{Around, End, Far, HttpRelayed, Stage, Step};
use super::exchange::Exchange;
use super::half::Half;
use super::linger::NO_TARGET;
use crate::connect::{Connecting, Progress};
use crate::flow::{Direction, Flow};
use crate::proxy;
use crate::stats::Ended;
use crate::target::Attempts;

impl HttpRelayed {
    /// Sends the head of a request on its way.
    pub(super) fn ask<M>(
        &mut self,
        mut exchange: Exchange,
        head: Vec<u8>,
        around: &mut Around<'_, '_, M>,
    ) -> Step {
        if self.far.is_none() {
            let mut attempts = self.attempts(around);
            self.far = spare(&mut attempts, &exchange, around);
            self.down = Half::new(Flow::new(Direction::Down, around.core));
            if self.far.is_none() {
                return self.begin_to_connect(attempts, exchange, head, around);
            }
        }
        around.core.counters.http.reused.add(1);
        exchange.again = exchange.is_repeatable.then(|| head.clone());
        self.up.flow.put(head);
        self.stage = Stage::Exchange(exchange);
        Ok(None)
    }

    fn attempts<M>(&self, around: &Around<'_, '_, M>) -> Attempts {
        around.shared.targets.attempts(self.client.address, around.hub.now())
    }

    /// The target ended a connection that had been used before, which it may do at any time: the
    /// request may be asked again, if that does no harm.
    pub(super) fn ask_again<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let Stage::Exchange(exchange) = replace(&mut self.stage, Stage::Between) else {
            return Err(End::cut(Ended::Reset));
        };
        self.far = None;
        self.up.flow.give_up();
        match exchange.again.clone() {
            Some(head) => {
                around.core.counters.http.asked_again.add(1);
                self.begin_to_connect(self.attempts(around), exchange.anew(), head, around)
            }
            None => {
                let silent = "the server behind ended the connection without an answer";
                self.answer(Refused::new(502, silent), exchange.is_head(), around)
            }
        }
    }

    fn begin_to_connect<M>(
        &mut self,
        attempts: Attempts,
        exchange: Exchange,
        head: Vec<u8>,
        around: &Around<'_, '_, M>,
    ) -> Step {
        let shared = around.shared;
        let connecting = Connecting::new(attempts, shared.tcp, shared.limits.connect_time_max);
        self.stage = Stage::Connecting { connecting, far: None, exchange, head };
        Ok(None)
    }

    fn connect_anew<M>(&mut self, around: &Around<'_, '_, M>) -> Step {
        let Stage::Connecting { exchange, head, .. } = replace(&mut self.stage, Stage::Between)
        else {
            return Err(End::cut(Ended::Reset));
        };
        self.begin_to_connect(self.attempts(around), exchange, head, around)
    }

    pub(super) fn connect<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let Stage::Connecting { connecting, far, exchange, .. } = &mut self.stage else {
            return Ok(None);
        };
        let is_head = exchange.is_head();
        if self.near.is_gone() {
            return Err(End::cut(Ended::Reset));
        }
        let using = match connecting.go_on(far, around.hub) {
            Progress::Waiting(deadline) => return Ok(Some(Next::Wait(Some(deadline)))),
            Progress::Connected(using) => using,
            // The descriptors may be with connections that nobody uses.
            Progress::NoTarget if has_no_descriptor(&self.near) && around.spares.clear() => {
                return self.connect_anew(around);
            }
            Progress::NoTarget => return self.answer(NO_TARGET, is_head, around),
        };
        let Stage::Connecting { far: Some(socket), exchange, head, .. } =
            replace(&mut self.stage, Stage::Between)
        else {
            return Err(End::cut(Ended::Reset));
        };
        let ends = &self.client.ends;
        let mut first =
            around.shared.proxy_out.map_or_else(Vec::new, |form| proxy::write(form, ends));
        first.extend_from_slice(&head);
        self.up.flow.put(first);
        let is_private = around.shared.proxy_out.is_some();
        self.far = Some(Far { socket, using, is_private });
        self.down = Half::new(Flow::new(Direction::Down, around.core));
        self.moved_at = around.hub.now();
        self.stage = Stage::Exchange(exchange);
        Ok(None)
    }
}

/// Whether this process may have no more of them: not even another one of this socket.
fn has_no_descriptor(socket: &Socket) -> bool {
    matches!(fcntl_dupfd_cloexec(socket, 0), Err(Errno::MFILE))
}

/// A connection to the next target that no client uses, for a request that can be sent again: the
/// target may end such a connection just now.
fn spare<M>(
    attempts: &mut Attempts,
    exchange: &Exchange,
    around: &mut Around<'_, '_, M>,
) -> Option<Far> {
    if !exchange.is_repeatable || exchange.is_private {
        return None;
    }
    let mut socket = around.spares.take(attempts.first()?, around.hub.now())?;
    around.hub.adopt(&mut socket, Side::Far).ok()?;
    Some(Far { socket, using: attempts.next_target()?, is_private: false })
}
