//! Sends a request through a relay for HTTP. Its response is well-formed, and the target receives
//! nothing but this request, even if it reads requests leniently.
//!
//! The first byte selects whether the body has a length or chunks. Then follow a method and a
//! target, fields, an empty line, and the body.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::chunked::encode;
use crate::servers::relay::{RELAY, ROUND_FIELD, take_seen};
use crate::servers::{RequestParts, exchange, reply_to};

static ROUNDS: AtomicU64 = AtomicU64::new(1);

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else { return };
    let RequestParts { line, fields, body } = RequestParts::of(rest);
    if fields.to_ascii_lowercase().windows(ROUND_FIELD.len()).any(|it| it == ROUND_FIELD.as_bytes())
    {
        // "connection" may name it as a field for the relay only.
        return;
    }
    let round = ROUNDS.fetch_add(1, Ordering::Relaxed);
    let is_chunked = flags & 1 != 0;
    let (framing, framed) = if is_chunked {
        ("transfer-encoding: chunked".to_owned(), encode(body, 7))
    } else {
        (format!("content-length: {}", body.len()), body.to_vec())
    };
    let general = format!(
        " HTTP/1.1\r\nhost: example\r\n{ROUND_FIELD}: {round}\r\nconnection: close\r\n{framing}\r\n"
    );
    let request = [line, general.as_bytes(), fields, b"\r\n", &framed].concat();
    let received = exchange(*RELAY, &request);
    drop(reply_to(line, &received));
    for seen in take_seen() {
        let sent = String::from_utf8_lossy(&request);
        assert!(seen.round.is_some_and(|of| of <= round), "{seen:?} was received, of {sent}");
        if seen.round == Some(round) {
            assert_eq!(seen.body, body, "of {sent}");
        }
    }
}
