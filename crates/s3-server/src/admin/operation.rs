//! The console's S3 requests, which the server executes with the rights of the key that logged in.
//! Performs no I/O.

use haul_http_engine::RequestBody;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, COOKIE, HOST,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, X_CONTENT_TYPE_OPTIONS,
};
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request};

/// The path prefix for S3 requests.
const PREFIX: &str = "/s3";

/// A header that the console adds to its requests. A page from another origin needs a CORS
/// permission to send it, which the server never gives.
pub(super) const CONSOLE: HeaderName = HeaderName::from_static("x-haul-console");

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Response headers for content that clients have stored: it must not run as a page in the
/// console's origin, nor be embedded in other pages.
const CONFINED: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
    (CONTENT_DISPOSITION, "attachment"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (CACHE_CONTROL, "private, no-store"),
];

/// Returns `true` for an S3 request's path.
pub(super) fn is_operation(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns `true` for a request that reads an object, as a link of the console does.
pub(super) fn is_download(method: &Method, path: &str) -> bool {
    let names = path.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('/'));
    let key = names.and_then(|names| names.split_once('/')).map_or("", |(_, key)| key);
    matches!(*method, Method::GET | Method::HEAD) && !key.is_empty()
}

/// Returns the reason to reject a request that a page from another origin may have sent.
pub(super) fn foreign(method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    let header = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let is_from_page = match header(FETCH_SITE) {
        None => true,
        Some(site) => matches!(site, b"same-origin" | b"none"),
    };
    let is_same_origin = header(ORIGIN).is_none_or(|origin| {
        let host = [b"http://".as_slice(), b"https://"]
            .iter()
            .find_map(|scheme| origin.strip_prefix(*scheme));
        host.is_some() && host == header(HOST)
    });
    if !is_from_page || !is_same_origin {
        return Some("The console accepts no requests of other web pages\n");
    }
    let only_reads = matches!(*method, Method::GET | Method::HEAD);
    let is_from_console = only_reads || headers.contains_key(CONSOLE);
    (!is_from_console).then_some("Requests that change something need the header x-haul-console\n")
}

/// Converts a console request to the S3 request in it; `None` if its path is no valid S3 path.
pub(super) fn to_s3(mut request: Request<RequestBody>) -> Option<Request<RequestBody>> {
    let target = request.uri().path_and_query()?.as_str().strip_prefix(PREFIX)?;
    let target = target.parse::<PathAndQuery>().ok()?;
    *request.uri_mut() = Uri::from(target);
    for name in [AUTHORIZATION, COOKIE, ORIGIN, CONSOLE] {
        request.headers_mut().remove(name);
    }
    Some(request)
}

/// Adds the headers that confine the content of an S3 response.
pub(crate) fn confine(headers: &mut HeaderMap) {
    for (name, value) in CONFINED {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn requests_of_other_pages_are_refused() {
        let host = ("host", "127.0.0.1:9001");
        let console = ("x-haul-console", "1");
        let own = ("origin", "http://127.0.0.1:9001");
        for (method, fields, is_refused) in [
            (Method::GET, vec![host], false),
            (Method::GET, vec![host, ("sec-fetch-site", "none")], false),
            (Method::GET, vec![host, ("sec-fetch-site", "same-origin")], false),
            (Method::GET, vec![host, ("sec-fetch-site", "cross-site")], true),
            (Method::GET, vec![host, ("sec-fetch-site", "same-site")], true),
            (Method::GET, vec![host, ("origin", "http://evil.example")], true),
            (Method::PUT, vec![host, own], true),
            (Method::PUT, vec![host, own, console], false),
            (Method::PUT, vec![host, ("origin", "https://127.0.0.1:9001"), console], false),
            (Method::PUT, vec![host, console], false),
            (Method::DELETE, vec![host, console, ("origin", "null")], true),
            (Method::DELETE, vec![host, console, ("origin", "http://127.0.0.1:9000")], true),
            (Method::POST, vec![host, console, ("sec-fetch-site", "cross-site")], true),
            (Method::PUT, vec![own, console], true),
        ] {
            let refused = foreign(&method, &headers(&fields)).is_some();
            assert_eq!(refused, is_refused, "{method} {fields:?}");
        }
    }

    #[test]
    fn links_read_objects_only() {
        for (method, path, is_one) in [
            (Method::GET, "/s3/b/k", true),
            (Method::HEAD, "/s3/b/a%2Fk", true),
            (Method::PUT, "/s3/b/k", false),
            (Method::GET, "/s3/b", false),
            (Method::GET, "/s3/b/", false),
            (Method::GET, "/s3/", false),
            (Method::GET, "/keys.json", false),
            (Method::GET, "/presign", false),
        ] {
            assert_eq!(is_download(&method, path), is_one, "{method} {path}");
        }
    }

    #[test]
    fn only_paths_below_the_prefix_are_operations() {
        for (path, is_one) in [("/s3/", true), ("/s3/b/k", true), ("/s3", false), ("/s3x/", false)]
        {
            assert_eq!(is_operation(path), is_one, "{path}");
        }
    }
}
