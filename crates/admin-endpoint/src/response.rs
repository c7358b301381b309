//! Creates the responses to requests. Performs no I/O.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use haul_http1::{Date, HeadWriter, HttpError, Request, reason_phrase};

use crate::StatusSource;
use crate::console::{CONSOLE_POLICY, RECENT_VIEW, console_file, console_page};
use crate::history::{History, Span};

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const ALLOWED: &str = "GET, HEAD";
const NOT_FOUND: &str = "404 Not Found: only /metrics, /health and /ready\n";
const NOT_FOUND_IN_CONSOLE: &str =
    "404 Not Found: only /, /history.json, /metrics, /health and /ready\n";
const NOT_FOUND_WITH_REQUESTS: &str =
    "404 Not Found: only /, /history.json, /requests.json, /metrics, /health and /ready\n";
const BAD_SPAN: &str = "400 Bad Request: the query is span=now, span=hour or span=day\n";

const MISDIRECTED: &str = "421 Misdirected Request: use localhost, an IP address, or a host name configured for the server\n";

/// The content of the endpoint.
pub(crate) struct Pages<S> {
    pub(crate) source: Arc<S>,
    /// The history of the console; `None` if there is no console.
    pub(crate) history: Option<Arc<History>>,
    /// The time from which the history counts.
    pub(crate) start: Instant,
}

impl<S: StatusSource> Pages<S> {
    /// Returns the response to a request of a path of the console, if there is a console.
    fn console(&self, path: &str, query: Option<&str>) -> Option<Response> {
        let history = self.history.as_ref()?;
        if path == "/" {
            let scripts: &[_] =
                if self.source.recent_requests().is_some() { &[RECENT_VIEW] } else { &[] };
            let page = console_page(&self.source.overview()?.title, scripts);
            return Some(Response { content_type: HTML, ..Response::new(200, page) });
        }
        if path == "/requests.json" {
            let body = self.source.recent_requests()?.json().to_string();
            return Some(Response { content_type: JSON, ..Response::new(200, body) });
        }
        if path == "/history.json" {
            let Some(span) = Span::from_query(query) else {
                return Some(Response::new(400, BAD_SPAN));
            };
            let current = self.source.overview()?;
            let (uptime, now) = (self.start.elapsed(), SystemTime::now());
            let body = history.json(span, uptime, now, &current);
            return Some(Response { content_type: JSON, ..Response::new(200, body) });
        }
        let (content_type, text) = console_file(path)?;
        Some(Response { content_type, ..Response::new(200, text) })
    }

    /// Returns the body for an unknown path, which names the known ones.
    fn not_found(&self) -> &'static str {
        match self.history {
            None => NOT_FOUND,
            Some(_) if self.source.recent_requests().is_some() => NOT_FOUND_WITH_REQUESTS,
            Some(_) => NOT_FOUND_IN_CONSOLE,
        }
    }
}

/// A response with a text body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    content_type: &'static str,
    body: String,
}

/// The properties of a response that depend on the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding {
    /// `true` to omit the body (`HEAD`).
    pub(crate) is_head: bool,
    /// `true` if the connection closes after the response.
    pub(crate) closes: bool,
}

