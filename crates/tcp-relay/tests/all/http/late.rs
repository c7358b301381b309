//! Who takes too long.

use std::thread;
use std::time::Duration;

use haul_tcp_relay::{Ended, HttpOptions};

use super::{Http, answering, client, http_with, noise, ok, target};

const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_hours(1);

/// No time is over soon.
fn patient() -> HttpOptions {
    HttpOptions {
        head_time_max: LONG,
        keep_alive_time_max: LONG,
        response_time_max: LONG,
        body_time_max: LONG,
        ..HttpOptions::default()
    }
}

fn silent(options: HttpOptions) -> Http {
    http_with([target(|_, mut peer| drop(peer.rest()))], options, |_| {})
}

#[test]
fn a_head_that_takes_too_long_is_408() {
    let relay = silent(HttpOptions { head_time_max: SHORT, ..patient() });
    let mut client = client(&relay);
    let answer = client.ask("GET / HTTP/1.1\r\nHost: a\r\n");
    assert_eq!((answer.status(), answer.all("connection")), (408, vec!["close"]));
    assert_eq!(client.rest().unwrap(), b"");
    assert_eq!(relay.stats().targets[0].connected, 0);
}

/// Old clients send an empty line behind a body.
#[test]
fn an_empty_line_behind_a_request_is_not_the_beginning_of_another_one() {
    let (address, _) = answering(|_| ok("here"));
    let relay = http_with([address], HttpOptions { head_time_max: SHORT, ..patient() }, |_| {});
    let mut client = client(&relay);
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for _ in 0..2 {
        assert_eq!(client.ask([request, "\r\n"].concat()).body, b"here");
        // The connection is left to others, as nothing is asked.
        relay.until(|stats| (stats.targets[0].connected, stats.targets[0].active) == (1, 0));
    }
    // There may be one.
    client.send("\r\n");
    assert_eq!(client.response().unwrap().status(), 400);
}

#[test]
fn a_relay_that_drains_does_not_wait_behind_an_empty_line() {
    let (address, _) = answering(|_| ok("here"));
    let relay = http_with([address], patient(), |_| {});
    let mut client = client(&relay);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n").body, b"here");
    assert_eq!(relay.drain().ended(Ended::Clean), 1);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn who_says_nothing_is_let_go_without_a_word() {
    let (address, _) = answering(|_| ok("first"));
    let options = HttpOptions { keep_alive_time_max: SHORT, ..patient() };
    let relay = http_with([address], options, |_| {});
    assert_eq!(client(&relay).rest().unwrap(), b"");
    let mut client = client(&relay);
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(client.ask(request).body, b"first");
    assert_eq!(client.rest().unwrap(), b"");
    relay.until(|stats| stats.ended(Ended::Idle) == 2);
}

#[test]
fn a_target_that_does_not_answer_is_504() {
    let relay = silent(HttpOptions { response_time_max: SHORT, ..patient() });
    let mut client = client(&relay);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status(), 504);
    assert_eq!(client.rest().unwrap(), b"");
    relay.until(|stats| stats.targets[0].active == 0);
}

#[test]
fn a_body_that_does_not_come_is_408() {
    let relay = silent(HttpOptions { body_time_max: SHORT, ..patient() });
    let mut client = client(&relay);
    let answer = client.ask("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nsome");
    assert_eq!(answer.status(), 408);
}

#[test]
fn a_response_that_stands_still_is_cut_off() {
    let address = target(|_, mut peer| {
        peer.request().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome");
        assert!(peer.rest().is_err(), "it is told to the target, too");
    });
    let relay = http_with([address], HttpOptions { body_time_max: SHORT, ..patient() }, |_| {});
    let mut client = client(&relay);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.response().is_err());
    relay.until(|stats| stats.ended(Ended::Idle) == 1);
}

/// The kernel takes megabytes for it, and has room for more only after a while.
#[test]
fn a_client_that_reads_slowly_and_steadily_is_not_cut_off() {
    let body = noise(7, 12 << 20);
    let (address, _) = answering({
        let body = body.clone();
        move |_| ok(&body)
    });
    let options = HttpOptions { body_time_max: Duration::from_secs(2), ..patient() };
    let relay = http_with([address], options, |_| {});
    let mut client = client(&relay);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().unwrap().status(), 200);
    let mut got = Vec::new();
    for _ in 0..40 {
        got.extend(client.body(40_000).unwrap());
        thread::sleep(Duration::from_millis(150));
    }
    got.extend(client.body(body.len() - got.len()).unwrap());
    assert!(got == body);
}
