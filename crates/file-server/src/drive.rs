//! What is done with a connection each time it is its turn.

use std::io;
use std::net::IpAddr;
use std::time::Instant;

use haul_http_engine::{LoggedResponse, NO_RESPONSE, PendingLine};
use haul_http1::CONNECTION_REFUSED;
use haul_reactor::{AcceptInfo, Context, Event, IoStatus, Next, Service, Socket};
use haul_tls::Transport;

use crate::connection::{Connection, Flow, Message, State};
use crate::pace::Pace;
use crate::sending::{Progress, Sending};
use crate::stream::SHARE_BYTES;
use crate::tier::Tier;
use crate::worker::Worker;

/// How many requests of one connection are answered before it is the next one's turn.
const SHARE_REQUESTS: u32 = 32;

impl Service for Worker {
    type Connection = Connection;
    type Message = Message;

    fn on_accept(
        &mut self,
        socket: Socket,
        from: AcceptInfo,
        hub: &mut Context<'_, Message>,
    ) -> Option<Connection> {
        let socket = match &self.desk.shared.tls {
            None => Transport::from(socket),
            Some(acceptor) => acceptor.accept(socket).ok()?,
        };
        self.desk.counts.connections_opened.add(1);
        let deadline = hub.now() + self.desk.shared.limits.head_time;
        Some(Connection::new(socket, from.peer.map(|peer| peer.ip().to_canonical()), deadline))
    }

    fn drive(
        &mut self,
        connection: &mut Connection,
        event: Event<Message>,
        hub: &mut Context<'_, Message>,
    ) -> Next {
        self.clock.turn(hub.now());
        match event {
            Event::Deadline => {
                // The one that passed may be older: a connection that has turn after turn has no
                // occasion to say a new one.
                let is_due = connection.deadline.is_some_and(|deadline| deadline <= hub.now());
                if is_due && self.is_too_late(connection, hub.now()) {
                    return Next::Close;
                }
            }
            Event::Message(message) => connection.told(message),
            Event::Ready | Event::Resume | Event::Drain => {}
        }
        if connection.socket.flush().is_err() {
            return Next::Close;
        }
        (connection.share_bytes, connection.share_requests) = (SHARE_BYTES, SHARE_REQUESTS);
        loop {
            let flow = match &connection.state {
                _ if connection.unsent.is_some() => self.send_unsent(connection, hub.now()),
                State::Reading => self.read(connection, hub),
                // Nothing more is done for who hears no answer.
                State::Waiting { .. } | State::Sending(_)
                    if connection.socket.socket().is_write_closed() =>
                {
                    Ok(Flow::Close)
                }
                State::Waiting { .. } => Ok(Flow::Wait),
                State::Sending(_) => self.send(connection, hub),
                State::Lingering => return connection.linger(hub.now()),
            };
            match flow {
                Ok(Flow::Go) if connection.share_bytes == 0 || connection.share_requests == 0 => {
                    return Next::Yield;
                }
                Ok(Flow::Go) => {}
                Ok(Flow::Wait) => return Next::Wait(connection.deadline),
                // A peer that is gone is no event, and nobody to tell.
                Ok(Flow::Close) | Err(_) => return Next::Close,
            }
        }
    }

    fn is_waiting(&self, connection: &Connection) -> bool {
        matches!(connection.state, State::Reading | State::Lingering)
    }

    fn on_refuse(&mut self, socket: Socket, _from: AcceptInfo) {
        if self.desk.shared.tls.is_none() {
            socket.close_with(CONNECTION_REFUSED);
        }
    }

    fn on_close(&mut self, mut connection: Connection) {
        let is_unsent = connection.unsent.is_some();
        self.cut_unsent(&mut connection);
        let is_cut = match &connection.state {
            State::Sending(sending) => {
                self.desk.counts.cut_short.add(1);
                let (status, bytes, tier) = (sending.status, sending.body_bytes, sending.tier());
                self.log(&connection.log_line, connection.peer, status, bytes, tier);
                self.desk.counts.answered(status, tier);
                true
            }
            state if matches!(state, State::Waiting { .. }) || connection.ready.is_some() => {
                self.answered(&connection, NO_RESPONSE, 0, Tier::None);
                true
            }
            State::Waiting { .. } | State::Reading | State::Lingering => false,
        };
        // Without `close_notify`, the client of a TLS connection notices the truncation.
        if !is_cut && !is_unsent {
            connection.socket.close();
        }
        // Last: a reader of the counters then sees the responses of all closed connections.
        self.desk.counts.connections_closed.add(1);
    }
}

