//! Tests that upgraded connections close and reset like connections without HTTP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use haul_tcp_relay::{Address, EndReason, HeadLimits, HttpOptions};

use super::{Http, Peer, client, http, http_with, target};

const UPGRADE_REQUEST: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const UPGRADE_RESPONSE: &str = "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Returns a relay and both ends of a tunnel.
fn tunnel() -> (Http, Peer, Peer) {
    let (sender, server): (Sender<Peer>, _) = channel();
    let sender = Mutex::new(sender);
    let address = target(move |_, mut peer| {
        peer.request().unwrap();
        peer.send(UPGRADE_RESPONSE);
        sender.lock().unwrap().send(peer).unwrap();
    });
    let relay = http([address]);
    let mut client = client(&relay);
    assert_eq!(client.exchange(UPGRADE_REQUEST).status, 101);
    (relay, client, server.recv().unwrap())
}

/// Sends until an error occurs, which the thread returns.
fn send_until_error(peer: &Peer) -> JoinHandle<ErrorKind> {
    let mut stream: TcpStream = peer.stream().try_clone().unwrap();
    thread::spawn(move || {
        loop {
            if let Err(error) = stream.write_all(&[1; 4096]) {
                return error.kind();
            }
        }
    })
}

/// Sends a response and closes with unread bytes, so that the kernel resets the connection.
fn respond_and_reset(mut peer: Peer) {
    peer.body(10_000).unwrap();
    peer.send("last response");
    assert_eq!(peer.stream().peek(&mut [0]).unwrap(), 1);
}

/// Returns `true` if the read or the write reported the reset: the kernel reports it to one of them
/// only.
fn is_reset(read: io::Result<Vec<u8>>, written: ErrorKind) -> bool {
    [read.map_err(|error| error.kind()).err(), Some(written)]
        .contains(&Some(ErrorKind::ConnectionReset))
}

/// A write to a side may fail before the relay has read the last bytes that this side sent. The
/// relay must deliver these bytes to the other side nevertheless.
#[test]
fn bytes_before_a_reset_are_delivered_during_an_upload() {
    for round in 0..60 {
        let (relay, client, server) = tunnel();
        let (mut stays, resets) = if round % 2 == 0 { (client, server) } else { (server, client) };
        let sending = send_until_error(&stays);
        respond_and_reset(resets);
        assert_eq!(stays.body(13).unwrap(), b"last response", "{round}");
        assert!(is_reset(stays.rest(), sending.join().unwrap()), "{round}");
        assert_eq!(relay.drain().ended(EndReason::Reset), 1);
    }
}

#[test]
fn half_closed_tunnel_is_relayed() {
    let (relay, mut client, mut server) = tunnel();
    client.send("question");
    client.shut();
    assert_eq!(server.rest().unwrap(), b"question");
    server.send("response");
    drop(server);
    assert_eq!(client.rest().unwrap(), b"response");
    drop(client);
    let stats = relay.drain();
    assert_eq!((stats.ended(EndReason::Clean), stats.http.tunnels), (1, 1));
}

/// A target that upgrades before it received the whole request would read the rest of the request
/// as data of the new protocol.
#[test]
fn upgrade_before_the_request_is_sent_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("target");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || {
        let mut server = listener.accept().unwrap().0;
        server.read_exact(&mut [0]).unwrap();
        server.write_all(UPGRADE_RESPONSE.as_bytes()).unwrap();
        server
    });
    let head_limits = HeadLimits { head_bytes_max: 1 << 20, ..HeadLimits::default() };
    let options = HttpOptions { head_limits, ..HttpOptions::default() };
    let relay = http_with([Address::Unix(path)], options, |_| {});
    let mut client = client(&relay);
    // The request is longer than the socket buffers, so the relay cannot send it at once.
    let long = format!("\r\nX-Long: {}\r\n\r\n", "x".repeat(400 << 10));
    let request = UPGRADE_REQUEST.replace("\r\n\r\n", &long);
    assert_eq!(client.exchange(request).status, 502);
    assert_eq!(client.rest().unwrap(), b"");
    drop(server.join().unwrap());
    assert_eq!(relay.drain().http.tunnels, 0);
}
