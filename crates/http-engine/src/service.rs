//! Drives connections: reads heads, starts exchanges, and closes connections that take too long.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use haul_http1::{Date, Request};
use haul_reactor::{AcceptInfo, Context, Event, IoStatus, Next, Service, Socket};
use haul_tls::Acceptor;

use crate::access_log::{AccessLog, LogDates, NO_RESPONSE, Record, Recorder, RequestOutcome};
use crate::clock::SecondClock;
use crate::connection::{Connection, State};
use crate::handler::{ConnectionLimits, Handler, SentResponse, SourceOf};
use crate::limits::{Connections, PeerRate};
use crate::response::body::BodySource;
use crate::response::head::HeadDate;
use crate::response::pipeline::Pipeline;
use crate::task::{Message, Task};

/// The bytes a connection may move, and the requests it may start, before it yields to others.
const BUDGET_BYTES: usize = 1 << 20;
const BUDGET_REQUESTS: usize = 32;

/// The bytes read from a socket at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The bytes that are read at once while a head is awaited: a head and a short body. A connection
/// holds them until its body is read, of which the memory is counted then.
pub(crate) const HEAD_BUFFER_BYTES: usize = 20 << 10;

/// The bytes that are read from a connection that is refused.
const REFUSED_BYTES: usize = 4 << 10;

/// The options of one listener.
pub struct ListenerOptions<P> {
    /// The table of its connections, which the listeners of all threads share.
    pub connections: Arc<Connections<P>>,
    /// The rate of requests of each peer, which the listeners of all threads share.
    pub peer_rate: Option<Arc<PeerRate>>,
    /// Terminates TLS. `None`: connections are in plaintext.
    pub tls: Option<Acceptor>,
    /// The log of its requests.
    pub access_log: Option<AccessLog>,
}

/// The service of one reactor thread.
pub struct Engine<H: Handler> {
    pub(crate) handler: H,
    listeners: Vec<ListenerOptions<H::Peer>>,
    pub(crate) limits: ConnectionLimits,
    pub(crate) buffer: Vec<u8>,
    /// Responses that are not sent yet; empty between events.
    pub(crate) pipeline: Pipeline<SourceOf<H>>,
    pub(crate) clock: Clock,
    recorder: Recorder,
}

/// The date as it is written, which changes once a second.
pub(crate) struct Clock {
    second: SecondClock,
    pub(crate) date: HeadDate,
}

impl Clock {
    /// Updates the date; returns the time if another second has begun.
    fn update(&mut self, now: Instant) -> Option<SystemTime> {
        let at = self.second.update(now)?;
        self.date = HeadDate::new(Date::of(at));
        Some(at)
    }
}

/// The next action on a connection.
pub(crate) enum Flow {
    /// Its state is looked at again.
    Continue,
    /// It waits for an event.
    Wait,
    /// The outcome of its lingering close.
    Linger(Next),
    Close,
}

/// The bytes and requests left to a connection before it yields.
pub(crate) struct Budget {
    pub(crate) bytes: usize,
    pub(crate) requests: usize,
}

impl<H: Handler> Engine<H> {
    /// Creates the service of a thread. `listeners` has the options of each listener of the reactor,
    /// in the same order.
    pub fn new(
        handler: H,
        listeners: Vec<ListenerOptions<H::Peer>>,
        limits: ConnectionLimits,
    ) -> Self {
        Self {
            handler,
            listeners,
            limits,
            buffer: vec![0; BUFFER_BYTES],
            pipeline: Pipeline::default(),
            clock: Clock {
                second: SecondClock::default(),
                date: HeadDate::new(Date::of(SystemTime::UNIX_EPOCH)),
            },
            recorder: Recorder::default(),
        }
    }

    /// Updates the dates of responses and of the log.
    fn update_clock(&mut self, now: Instant) {
        if let Some(at) = self.clock.update(now) {
            self.recorder.dates = LogDates::of(at);
        }
    }

