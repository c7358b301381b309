//! Receives all S3 requests: counts and logs them, responds to plain ones by short paths, refuses
//! unsupported ones, and passes the others to the S3 service, without their signatures if there are
//! no credentials.

mod accounts;
pub(crate) mod anonymous;
pub(crate) mod answer;
pub(crate) mod canonical;
mod cors;
pub(crate) mod forms;
pub(crate) mod handler;
pub(crate) mod hot;
mod identity;
mod inline;
mod plain_put;
mod put;
pub(crate) mod response;
mod signature;
mod signature_v2;
pub(crate) mod text;

use std::sync::Arc;
use std::time::Instant;

use haul_http_engine::{RequestBody, RequestIdentity};
use hyper::body::Body as _;
use hyper::header::CONTENT_RANGE;
use hyper::{Method, Request, Response, StatusCode};
use s3s::service::S3Service;
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError};
use tracing::Instrument;

use crate::access::authorize::Principal;
use crate::access::caller::Caller;
use crate::access::facts::Connection;
use crate::access::keys::key_ring::AllKeys;
use crate::access::service::HidesMissing;
use crate::audit::AuditLog;
use crate::auth::{check_dates, check_region, check_signature_kind, check_signed_headers};
use crate::body::claimed::{Mismatch, claimed};
use crate::body::memory::BodyMemory;
use crate::body::send::BodySlot;
use crate::bucket_logs::logged::LoggedRequest;
use crate::bucket_logs::queue::LogQueue;
use crate::errors::refuse;
use crate::front::accounts::Accounts;
use crate::front::answer::{RequestIds, error_of_xml_body};
use crate::front::cors::PageRequest;
use crate::front::forms::upload;
use crate::front::hot::HotObjects;
use crate::front::response::Counted;
use crate::front::text::between;
use crate::hosts::domains::Domains;
use crate::hosts::rewrite;
use crate::metrics::{Kind, Metrics};
use crate::served::ServedStore;
use crate::service::Haul;
use crate::subresources::{Document, check_known, check_unsigned};

/// The S3 service and what the short paths need.
pub(crate) struct Front {
    pub(crate) s3: S3Service,
    pub(crate) haul: Haul,
    pub(crate) store: Arc<ServedStore>,
    pub(crate) memory: Arc<BodyMemory>,
    pub(crate) hot: Arc<HotObjects>,
    pub(crate) keys: AllKeys,
    pub(crate) domains: Domains,
    pub(crate) audit: Option<AuditLog>,
    /// The access logs of buckets, which have no records if only reads are allowed.
    pub(crate) logs: Arc<LogQueue>,
    /// `true` if only GET and HEAD are allowed.
    pub(crate) is_read_only: bool,
    /// `true` if the server terminates TLS.
    pub(crate) is_encrypted: bool,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) xml_bytes_max: usize,
    pub(crate) ids: RequestIds,
}

