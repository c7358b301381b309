//! Rewrites requests to hosts of buckets.

use hyper::Request;
use hyper::header::{HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::{PathAndQuery, Uri};
use s3s::{S3Error, S3Result};

use crate::hosts::domains::{BucketHost, Domains};

/// The target of a request to the host of a bucket, as the client signed it, and the host of the
/// server. An extension of such a request.
#[derive(Debug, Clone)]
struct Rewritten {
    original: Uri,
    base: HeaderValue,
}

/// Puts the bucket of the host, if it has one, into the path of a request.
pub(crate) fn rewrite<B>(domains: &Domains, request: &mut Request<B>) -> S3Result<()> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let Some(BucketHost { bucket, base }) = host.and_then(|host| domains.bucket_of(host)) else {
        return Ok(());
    };
    let original = request.uri().clone();
    let target = original.path_and_query().map_or("/", PathAndQuery::as_str);
    // The target of `OPTIONS *` is no path.
    if !target.starts_with('/') {
        return Ok(());
    }
    let target: PathAndQuery =
        format!("/{bucket}{target}").parse().map_err(S3Error::internal_error)?;
    let mut parts = original.clone().into_parts();
    parts.path_and_query = Some(target);
    *request.uri_mut() = Uri::from_parts(parts).map_err(S3Error::internal_error)?;
    let base = HeaderValue::from_str(&base).map_err(S3Error::internal_error)?;
    request.extensions_mut().insert(Rewritten { original, base });
    Ok(())
}

/// Restores the target that the client signed. The S3 service finds the bucket in the host.
pub(crate) fn restore<B>(request: &mut Request<B>) {
    if let Some(Rewritten { original, .. }) = request.extensions().get().cloned() {
        *request.uri_mut() = original;
    }
}

/// Replaces the host of a request, whose signature is not verified any more, so that the S3 service
/// finds the bucket in its path.
pub(crate) fn use_path(parts: &mut Parts) {
    if let Some(Rewritten { base, .. }) = parts.extensions.get().cloned() {
        parts.headers.insert(HOST, base);
    }
}

/// Returns the host of the server in a request that may have been to the host of a bucket.
pub(crate) fn base_host<'a>(
    extensions: &'a hyper::http::Extensions,
    headers: &'a hyper::HeaderMap,
) -> Option<&'a str> {
    let base = extensions.get().map(|Rewritten { base, .. }| base);
    base.or_else(|| headers.get(HOST)).and_then(|host| host.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_to_the_host_of_a_bucket_is_rewritten_and_restored() {
        let domains = Domains::new(&["example.com".to_owned()]);
        for (host, target, rewritten) in [
            ("photos.example.com:80", "/a%20b?uploads&x=1", "/photos/a%20b?uploads&x=1"),
            ("photos.example.com", "/", "/photos/"),
            ("photos.example.com", "/?list-type=2", "/photos/?list-type=2"),
            ("photos.example.com", "*", "*"),
            ("example.com", "/photos/a", "/photos/a"),
            ("other", "/photos/a", "/photos/a"),
        ] {
            let request = Request::builder().uri(target).header(HOST, host);
            let mut request = request.body(()).unwrap();
            rewrite(&domains, &mut request).unwrap();
            assert_eq!(request.uri().to_string(), rewritten, "{host} {target}");
            assert_eq!(request.headers()[HOST], host);
            let base = base_host(request.extensions(), request.headers()).unwrap().to_owned();
            let (mut parts, ()) = request.into_parts();
            use_path(&mut parts);
            assert_eq!(parts.headers[HOST], base.as_str());
            assert!(!base.starts_with("photos.") || target == "*", "{base}");
            let mut request = Request::from_parts(parts, ());
            restore(&mut request);
            assert_eq!(request.uri().to_string(), target);
        }
    }
}