    /// Begins the log line of a request, if its listener has a log; `None` for a request whose head
    /// was not valid.
    pub(crate) fn begin_record(
        &mut self,
        listener: usize,
        request: Option<&Request<'_>>,
        now: Instant,
    ) -> Option<Record> {
        let log = self.listeners.get(listener)?.access_log.as_ref()?;
        Some(self.recorder.begin(log.format, request, now))
    }

    /// Writes the log line of a response that has ended.
    pub(crate) fn end_record(
        &mut self,
        peer: Option<IpAddr>,
        response: &SentResponse<SourceOf<H>>,
        record: Option<Record>,
    ) {
        let log =
            self.listeners.get(response.listener).and_then(|options| options.access_log.as_ref());
        if let (Some(log), Some(record)) = (log, record) {
            let name = |field| (field, response.source.name());
            let outcome = RequestOutcome {
                peer,
                status: response.status,
                body_bytes: response.body_bytes,
                source: SourceOf::<H>::LOG_FIELD.map(name),
            };
            self.recorder.end(log, record, outcome);
        }
    }

    /// Responds to a connection of a peer that has too many. Bytes that the socket does not take at
    /// once are not sent.
    fn refuse_connection(
        &mut self,
        mut socket: Socket,
        listener: usize,
        peer: Option<IpAddr>,
        now: Instant,
    ) {
        let response = self.limits.too_many;
        // Unread bytes would turn the close into a reset, by which the client loses the response.
        socket.read(&mut self.buffer[..REFUSED_BYTES]).ok();
        let written = socket.write(&[IoSlice::new(response)], false);
        socket.shutdown_write().ok();
        self.update_clock(now);
        let record = self.begin_record(listener, None, now);
        let mut refused = SentResponse {
            listener,
            status: NO_RESPONSE,
            body_bytes: 0,
            is_complete: false,
            source: SourceOf::<H>::default(),
        };
        if let Ok(IoStatus::Bytes(bytes)) = written {
            let head_end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            let head_bytes = head_end.map_or(response.len(), |at| at + 4);
            refused.status = 503;
            refused.body_bytes = bytes.saturating_sub(head_bytes) as u64;
        }
        self.end_record(peer, &refused, record);
    }
}

impl<H: Handler> Service for Engine<H> {
    type Connection = Connection<H>;
    type Message = Message;

    fn can_accept(&mut self, listener: usize) -> bool {
        self.listeners.get(listener).is_none_or(|options| options.connections.has_room())
    }

    fn on_accept(
        &mut self,
        socket: Socket,
        from: AcceptInfo,
        context: &mut Context<'_, Message>,
    ) -> Option<Connection<H>> {
        let peer = from.peer.map(|peer| peer.ip().to_canonical());
        let address = peer.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let sender = context.message_sender();
        let close = Box::new(move || sender.send(Message::Close));
        let options = self.listeners.get(from.listener)?;
        let Some(slot) = options.connections.admit(address, close) else {
            if options.tls.is_none() {
                self.refuse_connection(socket, from.listener, peer, context.now());
            }
            return None;
        };
        let socket = match &options.tls {
            Some(acceptor) => acceptor.accept(socket).ok()?,
            None => socket.into(),
        };
        let deadline = context.now() + self.limits.head_time;
        let task = Task::new(context.message_sender());
        Some(Connection::new(socket, from.listener, peer, slot, task, deadline))
    }

