//! The body of a response: counts bytes as they are sent, and ends the request.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use haul_http_engine::{BoxError, Piece, ResponseBody};

use crate::body::send::ObjectBody;
use crate::bucket_logs::logged::LoggedRequest;
use crate::events::listeners::EventStream;
use crate::metrics::Metrics;

/// A response body, whose bytes are counted as they are sent.
pub(crate) struct Counted {
    body: Source,
    /// `None` for the admin page, which is not counted.
    in_flight: Option<InFlight>,
    /// The bucket's access log record, which ends with the response.
    logged: Option<LoggedRequest>,
}

/// The source of a response's bytes.
pub(super) enum Source {
    Bytes(Bytes),
    Object(ObjectBody),
    Events(EventStream),
}

impl Counted {
    pub(super) fn new(body: Source, in_flight: InFlight, logged: Option<LoggedRequest>) -> Self {
        Self { body, in_flight: Some(in_flight), logged }
    }

    /// Returns the body of a response with an object. Dropping it ends the request.
    pub(super) fn object(body: ObjectBody, metrics: &Arc<Metrics>) -> Self {
        Self::new(Source::Object(body), InFlight::begin(metrics), None)
    }

    /// Returns the body of an admin page response.
    pub(crate) fn page(text: Bytes) -> Self {
        Self { body: Source::Bytes(text), in_flight: None, logged: None }
    }
}

impl ResponseBody for Counted {
    type Source = ();

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>> {
        match &mut self.body {
            Source::Object(body) => body.poll_piece(context),
            Source::Events(stream) => {
                stream.poll(context).map(|bytes| bytes.map(|bytes| Ok(Piece::Bytes(bytes))))
            }
            Source::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then_some(Ok(Piece::Bytes(bytes))))
            }
        }
    }

    fn on_sent(&mut self, bytes: u64) {
        if let Some(in_flight) = &self.in_flight {
            in_flight.0.sent(bytes);
        }
        if let Some(logged) = &mut self.logged {
            logged.sent(bytes);
        }
        if let Source::Object(body) = &mut self.body {
            body.on_sent(bytes);
        }
    }

    fn is_end(&self) -> bool {
        match &self.body {
            Source::Object(body) => body.is_end(),
            Source::Events(stream) => stream.is_ended(),
            Source::Bytes(bytes) => bytes.is_empty(),
        }
    }

    fn bytes_left(&self) -> Option<u64> {
        match &self.body {
            Source::Object(body) => body.bytes_left(),
            Source::Events(_) => None,
            Source::Bytes(bytes) => Some(bytes.len() as u64),
        }
    }
}

/// Counts a request as in flight until it is dropped.
pub(super) struct InFlight(pub(super) Arc<Metrics>);

impl InFlight {
    pub(super) fn begin(metrics: &Arc<Metrics>) -> Self {
        metrics.begin();
        Self(Arc::clone(metrics))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.end();
    }
}
