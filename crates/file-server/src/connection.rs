//! A connection, and what is done when it is driven.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use haul_reactor::{self as reactor, Accepted, Event, Hub, Moved, Next, Service, Side, Socket};

use crate::access_log::{Begun, Ended};
use crate::answer::Page;
use crate::fill::{Broken, Window};
use crate::find::Found;
use crate::meta::OpenFile;
use crate::sending::{Progress, Sending};
use crate::tier::Tier;
use crate::worker::Worker;

/// How many bytes one connection may move before it is the next one's turn.
const SHARE_BYTES: u64 = 1 << 20;

/// How many requests of one connection are answered before it is the next one's turn.
const SHARE_REQUESTS: u32 = 32;

/// What is taken of a peer that goes on sending after the last answer, so that it gets to read it.
const LINGER_BYTES: u64 = 1 << 20;

/// What other threads tell a connection.
pub(crate) enum Message {
    /// What they found, or read, for the request it waits with.
    Ready(Ready),
    /// The next window of what it sends.
    Filled(Result<Window, Broken>),
}

/// What a request had to wait for.
pub(crate) enum Ready {
    Found(Found),
    Loaded(Arc<OpenFile>, Result<Box<[u8]>, Broken>),
    Page(Page),
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
    pub(crate) ready: Option<Ready>,
    pub(crate) closes: bool,
    /// It may send more than was answered.
    pub(crate) sends_on: bool,
    /// How much more is taken of it after the last answer; `None` before that.
    lingers: Option<u64>,
    /// It speaks HTTP/1.0, and takes it for granted that we close.
    pub(crate) is_old: bool,
    pub(crate) begun: Begun,
    deadline: Option<Instant>,
    is_head_begun: bool,
    /// Bytes taken since the pace was looked at last.
    pace_bytes: u64,
    share_bytes: u64,
    pub(crate) share_requests: u32,
}

pub(crate) enum State {
    /// Of a request; the rest of its head is awaited.
    Reading,
    /// For another thread, with the head of a request at the front of `input`.
    Waiting,
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
    fn socket(&mut self, side: Side) -> Option<&mut Socket> {
        (side == Side::Near).then_some(&mut self.socket)
    }
}

impl Service for Worker {
    type Connection = Connection;
    type Message = Message;

    fn accepted(
        &mut self,
        socket: Socket,
        from: Accepted,
        hub: &mut Hub<'_, Message>,
    ) -> Option<Connection> {
        self.desk.counts.connections_opened.add(1);
        Some(Connection {
            socket,
            peer: from.peer.map(|peer| peer.ip().to_canonical()),
            state: State::Reading,
            input: Vec::new(),
            has_unread: false,
            skip_bytes: 0,
            requests: 0,
            ready: None,
            closes: false,
            sends_on: false,
            lingers: None,
            is_old: false,
            begun: Begun::default(),
            deadline: Some(hub.now() + self.desk.shared.limits.head_time),
            is_head_begun: true,
            pace_bytes: 0,
            share_bytes: 0,
            share_requests: 0,
        })
    }

    fn drive(
        &mut self,
        connection: &mut Connection,
        event: Event<Message>,
        hub: &mut Hub<'_, Message>,
    ) -> Next {
        self.clock.turn(hub.now());
        match event {
            Event::Deadline => {
                if self.is_too_late(connection, hub.now()) {
                    return Next::Close;
                }
            }
            Event::Told(message) => connection.told(message),
            Event::Ready | Event::Again | Event::Drain => {}
        }
        (connection.share_bytes, connection.share_requests) = (SHARE_BYTES, SHARE_REQUESTS);
        loop {
            let flow = match &connection.state {
                State::Reading => self.read(connection, hub),
                State::Waiting => Ok(Flow::Wait),
                State::Sending(_) => self.send(connection, hub),
                State::Lingering => connection.linger(),
            };
            match flow {
                Ok(Flow::Go) if connection.share_bytes == 0 || connection.share_requests == 0 => {
                    return Next::Again;
                }
                Ok(Flow::Go) => {}
                Ok(Flow::Wait) => return Next::Wait(connection.deadline),
                // A peer that is gone is no event, and nobody to tell.
                Ok(Flow::Close) | Err(_) => return Next::Close,
            }
        }
    }

