//! A client's connection: who it is, its requests one after the other, its end.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use haul_http1::{Refused, Request, parse_request};
use haul_reactor::{Connection, Hub, Moved, Next, Side, Socket};

use super::exchange::Exchange;
use super::half::{Half, Taking};
use super::heads;
use super::linger::Lingering;
use super::options::HttpOptions;
use super::peer::Peer;
use super::spares::{Spares, is_quiet};
use crate::connect::Connecting;
use crate::flow::{Core, Direction, Flow};
use crate::opening::{Opened, Opening};
use crate::pair::Pair;
use crate::proxy::Ends;
use crate::relayed::Shared;
use crate::stats::Ended;
use crate::target::Using;

/// What there is besides the connection while it is driven.
pub(crate) struct Around<'a, 'h, M> {
    pub(crate) shared: &'a Shared,
    pub(crate) options: &'a HttpOptions,
    pub(crate) core: &'a mut Core,
    pub(crate) spares: &'a mut Spares,
    pub(crate) hub: &'a Hub<'h, M>,
}

/// A connection of a client, and the one to a target that it uses.
#[derive(Debug)]
pub(crate) struct HttpRelayed {
    pub(super) near: Socket,
    pub(super) far: Option<Far>,
    pub(super) up: Half,
    pub(super) down: Half,
    pub(super) stage: Stage,
    pub(super) client: Client,
    /// When a byte moved last.
    pub(super) moved_at: Instant,
    end: Option<End>,
}

/// A connection to a target.
#[derive(Debug)]
pub(crate) struct Far {
    pub(super) socket: Socket,
    pub(super) using: Using,
    /// It is this client's alone: its target takes whatever comes over it for the client's.
    pub(super) is_private: bool,
}

/// Who the client is.
#[derive(Debug)]
pub(crate) struct Client {
    pub(super) ends: Ends,
    pub(super) address: Option<IpAddr>,
    peer: Peer,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// It is not known who the client is.
    Opening(Opening),
    /// The head of a request is awaited since then; its first byte came then.
    Request { since: Instant, begun: Option<Instant> },
    /// A request is understood, and wants a target; its head as it goes there.
    Connecting { connecting: Connecting, far: Option<Socket>, exchange: Exchange, head: Vec<u8> },
    /// A request is under way.
    Exchange(Exchange),
    /// It is no HTTP any more.
    Tunnel(Pair),
    /// All is said but the end.
    Lingering(Lingering),
    /// One stage is made of another.
    Between,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    how: Ended,
    /// Both peers must see that something is missing.
    is_cut: bool,
}

impl End {
    /// Everything that was begun is complete.
    pub(super) const fn clean(how: Ended) -> Self {
        Self { how, is_cut: false }
    }

    /// Something that was begun is not complete.
    pub(super) const fn cut(how: Ended) -> Self {
        Self { how, is_cut: true }
    }
}

/// What to do next, or how the connection ended. `None`: the next stage begins.
pub(super) type Step = Result<Option<Next>, End>;

/// How long a client that asks nothing keeps its target's connection to itself.
const FAR_TIME: Duration = Duration::from_secs(1);

impl HttpRelayed {
    /// A connection that was accepted just now.
    pub(crate) fn new(
        near: Socket,
        is_headed: bool,
        shared: &Shared,
        core: &Core,
        now: Instant,
    ) -> Self {
        Self {
            near,
            far: None,
            up: Half::new(Flow::new(Direction::Up, core)),
            down: Half::new(Flow::new(Direction::Down, core)),
            stage: Stage::Opening(Opening::new(is_headed, &shared.limits, now)),
            client: Client { ends: Ends::Unknown, address: None, peer: Peer::new(None) },
            moved_at: now,
            end: None,
        }
    }

    /// Does what can be done now.
    pub(crate) fn go_on<M>(&mut self, around: &mut Around<'_, '_, M>) -> Next {
        let end = loop {
            let step = match &self.stage {
                Stage::Opening(_) => self.open(around),
                Stage::Request { .. } => self.read_request(around),
                Stage::Connecting { .. } => self.connect(around),
                Stage::Exchange(_) => self.exchange(around),
                Stage::Tunnel(_) => self.tunnel(around),
                Stage::Lingering(_) => self.linger(around),
                Stage::Between => Err(End::cut(Ended::Reset)),
            };
            match step {
                Ok(None) => {}
                Ok(Some(next)) => return next,
                Err(end) => break end,
            }
        };
        self.end = Some(end);
        Next::Close
    }

    /// Closes both sockets. Both peers see that they were cut off, if they were. What no request is
    /// under way on is kept for others.
    pub(crate) fn close(mut self, spares: &mut Spares) -> Ended {
        if matches!(self.stage, Stage::Request { .. })
            && let Some(far) = self.far.take_if(|far| !far.is_private)
        {
            spares.put(far.using.index(), far.socket, self.moved_at);
        }
        let end = self.end.unwrap_or(End::cut(Ended::Drained));
        if end.is_cut {
            self.near.reset();
            if let Some(far) = self.far {
                far.socket.reset();
            }
        }
        end.how
    }

