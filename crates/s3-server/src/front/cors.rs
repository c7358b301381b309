//! Requests of web pages of other origins: preflight requests, and the headers of responses that
//! allow a page to read them.

use haul_http_engine::RequestBody;
use hyper::header::{
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN,
    VARY,
};
use hyper::{Method, Request, Response, StatusCode};
use s3s::{Body, S3Error, S3ErrorCode, S3Result};

use crate::buckets::cors::{AllowHeaders, allow};
use crate::buckets::parsed;
use crate::errors::{from_store, refuse};
use crate::service::Haul;

/// A request of a web page, whose browser sends the origin of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageRequest {
    bucket: String,
    origin: String,
    /// The method of the request, or of the one that a preflight request announces.
    method: String,
    requested_headers: String,
}

impl PageRequest {
    /// Returns the request of a web page; `None` if it has no origin or names no bucket.
    pub(super) fn of(request: &Request<RequestBody>) -> Option<Self> {
        let header = |name: HeaderName| {
            let value = request.headers().get(name)?;
            Some(value.to_str().ok()?.to_owned())
        };
        let announced = header(ACCESS_CONTROL_REQUEST_METHOD);
        if request.method() == Method::OPTIONS && announced.is_none() {
            return None;
        }
        let bucket = request.uri().path().split('/').nth(1).filter(|name| !name.is_empty())?;
        Some(Self {
            bucket: bucket.to_owned(),
            origin: header(ORIGIN)?,
            method: announced.unwrap_or_else(|| request.method().to_string()),
            requested_headers: header(ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default(),
        })
    }
}

/// Returns the headers with which a page may use a response; `None` if no rule of the bucket allows
/// it.
pub(super) async fn allow_page(haul: &Haul, page: &PageRequest) -> Option<AllowHeaders> {
    let page = page.clone();
    let found = haul.blocking(move |store| {
        let settings = store.bucket_settings(&page.bucket).map_err(from_store)?;
        let rules = parsed::cors(&settings, &page.bucket).ok().flatten();
        Ok(rules
            .and_then(|rules| allow(&rules, &page.origin, &page.method, &page.requested_headers)))
    });
    // A page of a missing or damaged bucket, or of one with malformed rules, may use nothing.
    found.await.ok().flatten()
}

/// Returns the response to a preflight request. It needs no signature, because browsers send none.
pub(super) fn preflight(
    page: Option<&PageRequest>,
    allowed: Option<&AllowHeaders>,
) -> S3Result<Response<Body>> {
    if page.is_none() {
        let message =
            "A preflight request needs a bucket, Origin and Access-Control-Request-Method";
        let mut error = refuse(S3ErrorCode::Custom("BadRequest".into()), message);
        error.set_status_code(StatusCode::BAD_REQUEST);
        return Err(error);
    }
    if allowed.is_none() {
        let message = "No CORS rule of the bucket allows this request";
        let mut error = refuse(S3ErrorCode::Custom("AccessForbidden".into()), message);
        error.set_status_code(StatusCode::FORBIDDEN);
        return Err(error);
    }
    Ok(Response::new(Body::empty()))
}

/// Adds headers that allow a page to read a response.
pub(super) fn add(response: &mut Response<Body>, headers: &AllowHeaders) -> S3Result<()> {
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_str(value).map_err(S3Error::internal_error)?;
        if name == VARY {
            response.headers_mut().append(name, value);
        } else {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(())
}
