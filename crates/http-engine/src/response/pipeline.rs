//! Responses from memory, sent together by one system call. Performs no I/O.
//!
//! A client may send several requests without waiting for the responses. While complete requests are
//! left in the receive buffer, responses from memory are queued; one `sendmsg` then sends all of
//! them. The queue refers to the bodies and does not copy them.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

use crate::access_log::Record;

/// The maximal number of queued responses.
const RESPONSES_MAX: usize = 32;
/// The queue is sent when it has this many bytes.
const BYTES_MAX: usize = 256 << 10;
/// The pieces of one response: its head and its body.
const PIECES: usize = 2;

/// Responses of one connection, queued in the order of their requests.
pub(crate) struct Pipeline<S> {
    /// The heads of all queued responses, one after the other.
    heads: Vec<u8>,
    /// The start of the first head.
    heads_at: usize,
    responses: VecDeque<QueuedResponse<S>>,
    /// Bytes of all queued responses.
    bytes: usize,
    /// Bytes of the first response that the kernel has accepted.
    sent_bytes: usize,
}

/// A complete response.
pub(crate) struct QueuedResponse<S> {
    head_bytes: usize,
    body: Bytes,
    pub(crate) status: u16,
    pub(crate) source: S,
    pub(crate) record: Option<Record>,
}

impl<S> Default for Pipeline<S> {
    fn default() -> Self {
        Self { heads: Vec::new(), heads_at: 0, responses: VecDeque::new(), bytes: 0, sent_bytes: 0 }
    }
}

impl<S> Pipeline<S> {
    pub(crate) fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    /// Returns `true` if the queue must be sent before another response is added.
    pub(crate) fn is_full(&self) -> bool {
        self.responses.len() >= RESPONSES_MAX || self.bytes >= BYTES_MAX
    }

    /// Returns the buffer to whose end the head of the next response is written, before it is
    /// [pushed](Self::push).
    pub(crate) fn heads(&mut self) -> &mut Vec<u8> {
        &mut self.heads
    }

    /// Returns the head that was written since `start`, the former length of [`Self::heads`], and
    /// removes it.
    pub(crate) fn take_head(&mut self, start: usize) -> Vec<u8> {
        let head = self.heads[start..].to_vec();
        self.heads.truncate(start);
        head
    }

    /// Adds a response whose head was written since `start`, the former length of [`Self::heads`].
    pub(crate) fn push(
        &mut self,
        start: usize,
        status: u16,
        body: Bytes,
        source: S,
        record: Option<Record>,
    ) {
        let head_bytes = self.heads.len() - start;
        self.bytes += head_bytes + body.len();
        self.responses.push_back(QueuedResponse { head_bytes, body, status, source, record });
    }

    /// Passes the bytes that are not sent yet, as slices, to `send`.
    pub(crate) fn with_slices<T>(&self, send: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        if let [response] = self.responses.as_slices().0 {
            let head = &self.heads[self.heads_at..self.heads_at + response.head_bytes];
            let skipped = self.sent_bytes.min(head.len());
            let body = &response.body[self.sent_bytes - skipped..];
            return send(&[IoSlice::new(&head[skipped..]), IoSlice::new(body)]);
        }
        let mut slices = [IoSlice::new(&[]); RESPONSES_MAX * PIECES];
        let (mut count, mut skip_bytes, mut head_at) = (0, self.sent_bytes, self.heads_at);
        for response in &self.responses {
            let head = &self.heads[head_at..head_at + response.head_bytes];
            head_at += response.head_bytes;
            for piece in [head, &response.body] {
                let skipped = skip_bytes.min(piece.len());
                skip_bytes -= skipped;
                if skipped < piece.len()
                    && let Some(slice) = slices.get_mut(count)
                {
                    *slice = IoSlice::new(&piece[skipped..]);
                    count += 1;
                }
            }
        }
        send(&slices[..count])
    }

    /// Adds `bytes` to the number of bytes that the kernel has accepted.
    pub(crate) fn accept(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
    }

    /// Removes the first response if all of its bytes are sent. Returns it with the number of bytes
    /// of its body.
    pub(crate) fn pop_sent(&mut self) -> Option<(QueuedResponse<S>, u64)> {
        let first = self.responses.front()?;
        let bytes = first.head_bytes + first.body.len();
        if self.sent_bytes < bytes {
            return None;
        }
        self.sent_bytes -= bytes;
        let response = self.pop()?;
        let body_bytes = response.body.len() as u64;
        Some((response, body_bytes))
    }

    /// Removes the first response. Returns it with the number of bytes of its body that are sent.
    pub(crate) fn pop_unsent(&mut self) -> Option<(QueuedResponse<S>, u64)> {
        let response = self.pop()?;
        let sent_bytes = std::mem::take(&mut self.sent_bytes).saturating_sub(response.head_bytes);
        Some((response, sent_bytes as u64))
    }

    fn pop(&mut self) -> Option<QueuedResponse<S>> {
        let response = self.responses.pop_front()?;
        self.bytes -= response.head_bytes + response.body.len();
        self.heads_at += response.head_bytes;
        if self.responses.is_empty() {
            self.heads.clear();
            self.heads_at = 0;
        }
        Some(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a queue of `count` responses, and all of their bytes.
    fn queue(count: usize) -> (Pipeline<usize>, Vec<u8>) {
        let (mut pipeline, mut all) = (Pipeline::default(), Vec::new());
        for number in 0..count {
            let start = pipeline.heads().len();
            let head = format!("head {number}, ");
            pipeline.heads().extend_from_slice(head.as_bytes());
            let body = Bytes::from("b".repeat(number % 4));
            all.extend_from_slice(head.as_bytes());
            all.extend_from_slice(&body);
            pipeline.push(start, 200, body, number, None);
        }
        (pipeline, all)
    }

    fn unsent(pipeline: &Pipeline<usize>) -> Vec<u8> {
        pipeline.with_slices(|slices| slices.iter().flat_map(|it| it.to_vec()).collect())
    }

    #[test]
    fn queue_is_sent_in_order_in_any_steps() {
        for step in [1, 7, 50, 10_000] {
            let (mut pipeline, all) = queue(RESPONSES_MAX);
            assert!(pipeline.is_full());
            let (mut sent, mut next) = (0, 0);
            while !pipeline.is_empty() {
                assert_eq!(unsent(&pipeline), &all[sent..], "{step}");
                let bytes = step.min(all.len() - sent);
                pipeline.accept(bytes);
                sent += bytes;
                while let Some((response, body_bytes)) = pipeline.pop_sent() {
                    assert_eq!((response.source, body_bytes), (next, next as u64 % 4));
                    next += 1;
                }
            }
            assert_eq!((sent, next), (all.len(), RESPONSES_MAX));
            assert!(pipeline.heads().is_empty());
        }
    }

    #[test]
    fn unsent_responses_have_the_bytes_of_their_bodies_that_were_sent() {
        let (mut pipeline, _all) = queue(4);
        pipeline.accept("head 0, head 1, bhead 2, b".len());
        let sent: Vec<_> = std::iter::from_fn(|| pipeline.pop_sent()).map(|it| it.1).collect();
        let unsent: Vec<_> = std::iter::from_fn(|| pipeline.pop_unsent()).map(|it| it.1).collect();
        assert_eq!((sent, unsent), (vec![0, 1], vec![1, 0]));
    }
}
