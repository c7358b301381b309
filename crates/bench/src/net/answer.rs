//! The head of an answer over HTTP/1.1, as far as a load needs it. Pure.

/// What a head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Its own length, the empty line included.
    pub(crate) head_bytes: usize,
    pub(crate) body_bytes: u64,
}

/// The head `bytes` begin with; `None` as long as it has no end.
pub(crate) fn head(bytes: &[u8]) -> Option<Result<Head, String>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&bytes[..end]);
    Some(understood(&text, end + 4).ok_or_else(|| format!("it answered {text:?}")))
}

fn understood(text: &str, head_bytes: usize) -> Option<Head> {
    let (first, rest) = text.split_once("\r\n")?;
    let status = first.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let mut lengths = rest.split("\r\n").filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())
    });
    let body_bytes = lengths.next()??;
    Some(Head { status, head_bytes, body_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_known_once_it_has_ended() {
        let text = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH:  12 \r\n\r\nbody";
        let expected = Head { status: 200, head_bytes: text.len() - 4, body_bytes: 12 };
        for end in 0..text.len() {
            let found = head(&text[..end]);
            assert_eq!(found, (end >= text.len() - 4).then_some(Ok(expected)), "{end}");
        }
    }

    #[test]
    fn what_is_no_answer_with_a_length_is_told() {
        for text in [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 2\r\nContent-Length: 1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(head(text.as_bytes()).is_some_and(|found| found.is_err()), "{text}");
        }
    }
}
