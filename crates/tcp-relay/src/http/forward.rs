//! Forwards a request and its response concurrently, because a target may respond before the
//! request is complete.

use std::time::SystemTime;

use haul_http1::{HttpError, Version, parse_response};
use haul_reactor::{IoStatus, Next};

use super::access_record::AccessRecord;
use super::context::HttpContext;
use super::exchange::{Exchange, RequestState, ResponseState};
use super::messages::{BodyError, BodyOptions, Channel, Progress, is_websocket, write_response};
use super::peers::{Peers, SessionEnd};
use super::timeouts::{self, Timeout};
use crate::end_reason::EndReason;
use crate::flow::{FailedSide, Stop};

/// The state of an exchange after both messages were forwarded as far as possible.
pub(super) enum ExchangeState {
    /// The exchange waits for this event.
    Waiting(Next),
    /// The response was forwarded. The request was forwarded, too, unless the target responded
    /// before it had accepted the whole request.
    Done,
    /// The target accepts the upgrade; the bytes are the response head to send to the client.
    Upgraded(Vec<u8>),
    /// No byte of the final response was forwarded: the client gets this error response.
    Refused(HttpError),
    /// The target closed the connection without sending a byte of the response.
    UpstreamClosed,
}

/// The reason why an exchange cannot be completed.
enum ExchangeError {
    /// A message was forwarded in part: both connections are reset.
    Abort(EndReason),
    /// No byte of the final response was forwarded: the client gets this error response.
    Respond(HttpError),
    /// The target closed the connection without sending a byte of the response.
    UpstreamClosed,
}

/// The progress of a response.
enum ResponseProgress {
    /// The response waits for the target or for the client, or its byte budget is used up, so that
    /// other connections run first.
    Stopped(Stop),
    /// The whole response was forwarded.
    Done,
    /// The target accepts the upgrade; the bytes are the response head to send to the client.
    Upgraded(Vec<u8>),
}

/// The state of a response head.
enum ResponseHead {
    /// The head was not received completely.
    Partial,
    /// The head was queued for the client, or dropped because the client expects no interim
    /// responses.
    Forwarded,
    /// The target accepts the upgrade; the bytes are the response head to send to the client.
    Upgraded(Vec<u8>),
}

/// Forwards the request and the response as far as possible without blocking.
///
/// # Errors
/// Returns the end of the session if a message is incomplete and cannot be completed.
pub(super) fn advance<M>(
    exchange: &mut Exchange,
    peers: &mut Peers,
    cx: &mut HttpContext<'_, '_, M>,
) -> Result<ExchangeState, SessionEnd> {
    // The client reads no more, so the response cannot be delivered.
    if peers.client.socket().is_write_closed() {
        return Err(SessionEnd::abort(EndReason::Reset));
    }
    let before = peers.moved_bytes();
    let up = forward_request(exchange, peers, cx);
    let (up, down) = match up.and_then(|up| Ok((up, forward_response(exchange, peers, cx)?))) {
        Ok(stops) => stops,
        Err(ExchangeError::Abort(reason)) => return Err(SessionEnd::abort(reason)),
        Err(ExchangeError::Respond(refused)) => return Ok(ExchangeState::Refused(refused)),
        Err(ExchangeError::UpstreamClosed) => return Ok(ExchangeState::UpstreamClosed),
    };
    if peers.moved_bytes() != before {
        peers.set_moved_at(cx.reactor.now());
    }
    let down = match down {
        ResponseProgress::Stopped(stop) => stop,
        ResponseProgress::Done => return Ok(ExchangeState::Done),
        ResponseProgress::Upgraded(head) => return Ok(ExchangeState::Upgraded(head)),
    };
    let stops = [up, Some(down)];
    if stops.contains(&Some(Stop::BudgetUsed)) {
        return Ok(ExchangeState::Waiting(Next::Yield));
    }
    Ok(match timeouts::check(exchange, stops, peers, cx)? {
        Timeout::Waiting(deadline) => ExchangeState::Waiting(Next::Wait(Some(deadline))),
        Timeout::Expired(refused) => ExchangeState::Refused(refused),
    })
}

/// Forwards the request; returns the reason why forwarding stopped, or `None` if no more bytes of
/// the request will be sent.
fn forward_request<M>(
    exchange: &mut Exchange,
    peers: &mut Peers,
    cx: &mut HttpContext<'_, '_, M>,
) -> Result<Option<Stop>, ExchangeError> {
    let Peers { client, upstream: Some(upstream), up, .. } = peers else {
        return Err(ExchangeError::UpstreamClosed);
    };
    if exchange.request != RequestState::Sending {
        return Ok(None);
    }
    let mut budget = cx.shared.limits.budget_bytes;
    match up.run(client, &mut upstream.socket, cx.thread, &mut budget) {
        Ok(Progress::Done) => exchange.request = RequestState::Sent,
        Ok(Progress::Stopped(stop)) => return Ok(Some(stop)),
        Ok(Progress::Truncated) | Err(BodyError::Disconnected(FailedSide::Source)) => {
            return Err(ExchangeError::Abort(EndReason::Reset));
        }
        Err(BodyError::Disconnected(FailedSide::Destination)) => {
            up.flow.discard_buffered();
            exchange.request = RequestState::Abandoned;
        }
        Err(BodyError::Refused(refused)) if exchange.response == ResponseState::Awaited => {
            return Err(ExchangeError::Respond(refused));
        }
        Err(BodyError::Refused(_)) => return Err(ExchangeError::Abort(EndReason::Reset)),
    }
    Ok(None)
}

