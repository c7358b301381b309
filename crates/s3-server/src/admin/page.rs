//! Responses from the admin address.

use bytes::Bytes;
use haul_admin_endpoint::CONSOLE_POLICY;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use serde_json::Value;

use crate::admin::console;

pub(super) const JSON: &str = "application/json";

/// The status and the text for a rejected request.
pub(super) type Refusal = (StatusCode, &'static str);

pub(super) fn json_page(value: &Value) -> Response<Bytes> {
    respond(StatusCode::OK, JSON, value.to_string())
}

pub(super) fn refuse((status, text): Refusal) -> Response<Bytes> {
    let mut response = plain(status, text);
    if status == StatusCode::UNAUTHORIZED {
        let basic = HeaderValue::from_static("Basic realm=\"haul\", charset=\"UTF-8\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, basic);
    }
    response
}

pub(super) fn page() -> Response<Bytes> {
    let mut response = respond(StatusCode::OK, "text/html; charset=utf-8", console::page());
    // Previews of PDF documents are blobs of the page, in a frame.
    if let Ok(policy) = HeaderValue::from_str(&format!("{CONSOLE_POLICY}; frame-src blob:")) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<Bytes> {
    respond(status, "text/plain; charset=utf-8", text)
}

pub(super) fn respond(
    status: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<Bytes> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
