//! Connections that end at every point: what is not complete never looks as if it were.

use std::io::{ErrorKind, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use haul_tcp_relay::Ended;

use super::{answering, chunked, client, http, noise, ok, target};
use crate::world::nowhere;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// The same request, which must not be asked twice.
const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

fn responses() -> Vec<Vec<u8>> {
    let body = noise(1, 300);
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    vec![ok(&body), [&head[..], &chunked(&body, &[1, 50])].concat()]
}

#[test]
fn a_response_that_is_cut_short_is_told_as_such() {
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
                        // What a reset took with it was not received before.
                        assert!(bytes < head_bytes || is_reset, "{what}: {response:?}");
                        assert_eq!(response.status(), 502, "{what}");
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

/// The write of the request that fails takes the error that would have told a cut from an end.
#[test]
fn a_response_cut_while_its_request_is_still_sent_is_told_as_such() {
    for _ in 0..20 {
        let address = target(|_, mut peer| {
            peer.head().unwrap();
            peer.send(b"HTTP/1.1 200 OK\r\n\r\nthe beginning");
            // Closed with bytes unread: the kernel makes a reset of it.
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
        // One of the two calls is told, the other finds an end. After a proper end it would be a
        // broken pipe.
        let read = client.rest().map_err(|error| error.kind());
        let written = upload.join().unwrap();
        assert!(read == Err(ErrorKind::ConnectionReset) || written == ErrorKind::ConnectionReset);
    }
}

#[test]
fn a_response_up_to_the_end_is_whole_only_if_the_end_is_clean() {
    let address = target(|number, mut peer| {
        peer.request().unwrap();
        peer.send([b"HTTP/1.1 200 OK\r\n\r\n", &noise(1, 100)[..]].concat());
        if number == 1 {
            peer.reset();
        }
    });
    let relay = http([address]);
    assert_eq!(client(&relay).ask(GET).body, noise(1, 100));
    let mut client = client(&relay);
    client.send(POST);
    match client.response() {
        Ok(response) => assert_eq!(response.status(), 502),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn a_request_that_is_cut_short_never_looks_whole_to_a_target() {
    let whole = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                 5\r\nhello\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n";
    let counted = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";
    for whole in [whole, counted] {
        let (address, seen) = answering(|_| ok("next"));
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
                    // Nothing but the end comes, in one way or the other.
                    assert!(client.rest().unwrap_or_default().is_empty(), "{bytes} of {whole}");
                }
                ended += 1;
                relay.until(|stats| stats.ended.iter().sum::<u64>() == ended);
            }
        }
        assert_eq!(seen.requests(), [], "{whole}");
        assert_eq!(client(&relay).ask(whole).body, b"next");
    }
}

#[test]
fn a_client_that_has_said_all_still_gets_its_response() {
    let (address, _) = answering(|_| ok(noise(1, 500_000)));
    let relay = http([address]);
    let mut client = client(&relay);
    client.send(GET);
    client.shut();
    assert!(client.response().unwrap().body == noise(1, 500_000));
    assert_eq!(client.rest().unwrap(), b"");
    relay.until(|stats| stats.ended(Ended::Clean) == 1);
}

#[test]
fn clients_that_go_away_leave_nothing_behind() {
    let (address, _) = answering(|_| ok(noise(1, 400_000)));
    let relay = http([address]);
    for bytes in (0..100_000).step_by(9973) {
        let mut client = client(&relay);
        client.send(GET);
        client.head().unwrap();
        client.body(bytes).unwrap();
        client.reset();
    }
    let mut client = client(&relay);
    assert!(client.ask(GET).body == noise(1, 400_000), "bytes of another response");
    relay.until(|stats| (stats.active, stats.targets[0].active, stats.pipes.leased) == (1, 1, 0));
}

#[test]
fn a_target_may_end_a_connection_between_requests() {
    let served = AtomicUsize::new(0);
    // Each connection serves one request, and ends when the next one comes, without an answer.
    let address = target(move |_, mut peer| {
        peer.request().unwrap();
        peer.send(ok(served.fetch_add(1, SeqCst).to_string()));
        peer.head().ok();
    });
    let relay = http([address]);
    let mut client = client(&relay);
    for number in 0..10 {
        assert_eq!(client.ask(GET).body, number.to_string().as_bytes(), "asked again");
    }
    let lost = client.ask(POST);
    assert_eq!(lost.status(), 502, "what may do harm is asked once");
    let http = relay.stats().http;
    assert_eq!((http.asked_again, http.answered(502)), (9, 1));
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn a_connection_that_a_target_has_ended_is_not_used() {
    let (served, over) = (AtomicUsize::new(0), Mutex::new(()));
    let address = target(move |_, mut peer| {
        let _one_at_a_time = over.lock().unwrap();
        peer.request().unwrap();
        peer.send(ok(served.fetch_add(1, SeqCst).to_string()));
    });
    let relay = http([address]);
    let mut client = client(&relay);
    for number in 0..10 {
        assert_eq!(client.ask(POST).body, number.to_string().as_bytes());
        // The end has reached the relay, which let go of its side.
        relay.until(|stats| stats.targets[0].active == 0);
    }
}

#[test]
fn an_answer_that_comes_early_is_passed_on_and_ends_the_upload() {
    let address = target(|_, mut peer| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nstop");
        assert!(peer.rest().is_err(), "an upload that was cut short is no clean end");
    });
    let relay = http([address]);
    let mut client = client(&relay);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    client.send(vec![1; 300_000]);
    let response = client.response().unwrap();
    assert_eq!((response.status(), &response.body[..]), (403, &b"stop"[..]));
    assert_eq!(response.all("connection"), ["close"]);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn no_target_is_503_and_the_next_target_is_tried() {
    let relay = http([nowhere()]);
    let mut client_ = client(&relay);
    assert_eq!(client_.ask(GET).status(), 503);
    assert_eq!(client_.rest().unwrap(), b"");
    relay.until(|stats| stats.ended(Ended::NoTarget) == 1);
    let (address, _) = answering(|_| ok("second"));
    let relay = http([nowhere(), address]);
    for _ in 0..4 {
        assert_eq!(client(&relay).ask(GET).body, b"second");
    }
}

#[test]
fn head_gets_no_body_with_a_refusal() {
    let relay = http([nowhere()]);
    let mut client = client(&relay);
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head().unwrap();
    assert_eq!(head.status(), 503);
    assert_ne!(head.all("content-length"), ["0"]);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn a_relay_that_drains_ends_after_the_exchanges_under_way() {
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
    assert_eq!(idle.ask(GET).body, b"late");
    busy.send(GET);
    relay.until(|stats| stats.targets[0].active == 2);
    relay.handle.drain();
    assert_eq!(idle.rest().unwrap(), b"", "who waits for nothing is let go");
    go.send(()).unwrap();
    let response = busy.response().unwrap();
    assert_eq!((response.all("connection"), &response.body[..]), (vec!["close"], &b"late"[..]));
    let stats = relay.drain();
    assert_eq!((stats.active, stats.ended(Ended::Clean)), (0, 2));
}

#[test]
fn a_relay_that_drains_brings_a_response_under_way_to_its_end() {
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
    assert!(head.all("connection").is_empty(), "it was to be kept");
    let mut body = client.body(1000).unwrap();
    relay.handle.drain();
    assert_eq!(idle.rest().unwrap(), b"", "the end has begun");
    go.send(()).unwrap();
    body.extend(client.body(BYTES - 1000).unwrap());
    assert!(body == noise(1, BYTES));
    assert_eq!(client.rest().unwrap(), b"");
    let stats = relay.drain();
    assert_eq!((stats.active, stats.ended(Ended::Clean)), (0, 2));
}
