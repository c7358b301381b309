//! Implements the state machine of a client connection: receives requests and sends responses.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant, SystemTime};

use haul_http1::{Date, Framing, HeadLimits, parse_request};
use haul_reactor::{
    self as reactor, AcceptInfo, AdmissionLimit, Context, Event, IoStatus, LingeringClose, Next,
    Service, Socket, SocketKind,
};

use crate::StatusSource;
use crate::response::{Encoding, Pages, Response};

/// The time limit for receiving the header section of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The time an idle connection stays open: Prometheus usually scrapes at least once a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// The time limit for sending a response.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout that replaces the other three while more than half of the connections are in use.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of bytes discarded from a client that keeps sending after its last response.
const LINGER_BYTES: usize = 64 << 10;

/// The state shared by all connections.
pub(crate) struct AdminService<S> {
    pages: Pages<S>,
    limit: AdmissionLimit,
    connections_max: usize,
    head_limits: HeadLimits,
}

pub(crate) struct Client {
    socket: Socket,
    /// The bytes received but not parsed yet.
    input: Vec<u8>,
    state: State,
    deadline: Instant,
}

enum State {
    Reading,
    Sending {
        response: Vec<u8>,
        sent_bytes: usize,
        /// `true` if the connection closes after this response.
        closes: bool,
    },
    /// The last response was sent; the client gets time to read it.
    Lingering(LingeringClose),
}

enum Flow {
    /// Continue with the current state at once.
    Continue,
    /// Wait for an event.
    Wait,
    /// Continue after other connections had their turn.
    Yield,
    Close,
}

impl reactor::Connection for Client {
    fn socket(&mut self, kind: SocketKind) -> Option<&mut Socket> {
        (kind == SocketKind::Accepted).then_some(&mut self.socket)
    }
}

impl<S: StatusSource> Service for AdminService<S> {
    type Connection = Client;
    type Message = ();

    fn on_accept(
        &mut self,
        socket: Socket,
        _: AcceptInfo,
        context: &mut Context<'_, ()>,
    ) -> Option<Client> {
        let deadline = self.deadline(context.now(), HEAD_TIMEOUT);
        Some(Client { socket, input: Vec::new(), state: State::Reading, deadline })
    }

    fn drive(
        &mut self,
        client: &mut Client,
        event: Event<()>,
        context: &mut Context<'_, ()>,
    ) -> Next {
        // While the connection yielded, a later deadline may have replaced the one that fired.
        if event == Event::Deadline && client.deadline <= context.now() {
            return Next::Close;
        }
        loop {
            let flow = match &mut client.state {
                State::Reading => self.read(client, context.now()),
                State::Sending { .. } => self.send(client, context.now()),
                State::Lingering(closing) => {
                    return closing.drive(&mut client.socket, context.now());
                }
            };
            match flow {
                Ok(Flow::Continue) => {}
                Ok(Flow::Wait) => return Next::Wait(Some(client.deadline)),
                Ok(Flow::Yield) => return Next::Yield,
                // A lost connection to a client is not logged.
                Ok(Flow::Close) | Err(_) => return Next::Close,
            }
        }
    }
}

impl<S: StatusSource> AdminService<S> {
    /// Creates the service of a reactor whose `limit` admits `connections_max` connections.
    pub(crate) fn new(pages: Pages<S>, limit: AdmissionLimit, connections_max: usize) -> Self {
        Self { pages, limit, connections_max, head_limits: HeadLimits::default() }
    }

    fn deadline(&self, now: Instant, timeout: Duration) -> Instant {
        let is_busy = self.limit.open() > self.connections_max / 2;
        now + if is_busy { timeout.min(BUSY_TIMEOUT) } else { timeout }
    }

    /// Responds to the next complete request, or receives more bytes of it.
    fn read(&self, client: &mut Client, now: Instant) -> io::Result<Flow> {
        let (response, encoding, consumed) = match parse_request(&client.input, &self.head_limits) {
            Ok(None) => return self.receive(client, now),
            Ok(Some(request)) => {
                // Bodies are not parsed, so the end of a request with a body is unknown and the
                // connection must close.
                let closes = !request.keep_alive || request.framing != Framing::Length(0);
                let encoding = Encoding { is_head: request.method == "HEAD", closes };
                (Response::to(&request, &self.pages), encoding, request.head_bytes)
            }
            Err(error) => {
                let encoding = Encoding { is_head: false, closes: true };
                (Response::to_invalid(error), encoding, client.input.len())
            }
        };
        client.input.drain(..consumed);
        let response = response.encode(&Date::of(SystemTime::now()), encoding);
        client.state = State::Sending { response, sent_bytes: 0, closes: encoding.closes };
        client.deadline = self.deadline(now, SEND_TIMEOUT);
        Ok(Flow::Continue)
    }

    fn receive(&self, client: &mut Client, now: Instant) -> io::Result<Flow> {
        if !client.socket.is_readable() {
            return Ok(Flow::Wait);
        }
        let mut buffer = [0; 4096];
        match client.socket.read(&mut buffer)? {
            IoStatus::Bytes(0) => Ok(Flow::Close),
            IoStatus::Bytes(bytes) => {
                if client.input.is_empty() {
                    client.deadline = self.deadline(now, HEAD_TIMEOUT);
                }
                client.input.extend_from_slice(&buffer[..bytes]);
                Ok(Flow::Continue)
            }
            IoStatus::WouldBlock => Ok(Flow::Wait),
        }
    }

    fn send(&self, client: &mut Client, now: Instant) -> io::Result<Flow> {
        let State::Sending { response, sent_bytes, closes } = &mut client.state else {
            return Ok(Flow::Continue);
        };
        if *sent_bytes < response.len() {
            if !client.socket.is_writable() {
                return Ok(Flow::Wait);
            }
            if let IoStatus::Bytes(bytes) =
                client.socket.write(&[IoSlice::new(&response[*sent_bytes..])], false)?
            {
                *sent_bytes += bytes;
            }
            return Ok(Flow::Continue);
        }
        if *closes {
            let closing = LingeringClose::begin(&mut client.socket, LINGER_BYTES, client.deadline)?;
            client.state = State::Lingering(closing);
            return Ok(Flow::Continue);
        }
        client.state = State::Reading;
        let timeout = if client.input.is_empty() { IDLE_TIMEOUT } else { HEAD_TIMEOUT };
        client.deadline = self.deadline(now, timeout);
        Ok(Flow::Yield)
    }
}
