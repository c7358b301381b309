//! Holds the client's connection and the upstream connection of an HTTP session, and closes them at
//! its end.

use std::net::IpAddr;
use std::time::Instant;

use haul_reactor::Socket;
use haul_tls::Transport;

use super::access_record::AccessRecord;
use super::context::HttpContext;
use super::idle_pool::{IdlePool, is_silent};
use super::messages::{Channel, Forwarded};
use crate::end_reason::EndReason;
use crate::flow::{Direction, Flow};
use crate::proxy::Endpoints;
use crate::target::ActiveTarget;
use crate::thread_context::ThreadContext;

/// The client's connection, the upstream connection of its requests, and the messages in both
/// directions.
#[derive(Debug)]
pub(super) struct Peers {
    pub(super) client: Transport,
    pub(super) client_info: ClientInfo,
    pub(super) upstream: Option<Upstream>,
    /// The direction from the client to the target.
    pub(super) up: Channel,
    /// The direction from the target to the client.
    pub(super) down: Channel,
    /// The access log line of the exchange in progress.
    pub(super) record: AccessRecord,
    /// The last time a byte moved.
    moved_at: Instant,
}

/// A connection to a target.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) socket: Socket,
    pub(super) target: ActiveTarget,
    /// `true` if no other client may use the connection, because the target may attribute all
    /// further requests over the connection to this client.
    pub(super) is_private: bool,
}

/// The client's addresses.
#[derive(Debug)]
pub(super) struct ClientInfo {
    pub(super) endpoints: Endpoints,
    pub(super) address: Option<IpAddr>,
    pub(super) forwarded: Forwarded,
}

impl ClientInfo {
    /// Creates the addresses of a client from the endpoints of its connection.
    pub(super) fn new(endpoints: Endpoints, is_tls: bool) -> Self {
        let address = endpoints.client();
        Self { endpoints, address, forwarded: Forwarded::new(address, is_tls) }
    }
}

/// The reason why a session ends, and the choice between closing and resetting its sockets.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionEnd {
    reason: EndReason,
    /// `true` if both peers must see a reset, because a message is incomplete.
    is_abort: bool,
}

impl SessionEnd {
    /// Creates the end of a session in which no message was truncated.
    pub(super) const fn clean(reason: EndReason) -> Self {
        Self { reason, is_abort: false }
    }

    /// Creates the end of a session in which a message is incomplete.
    pub(super) const fn abort(reason: EndReason) -> Self {
        Self { reason, is_abort: true }
    }
}

impl Peers {
    /// Creates the state of a newly accepted connection, whose addresses are not known yet.
    pub(super) fn new(client: Transport, thread: &ThreadContext, now: Instant) -> Self {
        Self {
            client_info: ClientInfo::new(Endpoints::Unknown, client.is_tls()),
            client,
            upstream: None,
            up: Channel::new(Flow::new(Direction::Up, thread)),
            down: Channel::new(Flow::new(Direction::Down, thread)),
            record: AccessRecord::default(),
            moved_at: now,
        }
    }

    /// Records the client's addresses, and the bytes received behind a PROXY header.
    pub(super) fn identify_client(
        &mut self,
        endpoints: Endpoints,
        early: &[u8],
        thread: &ThreadContext,
    ) {
        self.client_info = ClientInfo::new(endpoints, self.client.is_tls());
        if !early.is_empty() {
            self.up.flow.count_copied(early.len(), thread);
            self.up.received.append(early);
        }
    }

    /// Returns the last time a byte moved.
    pub(super) fn moved_at(&self) -> Instant {
        self.moved_at
    }

    /// Records that a byte moved at `now`, which restarts the timeouts.
    pub(super) fn set_moved_at(&mut self, now: Instant) {
        self.moved_at = now;
    }

    /// Returns the bytes read plus the bytes written, in both directions.
    pub(super) fn moved_bytes(&self) -> u64 {
        self.up.flow.moved_bytes() + self.down.flow.moved_bytes()
    }

    /// Sets the upstream connection, and empties the channel of its responses.
    pub(super) fn set_upstream(&mut self, upstream: Option<Upstream>, thread: &ThreadContext) {
        self.upstream = upstream;
        self.down = Channel::new(Flow::new(Direction::Down, thread));
    }

    /// Closes the upstream connection.
    pub(super) fn close_upstream(&mut self) {
        self.upstream = None;
    }

    /// Marks the upstream connection as private to this client if `is_private`.
    pub(super) fn restrict_upstream(&mut self, is_private: bool) {
        if let Some(upstream) = &mut self.upstream {
            upstream.is_private |= is_private;
        }
    }

    /// Resets the upstream connection: a truncated request must not look complete to the target.
    pub(super) fn reset_upstream(&mut self) {
        if let Some(upstream) = self.upstream.take() {
            upstream.socket.reset();
        }
    }

    /// Closes the upstream connection if it has received bytes or EOF between two requests.
    pub(super) fn drop_stale_upstream(&mut self) {
        let is_usable = |upstream: &mut Upstream| {
            !upstream.socket.is_readable() || is_silent(&mut upstream.socket)
        };
        if !self.upstream.as_mut().is_some_and(is_usable) {
            self.close_upstream();
        }
    }

    /// Moves the upstream connection to the pool of idle connections, unless the connection is
    /// private or the relay is draining.
    pub(super) fn release_upstream<M>(&mut self, cx: &mut HttpContext<'_, '_, M>) {
        let Some(mut upstream) = self.take_shared_upstream() else { return };
        let reactor = cx.reactor;
        if !reactor.is_draining() && reactor.deregister(&mut upstream.socket).is_ok() {
            cx.idle_pool.put(upstream.target.index(), upstream.socket, reactor.now());
        }
    }

    /// Moves the upstream connection of a closed session to the pool of idle connections, unless
    /// the connection is private.
    pub(super) fn recycle_upstream(&mut self, idle_pool: &mut IdlePool) {
        if let Some(upstream) = self.take_shared_upstream() {
            idle_pool.put(upstream.target.index(), upstream.socket, self.moved_at);
        }
    }

    fn take_shared_upstream(&mut self) -> Option<Upstream> {
        self.upstream.take_if(|upstream| !upstream.is_private)
    }

    /// Writes the access log line of the exchange in progress, if there is one.
    pub(super) fn end_record<M>(&mut self, cx: &mut HttpContext<'_, '_, M>) {
        let (client, written_bytes) = (self.client_info.address, self.down.flow.written_bytes());
        let now = cx.reactor.now();
        self.record.end(client, written_bytes, cx.log_context(), now);
    }

    /// Closes both sockets, with resets if a message is incomplete; returns the reason of the end.
    pub(super) fn close(self, end: SessionEnd) -> EndReason {
        if end.is_abort {
            self.client.reset();
            if let Some(upstream) = self.upstream {
                upstream.socket.reset();
            }
        } else {
            self.client.close();
        }
        end.reason
    }
}
