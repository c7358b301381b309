//! A request that is being received and answered.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use haul_tls::Transport;

use crate::access_log::{Record, RequestIdentity};
use crate::handler::{Handler, PreparedFuture, PreparedResponse, ResponseFuture, SourceOf};
use crate::receive::Receiving;
use crate::response::body::ResponseBody;
use crate::response::framing::{BodyFraming, Terms, write_head};
use crate::response::head::{HeadDate, ResponseHead};
use crate::response::output::{Output, Written};
use crate::task::Task;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A request and its response.
pub(crate) struct Exchange<H: Handler> {
    /// `None` without an access log, and once the line is written.
    pub(crate) record: Option<Record>,
    /// 0 until the response begins.
    pub(crate) status: u16,
    /// Bytes of the body that the socket took.
    pub(crate) body_bytes: u64,
    /// `None` once the body of the request was received.
    pub(crate) receiving: Option<Receiving>,
    pub(crate) reply: Reply<H::Body>,
    /// All of the body was passed to the output.
    pub(crate) is_ended: bool,
    pub(crate) output: Output,
    pub(crate) terms: Terms,
    /// The future or the body may make progress.
    pub(crate) should_poll: bool,
    /// The last write was refused, because the socket was full.
    pub(crate) is_socket_full: bool,
}

/// The response, as far as it was computed.
pub(crate) enum Reply<B> {
    Future(ResponseFuture<B>),
    Prepared(PreparedFuture<B>),
    Body(B, BodyFraming),
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// This many bytes were moved, or the state changed.
    Moved(usize),
    /// The socket has no room.
    SocketFull,
    /// The future, or the body, must make progress first.
    Pending,
    /// The socket has taken all of the response.
    Done,
}

impl<H: Handler> Exchange<H> {
    pub(crate) fn new(
        record: Option<Record>,
        receiving: Option<Receiving>,
        reply: Reply<H::Body>,
        terms: Terms,
    ) -> Self {
        Self {
            record,
            status: 0,
            body_bytes: 0,
            receiving,
            reply,
            is_ended: false,
            output: Output::default(),
            terms,
            should_poll: true,
            is_socket_full: false,
        }
    }

    /// Returns an exchange whose head was written already.
    pub(crate) fn with_head(
        record: Option<Record>,
        status: u16,
        head: Vec<u8>,
        body: H::Body,
        terms: Terms,
    ) -> Self {
        let framing = declared_length(&body, terms);
        let reply = Reply::Body(body, framing);
        let mut exchange = Self::new(record, None, reply, terms);
        exchange.is_ended = framing == BodyFraming::Length(0);
        exchange.status = status;
        *exchange.output.first() = head;
        exchange
    }

    /// Returns the exchange, which begins with `100 Continue` if `continues` is `true`.
    pub(crate) fn continuing(mut self, continues: bool) -> Self {
        if continues {
            self.output.first().extend_from_slice(CONTINUE);
        }
        self
    }

    /// Computes and writes the response as far as possible. `buffer` is for bytes of files.
    ///
    /// # Errors
    /// The connection must be closed: its socket failed, or the response cannot be completed.
    pub(crate) fn step(
        &mut self,
        socket: &mut Transport,
        task: &Arc<Task>,
        date: &HeadDate,
        buffer: &mut [u8],
    ) -> io::Result<Step> {
        if self.is_socket_full && !socket.is_writable() {
            return Ok(Step::SocketFull);
        }
        self.is_socket_full = false;
        let mut is_changed = false;
        // A head that was written inline is sent before the body is polled: with MSG_MORE for the
        // head, bodies of 64 KiB to 1 MiB cost up to a quarter more CPU time on loopback.
        if self.output.is_empty() && self.should_poll {
            self.should_poll = false;
            let polled = self.poll(task, date);
            if polled.is_err() && self.status == 0 {
                self.status = 500;
            }
            is_changed = polled?;
            let awaits_body = matches!(self.reply, Reply::Future(_));
            if awaits_body && self.receiving.as_ref().is_some_and(Receiving::take_continue) {
                self.output.first().extend_from_slice(CONTINUE);
            }
        }
        if self.output.is_empty() {
            if self.is_ended {
                return Ok(Step::Done);
            }
            self.should_poll |= is_changed;
            if !is_changed {
                self.output.release(socket);
            }
            return Ok(if is_changed { Step::Moved(0) } else { Step::Pending });
        }
        self.write(socket, buffer)
    }

