//! Waits for a request head, and begins the exchange of the request.

use std::time::{Duration, Instant};

use haul_http1::{HttpError, Request, parse_request};
use haul_reactor::{Context, IoStatus, Next};

use super::context::HttpContext;
use super::exchange::Exchange;
use super::messages::{BodyOptions, max_forwards, write_request};
use super::peers::{Peers, SessionEnd};
use crate::end_reason::EndReason;

/// The time for which a client without a request keeps its upstream connection; then other clients
/// may use the connection.
const UPSTREAM_HOLD_TIME: Duration = Duration::from_secs(1);

/// The time for which a session without a request stays open while the relay drains. A request that
/// was sent before the client could know is forwarded, and its response announces the close.
const DRAIN_IDLE_TIME: Duration = Duration::from_secs(1);

/// The state of a session that waits for a request head.
#[derive(Debug)]
pub(super) struct RequestWait {
    since: Instant,
    /// The time at which the first byte of the head arrived.
    begun: Option<Instant>,
    /// Since the relay drains: the time at which the session ends if it has no request.
    drain_until: Option<Instant>,
}

/// The state of a request head after the available bytes were read.
pub(super) enum HeadState {
    /// The head is incomplete: wait for this event.
    Waiting(Next),
    /// The whole head was received.
    Received,
    /// The head is invalid or late: the client gets this error response.
    Refused(HttpError),
    /// The relay is draining, and the client may have sent bytes that the relay has not read.
    Draining,
}

/// The relay's own response to a request that is not forwarded.
pub(super) struct Refusal {
    pub(super) error: HttpError,
    pub(super) is_head: bool,
}

impl RequestWait {
    pub(super) fn new(since: Instant) -> Self {
        Self { since, begun: None, drain_until: None }
    }

    /// Receives a request head as far as possible without blocking.
    ///
    /// # Errors
    /// Returns the end of the session if the client closed the connection, a timeout passed, or the
    /// relay is draining.
    pub(super) fn advance<M>(
        &mut self,
        peers: &mut Peers,
        cx: &mut HttpContext<'_, '_, M>,
    ) -> Result<HeadState, SessionEnd> {
        loop {
            if !has_no_request(peers) {
                match parse_request(peers.up.received.bytes(), &cx.options.head_limits) {
                    Ok(None) => {}
                    Ok(Some(_)) => return Ok(HeadState::Received),
                    Err(refused) => return Ok(HeadState::Refused(refused)),
                }
            } else if self.is_drain_time_over(cx.reactor) && peers.client.is_readable() {
                // A close with unread bytes would send a reset, which may discard data in flight to
                // the client.
                return Ok(HeadState::Draining);
            } else if self.is_drain_time_over(cx.reactor) {
                return Err(SessionEnd::clean(EndReason::Clean));
            }
            if !peers.client.is_readable() {
                break;
            }
            match peers.up.receive(&mut peers.client, cx.thread) {
                Ok(IoStatus::Bytes(0)) => return Err(SessionEnd::clean(EndReason::Clean)),
                Ok(_) => {}
                Err(_) => return Err(SessionEnd::abort(EndReason::Reset)),
            }
        }
        peers.drop_stale_upstream();
        self.check_timeouts(peers, cx)
    }

    /// Returns `true` if the relay is draining, and has waited long enough for a request that may be
    /// on its way.
    fn is_drain_time_over<M>(&mut self, reactor: &Context<'_, M>) -> bool {
        if !reactor.is_draining() {
            return false;
        }
        reactor.now() >= *self.drain_until.get_or_insert(reactor.now() + DRAIN_IDLE_TIME)
    }

    fn check_timeouts<M>(
        &mut self,
        peers: &mut Peers,
        cx: &mut HttpContext<'_, '_, M>,
    ) -> Result<HeadState, SessionEnd> {
        let now = cx.reactor.now();
        if has_no_request(peers) {
            let idle_until = cx.options.idle_time_max.map(|time| self.since + time);
            let deadline = idle_until.into_iter().chain(self.drain_until).min();
            let hold_until = self.since + UPSTREAM_HOLD_TIME;
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(SessionEnd::clean(EndReason::Idle));
            }
            if now >= hold_until {
                peers.release_upstream(cx);
            }
            let holds_shared = peers.upstream.as_ref().is_some_and(|upstream| !upstream.is_private);
            let next = deadline.into_iter().chain(holds_shared.then_some(hold_until)).min();
            return Ok(HeadState::Waiting(Next::Wait(next)));
        }
        let deadline = *self.begun.get_or_insert(now) + cx.shared.limits.head_time_max;
        if now < deadline {
            return Ok(HeadState::Waiting(Next::Wait(Some(deadline))));
        }
        let timeout = HttpError::new(408, "timeout while reading the request head");
        Ok(HeadState::Refused(timeout))
    }
}

/// Returns `true` if no byte of a request was received. One empty line before a request is ignored
/// \[RFC9112\].
pub(super) fn has_no_request(peers: &Peers) -> bool {
    b"\r\n".starts_with(peers.up.received.bytes())
}

/// Begins the exchange of the request whose head was received; returns the exchange and the head to
/// send, or `None` if no complete head was received.
///
/// # Errors
/// Returns a refusal if the request must not be forwarded.
pub(super) fn begin_exchange<M>(
    peers: &mut Peers,
    cx: &mut HttpContext<'_, '_, M>,
) -> Result<Option<(Exchange, Vec<u8>)>, Refusal> {
    let parsed = parse_request(peers.up.received.bytes(), &cx.options.head_limits);
    let Ok(Some(request)) = parsed else { return Ok(None) };
    cx.thread.counters.http.requests.add(1);
    peers.record.begin(cx.log, Some(&request), cx.reactor.now());
    let is_head = request.method == "HEAD";
    let mut head = Vec::new();
    let is_within_rate = cx.is_within_rate(peers.client_info.address);
    let checked = if is_within_rate { check_method(&request) } else { Err(TOO_MANY_REQUESTS) };
    let written = checked.and_then(|()| {
        write_request(&mut head, &request, &peers.client_info.forwarded, cx.options)
    });
    let (head_bytes, framing) = (request.head_bytes, request.framing);
    let exchange = Exchange::new(&request, cx.options, cx.reactor.now());
    let options = BodyOptions {
        limits: cx.options.chunk_limits,
        bytes_max: cx.options.request_body_bytes_max,
        writes_chunks: true,
    };
    peers.up.received.consume(head_bytes);
    written
        .and_then(|()| peers.up.begin(framing, options, &mut head))
        .map_err(|error| Refusal { error, is_head })?;
    peers.set_moved_at(cx.reactor.now());
    peers.drop_stale_upstream();
    Ok(Some((exchange, head)))
}

const TOO_MANY_REQUESTS: HttpError = HttpError::new(429, "the client exceeds its rate of requests");

/// The response to an OPTIONS request that may not be forwarded: the relay is its recipient.
const LAST_RECIPIENT: HttpError = HttpError::new(200, "the relay, because Max-Forwards is 0");

/// Returns the relay's own response to a request that it does not forward.
fn check_method(request: &Request<'_>) -> Result<(), HttpError> {
    match request.method {
        "CONNECT" => Err(HttpError::new(501, "CONNECT is not supported")),
        "TRACE" => Err(HttpError::new(501, "TRACE is not supported")),
        "OPTIONS" if max_forwards(request)? == Some(0) => Err(LAST_RECIPIENT),
        _ => Ok(()),
    }
}
