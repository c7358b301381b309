//! Tests of upgrades: websockets are relayed, other protocols are refused.

use haul_tcp_relay::{EndReason, HttpOptions};

use super::{client, http, http_with, ok, responding_target, target};

#[test]
fn websocket_upgrade_relays_early_bytes() {
    let address = target(|_, mut peer| {
        let head = peer.head().unwrap();
        assert_eq!(
            (head.all("connection"), head.all("upgrade")),
            (vec!["upgrade"], vec!["websocket"])
        );
        assert_eq!(head.all("sec-websocket-key"), ["k"]);
        peer.send(
            "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: l\r\n\r\nHTTP",
        );
        assert_eq!(peer.body(9).unwrap(), b"early\0\r\n\xff");
        peer.send("last");
        peer.shut();
        assert_eq!(peer.rest().unwrap(), b"words");
    });
    let relay = http([address]);
    let mut client = client(&relay);
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
                 Upgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n";
    client.send([request, "early"].concat());
    let response = client.head().unwrap();
    assert_eq!(response.line, "HTTP/1.1 101 Go");
    assert_eq!(
        (response.all("upgrade"), response.all("connection")),
        (vec!["websocket"], vec!["upgrade"])
    );
    assert_eq!(response.all("sec-websocket-accept"), ["l"]);
    client.send(b"\0\r\n\xff");
    assert_eq!(client.rest().unwrap(), b"HTTPlast");
    client.send("words");
    client.shut();
    relay.until(|stats| stats.ended(EndReason::Clean) == 1);
}

#[test]
fn other_upgrades_are_not_forwarded() {
    let (address, log) = responding_target(|request| match request.line.as_str() {
        "GET /switch HTTP/1.1" => {
            b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n".to_vec()
        }
        _ => ok("plain"),
    });
    let relay = http([address.clone()]);
    let upgrade = |path, protocol| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: {protocol}\r\n\r\n"
        )
    };
    for protocol in ["h2c", "websocket, h2c", "websocket/13"] {
        assert_eq!(client(&relay).exchange(upgrade("/", protocol)).body, b"plain", "{protocol}");
    }
    assert_eq!(
        client(&relay).exchange(upgrade("/switch", "h2c")).status,
        502,
        "no websocket was requested"
    );
    let without = HttpOptions { upgrade: false, ..HttpOptions::default() };
    let relay = http_with([address], without, |_| {});
    assert_eq!(client(&relay).exchange(upgrade("/", "websocket")).body, b"plain");
    assert!(log.requests().iter().all(|one| one.all("upgrade").is_empty()));
}