    fn write(&mut self, socket: &mut Transport, buffer: &mut [u8]) -> io::Result<Step> {
        let written = self.output.write(socket, buffer)?;
        let Reply::Body(body, framing) = &mut self.reply else {
            // The interim response to a client that waits for it.
            return Ok(self.written(written));
        };
        match written {
            Written::Bytes { body: bytes, .. } => {
                self.body_bytes += bytes as u64;
                body.on_sent(bytes as u64);
            }
            Written::Unsendable if !body.on_unsendable() => {
                return Err(io::ErrorKind::Unsupported.into());
            }
            Written::SocketFull | Written::Unsendable => {}
        }
        if self.output.return_window(framing) {
            self.is_ended = false;
        }
        Ok(self.written(written))
    }

    fn written(&mut self, written: Written) -> Step {
        // The next frame may be ready.
        self.should_poll = self.output.is_empty();
        match written {
            Written::Bytes { all, .. } => Step::Moved(all),
            Written::Unsendable => Step::Moved(0),
            Written::SocketFull => {
                self.is_socket_full = true;
                Step::SocketFull
            }
        }
    }

    /// Polls the future, and the body once; returns `true` if the response has progressed.
    fn poll(&mut self, task: &Arc<Task>, date: &HeadDate) -> io::Result<bool> {
        let waker = Waker::from(Arc::clone(task));
        let mut context = Context::from_waker(&waker);
        let is_begun = match &mut self.reply {
            Reply::Future(future) => match caught(|| future.as_mut().poll(&mut context))? {
                Poll::Ready(response) => {
                    self.begin(response.map_err(io::Error::other)?, date)?;
                    true
                }
                Poll::Pending => return Ok(false),
            },
            Reply::Prepared(future) => match caught(|| future.as_mut().poll(&mut context))? {
                Poll::Ready(response) => {
                    self.begin_prepared(response.map_err(io::Error::other)?, date)?;
                    true
                }
                Poll::Pending => return Ok(false),
            },
            Reply::Body(..) => false,
        };
        let Reply::Body(body, framing) = &mut self.reply else { return Ok(is_begun) };
        if self.is_ended {
            return Ok(is_begun);
        }
        match caught(|| body.poll_piece(&mut context))? {
            Poll::Pending => return Ok(is_begun),
            Poll::Ready(Some(piece)) => {
                self.output.push(piece.map_err(io::Error::other)?, framing)?;
                self.is_ended = body.is_end();
            }
            Poll::Ready(None) => self.is_ended = true,
        }
        if self.is_ended {
            self.output.end(*framing)?;
        }
        Ok(true)
    }

    /// Returns `true` if the response is incomplete, and the client takes the end of the connection
    /// for its end.
    pub(crate) fn ends_with_connection(&self) -> bool {
        matches!(self.reply, Reply::Body(_, BodyFraming::UntilClose)) && !self.is_ended
    }

    /// Returns the source of the bytes of the response.
    pub(crate) fn source(&self) -> SourceOf<H> {
        match &self.reply {
            Reply::Body(body, _) => body.source(),
            Reply::Future(_) | Reply::Prepared(_) => SourceOf::<H>::default(),
        }
    }

    fn begin(&mut self, response: http::Response<H::Body>, date: &HeadDate) -> io::Result<()> {
        let (mut parts, body) = response.into_parts();
        // A client that still sends its request may not send another one on this connection.
        self.terms.closes |= self.receiving.is_some();
        let bytes = body.bytes_left();
        let out = self.output.first();
        let (framing, closes) =
            write_head(&parts, bytes, self.terms, &date.date, out).map_err(io::Error::other)?;
        self.terms.closes = closes;
        self.status = parts.status.as_u16();
        if let Some(record) = &mut self.record {
            record.identify(parts.extensions.remove::<RequestIdentity>());
        }
        self.begin_body(body, framing);
        Ok(())
    }

    fn begin_prepared(
        &mut self,
        response: PreparedResponse<H::Body>,
        date: &HeadDate,
    ) -> io::Result<()> {
        let PreparedResponse { status, fields, body } = response;
        let mut head = ResponseHead::new(self.output.first(), date, self.terms.connection());
        head.write_prepared(status, [], &fields).map_err(io::Error::other)?;
        self.status = status;
        let framing = declared_length(&body, self.terms);
        self.begin_body(body, framing);
        Ok(())
    }

    fn begin_body(&mut self, body: H::Body, framing: BodyFraming) {
        self.is_ended = matches!(framing, BodyFraming::Absent | BodyFraming::Length(0));
        self.reply = Reply::Body(body, framing);
    }
}

/// Returns the framing of a body whose length the head declares. None of it is sent in response to
/// HEAD.
fn declared_length(body: &impl ResponseBody, terms: Terms) -> BodyFraming {
    BodyFraming::Length(if terms.is_head { 0 } else { body.bytes_left().unwrap_or(0) })
}

/// Calls a function of the handler. A panic ends this connection only, as it would end a task of
/// its own.
fn caught<T>(call: impl FnOnce() -> T) -> io::Result<T> {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    outcome.map_err(|_panic| io::Error::other("the response panicked"))
}
