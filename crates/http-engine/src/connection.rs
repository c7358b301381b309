//! The state of one connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_reactor::{self as reactor, LingeringClose, Socket, SocketKind};
use haul_tls::Transport;

use crate::exchange::Exchange;
use crate::handler::{Handler, Origin};
use crate::limits::Slot;
use crate::task::Task;

/// The time for which an idle connection stays open while the server drains. A request that was
/// sent before the client could know gets a response, and the response announces the close.
const DRAIN_IDLE_TIME: Duration = Duration::from_secs(1);

/// A client.
pub struct Connection<H: Handler> {
    pub(crate) socket: Transport,
    pub(crate) slot: Slot<H::Peer>,
    pub(crate) listener: usize,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) state: State<H>,
    /// Received bytes that were not parsed.
    pub(crate) input: Vec<u8>,
    /// There may be a whole head in `input`.
    pub(crate) has_unread: bool,
    /// The client has sent its last byte.
    pub(crate) is_read_closed: bool,
    pub(crate) task: Arc<Task>,
    pub(crate) deadline: Option<Instant>,
    /// Bytes of the next head were received.
    pub(crate) is_head_begun: bool,
    /// The end of the time for a request while the server drains.
    pub(crate) drains_until: Option<Instant>,
}

pub(crate) enum State<H: Handler> {
    /// The head of a request is expected.
    Head,
    /// A request is received and answered.
    Exchange(Box<Exchange<H>>),
    /// The rest of what the client sends is discarded, so that it can read its last response.
    Lingering(LingeringClose),
}

impl<H: Handler> reactor::Connection for Connection<H> {
    fn socket(&mut self, kind: SocketKind) -> Option<&mut Socket> {
        (kind == SocketKind::Accepted).then(|| self.socket.socket_mut())
    }
}

impl<H: Handler> Connection<H> {
    /// Returns `true` if an idle connection of a draining server has waited long enough for a
    /// request that may be on its way; otherwise limits the deadline to this time.
    pub(crate) fn is_idle_time_over(&mut self, now: Instant) -> bool {
        let end = *self.drains_until.get_or_insert(now + DRAIN_IDLE_TIME);
        self.deadline = Some(self.deadline.map_or(end, |deadline| deadline.min(end)));
        now >= end
    }

    pub(crate) fn origin(&self) -> Origin<'_, H::Peer> {
        Origin { listener: self.listener, peer: self.peer, of_peer: self.slot.of_peer() }
    }
}
