//! Tests of idle upstream connections that other clients reuse.

use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};

use haul_tcp_relay::{EndReason, HttpOptions, Stats};

use crate::targets::{exhaust_descriptors_except, is_child_process, limit_descriptors};

use super::{Http, Peer, RequestLog, client, http, http_with, ok, responding_target, target};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const CLOSE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const OLD: &str = "GET / HTTP/1.0\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";

fn number_of(log: &RequestLog) -> Vec<String> {
    let number = |request: &super::Message| request.all("connection-number")[0].to_owned();
    log.requests().iter().map(number).collect()
}

/// Sends one request on a new connection; waits until the relay has closed it.
fn exchange_once(relay: &Http, request: &str) -> Vec<u8> {
    let before: u64 = relay.stats().ended.iter().sum();
    let mut client = client(relay);
    let body = client.exchange(request).body;
    drop(client);
    relay.until(|stats| stats.ended.iter().sum::<u64>() == before + 1);
    body
}

fn is_one_idle(stats: &Stats) -> bool {
    (stats.targets[0].connected, stats.targets[0].active) == (1, 0)
}

#[test]
fn successive_clients_reuse_one_upstream_connection() {
    for request in [GET, CLOSE, OLD] {
        let (address, log) = responding_target(|_| ok("here"));
        let relay = http([address]);
        for _ in 0..20 {
            assert_eq!(exchange_once(&relay, request), b"here");
        }
        assert_eq!(number_of(&log), ["0"; 20], "{request}");
        let stats = relay.stats();
        assert!(is_one_idle(&stats));
        assert_eq!((stats.http.reused, stats.ended(EndReason::Clean)), (19, 20));
    }
}

#[test]
fn idle_client_releases_its_upstream_connection() {
    let (address, log) = responding_target(|_| ok("here"));
    let relay = http([address]);
    let (mut first, mut second) = (client(&relay), client(&relay));
    for _ in 0..2 {
        for client in [&mut first, &mut second] {
            assert_eq!(client.exchange(GET).body, b"here");
            relay.until(is_one_idle);
        }
    }
    assert_eq!(number_of(&log), ["0"; 4]);
}

/// The target may close an idle connection at any time. The relay must then send the request again,
/// which is safe only for idempotent requests.
#[test]
fn unsafe_request_uses_no_shared_connection() {
    let (address, log) = responding_target(|_| ok("here"));
    let relay = http([address]);
    exchange_once(&relay, GET);
    exchange_once(&relay, POST);
    exchange_once(&relay, POST);
    assert_eq!(number_of(&log), ["0", "1", "2"]);
}

#[test]
fn authenticated_connection_is_not_shared() {
    for credentials in ["NTLM TlRMTVNTUAABAAAA", "Negotiate YII="] {
        let (address, log) = responding_target(|_| ok("here"));
        let relay = http([address]);
        let authenticated =
            GET.replace("\r\n\r\n", &format!("\r\nAuthorization: {credentials}\r\n\r\n"));
        exchange_once(&relay, &authenticated);
        exchange_once(&relay, GET);
        exchange_once(&relay, &authenticated);
        assert_eq!(number_of(&log), ["0", "1", "2"], "{credentials}");
    }
}

/// A target that does not read a request body parses it as the next request and responds to it.
#[test]
fn unread_body_is_no_request_of_the_next_client() {
    let (to_target, from_test) = channel::<()>();
    let from_test = Mutex::new(from_test);
    let address = target(move |_, mut peer| {
        while let Ok(head) = peer.head() {
            let Some(path) = head.line.split(' ').nth(1) else { break };
            if path == "/within" {
                // The response is sent after the next client's request.
                from_test.lock().unwrap().recv().ok();
            }
            if peer.try_send(ok(path)).is_err() {
                break;
            }
        }
    });
    let relay = http([address]);
    let within = "GET /within HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = within.len();
    let first =
        format!("GET /first HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{within}");
    assert_eq!(exchange_once(&relay, &first), b"/first");
    let mut next = client(&relay);
    next.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    relay.until(|stats| stats.http.reused == 1 || stats.targets[0].connected == 2);
    drop(to_target);
    assert_eq!(next.response().unwrap().body, b"/next");
}