    fn drive(
        &mut self,
        connection: &mut Connection<H>,
        event: Event<Message>,
        context: &mut Context<'_, Message>,
    ) -> Next {
        self.update_clock(context.now());
        let is_due = |deadline: Instant| deadline <= context.now();
        if event == Event::Deadline
            && connection.deadline.is_some_and(is_due)
            && self.is_too_late(connection, context.now())
        {
            return Next::Close;
        }
        if connection.slot.connection().is_closing() {
            return Next::Close;
        }
        // Records of a handshake, or the end of TLS, may not have fitted into the send buffer.
        if connection.socket.flush().is_err() {
            return Next::Close;
        }
        let is_woken = connection.task.begin();
        if let State::Exchange(exchange) = &mut connection.state {
            exchange.should_poll |= is_woken;
        }
        let mut budget = Budget { bytes: BUDGET_BYTES, requests: BUDGET_REQUESTS };
        loop {
            match self.advance(connection, &mut budget, context) {
                Ok(Flow::Continue) if budget.bytes == 0 || budget.requests == 0 => {
                    connection.task.yields();
                    return Next::Yield;
                }
                Ok(Flow::Continue) => {}
                Ok(Flow::Wait) if connection.task.end() => return Next::Wait(connection.deadline),
                Ok(Flow::Wait) => {
                    connection.task.begin();
                    if let State::Exchange(exchange) = &mut connection.state {
                        exchange.should_poll = true;
                    }
                }
                Ok(Flow::Linger(next)) => return next,
                Ok(Flow::Close) | Err(_) => return Next::Close,
            }
        }
    }

    fn on_close(&mut self, mut connection: Connection<H>) {
        let is_cut = connection.unsent.is_some();
        self.cut_responses(&mut connection, Instant::now());
        match &connection.state {
            State::Exchange(exchange) if exchange.ends_with_connection() => {
                connection.socket.reset();
            }
            // Without `close_notify`, the client of a TLS connection notices the truncation.
            State::Exchange(_) => drop(connection.socket),
            State::Head | State::Lingering(_) if is_cut => drop(connection.socket),
            State::Head | State::Lingering(_) => connection.socket.close(),
        }
    }
}

impl<H: Handler> Engine<H> {
    pub(crate) fn peer_rate(&self, listener: usize) -> Option<Arc<PeerRate>> {
        self.listeners.get(listener)?.peer_rate.clone()
    }

    /// Returns `true` if a passed deadline is the end of the connection. A client that takes a
    /// response fast enough gets another interval.
    fn is_too_late(&mut self, connection: &mut Connection<H>, now: Instant) -> bool {
        let is_sending = match &connection.state {
            State::Exchange(exchange) => exchange.status != 0,
            State::Head | State::Lingering(_) => false,
        };
        if connection.unsent.is_some() || is_sending {
            let period = self.limits.stall_time;
            let bytes_min =
                self.limits.send_rate_min.max(1).saturating_mul(period.as_secs().max(1));
            let queued_bytes = haul_disk::send_queue_bytes(&connection.socket).ok();
            if connection.pace.end_period(queued_bytes, bytes_min) {
                connection.deadline = Some(now + period);
                return false;
            }
            connection.slot.count_slow();
        } else if matches!(connection.state, State::Head) {
            if connection.drains_until.is_none() {
                connection.slot.time_out();
            }
            if !connection.input.is_empty() {
                connection.slot.count_slow();
                // The client has sent a part of a head, and learns why it gets no response to it.
                return self.refuse_slow_head(connection, now).is_err();
            }
        }
        true
    }

    fn advance(
        &mut self,
        connection: &mut Connection<H>,
        budget: &mut Budget,
        context: &Context<'_, Message>,
    ) -> io::Result<Flow> {
        if connection.unsent.is_some() {
            return self.send_unsent(connection, context.now());
        }
        match &mut connection.state {
            State::Head if connection.closes => Ok(self.begin_close(connection, context)),
            State::Head => self.read_head(connection, budget, context),
            State::Exchange(_) if connection.socket.socket().is_write_closed() => Ok(Flow::Close),
            State::Exchange(_) => self.exchange(connection, budget, context),
            State::Lingering(closing) => {
                Ok(Flow::Linger(closing.drive(connection.socket.socket_mut(), context.now())))
            }
        }
    }
}
