//! Tests of the timeouts of clients and targets.

use std::time::Duration;

use haul_tcp_relay::{EndReason, HttpOptions, ManualClock};

use super::{Http, client, http_with, noise, ok, responding_target, target};

const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_hours(1);

/// Options with timeouts so long that no test reaches them.
fn long_timeouts() -> HttpOptions {
    HttpOptions {
        idle_time_max: Some(LONG),
        response_time_max: LONG,
        body_time_max: LONG,
        ..HttpOptions::default()
    }
}

fn unresponsive_target_relay(options: HttpOptions) -> Http {
    http_with([target(|_, mut peer| drop(peer.rest()))], options, |_| {})
}

#[test]
fn slow_request_head_is_408() {
    let unresponsive = target(|_, mut peer| drop(peer.rest()));
    let relay = http_with([unresponsive], long_timeouts(), |config| {
        config.limits.head_time_max = SHORT;
    });
    let mut client = client(&relay);
    let response = client.exchange("GET / HTTP/1.1\r\nHost: a\r\n");
    assert_eq!((response.status, response.all("connection")), (408, vec!["close"]));
    assert_eq!(client.rest().unwrap(), b"");
    assert_eq!(relay.stats().targets[0].connected, 0);
}

/// Some old HTTP/1.0 clients send an empty line after a body.
#[test]
fn empty_line_between_requests_is_ignored() {
    let (address, _) = responding_target(|_| ok("here"));
    let relay = http_with([address], long_timeouts(), |config| {
        config.limits.head_time_max = SHORT;
    });
    let mut client = client(&relay);
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for _ in 0..2 {
        assert_eq!(client.exchange([request, "\r\n"].concat()).body, b"here");
        // The session has no request, so it releases its upstream connection.
        relay.until(|stats| (stats.targets[0].connected, stats.targets[0].active) == (1, 0));
    }
    // Only one empty line is allowed.
    client.send("\r\n");
    assert_eq!(client.response().unwrap().status, 400);
}

#[test]
fn draining_does_not_wait_after_an_empty_line() {
    let (address, _) = responding_target(|_| ok("here"));
    let relay = http_with([address], long_timeouts(), |_| {});
    let mut client = client(&relay);
    assert_eq!(client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n").body, b"here");
    assert_eq!(relay.drain().ended(EndReason::Clean), 1);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn idle_client_is_closed_without_a_response() {
    let (address, _) = responding_target(|_| ok("first"));
    let clock = ManualClock::new();
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.clock = (&clock).into();
    });
    let (mut silent, mut client) = (client(&relay), client(&relay));
    assert_eq!(client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").body, b"first");
    relay.until(|stats| stats.accepted == 2);
    clock.advance(HttpOptions::default().idle_time_max.unwrap());
    for client in [&mut silent, &mut client] {
        assert_eq!(client.rest().unwrap(), b"");
    }
    drop((silent, client));
    relay.until(|stats| stats.ended(EndReason::Idle) == 2);
}

#[test]
fn unresponsive_target_is_504() {
    let relay =
        unresponsive_target_relay(HttpOptions { response_time_max: SHORT, ..long_timeouts() });
    let mut client = client(&relay);
    assert_eq!(client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 504);
    assert_eq!(client.rest().unwrap(), b"");
    relay.until(|stats| stats.targets[0].active == 0);
}

#[test]
fn slow_request_body_is_408() {
    let relay = unresponsive_target_relay(HttpOptions { body_time_max: SHORT, ..long_timeouts() });
    let mut client = client(&relay);
    let response = client.exchange("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nsome");
    assert_eq!(response.status, 408);
}

#[test]
fn stalled_response_is_reset() {
    let address = target(|_, mut peer| {
        peer.request().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome");
        assert!(peer.rest().is_err(), "the target is reset too");
    });
    let relay =
        http_with([address], HttpOptions { body_time_max: SHORT, ..long_timeouts() }, |_| {});
    let mut client = client(&relay);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.response().is_err());
    relay.until(|stats| stats.ended(EndReason::Idle) == 1);
}

/// The kernel buffers megabytes for a slow client, so the relay's socket becomes writable only
/// after a while, although the client reads steadily.
#[test]
fn slow_but_steady_client_is_not_timed_out() {
    let body = noise(7, 12 << 20);
    let (address, _) = responding_target({
        let body = body.clone();
        move |request| if request.line.starts_with("GET /large ") { ok(&body) } else { ok("") }
    });
    let clock = ManualClock::new();
    let options = HttpOptions { body_time_max: Duration::from_secs(2), ..long_timeouts() };
    let relay = http_with([address], options, |config| config.clock = (&clock).into());
    let mut steady = client(&relay);
    steady.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(steady.head().unwrap().status, 200);
    let mut got = Vec::new();
    for _ in 0..12 {
        got.extend(steady.body(133_000).unwrap());
        clock.advance(Duration::from_millis(500));
        // The relay has checked its deadlines when it has served another client.
        assert_eq!(client(&relay).exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    }
    got.extend(steady.body(body.len() - got.len()).unwrap());
    assert!(got == body);
}
