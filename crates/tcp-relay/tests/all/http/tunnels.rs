//! Connections that left HTTP end as relayed ones do.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use haul_tcp_relay::{Address, Ended, HeadLimits, HttpOptions};

use super::{Http, Peer, client, http, http_with, target};

const ASKED: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const AGREED: &str = "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Both ends of a tunnel.
fn tunnel() -> (Http, Peer, Peer) {
    let (sender, far): (Sender<Peer>, _) = channel();
    let sender = Mutex::new(sender);
    let address = target(move |_, mut peer| {
        peer.request().unwrap();
        peer.send(AGREED);
        sender.lock().unwrap().send(peer).unwrap();
    });
    let relay = http([address]);
    let mut near = client(&relay);
    assert_eq!(near.ask(ASKED).status(), 101);
    (relay, near, far.recv().unwrap())
}

/// Sends until that fails. How it failed.
fn send_on(peer: &Peer) -> JoinHandle<ErrorKind> {
    let mut stream: TcpStream = peer.stream().try_clone().unwrap();
    thread::spawn(move || {
        loop {
            if let Err(error) = stream.write_all(&[1; 4096]) {
                return error.kind();
            }
        }
    })
}

/// Closes it with bytes unread, after its last words: the kernel makes a reset of it.
fn go(mut peer: Peer) {
    peer.body(10_000).unwrap();
    peer.send("no, thank you");
    assert_eq!(peer.stream().peek(&mut [0]).unwrap(), 1);
}

/// Which of the two calls is told of the reset is chance; the other one finds an end.
fn is_reset(read: io::Result<Vec<u8>>, written: ErrorKind) -> bool {
    [read.map_err(|error| error.kind()).err(), Some(written)]
        .contains(&Some(ErrorKind::ConnectionReset))
}

/// The write that fails and the last words come in one turn of the relay.
#[test]
fn what_either_side_said_before_it_went_arrives_while_the_other_goes_on_sending() {
    for round in 0..60 {
        let (relay, near, far) = tunnel();
        let (mut stays, goes) = if round % 2 == 0 { (near, far) } else { (far, near) };
        let sending = send_on(&stays);
        go(goes);
        assert_eq!(stays.body(13).unwrap(), b"no, thank you", "{round}");
        assert!(is_reset(stays.rest(), sending.join().unwrap()), "{round}");
        assert_eq!(relay.drain().ended(Ended::Reset), 1);
    }
}

#[test]
fn one_side_of_a_tunnel_may_end_before_the_other() {
    let (relay, mut near, mut far) = tunnel();
    near.send("question");
    near.shut();
    assert_eq!(far.rest().unwrap(), b"question");
    far.send("answer");
    drop(far);
    assert_eq!(near.rest().unwrap(), b"answer");
    drop(near);
    let stats = relay.drain();
    assert_eq!((stats.ended(Ended::Clean), stats.http.tunnels), (1, 1));
}

/// A target that leaves HTTP before it has heard the whole request has not understood it: what
/// would follow is the rest of the request.
#[test]
fn an_agreement_that_comes_before_the_request_is_with_the_target_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("target");
    let listener = UnixListener::bind(&path).unwrap();
    let far = thread::spawn(move || {
        let mut far = listener.accept().unwrap().0;
        far.read_exact(&mut [0]).unwrap();
        far.write_all(AGREED.as_bytes()).unwrap();
        far
    });
    let head_limits = HeadLimits { head_bytes_max: 1 << 20, ..HeadLimits::default() };
    let options = HttpOptions { head_limits, ..HttpOptions::default() };
    let relay = http_with([Address::Unix(path)], options, |_| {});
    let mut near = client(&relay);
    // More than the socket takes that nobody reads from.
    let long = format!("\r\nX-Long: {}\r\n\r\n", "x".repeat(400 << 10));
    let asked = ASKED.replace("\r\n\r\n", &long);
    assert_eq!(near.ask(asked).status(), 502);
    assert_eq!(near.rest().unwrap(), b"");
    drop(far.join().unwrap());
    assert_eq!(relay.drain().http.tunnels, 0);
}