    fn closed(&mut self, connection: Connection) {
        self.desk.counts.connections_closed.add(1);
        if let State::Sending(sending) = &connection.state {
            self.desk.counts.cut_short.add(1);
            self.log(&connection, sending.status, sending.body_bytes, sending.tier());
            self.desk.counts.answered(sending.status, sending.tier());
        }
    }
}

impl Worker {
    /// Whether a passed deadline is the end. Who takes what it asked for gets another one.
    fn is_too_late(&mut self, connection: &mut Connection, now: Instant) -> bool {
        let limits = &self.desk.shared.limits;
        let (least, period) = (limits.send_rate_min.max(1), limits.send_time);
        match &connection.state {
            State::Sending(sending) => {
                let wanted = least.saturating_mul(period.as_secs().max(1));
                // What the disk has not given yet nobody can take.
                if connection.pace_bytes >= wanted || sending.is_reading {
                    connection.pace_bytes = 0;
                    connection.deadline = Some(now + period);
                    return false;
                }
                self.desk.counts.too_slow.add(1);
            }
            State::Waiting => {
                connection.deadline = None;
                return false;
            }
            State::Reading if !connection.input.is_empty() => self.desk.counts.too_slow.add(1),
            State::Reading | State::Lingering => {}
        }
        true
    }

