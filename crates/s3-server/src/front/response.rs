//! The body of a response: counts the bytes as they are sent, and ends the request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use haul_http_engine::{Piece, ResponseBody};
use hyper::body::Body as _;
use s3s::{Body, StdError};

use crate::body::send::ObjectBody;
use crate::bucket_logs::logged::LoggedRequest;
use crate::metrics::Metrics;

/// The body of a response, whose bytes are counted as they are sent.
pub(crate) struct Counted {
    body: Source,
    /// `None` for the admin page, which is not counted.
    in_flight: Option<InFlight>,
    /// The record in the access log of the bucket, which ends with the response.
    logged: Option<LoggedRequest>,
}

pub(super) enum Source {
    Service(Body),
    Object(ObjectBody),
}

impl Counted {
    pub(super) fn new(body: Source, in_flight: InFlight, logged: Option<LoggedRequest>) -> Self {
        Self { body, in_flight: Some(in_flight), logged }
    }

    /// Returns the body of a response with an object, which ends a request when it is dropped.
    pub(super) fn object(body: ObjectBody, metrics: &Arc<Metrics>) -> Self {
        Self::new(Source::Object(body), InFlight::begin(metrics), None)
    }

    /// Returns the body of a response of the admin page.
    pub(crate) fn page(text: Bytes) -> Self {
        Self { body: Source::Service(Body::from(text)), in_flight: None, logged: None }
    }
}

impl ResponseBody for Counted {
    type Source = ();

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, StdError>>> {
        let piece = match &mut self.body {
            Source::Object(body) => ready!(body.poll_piece(context)),
            Source::Service(body) => ready!(Pin::new(body).poll_frame(context)).map(|frame| {
                // The service sends no trailers.
                frame.map(|frame| Piece::Bytes(frame.into_data().unwrap_or_default()))
            }),
        };
        Poll::Ready(piece)
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
            Source::Service(body) => body.is_end_stream(),
        }
    }

    fn bytes_left(&self) -> Option<u64> {
        match &self.body {
            Source::Object(body) => body.bytes_left(),
            Source::Service(body) => body.size_hint().exact(),
        }
    }
}

/// Keeps a request counted as being in flight.
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
