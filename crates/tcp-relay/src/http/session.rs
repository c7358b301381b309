//! Runs an HTTP session: determines the client's addresses, forwards requests one after another,
//! and closes the connections.

use std::mem::replace;
use std::time::{Instant, SystemTime};

use haul_http1::{Date, HttpError};
use haul_reactor::{Connection, Next, Socket, SocketKind};
use haul_tls::Transport;

use super::access_record::{LogContext, head_bytes};
use super::context::HttpContext;
use super::exchange::Exchange;
use super::forward::{self, ExchangeState};
use super::idle_pool::IdlePool;
use super::linger::SessionClose;
use super::messages::write_error;
use super::peers::{Peers, SessionEnd};
use super::request::{HeadState, Refusal, RequestWait, begin_exchange, has_no_request};
use super::tunnel::Tunnel;
use super::upstream::{self, ConnectState, Connecting, NO_TARGET, Sending};
use crate::end_reason::EndReason;
use crate::preamble::{Preamble, PreambleState};
use crate::stream_session::Shared;
use crate::thread_context::ThreadContext;

/// A client's connection and the upstream connection of its requests.
#[derive(Debug)]
pub(crate) struct HttpSession {
    peers: Peers,
    stage: Stage,
    end: Option<SessionEnd>,
}

#[derive(Debug)]
enum Stage {
    /// The client's addresses are not known yet.
    Preamble(Preamble),
    /// Waiting for a request head.
    Request(RequestWait),
    /// Connecting to a target for a request.
    Connecting(Connecting),
    /// A request and its response are being forwarded.
    Exchange(Exchange),
    /// The connection was upgraded; bytes are relayed without parsing them.
    Tunnel(Tunnel),
    /// The session writes its last bytes, and then waits for the client's EOF.
    Lingering(SessionClose),
    /// A placeholder while the previous stage is converted to the next one.
    Transition,
}

/// The result of one step: the next event to wait for, `None` to continue with the next stage, or
/// the end of the session.
type Step = Result<Option<Next>, SessionEnd>;

impl HttpSession {
    /// Creates the session of a newly accepted connection.
    pub(crate) fn new(
        client: Transport,
        expects_header: bool,
        shared: &Shared,
        thread: &ThreadContext,
        now: Instant,
    ) -> Self {
        Self {
            peers: Peers::new(client, thread, now),
            stage: Stage::Preamble(Preamble::new(expects_header, &shared.limits, now)),
            end: None,
        }
    }

    /// Advances the session as far as possible without blocking.
    pub(crate) fn advance<M>(&mut self, cx: &mut HttpContext<'_, '_, M>) -> Next {
        // The next write reports an error.
        self.peers.client.flush().unwrap_or_default();
        let end = loop {
            match self.step(cx) {
                Ok(None) => {}
                Ok(Some(next)) => return next,
                Err(end) => break end,
            }
        };
        self.end = Some(end);
        Next::Close
    }

