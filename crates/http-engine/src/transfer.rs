//! Moves the bytes of connections: receives the bodies of requests, sends responses, and ends them.

use std::io;
use std::time::Instant;

use haul_reactor::{Context, IoStatus, LingeringClose};

use crate::access_log::{NO_RESPONSE, Record};
use crate::connection::{Connection, State};
use crate::exchange::Step;
use crate::handler::{Handler, SentResponse, SourceOf};
use crate::receive::Receiving;
use crate::response::pace::Pace;
use crate::response::pipeline::Pipeline;
use crate::service::{Budget, Engine, Flow};
use crate::task::Message;

impl<H: Handler> Engine<H> {
    /// Receives the body of the request and sends the response, as far as possible.
    pub(crate) fn exchange(
        &mut self,
        connection: &mut Connection<H>,
        budget: &mut Budget,
        context: &Context<'_, Message>,
    ) -> io::Result<Flow> {
        let received = self.receive(connection)?;
        budget.bytes = budget.bytes.saturating_sub(received);
        let State::Exchange(exchange) = &mut connection.state else { return Ok(Flow::Continue) };
        let buffer = &mut self.buffer[..];
        match exchange.step(&mut connection.socket, &connection.task, &self.clock.date, buffer)? {
            Step::Moved(bytes) => {
                connection.pace.add_written(bytes);
                budget.bytes = budget.bytes.saturating_sub(bytes);
                Ok(Flow::Continue)
            }
            Step::Pending if received > 0 => {
                connection.deadline = None;
                Ok(Flow::Continue)
            }
            // Bytes of the request do not extend the time for the response.
            Step::SocketFull if received > 0 => Ok(Flow::Continue),
            Step::SocketFull => {
                connection.deadline.get_or_insert(context.now() + self.limits.stall_time);
                Ok(Flow::Wait)
            }
            Step::Pending => {
                // The client is not waited for, or it sends the body of the request. Then the handler
                // may have a limit of its own, and a better response.
                let awaits_body = exchange.receiving.as_ref().is_some_and(Receiving::has_room);
                connection.deadline = connection.deadline.filter(|_| awaits_body);
                if awaits_body {
                    let limit = context.now() + 2 * self.limits.stall_time;
                    connection.deadline.get_or_insert(limit);
                }
                Ok(Flow::Wait)
            }
            Step::Done => {
                self.complete(connection, context.now());
                Ok(Flow::Continue)
            }
        }
    }

    /// Sends the queued responses. The connection keeps those that the socket does not take, and
    /// sends nothing else before them.
    pub(crate) fn send_queued(
        &mut self,
        connection: &mut Connection<H>,
        now: Instant,
    ) -> io::Result<()> {
        if self.pipeline.is_empty() {
            return Ok(());
        }
        let mut pipeline = std::mem::take(&mut self.pipeline);
        let written = self.write_queued(connection, &mut pipeline);
        if pipeline.is_empty() {
            self.pipeline = pipeline;
        } else {
            connection.unsent = Some(Box::new(pipeline));
            connection.pace = Pace::default();
            connection.deadline = Some(now + self.limits.stall_time);
        }
        written
    }

    /// Sends responses that an earlier call could not send.
    pub(crate) fn send_unsent(
        &mut self,
        connection: &mut Connection<H>,
        now: Instant,
    ) -> io::Result<Flow> {
        let Some(mut pipeline) = connection.unsent.take() else { return Ok(Flow::Continue) };
        let written = self.write_queued(connection, &mut pipeline);
        if !pipeline.is_empty() {
            connection.unsent = Some(pipeline);
            let is_closed = connection.socket.socket().is_write_closed();
            return written.map(|()| if is_closed { Flow::Close } else { Flow::Wait });
        }
        connection.pace = Pace::default();
        match connection.state {
            State::Head => {
                let is_begun = !connection.input.is_empty() || !connection.discarding.is_done();
                self.await_request(connection, is_begun, now);
            }
            State::Exchange(_) | State::Lingering(_) => connection.deadline = None,
        }
        Ok(Flow::Continue)
    }

    fn write_queued(
        &mut self,
        connection: &mut Connection<H>,
        pipeline: &mut Pipeline<SourceOf<H>>,
    ) -> io::Result<()> {
        while !pipeline.is_empty() && connection.socket.is_writable() {
            let socket = &mut connection.socket;
            let IoStatus::Bytes(bytes) = pipeline.with_slices(|all| socket.write(all, false))?
            else {
                break;
            };
            connection.pace.add_written(bytes);
            pipeline.accept(bytes);
            while let Some((response, body_bytes)) = pipeline.pop_sent() {
                let (status, source) = (response.status, response.source);
                let ended = sent(connection, status, body_bytes, source, true);
                self.end_response(connection, &ended, response.record);
            }
        }
        Ok(())
    }

