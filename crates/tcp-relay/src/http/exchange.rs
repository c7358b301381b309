//! One request and its response: both are moved at once, as a target may answer early.

use haul_http1::{Asked, Framing, Refused, Request, Response, Version, parse_response};
use haul_reactor::{Moved, Next};

use super::connection::{Around, End, HttpRelayed, Stage, Step};
use super::half::{Failed, Progress, Taking};
use super::heads::{self, Going};
use super::options::HttpOptions;
use crate::flow::{Broken, Stop};
use crate::stats::Ended;

/// What is known of the request that is under way.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(super) going: Going,
    /// Client and target may agree to leave HTTP.
    is_websocket: bool,
    /// It has no body, and asking twice is as good as asking once.
    pub(super) is_repeatable: bool,
    /// What comes over the connection behind it may be this client's words: its sender proves who it
    /// is once, for all that follows, or the target takes a body that it does not read for the next
    /// request.
    pub(super) is_private: bool,
    /// Its head, while it can be sent again: to a target that may have ended the connection before.
    pub(super) again: Option<Vec<u8>>,
    pub(super) request: Sending,
    pub(super) response: Getting,
    /// A client that had said its end was asked whether it still waits.
    pub(super) was_asked: bool,
    /// What the kernel still had for whoever is slow, when nothing had moved for long.
    pub(super) unconfirmed_bytes: Option<u64>,
    /// Whether the target keeps its connection.
    far_is_kept: bool,
}

/// How far the request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    Moving,
    /// All of it is with the target.
    Done,
    /// The target takes no more of it. It may have answered before.
    Lost,
}

/// How far the response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Getting {
    /// The client was told nothing but interim responses.
    Awaited,
    Moving,
    Done,
}

/// Why an exchange does not come to its proper end.
enum Trouble {
    /// Something was begun that cannot be ended.
    Cut(Ended),
    /// The client was told nothing so far, and is told this.
    Answer(Refused),
    /// The target ended the connection without a word.
    Silence,
}

impl Exchange {
    pub(super) fn new(request: &Request<'_>, options: &HttpOptions) -> Self {
        let is_safe_twice = matches!(request.method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE");
        Self {
            going: Going {
                version: request.version,
                asked: request.asked(),
                keep_alive: request.keep_alive,
            },
            is_websocket: heads::wants_websocket(request, options),
            is_repeatable: is_safe_twice && request.framing.is_empty(),
            is_private: heads::authenticates_connection(request) || !request.framing.is_empty(),
            again: None,
            request: Sending::Moving,
            response: Getting::Awaited,
            was_asked: false,
            unconfirmed_bytes: None,
            far_is_kept: false,
        }
    }

    pub(super) fn is_head(&self) -> bool {
        self.going.asked == Asked::Head
    }

    /// The same, to be begun once more.
    pub(super) fn anew(self) -> Self {
        Self { again: None, request: Sending::Moving, ..self }
    }

    /// Whether the client's connection can be kept after this response.
    fn keeps_near(&self, response: &Response<'_>, is_draining: bool) -> bool {
        let has_end = match response.framing {
            Framing::Length(_) => true,
            Framing::Chunked => self.going.version == Version::Http11,
            Framing::UntilClose => false,
        };
        self.going.keep_alive && has_end && self.request == Sending::Done && !is_draining
    }
}

impl HttpRelayed {
    pub(super) fn exchange<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let Stage::Exchange(exchange) = &self.stage else { return Ok(None) };
        let is_head = exchange.is_head();
        // Nobody waits for it any more.
        if self.near.is_gone() {
            return Err(End::cut(Ended::Reset));
        }
        let before = self.moved_bytes();
        let stops = match self.send(around).and_then(|up| Ok([up, self.get(around)?])) {
            Ok(stops) => stops,
            Err(Trouble::Cut(how)) => return Err(End::cut(how)),
            Err(Trouble::Answer(refused)) => return self.answer(refused, is_head, around),
            Err(Trouble::Silence) => return self.ask_again(around),
        };
        if self.moved_bytes() != before {
            self.moved_at = around.hub.now();
        }
        match &self.stage {
            Stage::Exchange(Exchange { response: Getting::Done, .. }) => self.done(around),
            Stage::Exchange(_) if stops.contains(&Some(Stop::ShareUsed)) => Ok(Some(Next::Again)),
            Stage::Exchange(_) => self.wait(stops, around),
            _ => Ok(None),
        }
    }

    fn moved_bytes(&self) -> u64 {
        self.up.flow.moved_bytes() + self.down.flow.moved_bytes()
    }

    /// Moves the request.
    fn send<M>(&mut self, around: &mut Around<'_, '_, M>) -> Result<Option<Stop>, Trouble> {
        let Self { near, far: Some(far), up, stage: Stage::Exchange(exchange), .. } = self else {
            return Err(Trouble::Silence);
        };
        if exchange.request != Sending::Moving {
            return Ok(None);
        }
        let mut share = around.shared.limits.share_bytes;
        match up.run(near, &mut far.socket, around.core, &mut share) {
            Ok(Progress::Done) => exchange.request = Sending::Done,
            Ok(Progress::Stopped(stop)) => return Ok(Some(stop)),
            Ok(Progress::Truncated) | Err(Failed::Broken(Broken::Source)) => {
                return Err(Trouble::Cut(Ended::Reset));
            }
            Err(Failed::Broken(Broken::Target)) => {
                up.flow.give_up();
                exchange.request = Sending::Lost;
            }
            Err(Failed::Refused(refused)) if exchange.response == Getting::Awaited => {
                return Err(Trouble::Answer(refused));
            }
            Err(Failed::Refused(_)) => return Err(Trouble::Cut(Ended::Reset)),
        }
        Ok(None)
    }

