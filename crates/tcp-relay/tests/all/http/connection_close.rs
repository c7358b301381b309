//! Tests of connections that close at every point: a truncated message never looks complete.

use std::io::{ErrorKind, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use haul_tcp_relay::EndReason;

use super::{chunked, client, http, noise, ok, responding_target, target};
use crate::support::refusing_address;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A request that must not be sent twice.
const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

fn responses() -> Vec<Vec<u8>> {
    let body = noise(1, 300);
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    vec![ok(&body), [&head[..], &chunked(&body, &[1, 50])].concat()]
}

#[test]
fn truncated_response_resets_the_client() {
    for whole in responses() {
        let head_bytes = whole.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        for bytes in (0..whole.len()).step_by(3) {
            for is_reset in [false, true] {
                let cut = whole[..bytes].to_vec();
                let address = target(move |_, mut peer| {
                    peer.request().unwrap();
                    peer.send(&cut);
                    if is_reset {
                        peer.reset();
                    }
                });
                let relay = http([address]);
                let mut client = client(&relay);
                client.send(POST);
                let what = format!("{bytes} of {}, reset: {is_reset}", whole.len());
                match client.response() {
                    Ok(response) => {
                        // A reset may discard bytes that were not read yet.
                        assert!(bytes < head_bytes || is_reset, "{what}: {response:?}");
                        assert_eq!(response.status, 502, "{what}");
                    }
                    Err(error) => {
                        assert!(bytes >= head_bytes, "{what}: {error}");
                        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{what}");
                    }
                }
            }
        }
    }
}

/// The kernel reports a socket error once. In this test, the failed write of the request consumes
/// the error, and the truncated response ends with EOF.
#[test]
fn truncated_response_during_an_upload_resets_the_client() {
    for _ in 0..20 {
        let address = target(|_, mut peer| {
            peer.head().unwrap();
            peer.send(b"HTTP/1.1 200 OK\r\n\r\nthe beginning");
            // The kernel resets a connection that is closed with unread bytes.
            assert_eq!(peer.stream().peek(&mut [0]).unwrap(), 1);
        });
        let relay = http([address]);
        let mut client = client(&relay);
        let mut sending = client.stream().try_clone().unwrap();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
        let upload = std::thread::spawn(move || {
            loop {
                if let Err(error) = sending.write_all(&[1; 4096]) {
                    return error.kind();
                }
            }
        });
        // The kernel reports the reset to the read or to the write. After a clean close, the read
        // would return EOF and the write EPIPE.
        let read = client.rest().map_err(|error| error.kind());
        let written = upload.join().unwrap();
        assert!(read == Err(ErrorKind::ConnectionReset) || written == ErrorKind::ConnectionReset);
    }
}

#[test]
fn close_delimited_response_is_complete_only_after_eof() {
    let address = target(|number, mut peer| {
        peer.request().unwrap();
        peer.send([b"HTTP/1.1 200 OK\r\n\r\n", &noise(1, 100)[..]].concat());
        if number == 1 {
            peer.reset();
        }
    });
    let relay = http([address]);
    assert_eq!(client(&relay).exchange(GET).body, noise(1, 100));
    let mut client = client(&relay);
    client.send(POST);
    match client.response() {
        Ok(response) => assert_eq!(response.status, 502),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn truncated_request_never_looks_complete_to_a_target() {
    let whole = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                 5\r\nhello\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n";
    let counted = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";
    for whole in [whole, counted] {
        let (address, log) = responding_target(|_| ok("next"));
        let relay = http([address]);
        let mut ended = 0;
        for bytes in 0..whole.len() {
            for is_reset in [false, true] {
                let mut client = client(&relay);
                client.send(&whole[..bytes]);
                if is_reset {
                    client.reset();
                } else {
                    client.shut();
                    // The relay closes or resets without a response.
                    assert!(client.rest().unwrap_or_default().is_empty(), "{bytes} of {whole}");
                }
                ended += 1;
                relay.until(|stats| stats.ended.iter().sum::<u64>() == ended);
            }
        }
        assert_eq!(log.requests(), [], "{whole}");
        assert_eq!(client(&relay).exchange(whole).body, b"next");
    }
}

#[test]
fn half_closed_client_receives_its_response() {
    let (address, _) = responding_target(|_| ok(noise(1, 500_000)));
    let relay = http([address]);
    let mut client = client(&relay);
    client.send(GET);
    client.shut();
    assert!(client.response().unwrap().body == noise(1, 500_000));
    assert_eq!(client.rest().unwrap(), b"");
    relay.until(|stats| stats.ended(EndReason::Clean) == 1);
}

#[test]
fn disconnected_clients_release_their_resources() {
    let (address, _) = responding_target(|_| ok(noise(1, 400_000)));
    let relay = http([address]);
    for bytes in (0..100_000).step_by(9973) {
        let mut client = client(&relay);
        client.send(GET);
        client.head().unwrap();
        client.body(bytes).unwrap();
        client.reset();
    }
    let mut client = client(&relay);
    assert!(client.exchange(GET).body == noise(1, 400_000), "bytes of another response");
    relay.until(|stats| (stats.active, stats.targets[0].active, stats.pipes.leased) == (1, 1, 0));
}

#[test]
fn request_on_a_closed_upstream_connection_is_retried() {
    let served = AtomicUsize::new(0);
    // The target serves one request per connection, and closes the connection without a response
    // when the next request arrives.
    let address = target(move |_, mut peer| {
        peer.request().unwrap();
        peer.send(ok(served.fetch_add(1, SeqCst).to_string()));
        peer.head().ok();
    });
    let relay = http([address]);
    let mut client = client(&relay);
    for number in 0..10 {
        assert_eq!(client.exchange(GET).body, number.to_string().as_bytes(), "sent again");
    }
    let lost = client.exchange(POST);
    assert_eq!(lost.status, 502, "a request that is not retryable is sent once");
    let http = relay.stats().http;
    assert_eq!((http.retried, http.error_responses(502)), (9, 1));
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn closed_upstream_connection_is_not_reused() {
    let (served, over) = (AtomicUsize::new(0), Mutex::new(()));
    let address = target(move |_, mut peer| {
        let _one_at_a_time = over.lock().unwrap();
        peer.request().unwrap();
        peer.send(ok(served.fetch_add(1, SeqCst).to_string()));
    });
    let relay = http([address]);
    let mut client = client(&relay);
    for number in 0..10 {
        assert_eq!(client.exchange(POST).body, number.to_string().as_bytes());
        // The EOF of the target reached the relay, which then closed its socket.
        relay.until(|stats| stats.targets[0].active == 0);
    }
}

#[test]
fn early_response_is_forwarded_and_ends_the_upload() {
    let address = target(|_, mut peer| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nstop");
        assert!(peer.rest().is_err(), "a truncated upload must be reset");
    });
    let relay = http([address]);
    let mut client = client(&relay);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    client.send(vec![1; 300_000]);
    let response = client.response().unwrap();
    assert_eq!((response.status, &response.body[..]), (403, &b"stop"[..]));
    assert_eq!(response.all("connection"), ["close"]);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn unreachable_targets_are_skipped_or_503() {
    let relay = http([refusing_address()]);
    let mut client_ = client(&relay);
    assert_eq!(client_.exchange(GET).status, 503);
    assert_eq!(client_.rest().unwrap(), b"");
    relay.until(|stats| stats.ended(EndReason::NoTarget) == 1);
    let (address, _) = responding_target(|_| ok("second"));
    let relay = http([refusing_address(), address]);
    for _ in 0..4 {
        assert_eq!(client(&relay).exchange(GET).body, b"second");
    }
}

#[test]
fn error_response_to_head_has_no_body() {
    let relay = http([refusing_address()]);
    let mut client = client(&relay);
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head().unwrap();
    assert_eq!(head.status, 503);
    assert_ne!(head.all("content-length"), ["0"]);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn draining_waits_for_exchanges_under_way() {
    let (go, wait) = std::sync::mpsc::channel();
    let wait = Mutex::new(wait);
    let address = target(move |_, mut peer| {
        while let Ok(Some(_)) = peer.request() {
            wait.lock().unwrap().recv().unwrap();
            peer.send(ok("late"));
        }
    });
    let relay = http([address]);
    let (mut idle, mut busy) = (client(&relay), client(&relay));
    go.send(()).unwrap();
    assert_eq!(idle.exchange(GET).body, b"late");
    busy.send(GET);
    relay.until(|stats| stats.targets[0].active == 2);
    relay.handle.drain();
    assert_eq!(idle.rest().unwrap(), b"", "an idle client is closed");
    go.send(()).unwrap();
    let response = busy.response().unwrap();
    assert_eq!((response.all("connection"), &response.body[..]), (vec!["close"], &b"late"[..]));
    let stats = relay.drain();
    assert_eq!((stats.active, stats.ended(EndReason::Clean)), (0, 2));
}

#[test]
fn draining_completes_a_response_under_way() {
    const BYTES: usize = 4_000_000;
    let (go, wait) = std::sync::mpsc::channel();
    let wait = Mutex::new(wait);
    let address = target(move |_, mut peer| {
        while let Ok(Some(_)) = peer.request() {
            let response = ok(noise(1, BYTES));
            let (first, second) = response.split_at(BYTES / 2);
            peer.send(first);
            wait.lock().unwrap().recv().unwrap();
            peer.send(second);
        }
    });
    let relay = http([address]);
    let (mut idle, mut client) = (client(&relay), client(&relay));
    client.send(GET);
    let head = client.head().unwrap();
    assert!(head.all("connection").is_empty(), "the connection was persistent");
    let mut body = client.body(1000).unwrap();
    relay.handle.drain();
    assert_eq!(idle.rest().unwrap(), b"", "draining has begun");
    go.send(()).unwrap();
    body.extend(client.body(BYTES - 1000).unwrap());
    assert!(body == noise(1, BYTES));
    assert_eq!(client.rest().unwrap(), b"");
    let stats = relay.drain();
    assert_eq!((stats.active, stats.ended(EndReason::Clean)), (0, 2));
}