    /// Ends the responses of a connection that is being closed.
    pub(crate) fn cut_responses(&mut self, connection: &mut Connection<H>, now: Instant) {
        if let Some(mut pipeline) = connection.unsent.take() {
            while let Some((response, body_bytes)) = pipeline.pop_unsent() {
                let (status, source) = (response.status, response.source);
                let ended = sent(connection, status, body_bytes, source, false);
                self.end_response(connection, &ended, response.record);
            }
        }
        match &connection.state {
            State::Exchange(_) => self.end_exchange(connection, false),
            State::Head if !connection.input.is_empty() && !connection.has_unread => {
                // A part of a head was received.
                let record = self.begin_record(connection.listener, None, now);
                let source = SourceOf::<H>::default();
                let ended = sent(connection, NO_RESPONSE, 0, source, false);
                self.end_response(connection, &ended, record);
            }
            State::Head | State::Lingering(_) => {}
        }
    }

    fn end_exchange(&mut self, connection: &mut Connection<H>, is_complete: bool) {
        let State::Exchange(exchange) = &mut connection.state else { return };
        let record = exchange.record.take();
        let (source, body_bytes) = (exchange.source(), exchange.body_bytes);
        let status = match exchange.status {
            0 => NO_RESPONSE,
            status => status,
        };
        let ended = sent(connection, status, body_bytes, source, is_complete);
        self.end_response(connection, &ended, record);
    }

    /// Passes a response that has ended to the handler and to the log.
    fn end_response(
        &mut self,
        connection: &Connection<H>,
        response: &SentResponse<SourceOf<H>>,
        record: Option<Record>,
    ) {
        self.handler.on_response(response);
        self.end_record(connection.peer, response, record);
    }

    /// Receives a part of the body of the request; returns the number of its bytes.
    pub(crate) fn receive(&mut self, connection: &mut Connection<H>) -> io::Result<usize> {
        let State::Exchange(exchange) = &mut connection.state else { return Ok(0) };
        let Some(receiving) = exchange.receiving.as_mut().filter(|one| one.has_room()) else {
            return Ok(0);
        };
        if !connection.input.is_empty() {
            let (taken, is_complete) = receiving.take(&connection.input);
            connection.input.drain(..taken);
            if connection.input.is_empty() {
                connection.input = Vec::new();
            }
            if is_complete {
                exchange.receiving = None;
            }
            return Ok(taken);
        }
        if connection.is_read_closed || !connection.socket.is_readable() {
            return Ok(0);
        }
        match connection.socket.read(&mut self.buffer)? {
            IoStatus::Bytes(0) => {
                connection.is_read_closed = true;
                receiving.cut();
                Ok(0)
            }
            IoStatus::Bytes(bytes) => {
                let received = &self.buffer[..bytes];
                let (taken, is_complete) = receiving.take(received);
                connection.input.extend_from_slice(&received[taken..]);
                if is_complete {
                    exchange.receiving = None;
                }
                Ok(bytes)
            }
            IoStatus::WouldBlock => Ok(0),
        }
    }

    /// Ends an exchange whose response is sent.
    fn complete(&mut self, connection: &mut Connection<H>, now: Instant) {
        self.end_exchange(connection, true);
        let State::Exchange(exchange) = &mut connection.state else { return };
        let is_cut = exchange.receiving.is_some();
        let is_withheld = exchange.receiving.as_ref().is_some_and(Receiving::is_withheld);
        connection.closes |= exchange.terms.closes || is_cut;
        connection.sends_more |= is_cut;
        // A client that still waits for `100 Continue` sends no body.
        connection.is_read_closed |= is_withheld;
        connection.state = State::Head;
        connection.has_unread = !connection.input.is_empty();
        self.await_request(connection, !connection.discarding.is_done(), now);
    }

    /// Closes a connection whose last response is sent, once its client had time to read it.
    pub(crate) fn begin_close(
        &self,
        connection: &mut Connection<H>,
        context: &Context<'_, Message>,
    ) -> Flow {
        let sends_more = connection.sends_more
            || connection.has_unread
            || !connection.discarding.is_done()
            || !connection.input.is_empty();
        if connection.is_read_closed || !sends_more && !connection.socket.is_readable() {
            return Flow::Close;
        }
        let deadline = context.now() + self.limits.linger_time;
        let bytes_max = self.limits.linger_bytes_max;
        if connection.socket.shutdown_write().is_err() {
            return Flow::Close;
        }
        connection.busy = None;
        connection.state = State::Lingering(LingeringClose::after_shutdown(bytes_max, deadline));
        connection.deadline = Some(deadline);
        Flow::Continue
    }
}

fn sent<H: Handler>(
    connection: &Connection<H>,
    status: u16,
    body_bytes: u64,
    source: SourceOf<H>,
    is_complete: bool,
) -> SentResponse<SourceOf<H>> {
    SentResponse { listener: connection.listener, status, body_bytes, is_complete, source }
}
