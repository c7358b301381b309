//! Connections to targets that one client leaves to the next.

use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};

use haul_tcp_relay::{Ended, HttpOptions, Stats};

use crate::targets::{have_few_descriptors, is_alone, leave};

use super::{Http, Peer, Seen, answering, client, http, http_with, ok, target};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const CLOSE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const OLD: &str = "GET / HTTP/1.0\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";

fn number_of(seen: &Seen) -> Vec<String> {
    let number = |request: &super::Message| request.all("connection-number")[0].to_owned();
    seen.requests().iter().map(number).collect()
}

/// A client that comes, asks once, and goes; and the relay has noticed.
fn ask_once(relay: &Http, request: &str) -> Vec<u8> {
    let before: u64 = relay.stats().ended.iter().sum();
    let mut client = client(relay);
    let body = client.ask(request).body;
    drop(client);
    relay.until(|stats| stats.ended.iter().sum::<u64>() == before + 1);
    body
}

fn is_one_idle(stats: &Stats) -> bool {
    (stats.targets[0].connected, stats.targets[0].active) == (1, 0)
}

#[test]
fn clients_that_come_and_go_use_one_connection_after_the_other() {
    for request in [GET, CLOSE, OLD] {
        let (address, seen) = answering(|_| ok("here"));
        let relay = http([address]);
        for _ in 0..20 {
            assert_eq!(ask_once(&relay, request), b"here");
        }
        assert_eq!(number_of(&seen), ["0"; 20], "{request}");
        let stats = relay.stats();
        assert!(is_one_idle(&stats));
        assert_eq!((stats.http.reused, stats.ended(Ended::Clean)), (19, 20));
    }
}

#[test]
fn a_client_that_asks_nothing_leaves_its_connection_to_others() {
    let (address, seen) = answering(|_| ok("here"));
    let relay = http([address]);
    let (mut first, mut second) = (client(&relay), client(&relay));
    for _ in 0..2 {
        for client in [&mut first, &mut second] {
            assert_eq!(client.ask(GET).body, b"here");
            relay.until(is_one_idle);
        }
    }
    assert_eq!(number_of(&seen), ["0"; 4]);
}

/// The target may end such a connection just when the request comes, and it must not be sent twice.
#[test]
fn a_request_that_may_do_harm_goes_over_no_connection_of_another_client() {
    let (address, seen) = answering(|_| ok("here"));
    let relay = http([address]);
    ask_once(&relay, GET);
    ask_once(&relay, POST);
    ask_once(&relay, POST);
    assert_eq!(number_of(&seen), ["0", "1", "2"]);
}

#[test]
fn a_connection_over_which_a_client_proved_who_it_is_stays_with_it() {
    for proof in ["NTLM TlRMTVNTUAABAAAA", "Negotiate YII="] {
        let (address, seen) = answering(|_| ok("here"));
        let relay = http([address]);
        let proven = GET.replace("\r\n\r\n", &format!("\r\nAuthorization: {proof}\r\n\r\n"));
        ask_once(&relay, &proven);
        ask_once(&relay, GET);
        ask_once(&relay, &proven);
        assert_eq!(number_of(&seen), ["0", "1", "2"], "{proof}");
    }
}

/// Who reads no body takes it for the next request, and answers that.
#[test]
fn a_body_that_a_target_leaves_unread_asks_nothing_for_the_next_client() {
    let (to_target, from_test) = channel::<()>();
    let from_test = Mutex::new(from_test);
    let address = target(move |_, mut peer| {
        while let Ok(head) = peer.head() {
            let Some(path) = head.line.split(' ').nth(1) else { break };
            if path == "/within" {
                // Its answer comes when the next client has asked.
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
    assert_eq!(ask_once(&relay, &first), b"/first");
    let mut next = client(&relay);
    next.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    relay.until(|stats| stats.http.reused == 1 || stats.targets[0].connected == 2);
    drop(to_target);
    assert_eq!(next.response().unwrap().body, b"/next");
}

#[test]
fn a_connection_over_which_a_body_went_stays_with_its_client() {
    const CHUNKED: &str =
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    let get = POST.replace("POST", "GET");
    for request in [POST, CHUNKED, &get] {
        let (address, seen) = answering(|_| ok("here"));
        let relay = http([address]);
        let mut own = client(&relay);
        for request in [GET, request, GET] {
            assert_eq!(own.ask(request).body, b"here");
        }
        drop(own);
        relay.until(|stats| stats.ended(Ended::Clean) == 1);
        ask_once(&relay, GET);
        assert_eq!(number_of(&seen), ["0", "0", "0", "1"], "{request}");
    }
}

#[test]
fn a_connection_that_began_with_the_name_of_a_client_stays_with_it() {
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
        assert_eq!(ask_once(&relay, GET), number.to_string().as_bytes());
    }
}

#[test]
fn a_request_over_a_connection_that_its_target_ends_just_then_is_asked_again() {
    let address = target(|number, mut peer| {
        peer.request().unwrap();
        peer.send(ok(number.to_string()));
        // It ends when the next one comes, without an answer.
        peer.head().ok();
    });
    let relay = http([address]);
    for number in 0..5 {
        assert_eq!(ask_once(&relay, GET), number.to_string().as_bytes());
    }
    assert_eq!(relay.stats().http.asked_again, 4);
}

#[test]
fn what_a_target_says_unasked_reaches_no_client() {
    let (to_test, far) = channel();
    let to_test = Mutex::new(to_test);
    let address = target(move |number, mut peer: Peer| {
        peer.request().unwrap();
        peer.send(ok(number.to_string()));
        to_test.lock().unwrap().send(peer).unwrap();
    });
    let relay = http([address]);
    assert_eq!(ask_once(&relay, GET), b"0");
    let mut first = far.recv().unwrap();
    first.send(ok("nobody asked"));
    assert_eq!(ask_once(&relay, GET), b"1");
    assert_eq!(first.stream().peek(&mut [0]).unwrap_or_default(), 0, "it is let go");
    // Those that are not used are looked at, too.
    let mut second = far.recv().unwrap();
    second.send("x");
    assert_eq!(second.rest().unwrap_or_default(), b"");
}

#[test]
fn so_many_are_kept_and_no_more() {
    let all = Barrier::new(5);
    let (address, _) = answering(move |_| {
        all.wait();
        ok("here")
    });
    let options = HttpOptions { spares_max: 2, ..HttpOptions::default() };
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
fn connections_that_nobody_uses_make_room_for_one_that_somebody_needs() {
    const NAME: &str =
        "http::sharing::connections_that_nobody_uses_make_room_for_one_that_somebody_needs";
    if !is_alone(NAME) {
        return;
    }
    have_few_descriptors();
    let both = Barrier::new(2);
    let (address, _) = answering(move |request| {
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
    // The client's own, and what accepts it: none for the target. There, one is taken, too.
    let taken = leave(2);
    assert_eq!(ask_once(&relay, POST), b"here");
    drop(taken);
    let seen = &relay.stats().targets[0];
    assert_eq!((seen.connected, seen.failed), (3, 0));
}
