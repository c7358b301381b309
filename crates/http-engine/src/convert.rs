//! Converts the head of a request to the types of the crate `http`.

use haul_http1::{Request, Target, Version};
use http::uri::Uri;
use http::{HeaderName, HeaderValue, Method};

use crate::request_body::RequestBody;

/// Returns the request; `None` if its target or a field is not valid in these types.
pub(crate) fn to_http(
    request: &Request<'_>,
    body: RequestBody,
) -> Option<http::Request<RequestBody>> {
    let uri: Uri = match request.target {
        Target::Absolute { authority, path, .. } => {
            format!("http://{authority}{path}").parse().ok()?
        }
        Target::Origin(path) => path.parse().ok()?,
        Target::Authority(authority) => authority.parse().ok()?,
        Target::Asterisk => Uri::from_static("*"),
    };
    let mut converted = http::Request::new(body);
    *converted.method_mut() = Method::from_bytes(request.method.as_bytes()).ok()?;
    *converted.uri_mut() = uri;
    *converted.version_mut() = match request.version {
        Version::Http10 => http::Version::HTTP_10,
        Version::Http11 => http::Version::HTTP_11,
    };
    let headers = converted.headers_mut();
    headers.reserve(request.fields.count());
    for field in request.fields {
        let name = HeaderName::from_bytes(field.name).ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(converted)
}
