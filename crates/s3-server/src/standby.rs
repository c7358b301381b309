//! A server without a store. It responds to every request with its state, until it gets a store.

use std::sync::Arc;

use bytes::Bytes;
use haul_http_engine::{
    BoxError, Connections, Engine, Handler, ListenerOptions, Origin, RequestBody, ResponseFuture,
};
use haul_reactor::{AdmissionLimit, Reactor};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use tokio::sync::mpsc;

use crate::error::{Error, Result};
use crate::front::handler::S3;
use crate::front::response::Counted;
use crate::server::listening::Listening;
use crate::server::{Threads, connection_limits};

/// A function that returns a standby's state, in one line.
pub type StandbyState = Arc<dyn Fn() -> String + Send + Sync>;

/// A standby's handler.
struct Standby {
    state: StandbyState,
}

impl Listening {
    /// Listens on both addresses, calls `ready`, and responds to every request with status 503 and
    /// `state`, until `end` completes. A [`crate::Server`] may then listen on the addresses. Must
    /// be called in a Tokio runtime with time.
    ///
    /// # Errors
    /// Fails like [`crate::Server::new`] and [`crate::Server::run`].
    pub async fn stand_by(
        &mut self,
        state: StandbyState,
        ready: impl FnOnce(),
        end: impl Future<Output = ()>,
    ) -> Result<()> {
        let addresses = self.addresses();
        let stall_time = self.limits.stall_time_max;
        let listeners =
            vec![self.listen.listen_early(stall_time)?, self.admin.listen_early(stall_time)?];
        let options = [self.tls.clone(), self.tls.clone().filter(|_| addresses.admin_has_tls())];
        let options = options.map(|tls| ListenerOptions {
            connections: Connections::new(
                self.limits.connections_max,
                self.limits.peer_connections_max,
                || (),
            ),
            peer_rate: None,
            tls,
            access_log: None,
        });
        let limits = connection_limits(&self.limits);
        let engine = Engine::new(Standby { state }, options.into(), limits);
        let reactor = Reactor::new(engine, listeners, AdmissionLimit::new(usize::MAX))
            .map_err(|source| Error::Start { source })?;
        let (sender, mut ended) = mpsc::unbounded_channel();
        let mut threads = Threads::default();
        threads.start(reactor, sender)?;
        ready();
        tokio::select! {
            () = end => {}
            _failed = ended.recv() => {}
        }
        threads.join()
    }
}

impl Handler for Standby {
    type Body = Counted;
    type Peer = ();
    type Connection = ();

    fn respond(
        &mut self,
        request: Request<RequestBody>,
        origin: &Origin<'_, ()>,
    ) -> ResponseFuture<Counted> {
        let state = (self.state)();
        let (content_type, text) = match (origin.listener, request.uri().path()) {
            (S3, _) => ("application/xml", error_document(&state)),
            (_, "/metrics") => {
                let text = "# HELP haul_standby 1 while the server follows a copy.\n\
                            # TYPE haul_standby gauge\nhaul_standby 1\n";
                ("text/plain; version=0.0.4; charset=utf-8", text.to_owned())
            }
            _ => ("text/plain; charset=utf-8", format!("standby: {state}\n")),
        };
        let is_metrics = origin.listener != S3 && request.uri().path() == "/metrics";
        let status = if is_metrics { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let response = Response::builder()
            .status(status)
            .header(CONTENT_TYPE, content_type)
            .header(CACHE_CONTROL, "no-store")
            .header(RETRY_AFTER, "1")
            .body(Counted::page(Bytes::from(text)));
        Box::pin(async { response.map_err(BoxError::from) })
    }
}

/// Returns the S3 error document for a request to a standby.
fn error_document(state: &str) -> String {
    let escaped = state.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>ServiceUnavailable</Code>\
         <Message>This server is a standby: {escaped}</Message></Error>"
    )
}
