//! Hearing a client out that was answered early.
//!
//! A connection that is closed while the client still sends is reset, and a reset takes away the
//! answer the client has not read yet: instead of "wrong signature" it sees "broken pipe". So what
//! is left of a body nobody wants any more is received and dropped, within limits.
//!
//! The sockets belong to hyper, so this is done with bodies; servers that own their sockets use
//! `LingeringClose` of `haul-reactor`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;

use crate::connections::Exchange;

/// The most bytes received in vain.
const BYTES_MAX: usize = 64 << 20;

/// How long is listened in vain.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The body of a request, whose rest is received when it is dropped.
pub(crate) struct Lingering {
    body: Option<Incoming>,
    /// A client that asked before sending sends nothing after a refusal.
    asked: bool,
    received: Received,
    /// The request is not over before its body is.
    exchange: Arc<Exchange>,
}

/// Knows of a body, when it is gone, whether it was received to its end.
#[derive(Clone)]
pub(crate) struct Received(Arc<Progress>);

#[derive(Default)]
struct Progress {
    is_whole: AtomicBool,
    is_cut: AtomicBool,
}

impl Received {
    /// Whether all of the body was received.
    pub(crate) fn all(&self) -> bool {
        self.0.is_whole.load(Ordering::Relaxed)
    }

    /// `true` if the client ended the body before its declared end.
    pub(crate) fn is_cut(&self) -> bool {
        self.0.is_cut.load(Ordering::Relaxed)
    }
}

impl Lingering {
    /// The request with such a body.
    pub(crate) fn wrap(
        request: Request<Incoming>,
        exchange: Arc<Exchange>,
    ) -> (Request<Self>, Received) {
        let asked = request.headers().contains_key(EXPECT);
        let received = Received(Arc::default());
        received.0.is_whole.store(request.body().is_end_stream(), Ordering::Relaxed);
        let progress = received.clone();
        (request.map(|body| Self { body: Some(body), asked, received, exchange }), progress)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(mut body) = self.body.take() else { return };
        if self.asked || body.is_end_stream() {
            return;
        }
        let exchange = Arc::clone(&self.exchange);
        tokio::spawn(async move {
            let rest = async {
                let mut bytes = 0;
                while let Some(Ok(frame)) = body.frame().await {
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                    if bytes > BYTES_MAX {
                        break;
                    }
                }
            };
            drop(tokio::time::timeout(TIME_MAX, rest).await);
            drop(exchange);
        });
    }
}

impl Body for Lingering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        if matches!(frame, Some(Err(_))) {
            self.received.0.is_cut.store(true, Ordering::Relaxed);
        } else if frame.is_none() || body.is_end_stream() {
            self.received.0.is_whole.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}