/// Forwards interim responses and the final response.
fn forward_response<M>(
    exchange: &mut Exchange,
    peers: &mut Peers,
    cx: &mut HttpContext<'_, '_, M>,
) -> Result<ResponseProgress, ExchangeError> {
    let Peers { client, upstream: Some(upstream), down, record, .. } = peers else {
        return Err(ExchangeError::UpstreamClosed);
    };
    let mut budget = cx.shared.limits.budget_bytes;
    loop {
        // Before the head of the final response was received, this call writes buffered interim
        // responses.
        match down.run(&mut upstream.socket, client, cx.thread, &mut budget) {
            // The kernel reports a socket error once. The failed write of the request has received
            // this report, so the EOF that was read afterwards may stand for a reset.
            Ok(Progress::Done)
                if down.is_until_close() && exchange.request == RequestState::Abandoned =>
            {
                return Err(ExchangeError::Abort(EndReason::Reset));
            }
            Ok(Progress::Done) if exchange.response == ResponseState::Forwarding => {
                exchange.response = ResponseState::Done;
                return Ok(ResponseProgress::Done);
            }
            Ok(Progress::Done) => {}
            Ok(Progress::Stopped(stop)) => return Ok(ResponseProgress::Stopped(stop)),
            Ok(Progress::Truncated) | Err(_) => {
                return Err(ExchangeError::Abort(EndReason::Reset));
            }
        }
        match forward_response_head(exchange, down, record, cx)? {
            ResponseHead::Forwarded => continue,
            ResponseHead::Upgraded(head) => return Ok(ResponseProgress::Upgraded(head)),
            ResponseHead::Partial => {}
        }
        if budget == 0 {
            return Ok(ResponseProgress::Stopped(Stop::BudgetUsed));
        }
        if !upstream.socket.is_readable() {
            return Ok(ResponseProgress::Stopped(Stop::SourceEmpty));
        }
        match down.receive(&mut upstream.socket, cx.thread) {
            Ok(IoStatus::Bytes(0)) | Err(_) if down.received.is_empty() => {
                return Err(ExchangeError::UpstreamClosed);
            }
            Ok(IoStatus::Bytes(0)) | Err(_) => {
                return Err(ExchangeError::Respond(TRUNCATED_RESPONSE));
            }
            Ok(IoStatus::WouldBlock) => return Ok(ResponseProgress::Stopped(Stop::SourceEmpty)),
            Ok(IoStatus::Bytes(bytes)) => budget = budget.saturating_sub(bytes),
        }
    }
}

/// Forwards the head of a response if all of it was received.
fn forward_response_head<M>(
    exchange: &mut Exchange,
    down: &mut Channel,
    record: &mut AccessRecord,
    cx: &mut HttpContext<'_, '_, M>,
) -> Result<ResponseHead, ExchangeError> {
    if down.received.is_empty() {
        return Ok(ResponseHead::Partial);
    }
    let (limits, request_kind) = (&cx.options.head_limits, exchange.context.request_kind);
    let response = match parse_response(down.received.bytes(), limits, request_kind) {
        Ok(None) => return Ok(ResponseHead::Partial),
        Ok(Some(response)) => response,
        Err(_) => return Err(ExchangeError::Respond(INVALID_RESPONSE)),
    };
    let (status, head_bytes, framing) = (response.status, response.head_bytes, response.framing);
    cx.thread.counters.http.response(status);
    let mut head = Vec::new();
    let may_upgrade = exchange.is_websocket && exchange.is_sent();
    if status == 101 && !(may_upgrade && is_websocket(&response)) {
        return Err(ExchangeError::Respond(INVALID_RESPONSE));
    }
    if !response.is_interim() {
        let latency = cx.reactor.now().duration_since(exchange.received_at);
        cx.thread.counters.http.latency.record(latency);
    }
    if !response.is_interim() && status != 101 {
        exchange.record_persistence(&response, cx.reactor.is_draining());
    }
    write_response(&mut head, &response, exchange.context, cx.options, SystemTime::now())
        .map_err(|_why| ExchangeError::Respond(INVALID_RESPONSE))?;
    let is_interim = response.is_interim();
    down.received.consume(head_bytes);
    if status == 101 {
        return Ok(ResponseHead::Upgraded(head));
    }
    let is_http11 = exchange.context.version == Version::Http11;
    if is_interim {
        // An HTTP/1.0 client does not expect interim responses, so they are dropped.
        if is_http11 {
            down.flow.prepend(head);
        }
    } else {
        let limits = cx.options.chunk_limits;
        let options = BodyOptions { limits, bytes_max: None, writes_chunks: is_http11 };
        let body_at = down.flow.written_bytes() + head.len() as u64;
        down.begin(framing, options, &mut head)
            .map_err(|_why| ExchangeError::Respond(INVALID_RESPONSE))?;
        down.flow.prepend(head);
        record.begin_response(status, body_at, cx.reactor.now());
        exchange.response = ResponseState::Forwarding;
    }
    Ok(ResponseHead::Forwarded)
}

/// Keeps the upstream connection if the target accepts another request over it; otherwise closes
/// or resets it. To be called after the last byte of the response was forwarded.
pub(super) fn finish(exchange: &Exchange, peers: &mut Peers) {
    let keeps_upstream = exchange.is_upstream_reusable() && peers.down.received.is_empty();
    peers.restrict_upstream(exchange.is_private);
    if keeps_upstream {
        return;
    }
    // After a truncated request the connection is reset, so that the request does not look complete
    // to the target.
    if exchange.is_sent() { peers.close_upstream() } else { peers.reset_upstream() }
}

const INVALID_RESPONSE: HttpError =
    HttpError::new(502, "the upstream server sent an invalid response");
const TRUNCATED_RESPONSE: HttpError =
    HttpError::new(502, "the upstream server closed the connection within the response head");