impl Worker {
    /// Whether a passed deadline is the end. Who takes what it asked for gets another one.
    fn is_too_late(&mut self, connection: &mut Connection, now: Instant) -> bool {
        let limits = &self.desk.shared.limits;
        let (least, period) = (limits.send_rate_min.max(1), limits.send_time);
        let is_reading = match &connection.state {
            _ if connection.unsent.is_some() => Some(false),
            State::Sending(sending) => Some(sending.is_reading),
            State::Reading | State::Waiting { .. } | State::Lingering => None,
        };
        match (&connection.state, is_reading) {
            (_, Some(is_reading)) => {
                let wanted = least.saturating_mul(period.as_secs().max(1));
                let held = haul_disk::send_queue_bytes(&connection.socket).ok();
                // What the disk has not given yet nobody can take.
                if connection.pace.is_enough(held, wanted) || is_reading {
                    connection.deadline = Some(now + period);
                    return false;
                }
                self.desk.counts.too_slow.add(1);
            }
            (State::Waiting { .. }, None) => {
                connection.deadline = None;
                return false;
            }
            (State::Reading, None) if !connection.input.is_empty() => {
                self.desk.counts.too_slow.add(1);
            }
            (_, None) => {}
        }
        true
    }

    fn read(
        &mut self,
        connection: &mut Connection,
        hub: &mut Context<'_, Message>,
    ) -> io::Result<Flow> {
        if connection.has_unread {
            connection.has_unread = false;
            let input = std::mem::take(&mut connection.input);
            return self.understand(connection, input, hub);
        }
        if !connection.socket.is_readable() {
            let is_idle = connection.input.is_empty() && connection.skip_bytes == 0;
            let is_over = is_idle && hub.is_draining() && connection.is_idle_time_over(hub.now());
            return Ok(if is_over { Flow::Close } else { Flow::Wait });
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let moved = connection.socket.read(&mut buffer);
        let flow = match moved {
            Ok(IoStatus::Bytes(0)) => Ok(Flow::Close),
            Ok(IoStatus::Bytes(bytes)) => {
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
            Ok(IoStatus::WouldBlock) => Ok(Flow::Go),
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
        hub: &mut Context<'_, Message>,
    ) -> io::Result<Flow> {
        let (taken, flow) = self.requests(connection, &input, hub);
        input.drain(..taken);
        connection.input = if input.is_empty() { Vec::new() } else { input };
        flow
    }

    fn send(
        &mut self,
        connection: &mut Connection,
        hub: &mut Context<'_, Message>,
    ) -> io::Result<Flow> {
        let State::Sending(sending) = &mut connection.state else { return Ok(Flow::Go) };
        if !connection.socket.is_writable() {
            return Ok(Flow::Wait);
        }
        let remote = || hub.message_sender();
        let progress = sending.step(
            &mut connection.socket,
            &self.desk,
            hub.now(),
            &mut connection.counted,
            remote,
        )?;
        sending.is_reading = progress == Progress::Reading;
        match progress {
            Progress::Sent(bytes) => {
                connection.share_bytes = connection.share_bytes.saturating_sub(bytes);
                connection.pace.handed(bytes);
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
        self.record_latency(connection);
        connection.state = State::Sending(Box::new(sending));
        connection.pace = Pace::default();
        connection.deadline = Some(now + self.desk.shared.limits.send_time);
    }

    /// Records the time since the head of the request, as the response begins.
    pub(crate) fn record_latency(&self, connection: &mut Connection) {
        if let Some(at) = connection.request_at.take() {
            self.desk.counts.latency.record(at.elapsed());
        }
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
        self.log(&connection.log_line, connection.peer, status, bytes, tier);
    }

    pub(crate) fn log(
        &mut self,
        log_line: &PendingLine,
        peer: Option<IpAddr>,
        status: u16,
        bytes: u64,
        tier: Tier,
    ) {
        let Some(log) = &self.desk.shared.access_log else { return };
        let tier = (tier != Tier::None).then(|| tier.name().as_bytes());
        let response = LoggedResponse {
            peer,
            user: None,
            date: self.clock.log_dates.in_format(log.format),
            status,
            bytes,
            duration: log_line.elapsed(),
            fields: &[("tier", tier)],
        };
        log_line.end(&mut self.line, &response);
        log.lines.append(&self.line);
    }
}
