//! Responds to the requests of a serving thread.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use haul_http_engine::{
    BoxError, Handler, Inline, NO_RESPONSE, Origin, PreparedResponse, ResponseHead, SentResponse,
};
use haul_http1::{Framing, HttpError, Request};

use super::file_response::Response;
use crate::context::ThreadContext;
use crate::file::tier::ResponseSource;
use crate::outcome::{DiskResult, Lookup, Pending};
use crate::page::Page;
use crate::request::file_request::{FileRequest, OwnedHead};
use crate::send::body::FileBody;
use crate::send::request_count::{ConnectionState, LastCounted};

/// The longest body of a request that is discarded. After a longer one, the connection is closed.
pub(crate) const DISCARD_BYTES_MAX: u64 = 64 << 10;

const ALLOWED_METHODS: &str = "GET, HEAD, OPTIONS";

const MISDIRECTED: &str = "421 This server accepts requests for localhost, for addresses, and for \
                           the host names it was configured with\n";

/// The handler of one thread.
pub(crate) struct FileHandler {
    thread: Arc<ThreadContext>,
    /// A buffer for decoded paths.
    path: Vec<u8>,
}

impl FileHandler {
    pub(crate) fn new(thread: ThreadContext) -> Self {
        Self { thread: Arc::new(thread), path: Vec::new() }
    }

    /// Returns the page for a request that is not for a file.
    fn refusal(&self, request: &Request<'_>) -> Option<Page> {
        // A chunked body is discarded, too: its length, which may be 0, is not known yet.
        match request.framing {
            Framing::Length(bytes) if bytes > DISCARD_BYTES_MAX => {
                return Some(Page::for_status(413));
            }
            Framing::Length(_) | Framing::Chunked => {}
            Framing::UntilClose => return Some(Page::for_status(413)),
        }
        if !self.thread.shared.hosts.allows(request.host) {
            return Some(Page::plain(421, MISDIRECTED));
        }
        match request.method {
            "GET" | "HEAD" => None,
            "OPTIONS" => Some(Page::for_status(204).with("allow", ALLOWED_METHODS)),
            _ => Some(Page::for_status(405).with("allow", ALLOWED_METHODS)),
        }
    }

    fn respond_to(
        &self,
        request: &Request<'_>,
        origin: &Origin<'_, ()>,
        path: &mut Vec<u8>,
        connection: &mut ConnectionState,
        head: &mut ResponseHead<'_>,
    ) -> Inline<FileBody> {
        let thread = &self.thread;
        let is_head = request.method == "HEAD";
        let file_request = match self.refusal(request) {
            Some(page) => Err(page),
            None => FileRequest::parse(request, path).map_err(|_error| Page::for_status(400)),
        };
        let request = match file_request {
            Ok(request) => request,
            Err(page) => {
                let response = Response::page(&page, is_head);
                return response.write(head, thread, || connection.last_counted());
            }
        };
        match thread.lookup(&request, thread.shared.ms(origin.received)) {
            Lookup::Pending(pending) => {
                let deferred = DeferredRequest {
                    thread: Arc::clone(thread),
                    head: OwnedHead::new(origin.head),
                    last_counted: connection.last_counted(),
                    received: origin.received,
                    client: origin.peer,
                };
                Inline::Future(Box::pin(deferred.respond(pending)))
            }
            lookup => respond_with(thread, &request, &lookup, |response| {
                response.write(head, thread, || connection.last_counted())
            }),
        }
    }
}

/// Passes the response to `write`.
fn respond_with<T>(
    thread: &ThreadContext,
    request: &FileRequest<'_>,
    lookup: &Lookup,
    write: impl FnOnce(Response<'_>) -> T,
) -> T {
    match lookup {
        Lookup::File(source) => write(Response::file(request, source, || thread.boundary())),
        Lookup::Listing(listing) => write(Response::page(&listing.page, request.is_head)),
        Lookup::Page(page) => write(Response::page(page, request.is_head)),
        Lookup::Pending(_) => write(Response::page(&Page::for_status(500), request.is_head)),
    }
}

/// A request that waits for a disk thread.
struct DeferredRequest {
    thread: Arc<ThreadContext>,
    head: OwnedHead,
    last_counted: Arc<LastCounted>,
    received: Instant,
    client: Option<IpAddr>,
}

impl DeferredRequest {
    async fn respond(self, mut pending: Pending) -> Result<PreparedResponse<FileBody>, BoxError> {
        loop {
            // The job is dropped without a result only if the server stops.
            let result = pending.result.await.map_err(|_dropped| "the server stops")?;
            match self.resume(result) {
                Ok(response) => {
                    self.thread.begin_response(response.status, self.received.elapsed(), || {
                        let request = self.head.parse()?;
                        Some((request.method, request.target.path(), self.client))
                    });
                    return Ok(response);
                }
                Err(next) => pending = next,
            }
        }
    }

    /// Returns the response, or the next work of a disk thread.
    fn resume(&self, result: DiskResult) -> Result<PreparedResponse<FileBody>, Pending> {
        let thread = &self.thread;
        let resumed = self.head.with_request(|request| match thread.resume(request, result) {
            Lookup::Pending(pending) => Err(pending),
            lookup => Ok(respond_with(thread, request, &lookup, |response| {
                response.prepare(thread, &self.last_counted)
            })),
        });
        // The head was parsed before, so this is unreachable.
        let unparsed = || {
            let page = Page::for_status(500);
            Ok(Response::page(&page, false).prepare(thread, &self.last_counted))
        };
        resumed.unwrap_or_else(unparsed)
    }
}

impl Handler for FileHandler {
    type Body = FileBody;
    type Peer = ();
    type Connection = ConnectionState;

    fn respond_inline(
        &mut self,
        request: &Request<'_>,
        origin: &Origin<'_, ()>,
        connection: &mut ConnectionState,
        head: &mut ResponseHead<'_>,
    ) -> Inline<FileBody> {
        let mut path = std::mem::take(&mut self.path);
        let inline = self.respond_to(request, origin, &mut path, connection, head);
        self.path = path;
        if !matches!(inline, Inline::Future(_)) {
            self.thread.begin_response(head.status(), origin.received.elapsed(), || {
                Some((request.method, request.target.path(), origin.peer))
            });
        }
        inline
    }

    fn respond_to_malformed(&mut self, error: &HttpError, head: &mut ResponseHead<'_>) -> Bytes {
        let page = Page::plain(error.status, format!("{} {}\n", error.status, error.reason));
        head.write_prepared(page.status, [], &page.head()).unwrap_or_default();
        page.body(false)
    }

    fn on_response(&mut self, response: &SentResponse<ResponseSource>) {
        let counts = &self.thread.counts;
        let ResponseSource { tier, is_counted } = response.source;
        if !is_counted {
            counts.sent(tier, response.body_bytes);
        }
        let is_cut = !response.is_complete && response.status != NO_RESPONSE;
        counts.cut_short.add(u64::from(is_cut));
        counts.answered(response.status, tier);
    }
}
