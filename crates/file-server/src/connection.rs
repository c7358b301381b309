//! A connection: what is kept of a client.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use haul_reactor::{self as reactor, LingeringClose, Next, Socket, SocketKind};

use crate::access_log::Begun;
use crate::caches::HotFile;
use crate::fill::{Broken, Window};
use crate::find::Found;
use crate::listing::Listed;
use crate::pace::Pace;
use crate::sending::Sending;
use crate::stream::Counted;

/// What is taken of a peer that goes on sending after the last answer, so that it gets to read it.
const LINGER_BYTES: usize = 1 << 20;

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
    pub(crate) socket: Socket,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) state: State,
    /// What was received and not understood yet.
    pub(crate) input: Vec<u8>,
    /// There may be a whole request in `input`.
    pub(crate) has_unread: bool,
    /// Bytes of the body of the last request that are still to come, for nobody.
    pub(crate) skip_bytes: u64,
    pub(crate) requests: u32,
    pub(crate) ready: Option<Done>,
    pub(crate) closes: bool,
    /// It may send more than was answered.
    pub(crate) sends_on: bool,
    /// After the last answer, if the peer sends more.
    lingering: Option<LingeringClose>,
    /// It speaks HTTP/1.0, and takes it for granted that we close.
    pub(crate) is_old: bool,
    pub(crate) begun: Begun,
    pub(crate) deadline: Option<Instant>,
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
        (side == SocketKind::Accepted).then_some(&mut self.socket)
    }
}

impl Connection {
    /// Of a client that has just come.
    pub(crate) fn new(socket: Socket, peer: Option<IpAddr>, deadline: Instant) -> Self {
        Self {
            socket,
            peer,
            state: State::Reading,
            input: Vec::new(),
            has_unread: false,
            skip_bytes: 0,
            requests: 0,
            counted: None,
            ready: None,
            closes: false,
            sends_on: false,
            lingering: None,
            is_old: false,
            begun: Begun::default(),
            deadline: Some(deadline),
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

    /// Closes after the last answer, and lingers if the peer has sent more than was answered.
    pub(crate) fn linger(&mut self, now: Instant) -> Next {
        let closing = match &mut self.lingering {
            Some(closing) => closing,
            None if !self.sends_on && !self.socket.is_readable() => return Next::Close,
            None => {
                let deadline = self.deadline.unwrap_or(now);
                match LingeringClose::begin(&mut self.socket, LINGER_BYTES, deadline) {
                    Ok(closing) => self.lingering.insert(closing),
                    Err(_closed) => return Next::Close,
                }
            }
        };
        closing.drive(&mut self.socket, now)
    }
}
