//! Checks the timeouts of an exchange, and detects clients that are gone.
//!
//! EOF from a client may mean that the client closed the connection or only its sending side; TCP
//! does not distinguish the two. The relay therefore probes the client: it sends an interim
//! response, which an HTTP/1.1 client must accept and may ignore \[RFC9110\]. If the client has
//! closed the connection, its kernel answers the probe with a reset.

use std::time::{Duration, Instant};

use haul_http1::HttpError;

use super::context::HttpContext;
use super::exchange::Exchange;
use super::peers::{Peers, SessionEnd};
use crate::end_reason::EndReason;
use crate::flow::Stop;

/// The time without traffic after which a client that has sent EOF is probed. Most responses begin
/// earlier, and then no probe is sent.
const PROBE_DELAY: Duration = Duration::from_secs(1);
/// The interim response with which a client is probed.
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The state of the timeouts after both directions stopped.
pub(super) enum Timeout {
    /// No timeout has passed: wait until this deadline.
    Waiting(Instant),
    /// A timeout has passed: the exchange ends with this error response.
    Expired(HttpError),
}

/// Checks the timeouts of an exchange. `stops` holds the reasons why the directions of the request
/// and of the response stopped.
///
/// # Errors
/// Returns the end of the session if the client is gone, or if a message stalls when it is too late
/// for an error response.
pub(super) fn check<M>(
    exchange: &mut Exchange,
    stops: [Option<Stop>; 2],
    peers: &mut Peers,
    cx: &mut HttpContext<'_, '_, M>,
) -> Result<Timeout, SessionEnd> {
    let now = cx.reactor.now();
    let (time_max, response) = exchange.timeout(stops[0], cx.options);
    let mut deadline = peers.moved_at() + time_max;
    if now >= deadline && peer_made_progress(exchange, stops, peers) {
        peers.set_moved_at(now);
        deadline = now + time_max;
    }
    if now >= deadline {
        return match response {
            Some(refused) => Ok(Timeout::Expired(refused)),
            None => Err(SessionEnd::abort(EndReason::Idle)),
        };
    }
    let next = match probe_at(exchange, peers) {
        Some(probe_at) if now >= probe_at => {
            probe_client(exchange, peers, cx)?;
            deadline
        }
        Some(probe_at) => probe_at.min(deadline),
        None => deadline,
    };
    Ok(Timeout::Waiting(next))
}

/// Returns `true` if the peer whose socket is full has acknowledged bytes since the last call, or
/// if this is the first call. The kernel buffers megabytes for a slow peer and reports the socket
/// as writable only when much of the buffer is free, so a slow peer may look stalled.
fn peer_made_progress(
    exchange: &mut Exchange,
    [up, down]: [Option<Stop>; 2],
    peers: &Peers,
) -> bool {
    let slow = match (&peers.upstream, up, down) {
        (_, _, Some(Stop::DestinationFull)) => peers.client.socket(),
        (Some(upstream), Some(Stop::DestinationFull), _) => &upstream.socket,
        _ => return false,
    };
    exchange.record_unacked(haul_disk::send_queue_bytes(slow).unwrap_or(0))
}

/// Returns the time at which to probe a client that has sent EOF; `None` if the client has not sent
/// EOF or cannot be probed.
fn probe_at(exchange: &Exchange, peers: &Peers) -> Option<Instant> {
    let can_be_probed = exchange.can_be_probed() && peers.down.flow.buffered_bytes() == 0;
    let needs_probe = peers.client.socket().is_read_closed();
    (needs_probe && can_be_probed).then(|| peers.moved_at() + PROBE_DELAY)
}

fn probe_client<M>(
    exchange: &mut Exchange,
    peers: &mut Peers,
    cx: &mut HttpContext<'_, '_, M>,
) -> Result<(), SessionEnd> {
    exchange.record_probe();
    peers.down.flow.prepend(PROBE.to_vec());
    let sent = peers.down.flow.write_buffered(&mut peers.client, cx.thread);
    sent.map(drop).map_err(|_failed| SessionEnd::abort(EndReason::Reset))
}
