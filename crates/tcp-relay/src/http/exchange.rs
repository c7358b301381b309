//! Holds the state of one request and its response, and decides on retries, reuse of connections,
//! and timeouts. Performs no I/O.

use std::time::{Duration, Instant};

use haul_http1::{Framing, HttpError, MethodKind, Request, Response, Version};

use super::messages::{ResponseContext, authenticates_connection, wants_websocket};
use crate::flow::Stop;
use crate::http_options::HttpOptions;

/// One request and its response, from the request head to the last byte of the response.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) context: ResponseContext,
    /// The time at which the request head was received.
    pub(super) received_at: Instant,
    /// `true` if the request asks for an upgrade to a websocket and the options allow it.
    pub(super) is_websocket: bool,
    /// `true` if the method is idempotent and the request has no body.
    pub(super) is_retryable: bool,
    /// `true` if the upstream connection must not be used for other clients afterwards: the request
    /// authenticates the connection or has a body. (A target that does not read a body may parse
    /// the body as the next request.)
    pub(super) is_private: bool,
    pub(super) request: RequestState,
    pub(super) response: ResponseState,
    /// The head to send again if the target closes a reused connection without responding.
    retry_head: Option<Vec<u8>>,
    /// `true` if the relay has sent an interim response to detect whether the client is gone.
    was_probed: bool,
    /// The number of bytes that the slow peer had not acknowledged when a timeout last passed.
    unacked_bytes: Option<u64>,
    /// `true` if the target keeps the connection open after the response.
    keeps_upstream: bool,
}

/// The progress of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestState {
    Sending,
    /// The whole request was sent to the target.
    Sent,
    /// The target accepts no more bytes of the request; it may have responded already.
    Abandoned,
}

/// The progress of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseState {
    /// The relay has sent nothing to the client, or interim responses (1xx) only.
    Awaited,
    Forwarding,
    Done,
}

impl Exchange {
    pub(super) fn new(request: &Request<'_>, options: &HttpOptions, received_at: Instant) -> Self {
        let method = request.method;
        let is_idempotent = matches!(method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE");
        Self {
            context: ResponseContext {
                version: request.version,
                request_kind: request.method_kind(),
                keep_alive: request.keep_alive,
            },
            received_at,
            is_websocket: wants_websocket(request, options),
            is_retryable: is_idempotent && request.framing.is_empty(),
            is_private: authenticates_connection(request) || !request.framing.is_empty(),
            request: RequestState::Sending,
            response: ResponseState::Awaited,
            retry_head: None,
            was_probed: false,
            unacked_bytes: None,
            keeps_upstream: false,
        }
    }

    pub(super) fn is_head(&self) -> bool {
        self.context.request_kind == MethodKind::Head
    }

    /// Stores the head of a retryable request that is about to be sent over a reused connection.
    pub(super) fn sent_over_reused(self, head: &[u8]) -> Self {
        let retry_head = self.is_retryable.then(|| head.to_vec());
        Self { retry_head, ..self }
    }

    /// Returns the exchange in its initial state and the head to send again, if the request is
    /// retryable and was sent over a reused connection; otherwise `None`.
    pub(super) fn into_retry(self) -> Option<(Self, Vec<u8>)> {
        let head = self.retry_head.clone()?;
        Some((Self { retry_head: None, request: RequestState::Sending, ..self }, head))
    }

    /// Records, according to the response head, whether the client's and the upstream connection
    /// persist after the response.
    pub(super) fn record_persistence(&mut self, response: &Response<'_>, is_draining: bool) {
        self.context.keep_alive = self.keeps_client(response, is_draining);
        self.keeps_upstream = response.keep_alive;
    }

    fn keeps_client(&self, response: &Response<'_>, is_draining: bool) -> bool {
        let is_delimited = match response.framing {
            Framing::Length(_) => true,
            Framing::Chunked => self.context.version == Version::Http11,
            Framing::UntilClose => false,
        };
        self.context.keep_alive
            && is_delimited
            && self.request == RequestState::Sent
            && !is_draining
    }

    /// Returns `true` if the whole request was sent to the target.
    pub(super) fn is_sent(&self) -> bool {
        self.request == RequestState::Sent
    }

    /// Returns `true` if the client may send another request after this exchange.
    pub(super) fn is_client_reusable(&self) -> bool {
        self.is_sent() && self.context.keep_alive
    }

    /// Returns `true` if the target accepts another request after this exchange.
    pub(super) fn is_upstream_reusable(&self) -> bool {
        self.is_sent() && self.keeps_upstream
    }

    /// Returns `true` if an interim response may be sent to detect that the client is gone: nothing
    /// of the final response was sent, the client speaks HTTP/1.1, and the relay has not probed the
    /// client yet.
    pub(super) fn can_be_probed(&self) -> bool {
        self.response == ResponseState::Awaited
            && self.context.version == Version::Http11
            && !self.was_probed
    }

    /// Records that the client was probed; a client is probed once per exchange.
    pub(super) fn record_probe(&mut self) {
        self.was_probed = true;
    }

    /// Records the number of bytes the slow peer has not acknowledged; returns `true` if the number
    /// differs from the last call's, or if this is the first call.
    pub(super) fn record_unacked(&mut self, bytes: u64) -> bool {
        self.unacked_bytes.replace(bytes) != Some(bytes)
    }

    /// Returns the time without traffic after which the exchange ends, and the error response that
    /// the client then gets; `None` if it is too late for an error response. `up` is the reason why
    /// the direction of the request stopped.
    pub(super) fn timeout(
        &self,
        up: Option<Stop>,
        options: &HttpOptions,
    ) -> (Duration, Option<HttpError>) {
        match (self.response, self.request) {
            (ResponseState::Awaited, RequestState::Sending) if up == Some(Stop::SourceEmpty) => {
                let response = HttpError::new(408, "timeout while reading the request body");
                (options.body_time_max, Some(response))
            }
            (ResponseState::Awaited, _) => {
                let response = HttpError::new(504, "timeout while waiting for the upstream server");
                (options.response_time_max, Some(response))
            }
            _ => (options.body_time_max, None),
        }
    }
}
