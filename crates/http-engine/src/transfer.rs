//! Moves the bytes of an exchange: receives the body of the request, sends the response, and ends
//! the exchange.

use std::io;

use haul_reactor::{Context, IoStatus, LingeringClose};

use crate::connection::{Connection, State};
use crate::exchange::Step;
use crate::handler::Handler;
use crate::receive::Receiving;
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
        let step = exchange.step(&mut connection.socket, &connection.task, &self.clock.date)?;
        match step {
            Step::Moved(bytes) => {
                exchange.accounts.record.iter_mut().for_each(|record| record.add_sent(bytes));
                budget.bytes = budget.bytes.saturating_sub(bytes);
                connection.deadline = None;
                Ok(Flow::Continue)
            }
            Step::Blocked if received > 0 => {
                connection.deadline = None;
                Ok(Flow::Continue)
            }
            Step::Blocked => {
                let awaits_body = exchange.receiving.as_ref().is_some_and(Receiving::has_room);
                let stall_time = match exchange.output.is_empty() {
                    false => Some(self.limits.stall_time),
                    // The handler may have a limit of its own, and a better response.
                    true if awaits_body => Some(2 * self.limits.stall_time),
                    true => None,
                };
                match stall_time {
                    Some(time) => _ = connection.deadline.get_or_insert(context.now() + time),
                    None => connection.deadline = None,
                }
                Ok(Flow::Wait)
            }
            Step::Done => Ok(self.complete(connection, context)),
        }
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
    pub(crate) fn complete(
        &mut self,
        connection: &mut Connection<H>,
        context: &Context<'_, Message>,
    ) -> Flow {
        let State::Exchange(exchange) = &mut connection.state else { return Flow::Continue };
        let record = exchange.accounts.record.take();
        let closes = exchange.terms.closes;
        let (is_cut, is_withheld) = match &exchange.receiving {
            Some(receiving) => (true, receiving.is_withheld()),
            None => (false, false),
        };
        self.end_record(connection.listener, connection.peer, record);
        if !closes && !is_cut {
            self.await_request(connection, context.now());
            connection.has_unread = !connection.input.is_empty();
            return Flow::Continue;
        }
        let sends_more = is_cut || connection.has_unread || !connection.input.is_empty();
        if connection.is_read_closed || is_withheld {
            return Flow::Close;
        }
        if !sends_more && !connection.socket.is_readable() {
            return Flow::Close;
        }
        let deadline = context.now() + self.limits.linger_time;
        let bytes_max = self.limits.linger_bytes_max;
        if connection.socket.shutdown_write().is_err() {
            return Flow::Close;
        }
        connection.state = State::Lingering(LingeringClose::after_shutdown(bytes_max, deadline));
        connection.deadline = Some(deadline);
        Flow::Continue
    }
}
