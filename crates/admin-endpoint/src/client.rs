//! A client, and what the thread does with it.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant, SystemTime};

use haul_http1::{Date, Framing, HeadLimits, parse_request};
use haul_reactor::{
    self as reactor, Accepted, Event, Gate, Hub, Moved, Next, Service, Side, Socket,
};

use crate::Told;
use crate::admin::CONNECTIONS_MAX;
use crate::answer::{Answer, Manner};

/// How long the head of a request may take to come.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a client may say nothing between requests: Prometheus asks every minute at least, often.
const IDLE_TIME: Duration = Duration::from_secs(75);
/// How long it may take an answer.
const SEND_TIME: Duration = Duration::from_secs(10);
/// How long all of that may take when half of the places are taken.
const BUSY_TIME: Duration = Duration::from_secs(1);

/// What is taken of a client that goes on sending after its last answer, so that it gets to read it.
const LINGER_BYTES: usize = 64 << 10;

/// What the thread has beside its clients.
pub(crate) struct Telling<T> {
    told: T,
    gate: Gate,
    head_limits: HeadLimits,
}

pub(crate) struct Client {
    socket: Socket,
    /// What was received and not understood yet.
    input: Vec<u8>,
    state: State,
    deadline: Instant,
}

enum State {
    Reading,
    /// The answer, and how much of it is sent; whether it is the last one.
    Sending {
        out: Vec<u8>,
        sent: usize,
        closes: bool,
    },
    /// Until the peer has read its last answer; so many bytes more are taken of it.
    Lingering(usize),
}

enum Flow {
    /// Look at its state again.
    Go,
    /// Nothing, before something happens.
    Wait,
    /// It is the next one's turn.
    Again,
    Close,
}

impl reactor::Connection for Client {
    fn socket(&mut self, side: Side) -> Option<&mut Socket> {
        (side == Side::Near).then_some(&mut self.socket)
    }
}

impl<T: Told> Service for Telling<T> {
    type Connection = Client;
    type Message = ();

    fn accepted(&mut self, socket: Socket, _: Accepted, hub: &mut Hub<'_, ()>) -> Option<Client> {
        let deadline = self.until(hub.now(), HEAD_TIME);
        Some(Client { socket, input: Vec::new(), state: State::Reading, deadline })
    }

    fn drive(&mut self, client: &mut Client, event: Event<()>, hub: &mut Hub<'_, ()>) -> Next {
        // The one that passed may be an older one.
        if event == Event::Deadline && client.deadline <= hub.now() {
            return Next::Close;
        }
        loop {
            let flow = match client.state {
                State::Reading => self.read(client, hub.now()),
                State::Sending { .. } => self.send(client, hub.now()),
                State::Lingering(_) => client.linger(),
            };
            match flow {
                Ok(Flow::Go) => {}
                Ok(Flow::Wait) => return Next::Wait(Some(client.deadline)),
                Ok(Flow::Again) => return Next::Again,
                // A client that is gone is no event, and nobody to tell.
                Ok(Flow::Close) | Err(_) => return Next::Close,
            }
        }
    }
}

impl<T: Told> Telling<T> {
    pub(crate) fn new(told: T, gate: Gate) -> Self {
        Self { told, gate, head_limits: HeadLimits::default() }
    }

    fn until(&self, now: Instant, usual: Duration) -> Instant {
        let is_busy = self.gate.open() > CONNECTIONS_MAX / 2;
        now + if is_busy { usual.min(BUSY_TIME) } else { usual }
    }

    /// Answers the request there is, or takes what comes of the next one.
    fn read(&self, client: &mut Client, now: Instant) -> io::Result<Flow> {
        let (answer, manner, taken) = match parse_request(&client.input, &self.head_limits) {
            Ok(None) => return self.receive(client, now),
            Ok(Some(request)) => {
                // Nobody reads bodies here, nor finds their ends.
                let closes = !request.keep_alive || request.framing != Framing::Length(0);
                let manner = Manner { is_head: request.method == "HEAD", closes };
                (Answer::to(&request, &self.told), manner, request.head_bytes)
            }
            Err(refused) => {
                let manner = Manner { is_head: false, closes: true };
                (Answer::refusing(refused), manner, client.input.len())
            }
        };
        client.input.drain(..taken);
        let out = answer.written(&Date::of(SystemTime::now()), manner);
        client.state = State::Sending { out, sent: 0, closes: manner.closes };
        client.deadline = self.until(now, SEND_TIME);
        Ok(Flow::Go)
    }

    fn receive(&self, client: &mut Client, now: Instant) -> io::Result<Flow> {
        if !client.socket.is_readable() {
            return Ok(Flow::Wait);
        }
        let mut buffer = [0; 4096];
        match client.socket.read(&mut buffer)? {
            Moved::Bytes(0) => Ok(Flow::Close),
            Moved::Bytes(bytes) => {
                if client.input.is_empty() {
                    client.deadline = self.until(now, HEAD_TIME);
                }
                client.input.extend_from_slice(&buffer[..bytes]);
                Ok(Flow::Go)
            }
            Moved::WouldBlock => Ok(Flow::Wait),
        }
    }

    fn send(&self, client: &mut Client, now: Instant) -> io::Result<Flow> {
        let State::Sending { out, sent, closes } = &mut client.state else { return Ok(Flow::Go) };
        if *sent < out.len() {
            if !client.socket.is_writable() {
                return Ok(Flow::Wait);
            }
            if let Moved::Bytes(bytes) =
                client.socket.write(&[IoSlice::new(&out[*sent..])], false)?
            {
                *sent += bytes;
            }
            return Ok(Flow::Go);
        }
        if *closes {
            client.socket.shut_write()?;
            client.state = State::Lingering(LINGER_BYTES);
            return Ok(Flow::Go);
        }
        client.state = State::Reading;
        let usual = if client.input.is_empty() { IDLE_TIME } else { HEAD_TIME };
        client.deadline = self.until(now, usual);
        Ok(Flow::Again)
    }
}

impl Client {
    /// Takes what comes, until the peer closes: were anything unread when we close, the kernel
    /// would tell the peer so in a way that makes it lose the last answer.
    fn linger(&mut self) -> io::Result<Flow> {
        let State::Lingering(left) = &mut self.state else { return Ok(Flow::Go) };
        if !self.socket.is_readable() {
            return Ok(Flow::Wait);
        }
        let mut buffer = [0; 4096];
        Ok(match self.socket.read(&mut buffer)? {
            Moved::Bytes(bytes) if bytes == 0 || bytes > *left => Flow::Close,
            Moved::Bytes(bytes) => {
                *left -= bytes;
                Flow::Go
            }
            Moved::WouldBlock => Flow::Wait,
        })
    }
}