    /// Moves the response.
    fn get<M>(&mut self, around: &mut Around<'_, '_, M>) -> Result<Option<Stop>, Trouble> {
        let mut share = around.shared.limits.share_bytes;
        loop {
            let Self { near, far: Some(far), down, stage: Stage::Exchange(exchange), .. } = self
            else {
                return Ok(None);
            };
            if exchange.response == Getting::Done {
                return Ok(None);
            }
            // Before the head this is what the client still gets of interim responses.
            match down.run(&mut far.socket, near, around.core, &mut share) {
                // The failed write of the request took the error that would have told a cut from
                // an end.
                Ok(Progress::Done)
                    if down.is_until_close() && exchange.request == Sending::Lost =>
                {
                    return Err(Trouble::Cut(Ended::Reset));
                }
                Ok(Progress::Done) if exchange.response == Getting::Moving => {
                    exchange.response = Getting::Done;
                    return Ok(None);
                }
                Ok(Progress::Done) => {}
                Ok(Progress::Stopped(stop)) => return Ok(Some(stop)),
                Ok(Progress::Truncated) | Err(_) => return Err(Trouble::Cut(Ended::Reset)),
            }
            if self.take_head(around)? {
                continue;
            }
            if share == 0 {
                return Ok(Some(Stop::ShareUsed));
            }
            let Self { far: Some(far), down, .. } = self else { return Ok(None) };
            if !far.socket.is_readable() {
                return Ok(Some(Stop::SourceEmpty));
            }
            match down.receive(&mut far.socket, around.core) {
                Ok(Moved::Bytes(0)) | Err(_) if down.inbox.is_empty() => {
                    return Err(Trouble::Silence);
                }
                Ok(Moved::Bytes(0)) | Err(_) => {
                    return Err(Trouble::Answer(BAD_GATEWAY_CUT));
                }
                Ok(Moved::WouldBlock) => return Ok(Some(Stop::SourceEmpty)),
                Ok(Moved::Bytes(bytes)) => share = share.saturating_sub(bytes),
            }
        }
    }

    /// Takes the head of a response, if it has come, and puts it before the client. Whether it had.
    fn take_head<M>(&mut self, around: &mut Around<'_, '_, M>) -> Result<bool, Trouble> {
        let Self { down, stage: Stage::Exchange(exchange), .. } = self else { return Ok(false) };
        if down.inbox.is_empty() {
            return Ok(false);
        }
        let (limits, asked) = (&around.options.head_limits, exchange.going.asked);
        let response = match parse_response(down.inbox.bytes(), limits, asked) {
            Ok(None) => return Ok(false),
            Ok(Some(response)) => response,
            Err(_) => return Err(Trouble::Answer(BAD_GATEWAY)),
        };
        let (status, head_bytes, framing) =
            (response.status, response.head_bytes, response.framing);
        around.core.counters.http.response(status);
        let mut head = Vec::new();
        let may_leave = exchange.is_websocket && exchange.request == Sending::Done;
        if status == 101 && !(may_leave && heads::is_websocket(&response)) {
            return Err(Trouble::Answer(BAD_GATEWAY));
        }
        if !response.is_interim() && status != 101 {
            exchange.going.keep_alive = exchange.keeps_near(&response, around.hub.is_draining());
            exchange.far_is_kept = response.keep_alive;
        }
        heads::write_response(&mut head, &response, exchange.going, around.options)
            .map_err(|_why| Trouble::Answer(BAD_GATEWAY))?;
        let is_interim = response.is_interim();
        down.inbox.skip(head_bytes);
        if status == 101 {
            around.core.counters.http.tunnels.add(1);
            self.begin_tunnel(head, around);
        } else if is_interim {
            // Version 1.0 knows none.
            if exchange.going.version == Version::Http11 {
                down.flow.put(head);
            }
        } else {
            let taking = Taking {
                limits: around.options.chunk_limits,
                bytes_max: None,
                writes_frame: exchange.going.version == Version::Http11,
            };
            down.begin(framing, taking, &mut head).map_err(|_why| Trouble::Answer(BAD_GATEWAY))?;
            down.flow.put(head);
            exchange.response = Getting::Moving;
        }
        Ok(true)
    }

    /// The response is with the client.
    fn done<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let Stage::Exchange(exchange) = &self.stage else { return Ok(None) };
        let is_whole = exchange.request == Sending::Done;
        let keeps_near = is_whole && exchange.going.keep_alive;
        let keeps_far = is_whole && exchange.far_is_kept && self.down.inbox.is_empty();
        if let Some(far) = &mut self.far {
            far.is_private |= exchange.is_private;
        }
        if !keeps_far {
            let far = self.far.take();
            // A request that was cut short must not look whole.
            if !is_whole && let Some(far) = far {
                far.socket.reset();
            }
        }
        if keeps_near {
            return self.await_request(around.hub.now());
        }
        self.spare_far(around);
        self.say_end(Ended::Clean, around)
    }
}

const BAD_GATEWAY: Refused = Refused::new(502, "the server behind answered in a way that is wrong");
const BAD_GATEWAY_CUT: Refused =
    Refused::new(502, "the server behind ended the connection within its answer");
