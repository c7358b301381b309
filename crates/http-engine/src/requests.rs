//! Reads the heads of requests, responds at once where that is possible, and starts exchanges.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haul_http1::{Framing, HttpError, Request, Version, parse_request};
use haul_reactor::{Context, IoStatus};

use crate::access_log::Record;
use crate::connection::{Connection, State};
use crate::convert::to_http;
use crate::discard::Discarding;
use crate::exchange::{Exchange, Reply};
use crate::handler::{Handler, Inline, SourceOf};
use crate::limits::PeerRate;
use crate::receive::Receiving;
use crate::request_body::{RequestBody, channel};
use crate::response::framing::Terms;
use crate::response::head::ResponseHead;
use crate::response::pace::Pace;
use crate::service::{Budget, Engine, Flow, HEAD_BUFFER_BYTES};
use crate::task::Message;

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
            let is_idle = connection.input.is_empty() && connection.discarding.is_done();
            let is_over =
                is_idle && context.is_draining() && connection.is_idle_time_over(context.now());
            return Ok(if is_over { Flow::Close } else { Flow::Wait });
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let flow = match connection.socket.read(&mut buffer[..HEAD_BUFFER_BYTES]) {
            Ok(IoStatus::Bytes(0)) => Ok(Flow::Close),
            Ok(IoStatus::Bytes(bytes)) if connection.input.is_empty() => {
                let received = &buffer[..bytes];
                self.requests(connection, received, budget, context).map(|taken| {
                    connection.input.extend_from_slice(&received[taken..]);
                    Flow::Continue
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
    fn parse(
        &mut self,
        connection: &mut Connection<H>,
        mut input: Vec<u8>,
        budget: &mut Budget,
        context: &Context<'_, Message>,
    ) -> io::Result<Flow> {
        let taken = self.requests(connection, &input, budget, context)?;
        input.drain(..taken);
        connection.input = if input.is_empty() { Vec::new() } else { input };
        Ok(Flow::Continue)
    }

    /// Answers the requests that `bytes` begin with, as far as that is possible at once, and starts
    /// the exchange of the next one. Returns the number of bytes taken.
    fn requests(
        &mut self,
        connection: &mut Connection<H>,
        bytes: &[u8],
        budget: &mut Budget,
        context: &Context<'_, Message>,
    ) -> io::Result<usize> {
        let mut taken = 0;
        let parsed = self.queue_responses(connection, bytes, &mut taken, budget, context);
        // Even after an error: the queue must be empty for the next connection.
        let sent = self.send_queued(connection, context.now());
        connection.has_unread = parsed? && taken < bytes.len();
        sent?;
        let is_head = matches!(connection.state, State::Head);
        if is_head && connection.unsent.is_none() && !connection.closes {
            let is_begun = taken < bytes.len() || !connection.discarding.is_done();
            self.await_request(connection, is_begun, context.now());
        }
        Ok(taken)
    }

    /// Queues the responses to requests, and adds the bytes of these requests to `taken`. Returns
    /// `false` if the next head is incomplete.
    fn queue_responses(
        &mut self,
        connection: &mut Connection<H>,
        bytes: &[u8],
        taken: &mut usize,
        budget: &mut Budget,
        context: &Context<'_, Message>,
    ) -> io::Result<bool> {
        while !connection.closes && !self.pipeline.is_full() && budget.requests > 0 {
            match connection.discarding.discard(&bytes[*taken..]) {
                Ok(discarded) => *taken += discarded,
                Err(error) => {
                    if !connection.begin_request() {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                    let record = self.begin_record(connection.listener, None, context.now());
                    self.refuse(connection, &error, record);
                    *taken = bytes.len();
                    break;
                }
            }
            let rest = &bytes[*taken..];
            if rest.is_empty() {
                break;
            }
            let parsed = parse_request(rest, &self.limits.head);
            if matches!(parsed, Ok(None)) {
                return Ok(false);
            }
            if !connection.begin_request() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            match parsed {
                Ok(Some(request)) => {
                    budget.requests -= 1;
                    connection.is_head_begun = false;
                    let head = &rest[..request.head_bytes];
                    *taken += request.head_bytes;
                    self.request(connection, &request, head, context)?;
                    if matches!(connection.state, State::Exchange(_)) {
                        break;
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let record = self.begin_record(connection.listener, None, context.now());
                    self.refuse(connection, &error, record);
                    *taken = bytes.len();
                }
            }
        }
        Ok(true)
    }

    /// Responds to one request, or starts its exchange.
    fn request(
        &mut self,
        connection: &mut Connection<H>,
        request: &Request<'_>,
        head: &[u8],
        context: &Context<'_, Message>,
    ) -> io::Result<()> {
        let now = context.now();
        let is_last = connection.requests >= self.limits.requests_max;
        let terms = Terms {
            is_head: request.method == "HEAD",
            is_old: request.version == Version::Http10,
            closes: !request.keep_alive || is_last || context.is_draining(),
        };
        let record = self.begin_record(connection.listener, Some(request), now);
        let rate = self.peer_rate(connection.listener);
        let wait = rate.and_then(|rate| Some((rate.take(connection.peer, now).err()?, rate)));
        let inline_terms = Terms { closes: terms.closes || self.ends_with_body(request), ..terms };
        let start = self.pipeline.heads().len();
        let date = &self.clock.date;
        let mut head_writer =
            ResponseHead::new(self.pipeline.heads(), date, inline_terms.connection());
        let inline = match &wait {
            Some((wait, rate)) => refuse_for_rate(&mut head_writer, rate, *wait, terms.is_head)?,
            None => {
                let (origin, data) = connection.origin(head, now);
                self.handler.respond_inline(request, &origin, data, &mut head_writer)
            }
        };
        let (status, identity) = (head_writer.status, head_writer.identity.take());
        let mut record = record;
        if let Some(record) = &mut record {
            record.identify(identity);
        }
        if matches!(inline, Inline::Deferred | Inline::Future(_)) {
            // Of a head that the handler did not complete, nothing may be left.
            self.pipeline.heads().truncate(start);
        }
        match inline {
            Inline::Deferred => self.respond(connection, record, request, terms, now)?,
            inline => {
                connection.closes = inline_terms.closes;
                self.discard_body(connection, request);
                match inline {
                    Inline::Deferred => {}
                    Inline::Bytes(body, source) => {
                        self.pipeline.push(start, status, body, source, record);
                    }
                    Inline::Body(body) => {
                        let head = self.pipeline.take_head(start);
                        let exchange =
                            Exchange::with_head(record, status, head, body, inline_terms);
                        start_exchange(connection, exchange);
                    }
                    Inline::Future(future) => {
                        let reply = Reply::Prepared(future);
                        let exchange = Exchange::new(record, None, reply, inline_terms);
                        start_exchange(connection, exchange);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if the connection must be closed after a response that does not read the body
    /// of this request.
    fn ends_with_body(&self, request: &Request<'_>) -> bool {
        match request.framing {
            // The client may send the body or not after the response.
            Framing::Length(bytes) if bytes <= self.limits.discard_bytes_max => {
                request.expect_continue && bytes > 0
            }
            Framing::Chunked if self.limits.discard_bytes_max > 0 => request.expect_continue,
            Framing::Length(bytes) => bytes > 0,
            Framing::Chunked | Framing::UntilClose => true,
        }
    }

    fn discard_body(&self, connection: &mut Connection<H>, request: &Request<'_>) {
        match request.framing {
            Framing::Length(bytes) if bytes <= self.limits.discard_bytes_max => {
                connection.discarding = Discarding::length(bytes);
            }
            Framing::Chunked if self.limits.discard_bytes_max > 0 => {
                connection.discarding = Discarding::chunked(self.limits.discard_bytes_max);
            }
            Framing::Length(0) => {}
            Framing::Length(_) | Framing::Chunked | Framing::UntilClose => {
                connection.sends_more = true;
            }
        }
    }

    fn respond(
        &mut self,
        connection: &mut Connection<H>,
        record: Option<Record>,
        request: &Request<'_>,
        terms: Terms,
        now: Instant,
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
        // Clients wait for it, or take the next response for it, before an empty body, too.
        let continues = request.expect_continue && request.framing == Framing::Length(0);
        let (origin, data) = connection.origin(&[], now);
        let body = match self.handler.respond_parsed(request, body, &origin, data) {
            Ok(future) => {
                let reply = Reply::Future(future);
                let exchange = Exchange::new(record, receiving, reply, terms);
                start_exchange(connection, exchange.continuing(continues));
                return Ok(());
            }
            Err(body) => body,
        };
        let Some(request) = to_http(request, body) else {
            let error = HttpError::new(400, "the target or a field is not valid");
            self.refuse(connection, &error, record);
            return Ok(());
        };
        let (origin, _data) = connection.origin(&[], now);
        let reply = Reply::Future(self.handler.respond(request, &origin));
        let exchange = Exchange::new(record, receiving, reply, terms);
        start_exchange(connection, exchange.continuing(continues));
        Ok(())
    }

    /// Responds to bytes that are not a request. Its end is unknown, so it is the last one.
    fn refuse(
        &mut self,
        connection: &mut Connection<H>,
        error: &HttpError,
        record: Option<Record>,
    ) {
        (connection.closes, connection.sends_more) = (true, true);
        let start = self.pipeline.heads().len();
        let mut head =
            ResponseHead::new(self.pipeline.heads(), &self.clock.date, Some(Terms::CLOSE));
        let body = self.handler.respond_to_malformed(error, &mut head);
        self.pipeline.push(start, error.status, body, SourceOf::<H>::default(), record);
    }

    /// Responds to a request whose head takes too long.
    ///
    /// # Errors
    /// The connection must be closed at once.
    pub(crate) fn refuse_slow_head(
        &mut self,
        connection: &mut Connection<H>,
        now: Instant,
    ) -> io::Result<()> {
        if !connection.begin_request() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let error = HttpError::new(408, "the request head took too long");
        let record = self.begin_record(connection.listener, None, now);
        self.refuse(connection, &error, record);
        connection.input = Vec::new();
        self.send_queued(connection, now)
    }

    /// All responses are sent: another request may arrive, and its first bytes have if `is_begun`.
    pub(crate) fn await_request(
        &self,
        connection: &mut Connection<H>,
        is_begun: bool,
        now: Instant,
    ) {
        if connection.has_unread {
            return;
        }
        connection.busy = None;
        if !is_begun {
            connection.deadline = Some(now + self.limits.idle_time);
        } else if !connection.is_head_begun {
            // Not extended by each byte that arrives.
            connection.deadline = Some(now + self.limits.head_time);
            connection.slot.connection().begin_head();
        }
        connection.is_head_begun = is_begun;
    }
}

fn start_exchange<H: Handler>(connection: &mut Connection<H>, exchange: Exchange<H>) {
    connection.deadline = None;
    connection.pace = Pace::default();
    connection.state = State::Exchange(Box::new(exchange));
}

/// Responds to a request above the rate.
fn refuse_for_rate<B: crate::response::body::ResponseBody>(
    head: &mut ResponseHead<'_>,
    rate: &PeerRate,
    wait: Duration,
    is_head: bool,
) -> io::Result<Inline<B>> {
    let mut fields = head.begin(rate.status);
    let wait_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    fields.number("retry-after", wait_s.max(1));
    fields.field("content-type", rate.content_type.as_bytes());
    fields.number("content-length", rate.body.len() as u64);
    fields.end().map_err(io::Error::other)?;
    let body = if is_head { "" } else { rate.body };
    Ok(Inline::Bytes(Bytes::from_static(body.as_bytes()), B::Source::default()))
}
