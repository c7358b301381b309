//! A queue of responses from the application cache. Performs no I/O.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use haul_http_engine::PendingLine;

use crate::meta::HotFile;

/// The maximal number of queued responses.
const RESPONSES_MAX: usize = 32;
/// The queue is sent when it has this many bytes.
const BYTES_MAX: usize = 256 << 10;
/// The pieces of one response: status line and date, `Connection` field, other fields, body.
const PIECES: usize = 4;

/// Responses of one connection, queued in the order of their requests.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    /// The beginning of each head. A copy: the date must not change within a head that is partly
    /// sent.
    ok: Vec<u8>,
    responses: VecDeque<Response>,
    /// Bytes of all queued responses.
    bytes: usize,
    /// Bytes of the first response that the kernel has accepted.
    sent_bytes: usize,
    /// Log lines of completed requests, whose memory is reused.
    spare: Vec<PendingLine>,
}

/// A complete response with status 200 from the application cache.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) connection_field: &'static [u8],
    pub(crate) file: Arc<HotFile>,
    pub(crate) log_line: PendingLine,
}

impl Pipeline {
    pub(crate) fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    /// Returns `true` if the queue must be sent before another response is added.
    pub(crate) fn is_full(&self) -> bool {
        self.responses.len() >= RESPONSES_MAX || self.bytes >= BYTES_MAX
    }

    pub(crate) fn push(&mut self, ok: &[u8], response: Response) {
        if self.responses.is_empty() {
            self.ok.clear();
            self.ok.extend_from_slice(ok);
        }
        self.bytes += response.bytes(&self.ok);
        self.responses.push_back(response);
    }

    /// Passes the bytes that are not sent yet, as slices, to `send`.
    pub(crate) fn with_slices<T>(&self, send: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let mut slices = [IoSlice::new(&[]); RESPONSES_MAX * PIECES];
        let (mut count, mut skip_bytes) = (0, self.sent_bytes);
        let pieces = self.responses.iter().flat_map(|response| response.pieces(&self.ok));
        for piece in pieces {
            let skipped = skip_bytes.min(piece.len());
            skip_bytes -= skipped;
            if skipped < piece.len()
                && let Some(slice) = slices.get_mut(count)
            {
                *slice = IoSlice::new(&piece[skipped..]);
                count += 1;
            }
        }
        send(&slices[..count])
    }

    /// Adds `bytes` to the number of bytes that the kernel has accepted.
    pub(crate) fn accept(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
    }

    /// Removes the first response if all of its bytes are sent.
    pub(crate) fn pop_sent(&mut self) -> Option<Response> {
        let bytes = self.responses.front()?.bytes(&self.ok);
        if self.sent_bytes < bytes {
            return None;
        }
        self.sent_bytes -= bytes;
        self.bytes -= bytes;
        self.responses.pop_front()
    }

    /// Removes the first response. Returns it with the number of bytes of its body that are sent.
    pub(crate) fn pop_unsent(&mut self) -> Option<(Response, u64)> {
        let response = self.responses.pop_front()?;
        let head_bytes = response.bytes(&self.ok) - response.file.body.len();
        let sent_bytes = std::mem::take(&mut self.sent_bytes).saturating_sub(head_bytes);
        Some((response, sent_bytes as u64))
    }

    /// Returns memory for a log line.
    pub(crate) fn spare_line(&mut self) -> PendingLine {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the memory of a log line for a later response.
    pub(crate) fn reuse(&mut self, line: PendingLine) {
        if self.spare.len() < RESPONSES_MAX {
            self.spare.push(line);
        }
    }
}

impl Response {
    fn pieces<'a>(&'a self, ok: &'a [u8]) -> [&'a [u8]; PIECES] {
        [ok, self.connection_field, &self.file.meta.whole, &self.file.body]
    }

    fn bytes(&self, ok: &[u8]) -> usize {
        self.pieces(ok).iter().map(|piece| piece.len()).sum()
    }
}
