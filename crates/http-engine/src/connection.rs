//! The state of one connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_reactor::{self as reactor, LingeringClose, Socket, SocketKind};
use haul_tls::Transport;

use crate::discard::Discarding;
use crate::exchange::Exchange;
use crate::handler::{Handler, Origin, SourceOf};
use crate::limits::{Busy, Slot};
use crate::response::pace::Pace;
use crate::response::pipeline::Pipeline;
use crate::task::Task;

/// The time for which an idle connection stays open while the server drains. A request that was
/// sent before the client could know gets a response, and the response announces the close.
const DRAIN_IDLE_TIME: Duration = Duration::from_secs(1);

/// A client.
pub struct Connection<H: Handler> {
    pub(crate) socket: Transport,
    pub(crate) listener: usize,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) state: State<H>,
    /// Responses to be sent before anything else, in any state.
    pub(crate) unsent: Option<Box<Pipeline<SourceOf<H>>>>,
    /// Received bytes that were not parsed.
    pub(crate) input: Vec<u8>,
    /// There may be a whole head in `input`.
    pub(crate) has_unread: bool,
    /// What is left to discard of the last request's body.
    pub(crate) discarding: Discarding,
    pub(crate) requests: u32,
    /// No more requests are answered: the connection is closed after the last response.
    pub(crate) closes: bool,
    /// The client may send bytes after its last request that was answered.
    pub(crate) sends_more: bool,
    /// The client has sent its last byte.
    pub(crate) is_read_closed: bool,
    pub(crate) task: Arc<Task>,
    pub(crate) deadline: Option<Instant>,
    /// Bytes of the next head were received.
    pub(crate) is_head_begun: bool,
    /// The end of the time for a request while the server drains.
    pub(crate) drains_until: Option<Instant>,
    /// The rate at which the client takes the response.
    pub(crate) pace: Pace,
    /// The state of the handler.
    pub(crate) data: H::Connection,
    /// `None` while the connection waits for a request.
    pub(crate) busy: Option<Busy<H::Peer>>,
    /// Last: a closed connection is counted after its responses.
    pub(crate) slot: Slot<H::Peer>,
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
    pub(crate) fn new(
        socket: Transport,
        listener: usize,
        peer: Option<IpAddr>,
        slot: Slot<H::Peer>,
        task: Arc<Task>,
        deadline: Instant,
    ) -> Self {
        Self {
            socket,
            listener,
            peer,
            state: State::Head,
            unsent: None,
            input: Vec::new(),
            has_unread: false,
            discarding: Discarding::Done,
            requests: 0,
            closes: false,
            sends_more: false,
            is_read_closed: false,
            task,
            deadline: Some(deadline),
            is_head_begun: true,
            drains_until: None,
            pace: Pace::default(),
            data: H::Connection::default(),
            busy: None,
            slot,
        }
    }

    /// Returns `true` if an idle connection of a draining server has waited long enough for a
    /// request that may be on its way; otherwise limits the deadline to this time.
    pub(crate) fn is_idle_time_over(&mut self, now: Instant) -> bool {
        let end = *self.drains_until.get_or_insert(now + DRAIN_IDLE_TIME);
        self.deadline = Some(self.deadline.map_or(end, |deadline| deadline.min(end)));
        now >= end
    }

    /// Returns the origin of a request, and the state of the handler.
    pub(crate) fn origin<'a>(
        &'a mut self,
        head: &'a [u8],
        received: Instant,
    ) -> (Origin<'a, H::Peer>, &'a mut H::Connection) {
        let peer_state = self.slot.peer_state();
        let (listener, peer) = (self.listener, self.peer);
        (Origin { listener, peer, peer_state, head, received }, &mut self.data)
    }

    /// Notes that requests are being answered; `false` if another thread has decided to close the
    /// connection, so that the request must not be executed.
    pub(crate) fn begin_request(&mut self) -> bool {
        if self.busy.is_none() {
            self.busy = self.slot.connection().begin();
        }
        self.requests = self.requests.saturating_add(1);
        self.busy.is_some()
    }
}
