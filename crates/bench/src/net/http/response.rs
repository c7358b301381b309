//! Parses the status and the `Content-Length` of an HTTP/1.1 response. Performs no I/O.

/// The status and the lengths of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    /// The length of the head in bytes, including its final empty line.
    pub(crate) head_bytes: usize,
    pub(crate) body_bytes: u64,
}

/// Parses the head at the start of `bytes`; returns `None` if it is incomplete.
pub(crate) fn parse_head(bytes: &[u8]) -> Option<Result<ResponseHead, String>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&bytes[..end]);
    Some(parse(&text, end + 4).ok_or_else(|| format!("invalid response head {text:?}")))
}

fn parse(text: &str, head_bytes: usize) -> Option<ResponseHead> {
    let (first, rest) = text.split_once("\r\n")?;
    let status = first.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let mut lengths = rest.split("\r\n").filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())
    });
    let body_bytes = lengths.next()??;
    Some(ResponseHead { status, head_bytes, body_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_is_parsed_once_complete() {
        let text = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH:  12 \r\n\r\nbody";
        let expected = ResponseHead { status: 200, head_bytes: text.len() - 4, body_bytes: 12 };
        for end in 0..text.len() {
            let found = parse_head(&text[..end]);
            assert_eq!(found, (end >= text.len() - 4).then_some(Ok(expected)), "{end}");
        }
    }

    #[test]
    fn head_without_a_valid_length_is_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 2\r\nContent-Length: 1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(parse_head(text.as_bytes()).is_some_and(|found| found.is_err()), "{text}");
        }
    }
}
