//! CORS: preflight requests, and the response headers that allow a web page from another origin to
//! read a response.

use std::borrow::Cow;

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue, VARY};

use crate::answer::Answer;
use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, refuse};
use crate::request::head::Head;
use crate::service::Haul;
use crate::settings::cors::{AllowHeaders, METHODS, allow};
use crate::settings::parsed;

const ORIGIN: &str = "origin";
const REQUESTED_METHOD: &str = "access-control-request-method";
const REQUESTED_HEADERS: &str = "access-control-request-headers";

/// A web page's request; the browser sends the page's origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageRequest {
    bucket: String,
    origin: String,
    /// The request's method, or the method that a preflight request announces.
    method: String,
    requested_headers: String,
}

impl PageRequest {
    /// Returns the web page's request; `None` if it has no origin or names no bucket.
    pub(super) fn of(head: &Head) -> Option<Self> {
        let announced = head.fields.given(REQUESTED_METHOD);
        if head.method == Method::OPTIONS && announced.is_none() || head.name.bucket.is_empty() {
            return None;
        }
        let origin = head.fields.given(ORIGIN)?.to_owned();
        Some(Self {
            bucket: head.name.bucket.clone(),
            origin,
            method: announced.unwrap_or(head.method.as_str()).to_owned(),
            requested_headers: requested_headers(head).into_owned(),
        })
    }
}

/// Returns the headers that allow a page to use a response; `None` if no rule in the bucket allows
/// it.
pub(super) fn allow_page(haul: &Haul, page: &PageRequest) -> Option<AllowHeaders> {
    // If the bucket is missing or corrupt, or its rules are malformed, a page may use nothing.
    let settings = haul.store().bucket_settings(&page.bucket).ok()?;
    let rules = parsed::cors(&settings, &page.bucket).ok()??;
    allow(&rules, &page.origin, &page.method, &page.requested_headers)
}

/// Returns the response to a preflight request, without the headers from the matching rule. It
/// needs no signature, because browsers send none.
///
/// # Errors
/// `BadRequest` for an incomplete request, `NoSuchBucket`, and `AccessForbidden` if no rule allows
/// the request.
pub(super) fn preflight(haul: &Haul, head: &Head) -> S3Result<Answer> {
    let page = announced(head)?;
    let settings = haul.store().bucket_settings(&page.bucket).map_err(from_store)?;
    let why = match parsed::cors(&settings, &page.bucket) {
        Ok(None) => "CORS is not enabled for this bucket.",
        Ok(Some(rules))
            if allow(&rules, &page.origin, &page.method, &page.requested_headers).is_some() =>
        {
            return Ok(Answer::ok());
        }
        Ok(Some(_)) | Err(_) => {
            "This CORS request is not allowed. This is usually because the evalution of Origin, \
             request method / Access-Control-Request-Method or Access-Control-Request-Headers are \
             not whitelisted by the resource's CORS spec."
        }
    };
    let resource = if head.name.key.is_empty() { "BUCKET" } else { "OBJECT" };
    Err(refuse(S3ErrorCode::AccessForbidden, format!("CORSResponse: {why}"))
        .with_field("Method", Method::OPTIONS.as_str())
        .with_field("ResourceType", resource))
}

/// Returns the request that a preflight request announces.
fn announced(head: &Head) -> S3Result<PageRequest> {
    if head.fields.given(ORIGIN).is_none() {
        return Err(bad_request("Insufficient information. Origin request header needed."));
    }
    let method = head.fields.given(REQUESTED_METHOD).unwrap_or("null");
    if !METHODS.contains(&method) {
        return Err(bad_request(&format!("Invalid Access-Control-Request-Method: {method}")));
    }
    let is_name = |name: &str| name.is_empty() || HeaderName::from_bytes(name.as_bytes()).is_ok();
    let requested = requested_headers(head);
    if let Some(name) = requested.split(',').find(|name| !is_name(name.trim_matches(' '))) {
        let message =
            format!("Access-Control-Request-Headers \"{name}\" contains invalid character.");
        return Err(bad_request(&message));
    }
    PageRequest::of(head).ok_or_else(|| bad_request("A preflight request names a bucket"))
}

fn requested_headers(head: &Head) -> Cow<'_, str> {
    head.fields.joined(REQUESTED_HEADERS).unwrap_or_default()
}

fn bad_request(message: &str) -> S3Error {
    refuse(S3ErrorCode::BadRequest, message)
}

/// Adds headers that allow a page to read a response.
pub(super) fn add(headers: &mut HeaderMap, allowed: &AllowHeaders) {
    for (name, value) in allowed {
        let name = HeaderName::from_static(name);
        // A value that no header can have cannot have matched the page's origin.
        let Ok(value) = HeaderValue::from_str(value) else { continue };
        if name == VARY {
            headers.append(name, value);
        } else {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

    const PAGE: (&str, &str) = (ORIGIN, "http://a");

    #[test]
    fn page_has_an_origin_and_a_bucket() {
        let method = (REQUESTED_METHOD, "PUT");
        for (line, fields, expected) in [
            ("GET /b/k", &[PAGE][..], Some("GET")),
            ("OPTIONS /b/k", &[PAGE, method], Some("PUT")),
            ("OPTIONS /b/k", &[PAGE], None),
            ("GET /b/k", &[], None),
            ("GET /", &[PAGE], None),
            ("GET /%FF", &[PAGE], None),
        ] {
            let page = PageRequest::of(&head(line, fields));
            assert_eq!(page.map(|page| page.method).as_deref(), expected, "{line} {fields:?}");
        }
    }

    #[test]
    fn incomplete_preflight_requests_are_refused() {
        let get = (REQUESTED_METHOD, "GET");
        for (line, fields, message) in [
            ("OPTIONS /b", &[get][..], "Origin request header needed"),
            ("OPTIONS /b", &[PAGE], "Access-Control-Request-Method: null"),
            ("OPTIONS /b", &[PAGE, (REQUESTED_METHOD, "get")], "Method: get"),
            ("OPTIONS /b", &[PAGE, (REQUESTED_METHOD, "PATCH")], "Method: PATCH"),
            ("OPTIONS /b", &[PAGE, get, (REQUESTED_HEADERS, "date,x y")], "\"x y\" contains"),
            ("OPTIONS /b", &[PAGE, get, (REQUESTED_HEADERS, "x\ty")], "\"x\ty\" contains"),
            ("OPTIONS /b", &[PAGE, get, (REQUESTED_HEADERS, "date, a/b")], "\" a/b\" contains"),
            ("OPTIONS /", &[PAGE, get], "names a bucket"),
        ] {
            let error = announced(&head(line, fields)).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::BadRequest, "{message}");
            assert!(error.message().contains(message), "{}", error.message());
        }
        let headers = (REQUESTED_HEADERS, "X-Amz-Date, x-amz-acl,");
        assert!(announced(&head("OPTIONS /b/k", &[PAGE, get, headers])).is_ok());
    }

    #[test]
    fn headers_are_replaced_but_for_vary() {
        let mut headers: HeaderMap =
            [(VARY, HeaderValue::from_static("accept"))].into_iter().collect();
        let allowed = vec![("vary", "Origin".to_owned()), ("access-control-max-age", "1".into())];
        add(&mut headers, &allowed);
        assert_eq!(headers.get_all(VARY).iter().count(), 2);
        assert_eq!(headers["access-control-max-age"], "1");
    }
}
