//! Ends a session: writes the last bytes, then gives the client time to read them.

use std::time::{Duration, Instant};

use haul_reactor::{LingeringClose, Next};

use super::context::HttpContext;
use super::peers::{Peers, SessionEnd};
use crate::end_reason::EndReason;

/// The maximum time to wait for the client's EOF after the last byte was written.
const TIME_MAX: Duration = Duration::from_secs(5);
/// The maximum number of bytes from the client that are read and discarded.
const BYTES_MAX: usize = 4 << 20;

/// The state of a session that is ending.
#[derive(Debug)]
pub(super) struct SessionClose {
    reason: EndReason,
    /// The time by which the last bytes must be written.
    deadline: Instant,
    /// The lingering close of the client's socket; `None` until all buffered bytes are written.
    closing: Option<LingeringClose>,
}

impl SessionClose {
    /// Begins to end a session; its buffered bytes are written to the client first.
    pub(super) fn begin<M>(reason: EndReason, cx: &HttpContext<'_, '_, M>) -> Self {
        let deadline = cx.reactor.now() + cx.options.body_time_max;
        Self { reason, deadline, closing: None }
    }

    /// Writes and discards bytes as far as possible without blocking.
    ///
    /// # Errors
    /// Returns the end of the session once its sockets can be closed.
    pub(super) fn advance<M>(
        &mut self,
        peers: &mut Peers,
        cx: &mut HttpContext<'_, '_, M>,
    ) -> Result<Next, SessionEnd> {
        let now = cx.reactor.now();
        let Peers { client, client_info, down, record, .. } = peers;
        let end = SessionEnd::clean(self.reason);
        let closing = match &mut self.closing {
            Some(closing) => closing,
            None => {
                match down.flow.write_buffered(client, cx.thread) {
                    Ok(true) => {}
                    Ok(false) if now < self.deadline => {
                        return Ok(Next::Wait(Some(self.deadline)));
                    }
                    Ok(false) | Err(_) => return Err(SessionEnd::abort(EndReason::Reset)),
                }
                let written_bytes = down.flow.written_bytes();
                record.end(client_info.address, written_bytes, cx.log_context(), now);
                client.shutdown_write().map_err(|_closed| end)?;
                self.closing.insert(LingeringClose::after_shutdown(BYTES_MAX, now + TIME_MAX))
            }
        };
        match closing.drive(client.socket_mut(), now) {
            Next::Close => Err(end),
            next => Ok(next),
        }
    }
}
