//! Tests of clients with TLS, which the relay terminates.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use haul_tcp_relay::proxy::{Trusted, Version};
use haul_tcp_relay::{Acceptor, Config, EndReason, HttpOptions, Limits, ManualClock};
use haul_testing::noise;
use haul_testing::tls::{Authority, TlsClient};
use haul_tls::{Alpn, CertificateFiles, Identities};

use crate::http::{Peer, http_with, ok, responding_target};
use crate::support::{Relay, config, listener};

fn acceptor(authority: &Authority) -> Acceptor {
    let dir = tempfile::tempdir().unwrap();
    let [chain, key] = authority.issue(&["localhost"]).write(dir.path(), "server");
    let identities = Identities::load(vec![CertificateFiles { chain, key }]).unwrap();
    Acceptor::new(identities, Alpn::None).unwrap()
}

/// Starts a relay with TLS, which forwards to the listener.
fn start(change: impl FnOnce(&mut Config)) -> (Authority, Relay, TcpListener) {
    let authority = Authority::new();
    let (target, address) = listener();
    let mut config = config([address]);
    config.tls = Some(acceptor(&authority));
    change(&mut config);
    (authority, Relay::start(config), target)
}

/// Connects through the relay, and performs the handshake.
fn pair(authority: &Authority, relay: &Relay, target: &TcpListener) -> (TlsClient, TcpStream) {
    let mut client = authority.connect(relay.tcp());
    while client.conn.is_handshaking() {
        client.conn.complete_io(&mut client.sock).unwrap();
    }
    (client, target.accept().unwrap().0)
}

fn close_cleanly(client: &mut TlsClient) {
    client.conn.send_close_notify();
    client.flush().unwrap();
    client.sock.shutdown(Shutdown::Write).unwrap();
}

#[test]
fn bytes_and_clean_ends_are_forwarded_both_ways() {
    let (authority, relay, target) = start(|_| {});
    let (mut client, mut server) = pair(&authority, &relay, &target);
    let (up, down) = (noise(1, 5 << 20), noise(2, 20 << 20));
    let sent = up.clone();
    let server = thread::spawn(move || {
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        assert!(received == sent);
        server.write_all(&noise(2, 20 << 20)).unwrap();
    });
    client.write_all(&up).unwrap();
    close_cleanly(&mut client);
    // The buffers of both sockets fill before the client reads.
    relay.until(|stats| stats.down.bytes_copied + stats.down.bytes_spliced > 1 << 20);
    let mut received = Vec::new();
    // An error unless the relay has sent close_notify.
    client.read_to_end(&mut received).unwrap();
    assert!(received == down);
    server.join().unwrap();
    assert_eq!(relay.drain().ended[EndReason::Clean as usize], 1);
}

#[test]
fn server_may_end_first() {
    let (authority, relay, target) = start(|_| {});
    let (mut client, mut server) = pair(&authority, &relay, &target);
    server.write_all(b"welcome").unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    let mut received = String::new();
    client.read_to_string(&mut received).unwrap();
    assert_eq!(received, "welcome");
    client.write_all(b"thanks").unwrap();
    close_cleanly(&mut client);
    let mut received = String::new();
    server.read_to_string(&mut received).unwrap();
    assert_eq!(received, "thanks");
}

#[test]
fn truncated_streams_never_look_complete() {
    let (authority, relay, target) = start(|_| {});
    let (mut client, mut server) = pair(&authority, &relay, &target);
    client.write_all(b"incomplete").unwrap();
    server.read_exact(&mut [0; 10]).unwrap();
    // An end without close_notify, as an attacker on the network can forge it.
    client.sock.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);

    let (mut client, mut server) = pair(&authority, &relay, &target);
    // The relay has seen that its connect succeeded.
    client.write_all(b"request").unwrap();
    server.read_exact(&mut [0; 7]).unwrap();
    crate::scripted_peer::reset_on_close(&server);
    drop(server);
    assert!(client.read(&mut [0; 1]).is_err(), "the client sees a clean end");
    relay.until(|stats| stats.ended[EndReason::Reset as usize] == 2);
}

#[test]
fn failed_handshake_reaches_no_target() {
    let clock = ManualClock::new();
    let (_authority, relay, target) = start(|config| config.clock = (&clock).into());
    target.set_nonblocking(true).unwrap();
    let mut plain = relay.connect();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.first(), Some(&0x15), "an alert: {answer:?}");

    let mut slow = relay.connect();
    slow.write_all(&[0x16, 3, 1]).unwrap();
    relay.until(|stats| stats.accepted == 2);
    clock.advance(Limits::default().head_time_max);
    assert_eq!(slow.read(&mut [0; 1]).unwrap(), 0);
    relay.until(|stats| stats.ended[EndReason::BadTls as usize] == 2);
    assert_eq!(target.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn proxy_header_precedes_the_handshake() {
    let (authority, relay, target) = start(|config| {
        config.proxy_in = Some(Trusted::All);
        config.proxy_out = Some(Version::V1);
    });
    let mut client = authority.connect(relay.tcp());
    client.sock.write_all(b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\n").unwrap();
    client.write_all(b"hello").unwrap();
    close_cleanly(&mut client);
    let mut received = String::new();
    target.accept().unwrap().0.read_to_string(&mut received).unwrap();
    assert_eq!(received, "PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\nhello");
}

#[test]
fn http_requests_share_a_connection_and_have_large_bodies() {
    let authority = Authority::new();
    let body = noise(3, 50 << 20);
    let expected = body.clone();
    let (address, log) = responding_target(move |request| match &*request.line {
        "GET /large HTTP/1.1" => ok(&body),
        _ => ok(&request.body),
    });
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.tls = Some(acceptor(&authority));
    });
    let mut client = Peer::over(authority.connect(relay.tcp()));
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.response().unwrap().body == expected);
    let upload = &expected[..5 << 20];
    client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", upload.len()));
    client.send(upload);
    assert!(client.response().unwrap().body == upload);
    client.send("GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().unwrap().status, 200);
    let mut rest = Vec::new();
    // An error unless the relay has sent close_notify.
    client.reader().read_to_end(&mut rest).unwrap();
    let requests = log.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(request.all("forwarded"), ["for=127.0.0.1;proto=https;host=\"a\""]);
        assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    }
}

#[test]
fn reset_of_an_http_target_resets_the_client() {
    let authority = Authority::new();
    let address = crate::http::target(|_, mut peer| {
        peer.request().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nincomplete");
    });
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.tls = Some(acceptor(&authority));
    });
    let mut client = Peer::over(authority.connect(relay.tcp()));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let error = client.response().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset));
}