    /// Returns `true` if the session waits for a request head or for the client's EOF.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Preamble(_) | Stage::Request(_) | Stage::Lingering(_))
    }

    /// Ends the session in favor of a new connection of the same client.
    pub(crate) fn evict(&mut self) {
        self.end = Some(SessionEnd::clean(EndReason::Evicted));
    }

    /// Closes both sockets, with resets if a message is incomplete; the upstream connection moves
    /// to the pool of idle connections if no request is in progress. Returns the reason of the end.
    pub(crate) fn close(mut self, idle_pool: &mut IdlePool, log: LogContext<'_>) -> EndReason {
        self.end_record(log, Instant::now());
        if matches!(self.stage, Stage::Request(_)) {
            self.peers.recycle_upstream(idle_pool);
        }
        self.peers.close(self.end.unwrap_or(SessionEnd::abort(EndReason::Drained)))
    }

    /// Writes the access log line of the exchange that the end of the session cuts off, if there is
    /// one. An incomplete request head counts as a request.
    fn end_record(&mut self, context: LogContext<'_>, now: Instant) {
        let peers = &mut self.peers;
        let written_bytes = match &self.stage {
            Stage::Tunnel(tunnel) => tunnel.written_bytes(),
            _ => peers.down.flow.written_bytes(),
        };
        if matches!(self.stage, Stage::Request(_)) && !has_no_request(peers) {
            peers.record.begin(context.log, None, now);
        }
        peers.record.end(peers.client_info.address, written_bytes, context, now);
    }

    /// Advances the current stage.
    fn step<M>(&mut self, cx: &mut HttpContext<'_, '_, M>) -> Step {
        let peers = &mut self.peers;
        match &mut self.stage {
            Stage::Preamble(_) => self.read_preamble(cx),
            Stage::Request(request) => match request.advance(peers, cx)? {
                HeadState::Waiting(next) => Ok(Some(next)),
                HeadState::Received => self.begin_exchange(cx),
                HeadState::Refused(refused) => {
                    peers.record.begin(cx.log, None, cx.reactor.now());
                    self.respond_error(refused, false, cx)
                }
                HeadState::Draining => self.start_lingering(EndReason::Clean, cx),
            },
            Stage::Connecting(connecting) => match connecting.advance(peers, cx)? {
                ConnectState::Waiting(deadline) => Ok(Some(Next::Wait(Some(deadline)))),
                ConnectState::Connected(target) => {
                    let Stage::Connecting(connecting) = self.take_stage() else { return Ok(None) };
                    let exchange = connecting.into_exchange(target, &mut self.peers, cx)?;
                    self.enter(Stage::Exchange(exchange))
                }
                ConnectState::NoTarget => {
                    let is_head = connecting.is_head();
                    self.respond_error(NO_TARGET, is_head, cx)
                }
            },
            Stage::Exchange(exchange) => {
                let state = forward::advance(exchange, peers, cx)?;
                self.continue_exchange(state, cx)
            }
            Stage::Tunnel(tunnel) => tunnel.advance(peers, cx).map(Some),
            Stage::Lingering(lingering) => lingering.advance(peers, cx).map(Some),
            Stage::Transition => Err(SessionEnd::abort(EndReason::Reset)),
        }
    }

    fn enter(&mut self, stage: Stage) -> Step {
        self.stage = stage;
        Ok(None)
    }

    fn take_stage(&mut self) -> Stage {
        replace(&mut self.stage, Stage::Transition)
    }

    fn read_preamble<M>(&mut self, cx: &HttpContext<'_, '_, M>) -> Step {
        let Stage::Preamble(preamble) = &mut self.stage else { return Ok(None) };
        let now = cx.reactor.now();
        match preamble.advance(&mut self.peers.client, now) {
            Ok(PreambleState::Waiting(deadline)) => Ok(Some(Next::Wait(Some(deadline)))),
            Ok(PreambleState::Complete { endpoints, early }) => {
                self.peers.identify_client(endpoints, &early, cx.thread);
                self.enter(Stage::Request(RequestWait::new(now)))
            }
            Err(EndReason::BadTls) => Err(SessionEnd::clean(EndReason::BadTls)),
            Err(reason) => Err(SessionEnd::abort(reason)),
        }
    }

    /// Begins to forward the request whose head was received.
    fn begin_exchange<M>(&mut self, cx: &mut HttpContext<'_, '_, M>) -> Step {
        match begin_exchange(&mut self.peers, cx) {
            Ok(None) => Ok(None),
            Ok(Some((exchange, head))) => {
                let stage = match upstream::send_request(exchange, head, &mut self.peers, cx) {
                    Sending::Reused(exchange) => Stage::Exchange(exchange),
                    Sending::Connecting(connecting) => Stage::Connecting(connecting),
                };
                self.enter(stage)
            }
            Err(Refusal { error, is_head }) => self.respond_error(error, is_head, cx),
        }
    }

    fn continue_exchange<M>(
        &mut self,
        state: ExchangeState,
        cx: &mut HttpContext<'_, '_, M>,
    ) -> Step {
        if let ExchangeState::Waiting(next) = state {
            return Ok(Some(next));
        }
        let Stage::Exchange(exchange) = self.take_stage() else { return Ok(None) };
        let is_head = exchange.is_head();
        match state {
            ExchangeState::Waiting(next) => Ok(Some(next)),
            ExchangeState::Upgraded(head) => {
                let now = cx.reactor.now();
                self.peers.record.begin_response(101, head.len() as u64, now);
                let tunnel = Tunnel::begin(head, &mut self.peers, cx);
                self.enter(Stage::Tunnel(tunnel))
            }
            ExchangeState::Refused(refused) => self.respond_error(refused, is_head, cx),
            ExchangeState::UpstreamClosed => match upstream::retry(exchange, &mut self.peers, cx) {
                Some(connecting) => self.enter(Stage::Connecting(connecting)),
                None => self.respond_error(NO_RESPONSE, is_head, cx),
            },
            ExchangeState::Done => {
                self.peers.end_record(cx);
                forward::finish(&exchange, &mut self.peers);
                if exchange.is_client_reusable() {
                    return self.enter(Stage::Request(RequestWait::new(cx.reactor.now())));
                }
                self.peers.release_upstream(cx);
                self.start_lingering(EndReason::Clean, cx)
            }
        }
    }

    /// Sends an error response of the relay in place of the target's response, and ends the
    /// session.
    fn respond_error<M>(
        &mut self,
        refused: HttpError,
        is_head: bool,
        cx: &mut HttpContext<'_, '_, M>,
    ) -> Step {
        cx.thread.counters.http.error_response(refused.status);
        self.peers.reset_upstream();
        let Peers { down, record, .. } = &mut self.peers;
        if down.flow.buffered_bytes() > 0 {
            return Err(SessionEnd::abort(EndReason::Reset));
        }
        let mut out = Vec::new();
        let retry_after = (refused.status == 429).then(|| cx.retry_after());
        write_error(&mut out, refused, is_head, retry_after, &Date::of(SystemTime::now()));
        let body_at = down.flow.written_bytes() + head_bytes(&out) as u64;
        record.begin_response(refused.status, body_at, cx.reactor.now());
        down.flow.prepend(out);
        let reason = match refused.status == NO_TARGET.status {
            true => EndReason::NoTarget,
            false => EndReason::Clean,
        };
        self.start_lingering(reason, cx)
    }

    /// Begins to end the session: the buffered bytes are written to the client first.
    fn start_lingering<M>(&mut self, reason: EndReason, cx: &HttpContext<'_, '_, M>) -> Step {
        self.enter(Stage::Lingering(SessionClose::begin(reason, cx)))
    }
}

const NO_RESPONSE: HttpError =
    HttpError::new(502, "the upstream server closed the connection without a response");

impl Connection for HttpSession {
    fn socket(&mut self, side: SocketKind) -> Option<&mut Socket> {
        let Self { peers, stage, .. } = self;
        match (side, stage) {
            (SocketKind::Accepted, _) => Some(peers.client.socket_mut()),
            (SocketKind::Connected, Stage::Connecting(connecting)) => connecting.socket(),
            (SocketKind::Connected, _) => {
                peers.upstream.as_mut().map(|upstream| &mut upstream.socket)
            }
        }
    }
}