    fn read(
        &mut self,
        connection: &mut Connection,
        hub: &mut Hub<'_, Message>,
    ) -> io::Result<Flow> {
        if connection.has_unread {
            connection.has_unread = false;
            let input = std::mem::take(&mut connection.input);
            return self.understand(connection, input, hub);
        }
        if !connection.socket.is_readable() {
            // Between two requests there is nothing to finish.
            let is_idle = connection.input.is_empty() && connection.skip_bytes == 0;
            return Ok(if is_idle && hub.is_draining() { Flow::Close } else { Flow::Wait });
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let moved = connection.socket.read(&mut buffer);
        let flow = match moved {
            Ok(Moved::Bytes(0)) => Ok(Flow::Close),
            Ok(Moved::Bytes(bytes)) => {
                let received = &buffer[..bytes];
                if connection.input.is_empty() {
                    let (taken, flow) = self.requests(connection, received, hub);
                    connection.input.extend_from_slice(&received[taken..]);
                    flow
                } else {
                    let mut input = std::mem::take(&mut connection.input);
                    input.extend_from_slice(received);
                    self.understand(connection, input, hub)
                }
            }
            Ok(Moved::WouldBlock) => Ok(Flow::Go),
            Err(error) => Err(error),
        };
        self.buffer = buffer;
        flow
    }

    /// Goes through what was received before.
    fn understand(
        &mut self,
        connection: &mut Connection,
        mut input: Vec<u8>,
        hub: &mut Hub<'_, Message>,
    ) -> io::Result<Flow> {
        let (taken, flow) = self.requests(connection, &input, hub);
        input.drain(..taken);
        connection.input = if input.is_empty() { Vec::new() } else { input };
        flow
    }

    fn send(
        &mut self,
        connection: &mut Connection,
        hub: &mut Hub<'_, Message>,
    ) -> io::Result<Flow> {
        let State::Sending(sending) = &mut connection.state else { return Ok(Flow::Go) };
        if !connection.socket.is_writable() {
            return Ok(Flow::Wait);
        }
        let remote = || hub.remote();
        let progress = sending.step(&mut connection.socket, &self.desk, hub.now(), remote)?;
        sending.is_reading = progress == Progress::Reading;
        match progress {
            Progress::Sent(bytes) => {
                connection.share_bytes = connection.share_bytes.saturating_sub(bytes);
                connection.pace_bytes += bytes;
                Ok(Flow::Go)
            }
            Progress::Full => Ok(Flow::Go),
            Progress::Reading => Ok(Flow::Wait),
            Progress::Done => {
                let (status, bytes, tier) = (sending.status, sending.body_bytes, sending.tier());
                self.answered(connection, status, bytes, tier);
                self.next_request(connection, hub.now());
                Ok(Flow::Go)
            }
        }
    }

    /// An answer is about to be sent piece by piece.
    pub(crate) fn begin_sending(
        &self,
        connection: &mut Connection,
        sending: Sending,
        now: Instant,
    ) {
        connection.state = State::Sending(Box::new(sending));
        connection.pace_bytes = 0;
        connection.deadline = Some(now + self.desk.shared.limits.send_time);
    }

    /// A request waits for another thread.
    pub(crate) fn begin_waiting(&self, connection: &mut Connection) {
        self.desk.counts.disk_jobs.add(1);
        connection.state = State::Waiting;
        connection.deadline = None;
    }

    /// The last answer is with the kernel: another request may come, or the peer reads and goes.
    pub(crate) fn next_request(&self, connection: &mut Connection, now: Instant) {
        let limits = &self.desk.shared.limits;
        if connection.closes {
            connection.state = State::Lingering;
            connection.sends_on |= connection.has_unread || connection.skip_bytes > 0;
            connection.deadline = Some(now + limits.head_time);
            return;
        }
        connection.state = State::Reading;
        connection.is_head_begun = false;
        connection.has_unread = !connection.input.is_empty();
        connection.deadline = Some(now + limits.idle_time);
    }

    /// The head of a request has begun to come, or the rest of what nobody reads.
    pub(crate) fn await_rest(&self, connection: &mut Connection, is_begun: bool, now: Instant) {
        let limits = &self.desk.shared.limits;
        connection.deadline = match (is_begun, connection.is_head_begun) {
            // Not put off by each byte that comes.
            (true, true) => connection.deadline,
            (true, false) => Some(now + limits.head_time),
            (false, _) => Some(now + limits.idle_time),
        };
        connection.is_head_begun = is_begun;
    }

    pub(crate) fn answered(
        &mut self,
        connection: &Connection,
        status: u16,
        bytes: u64,
        tier: Tier,
    ) {
        self.desk.counts.answered(status, tier);
        self.log(connection, status, bytes, tier);
    }

    fn log(&mut self, connection: &Connection, status: u16, bytes: u64, tier: Tier) {
        let Some(log) = self.desk.shared.access_log.as_ref().filter(|_| self.admin.is_none())
        else {
            return;
        };
        let end = Ended { peer: connection.peer, date: &self.clock.log_date, status, bytes, tier };
        connection.begun.end(&mut self.line, &end);
        log.lines.append(&self.line);
    }
}

impl Connection {
    /// Passes over what is left of the body of the last request, and says how much that was.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> usize {
        let skipped = (bytes.len() as u64).min(self.skip_bytes);
        self.skip_bytes -= skipped;
        usize::try_from(skipped).unwrap_or(bytes.len())
    }

    fn told(&mut self, message: Message) {
        match message {
            Message::Ready(ready) => {
                if matches!(self.state, State::Waiting) {
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

    /// Takes what comes, until the peer closes: were anything unread when we close, the kernel
    /// would tell the peer so in a way that makes it lose the last answer.
    fn linger(&mut self) -> io::Result<Flow> {
        let left = match self.lingers {
            Some(left) => left,
            // It has sent no more than was answered.
            None if !self.sends_on && !self.socket.is_readable() => return Ok(Flow::Close),
            None => {
                self.socket.shut_write()?;
                LINGER_BYTES
            }
        };
        let mut buffer = [0; 4096];
        let (left, flow) = match self.socket.read(&mut buffer)? {
            Moved::Bytes(0) => (left, Flow::Close),
            Moved::Bytes(bytes) => (left.saturating_sub(bytes as u64), Flow::Go),
            Moved::WouldBlock => (left, Flow::Wait),
        };
        self.lingers = Some(left);
        Ok(if left == 0 { Flow::Close } else { flow })
    }
}
