//! Selects the upstream connection of a request: the connection of the client's previous request,
//! an idle connection, or a new one.

use std::time::Instant;

use haul_http1::HttpError;
use haul_reactor::{Socket, SocketKind};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::context::HttpContext;
use super::exchange::Exchange;
use super::peers::{Peers, SessionEnd, Upstream};
use crate::connect::{Connector, Progress};
use crate::end_reason::EndReason;
use crate::proxy;
use crate::target::{ActiveTarget, Attempts};

/// The error response if no target accepts a connection.
pub(super) const NO_TARGET: HttpError = HttpError::new(503, "no upstream server is reachable");

/// A request that waits for a connection to a target.
#[derive(Debug)]
pub(super) struct Connecting {
    connector: Connector,
    socket: Option<Socket>,
    exchange: Exchange,
    /// The request head to send once connected.
    head: Vec<u8>,
}

/// The state of the attempts to connect.
pub(super) enum ConnectState {
    /// An attempt is in progress: wait for the socket until this deadline.
    Waiting(Instant),
    /// The socket is connected to this target.
    Connected(ActiveTarget),
    /// All targets were tried without success.
    NoTarget,
}

/// The state of a request after the search for an upstream connection to reuse.
pub(super) enum Sending {
    /// The request is sent over a reused connection.
    Reused(Exchange),
    /// The request waits for a new connection.
    Connecting(Connecting),
}

/// Starts to forward a request over the session's upstream connection or an idle connection; begins
/// to connect to a target if neither exists.
pub(super) fn send_request<M>(
    exchange: Exchange,
    head: Vec<u8>,
    peers: &mut Peers,
    cx: &mut HttpContext<'_, '_, M>,
) -> Sending {
    if peers.upstream.is_none() {
        let mut attempts = attempts(peers, cx);
        let idle = take_idle(&mut attempts, &exchange, cx);
        peers.set_upstream(idle, cx.thread);
        if peers.upstream.is_none() {
            return Sending::Connecting(Connecting::new(attempts, exchange, head, cx));
        }
    }
    if let Some(upstream) = &peers.upstream {
        peers.record.set_target(upstream.target.index());
    }
    cx.thread.counters.http.reused.add(1);
    let exchange = exchange.sent_over_reused(&head);
    peers.up.flow.prepend(head);
    Sending::Reused(exchange)
}

/// Begins to send a request again, over a new connection, after the target closed a reused
/// connection without responding. Returns `None` if the request is not retryable or its first
/// connection was new.
pub(super) fn retry<M>(
    exchange: Exchange,
    peers: &mut Peers,
    cx: &mut HttpContext<'_, '_, M>,
) -> Option<Connecting> {
    peers.close_upstream();
    peers.up.flow.discard_buffered();
    let (exchange, head) = exchange.into_retry()?;
    cx.thread.counters.http.retried.add(1);
    Some(Connecting::new(attempts(peers, cx), exchange, head, cx))
}

fn attempts<M>(peers: &Peers, cx: &HttpContext<'_, '_, M>) -> Attempts {
    cx.shared.targets.attempts(peers.client_info.address, cx.reactor.now())
}

impl Connecting {
    fn new<M>(
        attempts: Attempts,
        exchange: Exchange,
        head: Vec<u8>,
        cx: &HttpContext<'_, '_, M>,
    ) -> Self {
        let shared = cx.shared;
        let connector = Connector::new(attempts, shared.tcp, shared.limits.connect_time_max);
        Self { connector, socket: None, exchange, head }
    }

    /// Advances the attempts as far as possible without blocking.
    ///
    /// # Errors
    /// Returns the end of the session if the client is gone.
    pub(super) fn advance<M>(
        &mut self,
        peers: &Peers,
        cx: &mut HttpContext<'_, '_, M>,
    ) -> Result<ConnectState, SessionEnd> {
        loop {
            if peers.client.socket().is_write_closed() {
                return Err(SessionEnd::abort(EndReason::Reset));
            }
            return Ok(match self.connector.advance(&mut self.socket, cx.reactor) {
                Progress::Waiting(deadline) => ConnectState::Waiting(deadline),
                Progress::Connected(target) => ConnectState::Connected(target),
                // The process has no free descriptor: closing the idle connections frees some.
                Progress::NoTarget
                    if has_no_descriptor(peers.client.socket()) && cx.idle_pool.clear() =>
                {
                    let (shared, attempts) = (cx.shared, attempts(peers, cx));
                    let time_max = shared.limits.connect_time_max;
                    self.connector = Connector::new(attempts, shared.tcp, time_max);
                    self.socket = None;
                    continue;
                }
                Progress::NoTarget => ConnectState::NoTarget,
            });
        }
    }

    /// Begins to send the request over the new connection to `target`.
    ///
    /// # Errors
    /// Returns an abort if no socket is connected.
    pub(super) fn into_exchange<M>(
        self,
        target: ActiveTarget,
        peers: &mut Peers,
        cx: &mut HttpContext<'_, '_, M>,
    ) -> Result<Exchange, SessionEnd> {
        let Self { socket: Some(socket), exchange, head, .. } = self else {
            return Err(SessionEnd::abort(EndReason::Reset));
        };
        let header = |version| proxy::encode(version, &peers.client_info.endpoints);
        let mut first = cx.shared.proxy_out.map_or_else(Vec::new, header);
        first.extend_from_slice(&head);
        peers.up.flow.prepend(first);
        let is_private = cx.shared.proxy_out.is_some();
        peers.record.set_target(target.index());
        peers.set_upstream(Some(Upstream { socket, target, is_private }), cx.thread);
        peers.set_moved_at(cx.reactor.now());
        Ok(exchange)
    }

    /// Returns the socket that is connecting.
    pub(super) fn socket(&mut self) -> Option<&mut Socket> {
        self.socket.as_mut()
    }

    /// Returns `true` if the request is a HEAD request.
    pub(super) fn is_head(&self) -> bool {
        self.exchange.is_head()
    }
}

/// Returns `true` if the process cannot open another descriptor.
fn has_no_descriptor(socket: &Socket) -> bool {
    matches!(fcntl_dupfd_cloexec(socket, 0), Err(Errno::MFILE))
}

/// Takes an idle connection to the target that is tried first, for retryable requests only: if the
/// target closes the connection at this moment, the relay must send the request again.
fn take_idle<M>(
    attempts: &mut Attempts,
    exchange: &Exchange,
    cx: &mut HttpContext<'_, '_, M>,
) -> Option<Upstream> {
    if !exchange.is_retryable || exchange.is_private {
        return None;
    }
    let mut socket = cx.idle_pool.take(attempts.first()?, cx.reactor.now())?;
    cx.reactor.register(&mut socket, SocketKind::Connected).ok()?;
    Some(Upstream { socket, target: attempts.next_target()?, is_private: false })
}