#[test]
fn connection_is_not_shared_after_a_body() {
    const CHUNKED: &str =
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    let get = POST.replace("POST", "GET");
    for request in [POST, CHUNKED, &get] {
        let (address, log) = responding_target(|_| ok("here"));
        let relay = http([address]);
        let mut own = client(&relay);
        for request in [GET, request, GET] {
            assert_eq!(own.exchange(request).body, b"here");
        }
        drop(own);
        relay.until(|stats| stats.ended(EndReason::Clean) == 1);
        exchange_once(&relay, GET);
        assert_eq!(number_of(&log), ["0", "0", "0", "1"], "{request}");
    }
}

#[test]
fn connection_with_a_proxy_header_is_not_shared() {
    let address = target(|number, mut peer| {
        assert_eq!(peer.body(16).unwrap()[..5], *b"\r\n\r\n\0");
        peer.body(12).unwrap();
        while let Ok(Some(_)) = peer.request() {
            peer.send(ok(number.to_string()));
        }
    });
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.proxy_out = Some(haul_tcp_relay::proxy::Version::V2);
    });
    for number in 0..3 {
        assert_eq!(exchange_once(&relay, GET), number.to_string().as_bytes());
    }
}

#[test]
fn request_on_a_closed_idle_connection_is_retried() {
    let address = target(|number, mut peer| {
        peer.request().unwrap();
        peer.send(ok(number.to_string()));
        // The target closes without a response when the next request arrives.
        peer.head().ok();
    });
    let relay = http([address]);
    for number in 0..5 {
        assert_eq!(exchange_once(&relay, GET), number.to_string().as_bytes());
    }
    assert_eq!(relay.stats().http.retried, 4);
}

#[test]
fn unsolicited_response_reaches_no_client() {
    let (to_test, server) = channel();
    let to_test = Mutex::new(to_test);
    let address = target(move |number, mut peer: Peer| {
        peer.request().unwrap();
        peer.send(ok(number.to_string()));
        to_test.lock().unwrap().send(peer).unwrap();
    });
    let relay = http([address]);
    assert_eq!(exchange_once(&relay, GET), b"0");
    let mut first = server.recv().unwrap();
    first.send(ok("unsolicited"));
    assert_eq!(exchange_once(&relay, GET), b"1");
    assert_eq!(first.stream().peek(&mut [0]).unwrap_or_default(), 0, "the relay closed it");
    // The relay checks idle connections periodically, not only before it reuses them.
    let mut second = server.recv().unwrap();
    second.send("x");
    assert_eq!(second.rest().unwrap_or_default(), b"");
}

#[test]
fn idle_connections_are_limited() {
    let all = Barrier::new(5);
    let (address, _) = responding_target(move |_| {
        all.wait();
        ok("here")
    });
    let options = HttpOptions { idle_connections_max: 2, ..HttpOptions::default() };
    let relay = http_with([address], options, |_| {});
    for connected in [5, 8] {
        let mut clients: Vec<_> = (0..5).map(|_| client(&relay)).collect();
        clients.iter_mut().for_each(|client| client.send(GET));
        clients.iter_mut().for_each(|client| assert_eq!(client.response().unwrap().body, b"here"));
        drop(clients);
        let stats = relay.until(|stats| (stats.active, stats.targets[0].active) == (0, 0));
        assert_eq!(stats.targets[0].connected, connected);
    }
}

#[test]
fn idle_connections_are_closed_to_free_descriptors() {
    const NAME: &str = "http::idle_pool::idle_connections_are_closed_to_free_descriptors";
    if !is_child_process(NAME) {
        return;
    }
    limit_descriptors();
    let both = Barrier::new(2);
    let (address, _) = responding_target(move |request| {
        if request.line.starts_with("GET") {
            both.wait();
        }
        ok("here")
    });
    let relay = http([address]);
    let mut clients = [client(&relay), client(&relay)];
    clients.iter_mut().for_each(|client| client.send(GET));
    clients.iter_mut().for_each(|client| assert_eq!(client.response().unwrap().body, b"here"));
    drop(clients);
    relay.until(|stats| (stats.active, stats.targets[0].active) == (0, 0));
    // Two descriptors are free: one for the client's socket and one for the socket that the relay
    // accepts. The connection to the target needs a third.
    let taken = exhaust_descriptors_except(2);
    assert_eq!(exchange_once(&relay, POST), b"here");
    drop(taken);
    let log = &relay.stats().targets[0];
    assert_eq!((log.connected, log.failed), (3, 0));
}
