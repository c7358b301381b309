//! A request that is being received and answered.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use haul_http1::Date;
use haul_tls::Transport;

use crate::access_log::{Record, RequestIdentity};
use crate::body::ResponseBody;
use crate::handler::{Handler, ResponseFuture};
use crate::limits;
use crate::receive::Receiving;
use crate::response::{BodyFraming, Output, Terms, write_head};
use crate::task::Task;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A request and its response.
pub(crate) struct Exchange<H: Handler> {
    pub(crate) accounts: Accounts<H::Peer>,
    /// `None` once the body of the request was received.
    pub(crate) receiving: Option<Receiving>,
    pub(crate) reply: Reply<H::Body>,
    pub(crate) output: Output,
    pub(crate) terms: Terms,
    /// The future or the body may make progress.
    pub(crate) should_poll: bool,
}

/// The connection of a request and its log line.
pub(crate) struct Accounts<P> {
    /// The connection is busy while this exists.
    pub(crate) _busy: limits::Exchange<P>,
    /// `None` without an access log, and once the line is written.
    pub(crate) record: Option<Record>,
}

/// The part of a response that was not computed.
pub(crate) enum Reply<B> {
    Future(ResponseFuture<B>),
    Body(B, BodyFraming),
    Done,
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// This many bytes were moved, or the state changed.
    Moved(usize),
    /// The client, the socket or the future must make progress first.
    Blocked,
    /// The socket has taken all of the response.
    Done,
}

impl<H: Handler> Exchange<H> {
    /// Computes and writes the response as far as possible.
    ///
    /// # Errors
    /// The connection must be closed: its socket failed, or the response cannot be completed.
    pub(crate) fn step(
        &mut self,
        socket: &mut Transport,
        task: &Arc<Task>,
        date: &Date,
    ) -> io::Result<Step> {
        let mut is_changed = false;
        if self.output.is_empty() && self.should_poll {
            self.should_poll = false;
            let polled = self.poll(task, date);
            if let (Err(_), Some(record)) = (&polled, &mut self.accounts.record) {
                record.fail();
            }
            is_changed = polled?;
            let awaits_body = matches!(self.reply, Reply::Future(_));
            if awaits_body && self.receiving.as_ref().is_some_and(Receiving::take_continue) {
                self.output.first().extend_from_slice(CONTINUE);
                self.accounts.record.iter_mut().for_each(|record| record.add_head(CONTINUE.len()));
            }
        }
        if self.output.is_empty() {
            return Ok(match (&self.reply, is_changed) {
                (Reply::Done, _) => Step::Done,
                (_, true) => Step::Moved(0),
                (_, false) => Step::Blocked,
            });
        }
        match self.output.write(socket)? {
            Some(bytes) => {
                // The next frame may be ready.
                self.should_poll = self.output.is_empty();
                Ok(Step::Moved(bytes))
            }
            None => Ok(Step::Blocked),
        }
    }

    /// Polls the future, and the body once; returns `true` if the response has progressed.
    fn poll(&mut self, task: &Arc<Task>, date: &Date) -> io::Result<bool> {
        let waker = Waker::from(Arc::clone(task));
        let mut context = Context::from_waker(&waker);
        let mut is_changed = false;
        if let Reply::Future(future) = &mut self.reply {
            // A panic ends this connection, as it would end a task of its own.
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
            let Poll::Ready(response) = polled.map_err(|_panic| panicked())? else {
                return Ok(false);
            };
            self.begin(response.map_err(io::Error::other)?, date)?;
            is_changed = true;
        }
        if let Reply::Body(body, framing) = &mut self.reply {
            let polled = catch_unwind(AssertUnwindSafe(|| body.poll_piece(&mut context)));
            match polled.map_err(|_panic| panicked())? {
                Poll::Pending => return Ok(is_changed),
                Poll::Ready(Some(piece)) => {
                    self.output.push(piece.map_err(io::Error::other)?, framing)?;
                    if body.is_end() {
                        self.output.end(*framing)?;
                        self.reply = Reply::Done;
                    }
                }
                Poll::Ready(None) => {
                    self.output.end(*framing)?;
                    self.reply = Reply::Done;
                }
            }
            is_changed = true;
        }
        Ok(is_changed)
    }

    /// Returns `true` if the response is incomplete, and the client takes the end of the connection
    /// for its end.
    pub(crate) fn ends_with_connection(&self) -> bool {
        matches!(self.reply, Reply::Body(_, BodyFraming::UntilClose))
    }

    fn begin(&mut self, response: http::Response<H::Body>, date: &Date) -> io::Result<()> {
        let (mut parts, body) = response.into_parts();
        let first_bytes = self.output.first().len();
        // A client that still sends its request may not send another one on this connection.
        self.terms.closes |= self.receiving.is_some();
        let bytes = body.bytes_left();
        let (framing, closes) = write_head(&parts, bytes, self.terms, date, self.output.first())
            .map_err(io::Error::other)?;
        self.terms.closes = closes;
        if let Some(record) = &mut self.accounts.record {
            record.set_status(parts.status.as_u16());
            record.identify(parts.extensions.remove::<RequestIdentity>());
            record.add_head(self.output.first().len() - first_bytes);
        }
        self.reply = match framing {
            BodyFraming::Absent | BodyFraming::Length(0) => Reply::Done,
            _ => Reply::Body(body, framing),
        };
        Ok(())
    }
}

fn panicked() -> io::Error {
    io::Error::other("the response panicked")
}
