//! Tests that ambiguous and oversized messages are refused and reach no target.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use haul_tcp_relay::{Address, HttpOptions};
use haul_testing::{Transport, over};

use super::{Http, Message, client_over, http_over, ok, responding_target, target};

over!(Plain Inherited Tls => (
    hostile_heads_are_refused_and_reach_no_target,
    bytes_after_a_hostile_head_are_not_parsed,
    hostile_bodies_never_look_complete_to_a_target,
    invalid_responses_become_502,
    surplus_response_reaches_no_client,
    oversized_requests_are_refused,
    refused_upload_gets_its_response_while_sending,
));

#[path = "../../../../http1/tests/all/corpus.rs"]
mod corpus;

/// A target that no request should reach, and the number of connections it accepted.
fn unused_target() -> (Address, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let address = target(move |_, _| _ = count.fetch_add(1, SeqCst));
    (address, connections)
}

/// Sends bytes; returns the error response, which a clean close must follow.
fn refusal(relay: &Http, bytes: &[u8]) -> Message {
    let mut client = client_over(relay);
    client.send(bytes);
    let response = client.response().unwrap();
    assert_eq!(response.all("connection"), ["close"]);
    assert_eq!(client.rest().unwrap(), b"");
    response
}

fn hostile_heads_are_refused_and_reach_no_target(transport: Transport) {
    let (address, connections) = unused_target();
    let relay = http_over(transport, [address], HttpOptions::default(), |_| {});
    let smuggled = b"6\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    for (why, fields) in corpus::HOSTILE_FIELDS {
        let request = [&corpus::post(fields)[..], smuggled].concat();
        assert_eq!(refusal(&relay, &request).status, 400, "{why}");
    }
    for (why, host) in corpus::HOSTILE_HOSTS {
        let request = [b"GET / HTTP/1.1\r\nHost: ", *host, b"\r\n\r\n"].concat();
        assert_eq!(refusal(&relay, &request).status, 400, "{why}");
    }
    for (why, line, status) in corpus::HOSTILE_LINES {
        assert_eq!(refusal(&relay, &corpus::with_line(line)).status, *status, "{why}");
    }
    assert_eq!(connections.load(SeqCst), 0);
    assert_eq!(relay.stats().targets[0].connected, 0);
}

fn bytes_after_a_hostile_head_are_not_parsed(transport: Transport) {
    let (address, log) = responding_target(|_| ok("passed"));
    let relay = http_over(transport, [address], HttpOptions::default(), |_| {});
    let mut client = client_over(&relay);
    let good = "GET /good HTTP/1.1\r\nHost: a\r\n\r\n";
    let bad =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send([good, bad, "0\r\n\r\n", good].concat());
    assert_eq!(client.response().unwrap().body, b"passed");
    assert_eq!(client.response().unwrap().status, 400);
    assert_eq!(client.rest().unwrap(), b"");
    assert_eq!(log.requests().len(), 1);
}

fn hostile_bodies_never_look_complete_to_a_target(transport: Transport) {
    let whole = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&whole);
    let address = target(move |_, mut peer| match peer.request() {
        Ok(Some(_)) => _ = count.fetch_add(1, SeqCst),
        Ok(None) => {}
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the relay must reset it")
        }
    });
    let relay = http_over(transport, [address], HttpOptions::default(), |_| {});
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (why, body) in corpus::HOSTILE_BODIES {
        let response = refusal(&relay, &[&head[..], body].concat());
        assert_eq!(response.status, 400, "{why}, at once");
        let mut client = client_over(&relay);
        client.send(head);
        relay.until(|stats| stats.targets[0].active == 1);
        client.send(body);
        assert_eq!(client.response().unwrap().status, 400, "{why}, later");
        relay.until(|stats| stats.targets[0].active == 0);
    }
    assert_eq!(whole.load(SeqCst), 0);
}

fn invalid_responses_become_502(transport: Transport) {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk",
        b"HTTP/1.1 999 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Len",
        b"",
    ] {
        let address = target(move |_, mut peer| {
            peer.request().unwrap();
            peer.send(bytes);
        });
        let relay = http_over(transport, [address], HttpOptions::default(), |_| {});
        let response = refusal(&relay, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(response.status, 502, "{}", String::from_utf8_lossy(bytes));
    }
}

fn surplus_response_reaches_no_client(transport: Transport) {
    let address = target(|number, mut peer| {
        while let Ok(Some(_)) = peer.request() {
            let extra = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nforeign";
            let own = ok(number.to_string());
            if peer.try_send([&own[..], extra].concat()).is_err() {
                return;
            }
        }
    });
    let relay = http_over(transport, [address], HttpOptions::default(), |_| {});
    let mut client = client_over(&relay);
    for number in 0..20 {
        let response = client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(response.body, number.to_string().as_bytes(), "each on a new connection");
    }
}

fn oversized_requests_are_refused(transport: Transport) {
    let (address, log) = responding_target(|request| ok(request.body.len().to_string()));
    let options = HttpOptions { request_body_bytes_max: Some(1000), ..HttpOptions::default() };
    let relay = http_over(transport, [address], options, |_| {});
    let status = |request: String| refusal(&relay, request.as_bytes()).status;
    let get =
        |target: &str, fields: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    assert_eq!(status(get("/", &"X: y\r\n".repeat(100))), 431);
    assert_eq!(status(get("/", &format!("X: {}\r\n", "y".repeat(17_000)))), 431);
    assert_eq!(status(get(&format!("/{}", "a".repeat(9000)), "")), 414);
    let named = (0..40).map(|number| format!("x{number},")).collect::<String>();
    assert_eq!(status(get("/", &format!("Connection: {named}\r\n"))), 400);
    assert_eq!(status("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()), 501);
    assert_eq!(status("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()), 501);
    assert_eq!(status(get("/", "Expect: more\r\n")), 417);
    assert_eq!(status(get("/", "Transfer-Encoding: gzip, chunked\r\n")), 501);
    assert_eq!(status(get("/", "Content-Length: 1001\r\n")), 413);
    let body = "400\r\n".to_owned() + &"x".repeat(1024) + "\r\n0\r\n\r\n";
    assert_eq!(status(get("/", "Transfer-Encoding: chunked\r\n") + &body), 413);
    assert!(log.requests().is_empty());
    let mut client = client_over(&relay);
    let right = get("/", "Content-Length: 1000\r\n") + &"x".repeat(1000);
    assert_eq!(client.exchange(right).body, b"1000");
}

fn refused_upload_gets_its_response_while_sending(transport: Transport) {
    let (address, _) = responding_target(|_| ok(""));
    let options = HttpOptions { request_body_bytes_max: Some(1000), ..HttpOptions::default() };
    let relay = http_over(transport, [address], options, |_| {});
    let mut client = client_over(&relay);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
    client.send(vec![0; 2_000_000]);
    assert_eq!(client.response().unwrap().status, 413);
    assert_eq!(client.rest().unwrap(), b"");
}
