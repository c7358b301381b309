//! Reads the heads of requests, responds at once where that is possible, and starts exchanges.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haul_http1::{Framing, HeadWriter, Request, Version, parse_request};
use haul_reactor::{Context, IoStatus};

use crate::access_log::Record;
use crate::body::ResponseBody as _;
use crate::connection::{Connection, State};
use crate::convert::to_http;
use crate::exchange::{Accounts, Exchange, Reply};
use crate::handler::{Handler, Inline, ResponseHead};
use crate::limits::PeerRate;
use crate::receive::Receiving;
use crate::request_body::{RequestBody, channel};
use crate::response::{BodyFraming, Output, Terms};
use crate::service::{Budget, Engine, Flow};
use crate::task::Message;

/// The outcome of an attempt to respond at once.
enum Responded<H: Handler> {
    Not,
    /// The part of the response that the body has not produced, and bytes that the socket has not
    /// taken.
    Started(Reply<H::Body>, Output),
}

impl<H: Handler> Responded<H> {
    /// Returns `true` if the socket has taken the whole response.
    fn is_over(&self) -> bool {
        matches!(self, Self::Started(Reply::Done, output) if output.is_empty())
    }
}

impl<H: Handler> Engine<H> {
    pub(crate) fn read_head(
        &mut self,
        connection: &mut Connection<H>,
        budget: &mut Budget,
        context: &Context<'_, Message>,
    ) -> io::Result<Flow> {
        if std::mem::take(&mut connection.has_unread) {
            let input = std::mem::take(&mut connection.input);
            return self.parse(connection, input, budget, context);
        }
        if connection.is_read_closed {
            return Ok(Flow::Close);
        }
        if !connection.socket.is_readable() {
            let is_idle = connection.input.is_empty();
            let is_over =
                is_idle && context.is_draining() && connection.is_idle_time_over(context.now());
            return Ok(if is_over { Flow::Close } else { Flow::Wait });
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let flow = match connection.socket.read(&mut buffer) {
            Ok(IoStatus::Bytes(0)) => Ok(Flow::Close),
            Ok(IoStatus::Bytes(bytes)) if connection.input.is_empty() => {
                let received = &buffer[..bytes];
                self.requests(connection, received, budget, context).map(|(taken, flow)| {
                    connection.input.extend_from_slice(&received[taken..]);
                    flow
                })
            }
            Ok(IoStatus::Bytes(bytes)) => {
                let mut input = std::mem::take(&mut connection.input);
                input.extend_from_slice(&buffer[..bytes]);
                self.parse(connection, input, budget, context)
            }
            Ok(IoStatus::WouldBlock) => Ok(Flow::Continue),
            Err(error) => Err(error),
        };
        self.buffer = buffer;
        flow
    }

    /// Parses bytes that were received before.
    pub(crate) fn parse(
        &mut self,
        connection: &mut Connection<H>,
        mut input: Vec<u8>,
        budget: &mut Budget,
        context: &Context<'_, Message>,
    ) -> io::Result<Flow> {
        let (taken, flow) = self.requests(connection, &input, budget, context)?;
        input.drain(..taken);
        connection.input = if input.is_empty() { Vec::new() } else { input };
        Ok(flow)
    }

    /// Answers the requests that `bytes` begin with, as far as that is possible at once, and starts
    /// the exchange of the next one. Returns the number of bytes taken.
    pub(crate) fn requests(
        &mut self,
        connection: &mut Connection<H>,
        bytes: &[u8],
        budget: &mut Budget,
        context: &Context<'_, Message>,
    ) -> io::Result<(usize, Flow)> {
        let mut taken = 0;
        while budget.requests > 0 {
            let rest = &bytes[taken..];
            if rest.is_empty() {
                return Ok((taken, Flow::Continue));
            }
            let request = match parse_request(rest, &self.limits.head) {
                Ok(Some(request)) => request,
                Ok(None) => {
                    if !connection.is_head_begun {
                        connection.is_head_begun = true;
                        connection.slot.connection().begin_head();
                        connection.deadline = Some(context.now() + self.limits.head_time);
                    }
                    return Ok((taken, Flow::Continue));
                }
                Err(refused) => {
                    let record = self.begin_record(connection.listener, None, context.now());
                    self.refuse(connection, refused.status, record, context)?;
                    return Ok((bytes.len(), Flow::Continue));
                }
            };
            budget.requests -= 1;
            let Some(busy) = connection.slot.connection().begin() else {
                return Ok((taken, Flow::Close));
            };
            taken += request.head_bytes;
            let terms = Terms {
                is_head: request.method == "HEAD",
                is_old: request.version == Version::Http10,
                closes: !request.keep_alive || context.is_draining(),
            };
            let record = self.begin_record(connection.listener, Some(&request), context.now());
            let mut accounts = Accounts { _busy: busy, record };
            let rate = self.peer_rate(connection.listener);
            if let Some(rate) = rate
                && let Err(wait) = rate.take(connection.peer, context.now())
            {
                let refusal = (&*rate, wait);
                self.refuse_for_rate(connection, accounts, &request, terms, refusal)?;
                return Ok((taken, Flow::Continue));
            }
            let responded = self.respond_inline(connection, &request, terms, &mut accounts.record);
            let is_over = responded.as_ref().is_ok_and(Responded::is_over);
            if is_over || responded.is_err() {
                self.end_record(connection.listener, connection.peer, accounts.record.take());
            }
            match responded? {
                Responded::Started(..) if is_over && !terms.closes => {
                    drop(accounts);
                    self.await_request(connection, context.now());
                    continue;
                }
                Responded::Started(reply, output) => {
                    self.start(connection, accounts, None, reply, output, terms);
                }
                Responded::Not => self.respond(connection, accounts, &request, terms, context)?,
            }
            return Ok((taken, Flow::Continue));
        }
        connection.has_unread = taken < bytes.len();
        Ok((taken, Flow::Continue))
    }

    /// Responds at once, if the handler can. Bytes in memory are sent as far as the socket takes
    /// them.
    fn respond_inline(
        &mut self,
        connection: &mut Connection<H>,
        request: &Request<'_>,
        terms: Terms,
        record: &mut Option<Record>,
    ) -> io::Result<Responded<H>> {
        if !request.framing.is_empty() {
            return Ok(Responded::Not);
        }
        self.head.clear();
        let mut head = ResponseHead {
            out: &mut self.head,
            date: &self.clock.date,
            connection: terms.connection(),
            status: 0,
            identity: None,
        };
        let inline = self.handler.respond_inline(request, &connection.origin(), &mut head);
        let (status, identity) = (head.status, head.identity);
        if let (Some(record), Inline::Bytes(_) | Inline::Body(_)) = (&mut *record, &inline) {
            record.set_status(status);
            record.identify(identity);
            record.add_head(self.head.len());
        }
        let body = match inline {
            Inline::Deferred => return Ok(Responded::Not),
            Inline::Body(body) => {
                let reply = match body.bytes_left() {
                    Some(bytes @ 1..) if !terms.is_head => {
                        Reply::Body(body, BodyFraming::Length(bytes))
                    }
                    _ => Reply::Done,
                };
                let output = Output::new(self.head.clone(), Bytes::new());
                return Ok(Responded::Started(reply, output));
            }
            Inline::Bytes(body) => body,
        };
        let pieces = [IoSlice::new(&self.head), IoSlice::new(&body)];
        let sent = match connection.socket.write(&pieces, false)? {
            IoStatus::Bytes(sent) => sent,
            IoStatus::WouldBlock => 0,
        };
        record.iter_mut().for_each(|record| record.add_sent(sent));
        let mut output = Output::default();
        if sent < self.head.len() + body.len() {
            output = Output::new(self.head.clone(), body);
            output.advance(sent);
        }
        Ok(Responded::Started(Reply::Done, output))
    }

    pub(crate) fn respond(
        &mut self,
        connection: &mut Connection<H>,
        accounts: Accounts<H::Peer>,
        request: &Request<'_>,
        terms: Terms,
        context: &Context<'_, Message>,
    ) -> io::Result<()> {
        let (receiving, body) = match request.framing {
            Framing::Length(0) => (None, RequestBody::empty()),
            framing => {
                let bytes = match framing {
                    Framing::Length(bytes) => Some(bytes),
                    Framing::Chunked | Framing::UntilClose => None,
                };
                let (sender, body) = channel(bytes, request.expect_continue, &connection.task);
                (Some(Receiving::new(framing, sender)), body)
            }
        };
        let body = match self.handler.respond_parsed(request, body, &connection.origin()) {
            Ok(future) => {
                let reply = Reply::Future(future);
                self.start(connection, accounts, receiving, reply, Output::default(), terms);
                return Ok(());
            }
            Err(body) => body,
        };
        let Some(request) = to_http(request, body) else {
            let Accounts { _busy: busy, record } = accounts;
            drop(busy);
            return self.refuse(connection, 400, record, context);
        };
        let future = self.handler.respond(request, &connection.origin());
        let reply = Reply::Future(future);
        self.start(connection, accounts, receiving, reply, Output::default(), terms);
        Ok(())
    }

    pub(crate) fn start(
        &self,
        connection: &mut Connection<H>,
        accounts: Accounts<H::Peer>,
        receiving: Option<Receiving>,
        reply: Reply<H::Body>,
        output: Output,
        terms: Terms,
    ) {
        connection.deadline = None;
        connection.state = State::Exchange(Box::new(Exchange {
            accounts,
            receiving,
            reply,
            output,
            terms,
            should_poll: true,
        }));
    }

    /// Responds to a malformed request. Its end is unknown, so it is the last one.
    pub(crate) fn refuse(
        &self,
        connection: &mut Connection<H>,
        status: u16,
        mut record: Option<Record>,
        context: &Context<'_, Message>,
    ) -> io::Result<()> {
        let mut output = Output::default();
        let terms = Terms { is_head: false, is_old: false, closes: true };
        let date = &self.clock.date;
        let mut head = HeadWriter::response(output.first(), status);
        head.date("date", date);
        if let Some(value) = terms.connection() {
            head.field("connection", value.as_bytes());
        }
        head.number("content-length", 0);
        head.end().map_err(io::Error::other)?;
        if let Some(record) = &mut record {
            record.set_status(status);
            record.add_head(output.first().len());
        }
        let Some(busy) = connection.slot.connection().begin() else {
            return Err(io::ErrorKind::ConnectionAborted.into());
        };
        connection.has_unread = true;
        let accounts = Accounts { _busy: busy, record };
        self.start(connection, accounts, None, Reply::Done, output, terms);
        connection.deadline = Some(context.now() + self.limits.stall_time);
        Ok(())
    }

    /// Responds to a request whose head takes too long.
    pub(crate) fn refuse_slow_head(
        &mut self,
        connection: &mut Connection<H>,
        context: &Context<'_, Message>,
    ) -> io::Result<()> {
        let record = self.begin_record(connection.listener, None, context.now());
        self.refuse(connection, 408, record, context)?;
        connection.input = Vec::new();
        Ok(())
    }

    /// Responds to a request above the rate. Its body is not received, so if it has one, the
    /// connection is closed.
    pub(crate) fn refuse_for_rate(
        &self,
        connection: &mut Connection<H>,
        mut accounts: Accounts<H::Peer>,
        request: &Request<'_>,
        mut terms: Terms,
        (rate, wait): (&PeerRate, Duration),
    ) -> io::Result<()> {
        let has_body = !request.framing.is_empty();
        terms.closes |= has_body;
        connection.has_unread = has_body;
        let mut output = Output::default();
        let out = output.first();
        let mut head = HeadWriter::response(out, rate.status);
        head.date("date", &self.clock.date);
        if let Some(value) = terms.connection() {
            head.field("connection", value.as_bytes());
        }
        head.number("retry-after", wait.as_secs() + 1);
        head.field("content-type", rate.content_type.as_bytes());
        head.number("content-length", rate.body.len() as u64);
        head.end().map_err(io::Error::other)?;
        if let Some(record) = &mut accounts.record {
            record.set_status(rate.status);
            record.add_head(out.len());
        }
        if !terms.is_head {
            out.extend_from_slice(rate.body.as_bytes());
        }
        self.start(connection, accounts, None, Reply::Done, output, terms);
        Ok(())
    }

    /// The last response is sent: another request may arrive.
    pub(crate) fn await_request(&self, connection: &mut Connection<H>, now: Instant) {
        connection.state = State::Head;
        connection.is_head_begun = false;
        connection.deadline = Some(now + self.limits.idle_time);
    }
}
