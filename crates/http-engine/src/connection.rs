//! The state of one connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use haul_reactor::{self as reactor, LingeringClose, Socket, SocketKind};
use haul_tls::Transport;

use crate::exchange::Exchange;
use crate::handler::{Handler, Origin};
use crate::limits::Slot;
use crate::task::Task;

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
    pub(crate) fn origin(&self) -> Origin<'_, H::Peer> {
        Origin { listener: self.listener, peer: self.peer, of_peer: self.slot.of_peer() }
    }
}