impl Front {
    /// Responds to one request of a client. If the request has a [`Caller`], its signature is not
    /// verified. An error closes the connection.
    pub(crate) async fn answer(
        &self,
        mut request: Request<RequestBody>,
        connection: Connection,
    ) -> Result<Response<Counted>, StdError> {
        let started = Instant::now();
        rewrite::rewrite(&self.domains, &mut request)?;
        let method = request.method().clone();
        let kind = Kind::of(&method, request.uri().path(), request.uri().query());
        let id = self.ids.next();
        let user = match request.extensions().get::<Caller>() {
            Some(caller) => caller.access_key(),
            None => self.claimed_key(&request),
        };
        let identity = RequestIdentity { id, user };
        let audited =
            self.audit.as_ref().and_then(|log| log.begin(&request, &identity, connection.peer));
        let logged = self.logged(&request, &identity, &connection, started);
        let path = request.uri().path();
        let mut accounts = Accounts::begin(&self.metrics, (kind, path), started, identity, audited);
        if let Some(changes) = accounts.changes() {
            request.extensions_mut().insert(changes);
        }
        if let Some(logged) = logged {
            accounts.log(logged, request.extensions_mut());
        }
        let arrival = request.body().arrival();
        let slot = BodySlot::default();
        request.extensions_mut().insert(slot.clone());
        request.extensions_mut().insert(Arc::clone(&self.hot));
        request.extensions_mut().insert(connection);
        let id = str::from_utf8(&id).unwrap_or_default();
        let mut response =
            self.dispatch(request).instrument(tracing::error_span!("request", id)).await?;
        if method == Method::HEAD && response.headers().contains_key(CONTENT_RANGE) {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        accounts.end(response, &arrival, Some(&slot))
    }

    /// Starts the record of a request in the access log of its bucket, if it has one.
    fn logged(
        &self,
        request: &Request<RequestBody>,
        identity: &RequestIdentity,
        connection: &Connection,
        started: Instant,
    ) -> Option<LoggedRequest> {
        if self.is_read_only {
            return None;
        }
        let of_server = (&self.logs, &*self.store.load());
        LoggedRequest::begin(of_server, request, identity, connection, started)
    }

    /// Responds to a preflight request, refuses a request, or passes it to the S3 service.
    async fn dispatch(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Body>, StdError> {
        let method = request.method().clone();
        let page = PageRequest::of(&request);
        let allowed = match &page {
            Some(page) => cors::allow_page(&self.haul, page).await,
            None => None,
        };
        if method == Method::OPTIONS {
            let mut answer = cors::preflight(page.as_ref(), allowed.as_ref())
                .or_else(S3Error::to_http_response)?;
            if let Some(headers) = &allowed {
                cors::add(&mut answer, headers)?;
            }
            return Ok(answer);
        }
        let arrival = request.body().arrival();
        let sha256 = request.headers().get("x-amz-content-sha256").cloned();
        let hides_missing = HidesMissing::default();
        request.extensions_mut().insert(hides_missing.clone());
        let document = Document::of(&method, request.uri());
        let mut mismatch = Mismatch::default();
        let outcome = match self.check(&request, allowed.is_some()) {
            Err(error) => Err(error),
            Ok(()) if upload::is_upload(&request) => {
                upload::store(&self.haul, (&self.keys, &self.s3), request).await?
            }
            Ok(()) => {
                match self.admit(request).and_then(|request| claimed_document(document, request)) {
                    Ok((request, of_body)) => {
                        mismatch = of_body;
                        Ok(self.s3.call(request).await.map_err(StdError::from)?)
                    }
                    Err(error) => Err(error),
                }
            }
        };
        let outcome = mismatch.take().map_or(outcome, Err);
        let mut response = outcome.or_else(S3Error::to_http_response)?;
        let reads_body = !matches!(method, Method::GET | Method::HEAD);
        if reads_body && let Some(error) = error_of_xml_body(&response, &arrival, sha256.as_ref()) {
            response = error.to_http_response()?;
        }
        if hides_missing.get() && is_missing(&method, &response) {
            response = access_denied().to_http_response()?;
        }
        if let Some(headers) = &allowed {
            cors::add(&mut response, headers)?;
        }
        Ok(response)
    }

    /// Refuses what no client may do. `is_allowed_page` is `true` if a CORS rule allows the web page
    /// that sends the request.
    fn check(&self, request: &Request<RequestBody>, is_allowed_page: bool) -> S3Result<()> {
        if self.is_read_only && !matches!(*request.method(), Method::GET | Method::HEAD) {
            let message = "This server is read-only: send changes to the server of the store";
            return Err(refuse(S3ErrorCode::AccessDenied, message));
        }
        check_known(request.method(), request.uri())?;
        if self.keys.is_empty() {
            anonymous::check_origin(request.uri(), request.headers(), is_allowed_page)?;
        }
        Ok(())
    }

    /// Returns the request for the S3 service.
    fn admit(&self, mut request: Request<RequestBody>) -> S3Result<Request<Body>> {
        check_length(&request, self.xml_bytes_max)?;
        if request.extensions().get::<Caller>().is_some() {
            return anonymous::unsigned(request);
        }
        if self.keys.is_empty() {
            request.extensions_mut().insert(Caller::new(Principal::Open));
            return anonymous::unsigned(request);
        }
        if !anonymous::is_signed(request.headers(), request.uri().query()) {
            // The service does not decode chunks of requests without a signature.
            check_unsigned(request.uri())?;
            let caller = Caller::new(Principal::Anonymous(self.keys.of_file()));
            request.extensions_mut().insert(caller);
            return anonymous::unsigned(request);
        }
        check_signature_kind(request.headers(), request.uri().query())?;
        if signature_v2::is_signed(request.uri().query()) {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let key = signature_v2::verify(&self.keys, &method, &uri, request.headers_mut())?;
            request.extensions_mut().insert(Caller::new(Principal::Key(key)));
            return anonymous::unsigned(request);
        }
        check_signed_headers(request.headers(), request.uri().query())?;
        check_region(request.headers(), request.uri().query())?;
        check_dates(request.headers(), request.uri().query())?;
        // The service verifies the signature, which is that of the target of the client.
        rewrite::restore(&mut request);
        Ok(request.map(Body::http_body))
    }
}

/// Returns the request with a body that is compared with the checksums in the headers.
fn claimed_document(
    document: Document,
    request: Request<Body>,
) -> S3Result<(Request<Body>, Mismatch)> {
    let (parts, body) = request.into_parts();
    let (body, mismatch) = claimed(document, &parts.headers, body)?;
    Ok((Request::from_parts(parts, body), mismatch))
}

/// Returns `true` if the response reveals that an object is missing.
fn is_missing(method: &Method, response: &Response<Body>) -> bool {
    let reveals = |xml: &[u8]| {
        between(str::from_utf8(xml).unwrap_or_default(), "<Code>", "</Code>") == "NoSuchKey"
    };
    response.status() == StatusCode::NOT_FOUND
        && (method == Method::HEAD || response.body().bytes().is_some_and(|xml| reveals(&xml)))
}

/// Returns the error in place of one that reveals that a name is missing.
fn access_denied() -> S3Error {
    let message = "Access denied: the object is missing, which only clients with the right list may \
                   learn, or the right is missing";
    refuse(S3ErrorCode::AccessDenied, message)
}

/// Refuses XML that is declared to be too long, with a better message than the service has.
fn check_length(request: &Request<RequestBody>, xml_bytes_max: usize) -> S3Result<()> {
    let bytes = request.body().size_hint().exact().unwrap_or(0);
    if *request.method() != Method::POST || bytes <= xml_bytes_max as u64 {
        return Ok(());
    }
    let message = format!("The body of this request has at most {xml_bytes_max} bytes");
    Err(refuse(S3ErrorCode::MaxMessageLengthExceeded, message))
}
