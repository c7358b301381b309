//! Responses to pipelined requests, sent by one system call.
//!
//! A client may send several requests without waiting for the responses. While complete requests are
//! left in the receive buffer, responses from the application cache are queued; one `sendmsg` then
//! sends all of them. The queue refers to cached files and copies no bodies.

mod queue;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use haul_http_engine::PendingLine;
use haul_reactor::IoStatus;

use crate::connection::{Connection, Flow, State};
use crate::meta::HotFile;
use crate::pace::Pace;
use crate::requests::Outcome;
use crate::tier::Tier;
use crate::worker::Worker;
pub(crate) use queue::{Pipeline, Response};

impl Worker {
    /// Queues a complete file from the application cache as the next response.
    pub(crate) fn queue_response(
        &mut self,
        connection: &mut Connection,
        file: Arc<HotFile>,
    ) -> Outcome {
        let connection_field = self.manner(connection, false).connection();
        let mut log_line = PendingLine::default();
        if self.desk.shared.access_log.is_some() {
            log_line = self.pipeline.spare_line();
            std::mem::swap(&mut log_line, &mut connection.log_line);
        }
        self.pipeline.push(&self.clock.ok, Response { connection_field, file, log_line });
        Outcome::Answered
    }

    /// Sends the queued responses. If the socket is full, the connection keeps the rest, and sends
    /// nothing else before it.
    pub(crate) fn send_queued(
        &mut self,
        connection: &mut Connection,
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
            connection.deadline = Some(now + self.desk.shared.limits.send_time);
        }
        written
    }

    /// Sends responses that an earlier call could not send. Returns [`Flow::Go`] when none is left.
    pub(crate) fn send_unsent(
        &mut self,
        connection: &mut Connection,
        now: Instant,
    ) -> io::Result<Flow> {
        let Some(mut pipeline) = connection.unsent.take() else { return Ok(Flow::Go) };
        let written = self.write_queued(connection, &mut pipeline);
        if !pipeline.is_empty() {
            connection.unsent = Some(pipeline);
            let is_closed = connection.socket.socket().is_write_closed();
            return written.map(|()| if is_closed { Flow::Close } else { Flow::Wait });
        }
        let limits = &self.desk.shared.limits;
        let is_idle = connection.input.is_empty() && connection.skip_bytes == 0;
        connection.pace = Pace::default();
        connection.deadline = match connection.state {
            State::Waiting { .. } => None,
            State::Sending(_) => Some(now + limits.send_time),
            State::Reading if is_idle => Some(now + limits.idle_time),
            State::Reading | State::Lingering => Some(now + limits.head_time),
        };
        Ok(Flow::Go)
    }

    fn write_queued(
        &mut self,
        connection: &mut Connection,
        pipeline: &mut Pipeline,
    ) -> io::Result<()> {
        while !pipeline.is_empty() && connection.socket.is_writable() {
            let socket = &mut connection.socket;
            let IoStatus::Bytes(bytes) = pipeline.with_slices(|all| socket.write(all, false))?
            else {
                break;
            };
            connection.pace.handed(bytes as u64);
            pipeline.accept(bytes);
            while let Some(response) = pipeline.pop_sent() {
                self.complete(connection, &response, response.file.body.len() as u64);
                if self.desk.shared.access_log.is_some() {
                    pipeline.reuse(response.log_line);
                }
            }
        }
        Ok(())
    }

    /// Counts and logs the responses that are cut off because the connection ends.
    pub(crate) fn cut_unsent(&mut self, connection: &mut Connection) {
        let Some(mut pipeline) = connection.unsent.take() else { return };
        while let Some((response, sent_bytes)) = pipeline.pop_unsent() {
            self.desk.counts.cut_short.add(1);
            self.complete(connection, &response, sent_bytes);
        }
    }

    fn complete(&mut self, connection: &Connection, response: &Response, body_bytes: u64) {
        self.desk.counts.sent(Tier::Memory, body_bytes);
        self.desk.counts.answered(200, Tier::Memory);
        self.log(&response.log_line, connection.peer, 200, body_bytes, Tier::Memory);
    }
}
