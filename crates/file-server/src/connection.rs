//! A connection: what is kept of a client.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_http_engine::PendingLine;
use haul_reactor::{self as reactor, LingeringClose, Next, Socket, SocketKind};
use haul_tls::Transport;

use crate::fill::{Broken, Window};
use crate::find::Found;
use crate::listing::Listed;
use crate::meta::HotFile;
use crate::pace::Pace;
use crate::pipeline::Pipeline;
use crate::sending::Sending;
use crate::stream::Counted;

/// What is taken of a peer that goes on sending after the last answer, so that it gets to read it.
const LINGER_BYTES: usize = 1 << 20;

/// The time for which an idle connection stays open while the server drains. A request that was
/// sent before the client could know gets a response, and the response announces the close.
const DRAIN_IDLE_TIME: Duration = Duration::from_secs(1);

/// What other threads tell a connection.
pub(crate) enum Message {
    /// What they found, or read, for the request it waits with.
    Ready(Done),
    /// The next window of what it sends.
    Filled(Result<Window, Broken>),
}

/// What a request had to wait for, which may have been done once for all who did.
#[derive(Debug, Clone)]
pub(crate) enum Done {
    /// What is there, at this moment of the server or later.
    Found(Found, u64),
    Loaded(Arc<HotFile>),
    Listed(Arc<Listed>),
    /// It was not: an answer with this status.
    Failed(u16),
}

/// A client.
pub(crate) struct Connection {
    pub(crate) socket: Transport,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) state: State,
    /// Responses to be sent before anything else, in whichever state.
    pub(crate) unsent: Option<Box<Pipeline>>,
    /// What was received and not understood yet.
    pub(crate) input: Vec<u8>,
    /// There may be a whole request in `input`.
    pub(crate) has_unread: bool,
    /// Bytes of the body of the last request that are still to come, for nobody.
    pub(crate) skip_bytes: u64,
    pub(crate) requests: u32,
    /// The time at which the head of the last request was received.
    pub(crate) request_at: Option<Instant>,
    pub(crate) ready: Option<Done>,
    pub(crate) closes: bool,
    /// It may send more than was answered.
    pub(crate) sends_on: bool,
    /// After the last answer, if the peer sends more.
    lingering: Option<LingeringClose>,
    /// It speaks HTTP/1.0, and takes it for granted that we close.
    pub(crate) is_old: bool,
    pub(crate) log_line: PendingLine,
    pub(crate) deadline: Option<Instant>,
    /// Since the server drains: the time at which the connection is closed if it is idle.
    drains_until: Option<Instant>,
    pub(crate) is_head_begun: bool,
    /// Of the answer that is being sent.
    pub(crate) pace: Pace,
    /// So that a file fetched in pieces counts as asked for once.
    pub(crate) counted: Counted,
    pub(crate) share_bytes: u64,
    pub(crate) share_requests: u32,
}

pub(crate) enum State {
    /// Of a request; the rest of its head is awaited.
    Reading,
    /// For another thread, with the head of a request at the front of `input`. What nobody holds
    /// the asker of is not done any more.
    Waiting {
        _asker: Arc<()>,
    },
    Sending(Box<Sending>),
    /// Until the peer has read its last answer.
    Lingering,
}

/// What to do next with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Look at its state again.
    Go,
    /// Nothing, before something happens.
    Wait,
    Close,
}

impl reactor::Connection for Connection {
    fn socket(&mut self, side: SocketKind) -> Option<&mut Socket> {
        (side == SocketKind::Accepted).then(|| self.socket.socket_mut())
    }
}

impl Connection {
    /// Of a client that has just come.
    pub(crate) fn new(socket: Transport, peer: Option<IpAddr>, deadline: Instant) -> Self {
        Self {
            socket,
            peer,
            state: State::Reading,
            unsent: None,
            input: Vec::new(),
            has_unread: false,
            skip_bytes: 0,
            requests: 0,
            request_at: None,
            counted: None,
            ready: None,
            closes: false,
            sends_on: false,
            lingering: None,
            is_old: false,
            log_line: PendingLine::default(),
            deadline: Some(deadline),
            drains_until: None,
            is_head_begun: true,
            pace: Pace::default(),
            share_bytes: 0,
            share_requests: 0,
        }
    }

    /// Passes over what is left of the body of the last request, and says how much that was.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> usize {
        let skipped = (bytes.len() as u64).min(self.skip_bytes);
        self.skip_bytes -= skipped;
        usize::try_from(skipped).unwrap_or(bytes.len())
    }

    /// Takes what another thread has done for it.
    pub(crate) fn told(&mut self, message: Message) {
        match message {
            Message::Ready(ready) => {
                if matches!(self.state, State::Waiting { .. }) {
                    self.ready = Some(ready);
                    self.state = State::Reading;
                    self.has_unread = true;
                }
            }
            Message::Filled(window) => {
                if let State::Sending(sending) = &mut self.state
                    && let Some(stream) = sending.stream()
                {
                    stream.filled(window);
                }
            }
        }
    }

    /// Returns `true` if an idle connection of a draining server has waited long enough for a
    /// request that may be on its way; otherwise limits the deadline to this time.
    pub(crate) fn is_idle_time_over(&mut self, now: Instant) -> bool {
        let end = *self.drains_until.get_or_insert(now + DRAIN_IDLE_TIME);
        self.deadline = Some(self.deadline.map_or(end, |deadline| deadline.min(end)));
        now >= end
    }

    /// Closes after the last answer, and lingers if the peer has sent more than was answered.
    pub(crate) fn linger(&mut self, now: Instant) -> Next {
        let closing = match &mut self.lingering {
            Some(closing) => closing,
            None if !self.sends_on && !self.socket.is_readable() => return Next::Close,
            None => {
                let deadline = self.deadline.unwrap_or(now);
                if self.socket.shutdown_write().is_err() {
                    return Next::Close;
                }
                self.lingering.insert(LingeringClose::after_shutdown(LINGER_BYTES, deadline))
            }
        };
        // Over TLS, the discarded bytes need not be decrypted.
        closing.drive(self.socket.socket_mut(), now)
    }
}
