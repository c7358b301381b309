//! Responds to plain PUTs without the S3 service, and so without its map of headers and its types.
//! The outcome is the one that the service would have; all other requests are left to it.
use std::sync::Arc;
use std::time::Instant;

use haul_file_store::Precondition;
use haul_http_engine::{Origin, RequestBody, RequestIdentity, ResponseFuture};
use haul_http1::{Request, Target};
use hyper::header::{ETAG, HeaderName, HeaderValue};
use hyper::http::Error as InvalidHeader;
use hyper::{Response, StatusCode};
use s3s::{Body, S3Result};

use crate::access::bucket_policy::has_setting;
use crate::access::caller::Caller;
use crate::access::rights::Right;
use crate::body::aws_chunked::DecodedBody;
use crate::body::checksum::{Checksum, FULL_OBJECT, TYPE_ATTRIBUTE};
use crate::body::digests::Trailer;
use crate::body::memory::PeerMemory;
use crate::body::receive::Receiver;
use crate::buckets::settings::OWNERSHIP;
use crate::encryption::default::has_default;
use crate::front::Front;
use crate::front::accounts::Accounts;
use crate::front::inline::names;
use crate::front::plain_put::PlainPut;
use crate::front::response::Counted;
use crate::front::text::decode;
use crate::metrics::Kind;
use crate::objects::versions::VERSION_ID;
use crate::objects::write::{Put, Stored};
use crate::service::Haul;

const EXPIRATION: HeaderName = HeaderName::from_static("x-amz-expiration");

impl Front {
    /// Responds to a plain PUT; returns the body of any other request.
    pub(crate) fn put(
        self: &Arc<Self>,
        request: &Request<'_>,
        body: RequestBody,
        origin: &Origin<'_, PeerMemory>,
    ) -> Result<ResponseFuture<Counted>, RequestBody> {
        let started = Instant::now();
        let Some((put, caller)) = self.plain_put(request) else { return Err(body) };
        let identity = RequestIdentity { id: self.ids.next(), user: caller.access_key() };
        let names = (&*put.bucket, &*put.key);
        let audited = self.audit.as_ref().map(|log| log.begin_put(names, &identity, origin.peer));
        let operation = (Kind::Put, path(request));
        let accounts = Accounts::begin(&self.metrics, operation, started, identity, audited);
        let (front, peer) = (Arc::clone(self), origin.peer_state.clone());
        Ok(Box::pin(async move {
            let arrival = body.arrival();
            let changes = accounts.changes();
            let response = match store(&front.haul, put, body, peer).await {
                Ok(stored) => {
                    if let Some(changes) = changes {
                        changes.stored(stored.info.bytes, stored.info.etag);
                    }
                    created(&stored)?
                }
                Err(error) => error.to_http_response()?,
            };
            accounts.end(response, &arrival, None)
        }))
    }

    /// Parses a request that is allowed; `None` if it is not, or no plain PUT to a bucket that
    /// exists.
    fn plain_put(&self, request: &Request<'_>) -> Option<(PlainPut, Caller)> {
        let Target::Origin(target) = request.target else { return None };
        let (raw, query) = target.split_once('?').unwrap_or((target, ""));
        // A web page may need the headers of a CORS rule.
        let is_of_page = request.fields.first("origin").is_some();
        if request.method != "PUT" || self.is_read_only || is_of_page {
            return None;
        }
        if !raw.bytes().all(is_of_path) {
            return None;
        }
        let path = decode(raw)?;
        let caller = self.requester(request, &path, query)?;
        let path = self.domains.path_of(request.fields.first("host"), path);
        let (bucket, key) = names(path.strip_prefix('/')?)?;
        let store = self.store.load();
        // The service has the error for a client without the right, and records requests to buckets
        // with an access log.
        caller.may_plainly(&store, Right::Write, bucket, key).then_some(())?;
        let put = PlainPut::parse(request, (bucket, key), !self.keys.is_empty())?;
        if put.has_list && has_setting(&store, bucket, OWNERSHIP) {
            return None;
        }
        // Before the client sends the body.
        store.bucket(bucket).ok()?;
        // The short path does not encrypt.
        if has_default(&store, bucket) {
            return None;
        }
        let limits = self.haul.limits();
        let bytes_max = limits.object_bytes_max.min(limits.small_body_bytes_max);
        put.bytes.is_none_or(|bytes| bytes <= bytes_max).then_some((put, caller))
    }
}

/// Returns the path of a request, as the client sent it.
fn path<'a>(request: &Request<'a>) -> &'a str {
    match request.target {
        Target::Origin(target) => target.split('?').next().unwrap_or_default(),
        _ => "",
    }
}

/// Returns `true` for a byte that a path can have (RFC 3986, 3.3). The service refuses some others.
fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:@/".contains(&byte)
}

/// Receives and stores the object.
async fn store(
    haul: &Haul,
    put: PlainPut,
    body: RequestBody,
    peer: PeerMemory,
) -> S3Result<Stored> {
    let PlainPut { bucket, key, attributes, claims, bytes, is_chunked, .. } = put;
    let precondition = Precondition::None;
    let put = Put { bucket, key, attributes, precondition, master: None };
    let peer = Some(peer);
    if bytes.is_none() {
        return put.big(haul, Receiver::new(haul, body, claims, None, peer)).await;
    }
    if !is_chunked {
        return put.small(haul, Receiver::new(haul, body, claims, bytes, peer)).await;
    }
    let trailer = Trailer::default();
    let claims = claims.with_trailer(trailer.clone());
    let body = DecodedBody::new(body, trailer);
    put.small(haul, Receiver::new(haul, body, claims, bytes, peer)).await
}

/// Returns the response for a stored object.
fn created(stored: &Stored) -> Result<Response<Body>, InvalidHeader> {
    let Stored { info, expiration, checksum, version_id } = stored;
    let mut response = Response::builder().status(StatusCode::OK);
    response = response.header(ETAG, HeaderValue::try_from(format!("\"{}\"", info.etag))?);
    if let Some(Checksum { algorithm, value }) = checksum {
        response = response.header(algorithm.header(), value).header(TYPE_ATTRIBUTE, FULL_OBJECT);
    }
    if let Some(expiration) = expiration {
        response = response.header(EXPIRATION, expiration);
    }
    if let Some(version_id) = version_id {
        response = response.header(VERSION_ID, version_id);
    }
    response.body(Body::empty())
}
