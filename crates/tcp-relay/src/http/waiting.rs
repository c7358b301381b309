//! What is done while nothing moves: for how long, and whether the client still waits.
//!
//! A client that ends its side may have closed, or may only have said all it wants to say: TCP tells
//! the same. One that has closed answers whatever it is told with a reset, so it is told something
//! that others disregard: an interim response, which every client of HTTP/1.1 must expect \[RFC9110\].

use std::time::{Duration, Instant};

use haul_http1::{Refused, Version};
use haul_reactor::Next;

use super::connection::{Around, End, HttpRelayed, Stage, Step};
use super::exchange::{Exchange, Getting, Sending};
use super::options::HttpOptions;
use crate::flow::Stop;
use crate::stats::Ended;

/// How long a client that has said its end is left alone: most responses are there by then.
const DOUBT_TIME: Duration = Duration::from_secs(1);
/// What it is asked then.
const STILL_THERE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl HttpRelayed {
    /// Nothing can be moved now.
    pub(super) fn wait<M>(
        &mut self,
        stops: [Option<Stop>; 2],
        around: &mut Around<'_, '_, M>,
    ) -> Step {
        let Stage::Exchange(exchange) = &self.stage else { return Ok(None) };
        let now = around.hub.now();
        let (time_max, late) = exchange.patience(stops, around.options);
        let is_head = exchange.is_head();
        let mut deadline = self.moved_at + time_max;
        if now >= deadline && self.has_taken(stops) {
            self.moved_at = now;
            deadline = now + time_max;
        }
        if now >= deadline {
            return match late {
                Some(refused) => self.answer(refused, is_head, around),
                None => Err(End::cut(Ended::Idle)),
            };
        }
        let next = match self.doubted_at() {
            Some(doubted_at) if now >= doubted_at => {
                self.ask_whether_it_waits(around)?;
                deadline
            }
            Some(doubted_at) => doubted_at.min(deadline),
            None => deadline,
        };
        Ok(Some(Next::Wait(Some(next))))
    }

    /// Whether who is slow has taken something since this was asked last: the kernel keeps megabytes
    /// for it, and says that there is room when there is much. The first time nobody knows.
    fn has_taken(&mut self, [up, down]: [Option<Stop>; 2]) -> bool {
        let Stage::Exchange(exchange) = &mut self.stage else { return false };
        let slow = match (&self.far, up, down) {
            (_, _, Some(Stop::TargetFull)) => &self.near,
            (Some(far), Some(Stop::TargetFull), _) => &far.socket,
            _ => return false,
        };
        let unconfirmed = haul_disk::unconfirmed(slow).unwrap_or(0);
        exchange.unconfirmed_bytes.replace(unconfirmed) != Some(unconfirmed)
    }

    /// From when on it is doubtful that the client still waits, and it can be asked.
    fn doubted_at(&self) -> Option<Instant> {
        let Stage::Exchange(exchange) = &self.stage else { return None };
        let can_be_asked = exchange.response == Getting::Awaited
            && exchange.going.version == Version::Http11
            && self.down.flow.held_bytes() == 0;
        let is_doubtful = self.near.has_end() && !exchange.was_asked;
        (is_doubtful && can_be_asked).then(|| self.moved_at + DOUBT_TIME)
    }

    fn ask_whether_it_waits<M>(&mut self, around: &mut Around<'_, '_, M>) -> Result<(), End> {
        let Stage::Exchange(exchange) = &mut self.stage else { return Ok(()) };
        exchange.was_asked = true;
        self.down.flow.put(STILL_THERE.to_vec());
        let said = self.down.flow.hand_on(&mut self.near, around.core);
        said.map(drop).map_err(|_gone| End::cut(Ended::Reset))
    }
}

impl Exchange {
    /// How long nothing may move, and what the client is told then.
    fn patience(
        &self,
        [up, _down]: [Option<Stop>; 2],
        options: &HttpOptions,
    ) -> (Duration, Option<Refused>) {
        match (self.response, self.request) {
            (Getting::Awaited, Sending::Moving) if up == Some(Stop::SourceEmpty) => {
                let late = Refused::new(408, "the body of the request took too long");
                (options.body_time_max, Some(late))
            }
            (Getting::Awaited, _) => {
                let late = Refused::new(504, "the server behind took too long to answer");
                (options.response_time_max, Some(late))
            }
            _ => (options.body_time_max, None),
        }
    }
}
