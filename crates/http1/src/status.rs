//! Maps status codes to reason phrases.

/// Returns the standard reason phrase of a status code; empty if the code is not in this table.
pub const fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// A complete response of status 503, for a client that has too many connections open. It is the
/// same for all methods: to a HEAD request its body is longer than the client expects, but the
/// connection ends.
pub const CONNECTION_REFUSED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Retry-After: 1\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 40\r\n\
    Connection: close\r\n\r\n503 too many connections of this client\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framing, HeadLimits, MethodKind, parse_response};

    #[test]
    fn refusal_is_a_complete_response() {
        let parsed = parse_response(CONNECTION_REFUSED, &HeadLimits::default(), MethodKind::Other);
        let response = parsed.unwrap().unwrap();
        let body_bytes = CONNECTION_REFUSED.len() - response.head_bytes;
        assert_eq!((response.status, response.keep_alive), (503, false));
        assert_eq!(response.framing, Framing::Length(body_bytes as u64));
    }
}