impl Response {
    fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, content_type: TEXT, body: body.into() }
    }

    /// Returns the response to a valid request.
    pub(crate) fn to(request: &Request<'_>, pages: &Pages<impl StatusSource>) -> Self {
        let source = &*pages.source;
        if !source.is_allowed_host(request.host) {
            return Self::new(421, MISDIRECTED);
        }
        if !matches!(request.method, "GET" | "HEAD") {
            return Self::new(405, format!("405 {}: only {ALLOWED}\n", reason_phrase(405)));
        }
        let (path, query) = match request.target.path().split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (request.target.path(), None),
        };
        match path {
            "/metrics" => Self { content_type: METRICS, ..Self::new(200, source.metrics()) },
            "/health" => Self::to_check(source.failure_reason()),
            "/ready" => Self::to_check(source.failure_reason().or_else(|| source.unready_reason())),
            _ => pages.console(path, query).unwrap_or_else(|| Self::new(404, pages.not_found())),
        }
    }

    /// Returns the response to a check that failed for `reason`, or succeeded.
    fn to_check(reason: Option<&'static str>) -> Self {
        match reason {
            None => Self::new(200, "ok\n"),
            Some(reason) => Self::new(503, format!("{reason}\n")),
        }
    }

    /// Returns the response to an invalid request.
    pub(crate) fn to_invalid(error: HttpError) -> Self {
        Self::new(error.status, format!("{} {}\n", error.status, error.reason))
    }

    /// Encodes the response as HTTP/1.1.
    pub(crate) fn encode(&self, date: &Date, encoding: Encoding) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.body.len());
        let mut head = HeadWriter::response(&mut out, self.status);
        head.date("Date", date);
        if self.status == 405 {
            head.field("Allow", ALLOWED.as_bytes());
        }
        head.field("Content-Type", self.content_type.as_bytes());
        head.field("X-Content-Type-Options", b"nosniff");
        if self.content_type == HTML {
            head.field("Content-Security-Policy", CONSOLE_POLICY.as_bytes());
        }
        head.number("Content-Length", self.body.len() as u64);
        head.field("Cache-Control", b"no-store");
        let connection: &[u8] = if encoding.closes { b"close" } else { b"keep-alive" };
        head.field("Connection", connection);
        // Ending the head cannot fail: no field value comes from the request, so all are valid.
        head.end().unwrap_or_default();
        if !encoding.is_head {
            out.extend_from_slice(self.body.as_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use haul_http1::{HeadLimits, parse_request};

    use super::*;

    /// The reasons of failing checks: not ready, and failed.
    struct Fixed(Option<&'static str>, Option<&'static str>);

    impl StatusSource for Fixed {
        fn metrics(&self) -> String {
            "a 1\n".to_owned()
        }
        fn unready_reason(&self) -> Option<&'static str> {
            self.0
        }
        fn failure_reason(&self) -> Option<&'static str> {
            self.1
        }
        fn is_allowed_host(&self, host: Option<&str>) -> bool {
            host != Some("evil.example")
        }
    }

    fn respond(line: &str, host: &str, reason: Option<&'static str>) -> (u16, String) {
        let head = format!("{line}\r\nHost: {host}\r\n\r\n");
        let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        let failure = reason.filter(|reason| *reason == "failed");
        let (source, start) = (Arc::new(Fixed(reason, failure)), Instant::now());
        let response = Response::to(&request, &Pages { source, history: None, start });
        (response.status, response.body)
    }

    #[test]
    fn status_and_body_by_request() {
        for (line, reason, status, body) in [
            ("GET /metrics HTTP/1.1", None, 200, "a 1\n"),
            ("GET /metrics?x HTTP/1.1", Some("x"), 200, "a 1\n"),
            ("GET http://a/metrics HTTP/1.1", None, 200, "a 1\n"),
            ("HEAD /metrics HTTP/1.0", None, 200, "a 1\n"),
            ("GET /health HTTP/1.1", None, 200, "ok\n"),
            ("GET /health HTTP/1.1", Some("draining"), 200, "ok\n"),
            ("GET /health HTTP/1.1", Some("failed"), 503, "failed\n"),
            ("GET /ready HTTP/1.1", None, 200, "ok\n"),
            ("GET /ready HTTP/1.1", Some("draining"), 503, "draining\n"),
            ("GET /ready HTTP/1.1", Some("failed"), 503, "failed\n"),
            ("GET / HTTP/1.1", None, 404, NOT_FOUND),
            ("GET http://a HTTP/1.1", None, 404, NOT_FOUND),
            ("GET /health/ HTTP/1.1", None, 404, NOT_FOUND),
            ("POST /health HTTP/1.1", None, 405, "405 Method Not Allowed: only GET, HEAD\n"),
            ("OPTIONS * HTTP/1.1", None, 405, "405 Method Not Allowed: only GET, HEAD\n"),
        ] {
            assert_eq!(respond(line, "a", reason), (status, body.to_owned()), "{line}");
        }
        assert_eq!(respond("GET /metrics HTTP/1.1", "evil.example", None).0, 421);
    }

    #[test]
    fn head_response_has_content_length_and_no_body() {
        let date = Date::of(SystemTime::UNIX_EPOCH);
        let response = Response { content_type: METRICS, ..Response::new(200, "a 1\n") };
        let full = response.encode(&date, Encoding { is_head: false, closes: true });
        let head = response.encode(&date, Encoding { is_head: true, closes: true });
        let expected = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
                        Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
                        X-Content-Type-Options: nosniff\r\nContent-Length: 4\r\n\
                        Cache-Control: no-store\r\nConnection: close\r\n\r\n";
        assert_eq!(str::from_utf8(&head).unwrap(), expected);
        assert_eq!(full, [head, b"a 1\n".to_vec()].concat());
    }
}
