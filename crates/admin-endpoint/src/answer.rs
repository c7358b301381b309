//! What is answered. Pure.

use haul_http1::{Date, HeadWriter, Refused, Request, words};

use crate::Told;

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const ALLOWED: &str = "GET, HEAD";

const NOT_OURS: &str = "421 Ask for localhost, for an address, or for a name the server was told when it was started\n";

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    content_type: &'static str,
    text: String,
}

/// How an answer is said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Only its head is wanted.
    pub(crate) is_head: bool,
    /// It is the last one.
    pub(crate) closes: bool,
}

impl Answer {
    fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, content_type: TEXT, text: text.into() }
    }

    /// To a request.
    pub(crate) fn to(request: &Request<'_>, told: &impl Told) -> Self {
        if !told.answers_to(request.host) {
            return Self::new(421, NOT_OURS);
        }
        if !matches!(request.method, "GET" | "HEAD") {
            return Self::new(405, format!("405 {}: only {ALLOWED}\n", words(405)));
        }
        let path = request.target.path().split('?').next().unwrap_or_default();
        match path {
            "/metrics" => Self { content_type: METRICS, ..Self::new(200, told.metrics()) },
            "/health" => match told.trouble() {
                None => Self::new(200, "ok\n"),
                Some(why) => Self::new(503, format!("{why}\n")),
            },
            _ => Self::new(404, "There are /metrics and /health\n"),
        }
    }

    /// To what is no request.
    pub(crate) fn refusing(refused: Refused) -> Self {
        Self::new(refused.status, format!("{} {}\n", refused.status, refused.reason))
    }

    /// All bytes of it.
    pub(crate) fn written(&self, date: &Date, manner: Manner) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.text.len());
        let mut head = HeadWriter::response(&mut out, self.status);
        head.date("Date", date);
        if self.status == 405 {
            head.field("Allow", ALLOWED.as_bytes());
        }
        head.field("Content-Type", self.content_type.as_bytes());
        head.field("X-Content-Type-Options", b"nosniff");
        head.number("Content-Length", self.text.len() as u64);
        head.field("Cache-Control", b"no-store");
        let connection: &[u8] = if manner.closes { b"close" } else { b"keep-alive" };
        head.field("Connection", connection);
        // Nothing of it comes from outside.
        head.end().unwrap_or_default();
        if !manner.is_head {
            out.extend_from_slice(self.text.as_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use haul_http1::{HeadLimits, parse_request};

    use super::*;

    struct Fixed(Option<&'static str>);

    impl Told for Fixed {
        fn metrics(&self) -> String {
            "a 1\n".to_owned()
        }
        fn trouble(&self) -> Option<&'static str> {
            self.0
        }
        fn answers_to(&self, host: Option<&str>) -> bool {
            host != Some("evil.example")
        }
    }

    fn answer(line: &str, host: &str, trouble: Option<&'static str>) -> (u16, String) {
        let head = format!("{line}\r\nHost: {host}\r\n\r\n");
        let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        let answer = Answer::to(&request, &Fixed(trouble));
        (answer.status, answer.text)
    }

    #[test]
    fn each_line_has_its_answer() {
        const NONE: &str = "There are /metrics and /health\n";
        for (line, trouble, status, text) in [
            ("GET /metrics HTTP/1.1", None, 200, "a 1\n"),
            ("GET /metrics?x HTTP/1.1", Some("x"), 200, "a 1\n"),
            ("GET http://a/metrics HTTP/1.1", None, 200, "a 1\n"),
            ("HEAD /metrics HTTP/1.0", None, 200, "a 1\n"),
            ("GET /health HTTP/1.1", None, 200, "ok\n"),
            ("GET /health HTTP/1.1", Some("x"), 503, "x\n"),
            ("GET / HTTP/1.1", None, 404, NONE),
            ("GET http://a HTTP/1.1", None, 404, NONE),
            ("GET /health/ HTTP/1.1", None, 404, NONE),
            ("POST /health HTTP/1.1", None, 405, "405 Method Not Allowed: only GET, HEAD\n"),
            ("OPTIONS * HTTP/1.1", None, 405, "405 Method Not Allowed: only GET, HEAD\n"),
        ] {
            assert_eq!(answer(line, "a", trouble), (status, text.to_owned()), "{line}");
        }
        assert_eq!(answer("GET /metrics HTTP/1.1", "evil.example", None).0, 421);
    }

    #[test]
    fn a_head_tells_the_length_of_what_it_does_not_bring() {
        let date = Date::of(SystemTime::UNIX_EPOCH);
        let answer = Answer { content_type: METRICS, ..Answer::new(200, "a 1\n") };
        let whole = answer.written(&date, Manner { is_head: false, closes: true });
        let head = answer.written(&date, Manner { is_head: true, closes: true });
        let expected = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
                        Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
                        X-Content-Type-Options: nosniff\r\nContent-Length: 4\r\n\
                        Cache-Control: no-store\r\nConnection: close\r\n\r\n";
        assert_eq!(str::from_utf8(&head).unwrap(), expected);
        assert_eq!(whole, [head, b"a 1\n".to_vec()].concat());
    }
}
