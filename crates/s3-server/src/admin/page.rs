//! Responses from the admin address.

use bytes::Bytes;
use haul_admin_endpoint::CONSOLE_POLICY;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;

use crate::admin::console;
use crate::admin::operation::{CONSOLE, is_operation};

/// The header with the purpose of a browser's request: `navigate` if it opens a page.
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

pub(super) const JSON: &str = "application/json";

/// The status and the text for a rejected request.
pub(super) type Rejection = (StatusCode, &'static str);

pub(super) fn json_page(value: &Value) -> Response<Bytes> {
    respond(StatusCode::OK, JSON, value.to_string())
}

pub(super) fn error_response((status, text): Rejection) -> Response<Bytes> {
    let mut response = plain(status, text);
    if status == StatusCode::UNAUTHORIZED {
        let basic = HeaderValue::from_static("Basic realm=\"haul\", charset=\"UTF-8\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, basic);
    }
    response
}

/// The kind of client that sent a request, which determines how a missing login is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// A program, such as curl: it gets the challenge of HTTP Basic.
    Program,
    /// A script of the console: a challenge would make the browser open its own dialog.
    Script,
    /// A browser that opens a page: it shows the login page.
    Navigation,
}

impl Sender {
    pub(super) fn of<T>(request: &Request<T>) -> Self {
        let headers = request.headers();
        let mode = headers.get(FETCH_MODE).map(HeaderValue::as_bytes);
        let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let accepts_html = accepts.is_some_and(|types| types.contains("text/html"));
        let is_navigation = mode.is_none_or(|mode| mode == b"navigate");
        // A download of an object must fail, and not store the login page.
        let is_page = request.method() == Method::GET && !is_operation(request.uri().path());
        if is_navigation && accepts_html && is_page {
            return Self::Navigation;
        }
        if mode.is_some() || headers.contains_key(CONSOLE) { Self::Script } else { Self::Program }
    }

    /// Adapts a response to this sender.
    pub(super) fn adapt(self, mut response: Response<Bytes>) -> Response<Bytes> {
        if response.status() != StatusCode::UNAUTHORIZED {
            return response;
        }
        match self {
            Self::Program => response,
            Self::Script => {
                response.headers_mut().remove(WWW_AUTHENTICATE);
                response
            }
            Self::Navigation => login_page(),
        }
    }
}

pub(super) fn page() -> Response<Bytes> {
    // Previews of PDF documents are blobs of the page, in a frame.
    html(console::page(), &format!("{CONSOLE_POLICY}; frame-src blob:"))
}

pub(super) fn login_page() -> Response<Bytes> {
    html(console::LOGIN_PAGE.to_owned(), CONSOLE_POLICY)
}

fn html(text: String, policy: &str) -> Response<Bytes> {
    let mut response = respond(StatusCode::OK, "text/html; charset=utf-8", text);
    if let Ok(policy) = HeaderValue::from_str(policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<Bytes> {
    respond(status, "text/plain; charset=utf-8", text)
}

pub(super) fn text(status: StatusCode, text: String) -> Response<Bytes> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_login_is_reported_as_the_sender_expects_it() {
        let html = ("accept", "text/html,*/*;q=0.8");
        let navigate = ("sec-fetch-mode", "navigate");
        for (method, path, fields, expected) in [
            ("GET", "/", &[][..], Sender::Program),
            ("GET", "/", &[("accept", "*/*")], Sender::Program),
            ("GET", "/", &[html], Sender::Navigation),
            ("GET", "/metrics", &[html, navigate], Sender::Navigation),
            ("HEAD", "/", &[html, navigate], Sender::Script),
            ("GET", "/s3/b/k", &[html, navigate], Sender::Script),
            ("GET", "/s3/b/k", &[("accept", "*/*")], Sender::Program),
            ("GET", "/stats.json", &[("sec-fetch-mode", "cors"), html], Sender::Script),
            ("POST", "/keys", &[("x-haul-console", "1")], Sender::Script),
        ] {
            let mut request = Request::builder().method(method).uri(path);
            for (name, value) in fields {
                request = request.header(*name, *value);
            }
            let request = request.body(()).unwrap();
            assert_eq!(Sender::of(&request), expected, "{method} {path} {fields:?}");
        }
        let refused = || error_response((StatusCode::UNAUTHORIZED, "Log in\n"));
        let program = Sender::Program.adapt(refused());
        assert!(program.headers().contains_key(WWW_AUTHENTICATE));
        let script = Sender::Script.adapt(refused());
        assert_eq!(script.status(), StatusCode::UNAUTHORIZED);
        assert!(!script.headers().contains_key(WWW_AUTHENTICATE));
        let navigation = Sender::Navigation.adapt(refused());
        assert_eq!(navigation.status(), StatusCode::OK);
        assert!(navigation.headers()[CONTENT_TYPE].to_str().unwrap().starts_with("text/html"));
        let forbidden = Sender::Navigation.adapt(error_response((StatusCode::FORBIDDEN, "No\n")));
        assert_eq!(forbidden.status(), StatusCode::FORBIDDEN);
    }
}
