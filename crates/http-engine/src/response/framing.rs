//! The head of a response of the crate `http`, and the framing of its body.

use haul_http1::{Date, HeadWriter, InvalidHead};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::response::Parts;

/// The framing of the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// No byte of the body is sent.
    Absent,
    /// This many bytes are left.
    Length(u64),
    Chunked,
    UntilClose,
}

/// The properties of a response that its request and connection determine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) is_head: bool,
    /// The client speaks HTTP/1.0.
    pub(crate) is_old: bool,
    /// The connection is closed after the response.
    pub(crate) closes: bool,
}

impl Terms {
    /// The value of the field Connection before the connection is closed.
    pub(crate) const CLOSE: &'static str = "close";

    /// Returns the value of the field Connection, if it is needed.
    pub(crate) fn connection(self) -> Option<&'static str> {
        match (self.closes, self.is_old) {
            (true, _) => Some(Self::CLOSE),
            (false, true) => Some("keep-alive"),
            (false, false) => None,
        }
    }
}

/// Writes the head of a response whose body has `bytes`, if that is known. Returns the framing of
/// the body, and `true` if the connection is to be closed after it.
///
/// # Errors
/// If a field is invalid.
pub(crate) fn write_head(
    parts: &Parts,
    bytes: Option<u64>,
    mut terms: Terms,
    date: &Date,
    out: &mut Vec<u8>,
) -> Result<(BodyFraming, bool), InvalidHead> {
    let status = parts.status.as_u16();
    let declared = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let bytes = declared.and_then(|length| length.parse().ok()).or(bytes);
    let has_body = !matches!(status, 204 | 304);
    let framing = match bytes {
        _ if terms.is_head || !has_body => BodyFraming::Absent,
        Some(bytes) => BodyFraming::Length(bytes),
        None if terms.is_old => BodyFraming::UntilClose,
        None => BodyFraming::Chunked,
    };
    let asks_to_close = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"close");
    terms.closes |= parts.headers.get(CONNECTION).is_some_and(asks_to_close);
    terms.closes |= framing == BodyFraming::UntilClose;
    let mut head = HeadWriter::response(out, status);
    if !parts.headers.contains_key(DATE) {
        head.date("date", date);
    }
    if let Some(connection) = terms.connection() {
        head.field("connection", connection.as_bytes());
    }
    for (name, value) in &parts.headers {
        if ![CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
            head.field(name.as_str(), value.as_bytes());
        }
    }
    match (framing, bytes) {
        (BodyFraming::Chunked, _) => {
            head.field("transfer-encoding", b"chunked");
        }
        (_, Some(bytes)) if has_body => {
            head.number("content-length", bytes);
        }
        _ => {}
    }
    head.end()?;
    Ok((framing, terms.closes))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::Response;

    use super::*;

    fn head(
        response: Response<()>,
        bytes: Option<u64>,
        terms: Terms,
    ) -> (String, BodyFraming, bool) {
        let date = Date::of(SystemTime::UNIX_EPOCH);
        let mut out = Vec::new();
        let (framing, closes) =
            write_head(&response.into_parts().0, bytes, terms, &date, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), framing, closes)
    }

    const TERMS: Terms = Terms { is_head: false, is_old: false, closes: false };

    #[test]
    fn framing_follows_the_version_and_the_length() {
        let plain = || Response::new(());
        let (text, framing, closes) = head(plain(), Some(5), TERMS);
        assert!(text.ends_with("\r\ncontent-length: 5\r\n\r\n"), "{text}");
        assert_eq!((framing, closes), (BodyFraming::Length(5), false));
        let (text, framing, closes) = head(plain(), None, TERMS);
        assert!(text.ends_with("\r\ntransfer-encoding: chunked\r\n\r\n"), "{text}");
        assert_eq!((framing, closes), (BodyFraming::Chunked, false));
        let (text, framing, closes) = head(plain(), None, Terms { is_old: true, ..TERMS });
        assert!(text.contains("connection: close\r\n"), "{text}");
        assert_eq!((framing, closes), (BodyFraming::UntilClose, true));
        let (text, framing, _) = head(plain(), Some(5), Terms { is_head: true, ..TERMS });
        assert!(text.contains("content-length: 5\r\n"), "{text}");
        assert_eq!(framing, BodyFraming::Absent);
        let empty = Response::builder().status(204).body(()).unwrap();
        let (text, framing, _) = head(empty, Some(0), Terms { is_old: true, ..TERMS });
        assert!(!text.contains("content-length") && text.contains("keep-alive"), "{text}");
        assert_eq!(framing, BodyFraming::Absent);
    }

    #[test]
    fn fields_of_the_framing_are_the_engine_s_own() {
        let response = Response::builder()
            .header("connection", "close")
            .header("transfer-encoding", "chunked")
            .header("content-length", "7")
            .header("etag", "\"a\"")
            .body(())
            .unwrap();
        let (text, framing, closes) = head(response, None, TERMS);
        let expected = "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
                        connection: close\r\netag: \"a\"\r\ncontent-length: 7\r\n\r\n";
        assert_eq!((text.as_str(), framing, closes), (expected, BodyFraming::Length(7), true));
    }
}
