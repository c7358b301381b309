//! Access without credentials: all requests are allowed, so they must come from this machine.
//! Signatures are removed without verification.

use haul_admin_endpoint::AllowedHosts;
use haul_http_engine::RequestBody;
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, RANGE,
};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::{Method, Request};
use s3s::dto::Range;
use s3s::{Body, S3ErrorCode, S3Result};

use crate::body::aws_chunked::DecodedBody;
use crate::body::digests::{Trailer, Unverified};
use crate::errors::refuse;
use crate::hosts::rewrite::use_path;

const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const DECODED_LENGTH: HeaderName = HeaderName::from_static("x-amz-decoded-content-length");

/// The parameters of a query that belong to a signature.
const SIGNATURE_QUERY: [&str; 11] = [
    "X-Amz-Algorithm",
    "X-Amz-Content-Sha256",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-Security-Token",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
    "AWSAccessKeyId",
    "Expires",
    "Signature",
];

/// Refuses requests of web pages: those for another host than this machine (DNS rebinding), and
/// those from a page of another origin, unless a CORS rule allows it. A host in the target replaces
/// that of the headers.
pub(crate) fn check_origin(uri: &Uri, headers: &HeaderMap, is_allowed_page: bool) -> S3Result<()> {
    let of_headers = || headers.get(HOST).map(HeaderValue::as_bytes);
    let host = uri.authority().map(|host| host.as_str().as_bytes()).or_else(of_headers);
    let host = host.map(|host| str::from_utf8(host).unwrap_or("?"));
    let is_local = AllowedHosts::local().allows(host);
    let host = host.unwrap_or_default();
    if !is_local {
        let message = format!(
            "Without credentials this server accepts only localhost and addresses as a host, \
             not \"{host}\""
        );
        return Err(refuse(S3ErrorCode::AccessDenied, message));
    }
    match headers.get(ORIGIN).map(HeaderValue::as_bytes) {
        _ if is_allowed_page => Ok(()),
        Some(origin) if origin.strip_prefix(b"http://") != Some(host.as_bytes()) => {
            let message = "Without credentials this server accepts no requests of other web pages";
            Err(refuse(S3ErrorCode::AccessDenied, message))
        }
        _ => Ok(()),
    }
}

/// Returns `true` if a request has a signature, or a part of one.
pub(crate) fn is_signed(headers: &HeaderMap, query: Option<&str>) -> bool {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    headers.contains_key(AUTHORIZATION)
        || pairs.any(|(name, _)| SIGNATURE_QUERY.iter().any(|one| name.eq_ignore_ascii_case(one)))
}

/// Removes the signature of a request, and from its body the framing that contains the signatures
/// of chunks.
pub(crate) fn unsigned(request: Request<RequestBody>) -> S3Result<Request<Body>> {
    let (mut parts, body) = request.into_parts();
    use_path(&mut parts);
    parts.uri = without_signature(&parts.uri)?;
    let headers = &mut parts.headers;
    for name in [AUTHORIZATION.as_str(), "x-amz-date", "x-amz-security-token"] {
        headers.remove(name);
    }
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if reads && headers.get(RANGE).is_some_and(|range| !is_range(range)) {
        headers.remove(RANGE); // RFC 9110, 14.2: an invalid range is ignored.
    }

    let mut unverified = Unverified::default();
    let body = match headers.remove(CONTENT_SHA256) {
        Some(kind) if kind.as_bytes().starts_with(b"STREAMING-") => {
            let Some(decoded) = headers.get(DECODED_LENGTH).cloned() else {
                let message = "x-amz-decoded-content-length is missing";
                return Err(refuse(S3ErrorCode::MissingContentLength, message));
            };
            headers.insert(CONTENT_LENGTH, decoded);
            let trailer = Trailer::default();
            unverified.trailer = Some(trailer.clone());
            Body::http_body(DecodedBody::new(body, trailer))
        }
        hash => {
            unverified.content_sha256 = hash.and_then(|hash| from_hex(hash.as_bytes()));
            Body::http_body(body)
        }
    };
    parts.extensions.insert(unverified);
    Ok(Request::from_parts(parts, body))
}

fn is_range(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|text| Range::parse(text).is_ok())
}

/// Returns the URI without the parameters of a signature.
fn without_signature(uri: &Uri) -> S3Result<Uri> {
    let Some(query) = uri.query() else { return Ok(uri.clone()) };
    let kept: Vec<_> = query
        .split('&')
        .filter(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            !SIGNATURE_QUERY.iter().any(|part| part.eq_ignore_ascii_case(name))
        })
        .collect();
    let text = if kept.is_empty() {
        uri.path().to_owned()
    } else {
        format!("{}?{}", uri.path(), kept.join("&"))
    };
    let mut parts = uri.clone().into_parts();
    match text.parse::<PathAndQuery>() {
        Ok(path_and_query) => parts.path_and_query = Some(path_and_query),
        Err(error) => return Err(refuse(S3ErrorCode::InvalidURI, error.to_string())),
    }
    Uri::from_parts(parts).map_err(|error| refuse(S3ErrorCode::InvalidURI, error.to_string()))
}

/// Parses a SHA-256 in hexadecimal; `None` for words such as `UNSIGNED-PAYLOAD`.
fn from_hex(text: &[u8]) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(text.chunks(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_must_be_this_machine() {
        let check = |target: &str, host: Option<&str>| {
            let host = host.map(|host| (HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap()));
            check_origin(&target.parse().unwrap(), &host.into_iter().collect(), false).is_ok()
        };
        for host in ["localhost:9000", "bucket.localhost", "127.0.0.1:9000", "[::1]:9000"] {
            assert!(check("/", Some(host)), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:9000", "h\u{e9}", "?", ""] {
            assert!(!check("/", Some(host)), "{host}");
        }
        assert!(check("/", None));
        // A host in the target replaces the other one.
        assert!(!check("http://evil.example/", Some("localhost")));
        assert!(check("http://localhost/", Some("evil.example")));
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let check = |origin: &'static str| {
            let headers = [
                (HOST, HeaderValue::from_static("127.0.0.1:9000")),
                (ORIGIN, HeaderValue::from_static(origin)),
            ];
            check_origin(&Uri::from_static("/"), &headers.into_iter().collect(), false).is_ok()
        };
        assert!(check("http://127.0.0.1:9000"));
        for origin in ["http://evil.example", "null", "http://127.0.0.1:9001"] {
            assert!(!check(origin), "{origin}");
        }
    }

    #[test]
    fn signature_is_removed_from_a_query() {
        for (given, left) in [
            ("/b/k?X-Amz-Signature=a&X-Amz-Date=b&partNumber=1", "/b/k?partNumber=1"),
            ("/b/k?x-amz-signature=a", "/b/k"),
            ("/b/k?AWSAccessKeyId=a&Signature=b&Expires=1", "/b/k"),
            ("/b?list-type=2&prefix=%20", "/b?list-type=2&prefix=%20"),
            ("/b/%2B?acl", "/b/%2B?acl"),
        ] {
            assert_eq!(without_signature(&given.parse().unwrap()).unwrap(), left);
        }
    }

    #[test]
    fn only_hashes_are_parsed() {
        let text = "00ff".repeat(16);
        assert_eq!(from_hex(text.as_bytes()).unwrap()[..2], [0, 255]);
        assert_eq!(from_hex(b"UNSIGNED-PAYLOAD"), None);
        assert_eq!(from_hex("x".repeat(64).as_bytes()), None);
    }
}