    fn open<M>(&mut self, around: &Around<'_, '_, M>) -> Step {
        let Stage::Opening(opening) = &mut self.stage else { return Ok(None) };
        let now = around.hub.now();
        match opening.go_on(&mut self.near, now) {
            Ok(Opened::Waiting(deadline)) => Ok(Some(Next::Wait(Some(deadline)))),
            Ok(Opened::Known { ends, early }) => {
                let address = ends.client();
                self.client = Client { ends, address, peer: Peer::new(address) };
                if !early.is_empty() {
                    self.up.flow.copied(early.len(), around.core);
                    self.up.inbox.push(&early);
                }
                self.await_request(now)
            }
            Err(_) => Err(End::cut(Ended::BadProxy)),
        }
    }

    pub(super) fn await_request(&mut self, now: Instant) -> Step {
        self.stage = Stage::Request { since: now, begun: None };
        Ok(None)
    }

    /// Whether nothing of a request has come: one empty line before it is not of it \[RFC9112\].
    fn is_asked_nothing(&self) -> bool {
        b"\r\n".starts_with(self.up.inbox.bytes())
    }

    fn read_request<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let now = around.hub.now();
        loop {
            if !self.is_asked_nothing() {
                match parse_request(self.up.inbox.bytes(), &around.options.head_limits) {
                    Ok(None) => {}
                    Ok(Some(_)) => return self.begin(around),
                    Err(refused) => return self.answer(refused, false, around),
                }
            } else if around.hub.is_draining() && self.near.is_readable() {
                // A close with bytes unread would take back what the client has not read yet.
                return self.say_end(Ended::Clean, around);
            } else if around.hub.is_draining() {
                return Err(End::clean(Ended::Clean));
            }
            if !self.near.is_readable() {
                break;
            }
            match self.up.receive(&mut self.near, around.core) {
                Ok(Moved::Bytes(0)) => return Err(End::clean(Ended::Clean)),
                Ok(_) => {}
                Err(_) => return Err(End::cut(Ended::Reset)),
            }
        }
        self.watch_far();
        let is_asked_nothing = self.is_asked_nothing();
        let Stage::Request { since, begun } = &mut self.stage else { return Ok(None) };
        if is_asked_nothing {
            let deadline = *since + around.options.keep_alive_time_max;
            let far_until = *since + FAR_TIME;
            if now >= deadline {
                return Err(End::clean(Ended::Idle));
            }
            if now >= far_until {
                self.spare_far(around);
            }
            let has_shared = self.far.as_ref().is_some_and(|far| !far.is_private);
            let next = if has_shared { far_until.min(deadline) } else { deadline };
            return Ok(Some(Next::Wait(Some(next))));
        }
        let deadline = *begun.get_or_insert(now) + around.options.head_time_max;
        if now < deadline {
            return Ok(Some(Next::Wait(Some(deadline))));
        }
        self.answer(Refused::new(408, "the head of the request took too long"), false, around)
    }

    /// Lets go of a target's connection that is not asked anything, and says something or ends.
    fn watch_far(&mut self) {
        let is_usable = |far: &mut Far| !far.socket.is_readable() || is_quiet(&mut far.socket);
        if !self.far.as_mut().is_some_and(is_usable) {
            self.far = None;
        }
    }

    /// Leaves the target's connection to others.
    pub(super) fn spare_far<M>(&mut self, around: &mut Around<'_, '_, M>) {
        let Some(mut far) = self.far.take_if(|far| !far.is_private) else { return };
        if !around.hub.is_draining() && around.hub.disown(&mut far.socket).is_ok() {
            around.spares.put(far.using.index(), far.socket, around.hub.now());
        }
    }

    /// Begins with the request whose head has come.
    fn begin<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let parsed = parse_request(self.up.inbox.bytes(), &around.options.head_limits);
        let Ok(Some(request)) = parsed else { return Ok(None) };
        around.core.counters.http.requests.add(1);
        let is_head = request.method == "HEAD";
        let mut head = Vec::new();
        let written = passed_on(&request).and_then(|()| {
            heads::write_request(&mut head, &request, &self.client.peer, around.options)
        });
        let (head_bytes, framing) = (request.head_bytes, request.framing);
        let exchange = Exchange::new(&request, around.options);
        let taking = Taking {
            limits: around.options.chunk_limits,
            bytes_max: around.options.request_body_bytes_max,
            writes_frame: true,
        };
        self.up.inbox.skip(head_bytes);
        if let Err(refused) = written.and_then(|()| self.up.begin(framing, taking, &mut head)) {
            return self.answer(refused, is_head, around);
        }
        self.moved_at = around.hub.now();
        self.watch_far();
        self.ask(exchange, head, around)
    }
}

/// Whether this is something the relay passes on.
fn passed_on(request: &Request<'_>) -> Result<(), Refused> {
    match request.method {
        "CONNECT" => Err(Refused::new(501, "this is not a proxy for CONNECT")),
        "TRACE" => Err(Refused::new(501, "TRACE is not passed on")),
        _ => Ok(()),
    }
}

impl Connection for HttpRelayed {
    fn socket(&mut self, side: Side) -> Option<&mut Socket> {
        match (side, &mut self.stage) {
            (Side::Near, _) => Some(&mut self.near),
            (Side::Far, Stage::Connecting { far, .. }) => far.as_mut(),
            (Side::Far, _) => self.far.as_mut().map(|far| &mut far.socket),
        }
    }
}
