//! Thousands of unfinished requests from one address, while another client makes requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use haul_s3_server::{Limits, Rate};
use haul_testing::{Endpoint, Transport, depth, eventually, raise_descriptor_limit};
use socket2::{Domain, Socket, Type};

use crate::client::{Reply, Running, assert_refused, noise};

/// Returns the number of hostile connections: more than one address may have.
fn sockets() -> usize {
    usize::try_from(3000 * depth()).unwrap().min(10_000)
}

/// Allows one attack at a time: there are not enough ports for two.
static ATTACK: Mutex<()> = Mutex::new(());

/// Connects from `from`, or with a minimal receive buffer.
fn connect(from: Option<&str>, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    match from.map(|from| from.parse::<SocketAddr>().unwrap()) {
        Some(from) => socket.bind(&from.into()).unwrap(),
        None => socket.set_recv_buffer_size(4096).unwrap(),
    }
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// Returns the value of a metric of the server.
fn metric(server: &Running, name: &str) -> u64 {
    let text = server.admin.get("/metrics").text();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{name} is missing")).parse().unwrap()
}

/// Sends a request from another address, and receives the whole response.
fn request(server: &Running, method: &str, target: &str, body: &[u8]) {
    let socket = connect(Some("127.0.0.2:0"), server.s3.0.address);
    let mut stream = server.s3.0.handshake(socket).unwrap();
    let length = body.len().to_string();
    let head = server.s3.head_bytes(method, target, &[("content-length", &length)]);
    stream.write_all(&[&head, body].concat()).unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200, "{method} {target}");
}

/// Opens the sockets over `hostile_transport`, sends `first` on each, and then `trickle` on each
/// once per second, while another client makes requests. No time limit makes room for it.
fn run_attack(
    transport: Transport,
    hostile_transport: Transport,
    first: &[u8],
    trickle: Option<u8>,
) {
    if !raise_descriptor_limit(2 * sockets() as u64) {
        haul_testing::skip("the limit of open files is too low");
        return;
    }
    let _one_at_a_time = ATTACK.lock().unwrap_or_else(PoisonError::into_inner);
    let hour = Duration::from_hours(1);
    let times = Limits { head_time_max: hour, stall_time_max: hour, ..Limits::default() };
    let limits = Limits { idle_time_max: hour, ..times };
    let server = Running::over_with(transport, limits.clone());
    server.s3.put("/bucket", b"");
    assert_eq!(server.s3.put("/bucket/big", &noise(12 << 20)).status, 200);
    let hostile = Endpoint { transport: hostile_transport, ..server.s3.0 };
    let mut hostile: Vec<_> = (0..sockets())
        .filter_map(|_| {
            // Refused connections are reset; over TLS, before or in the handshake.
            let mut stream = hostile.handshake(connect(None, hostile.address)).ok()?;
            stream.write_all(first).ok();
            stream.tcp().set_nonblocking(true).unwrap();
            Some(stream)
        })
        .collect();
    let (end, ended) = channel::<()>();
    let trickling = std::thread::spawn(move || {
        // Writes one byte per second until the test ends.
        while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            for stream in &mut hostile {
                trickle.map(|byte| stream.write(&[byte]).ok());
            }
        }
    });
    for number in 0..20 {
        let key = format!("/bucket/{number}");
        request(&server, "PUT", &key, &noise(100 << 10));
        request(&server, "GET", &key, b"");
        request(&server, "GET", "/bucket/big", b"");
    }
    // The last connection of the other client may still be open.
    eventually("the hostile address has no more connections than permitted", || {
        metric(&server, "haul_connections") <= limits.peer_connections_max as u64
    });
    let refused = metric(&server, "haul_connections_refused_total")
        + metric(&server, "haul_connections_closed_total{reason=\"room\"}");
    let least = sockets() - limits.peer_connections_max;
    assert!(refused >= least as u64, "{refused} were refused, of at least {least}");
    drop(end);
    trickling.join().unwrap();
}

#[test]
fn half_sent_heads_of_one_address_do_not_delay_other_clients() {
    let head = b"GET /bucket HTTP/1.1\r\nhost: loc";
    run_attack(Transport::Plain, Transport::Plain, head, None);
}

#[test]
fn slow_bodies_of_one_address_do_not_delay_other_clients() {
    let head = b"PUT /bucket/slow HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4000000\r\n\r\n";
    run_attack(Transport::Plain, Transport::Plain, head, Some(b'x'));
}

#[test]
fn responses_that_one_address_does_not_read_do_not_delay_others() {
    let head = b"GET /bucket/big HTTP/1.1\r\nhost: localhost\r\n\r\n";
    run_attack(Transport::Plain, Transport::Plain, head, None);
}

#[test]
fn half_sent_handshakes_of_one_address_do_not_delay_other_clients() {
    // The start of a record with a ClientHello.
    let record = [0x16, 3, 1, 2, 0, 1];
    run_attack(Transport::Tls, Transport::Plain, &record, None);
}

#[test]
fn requests_above_rate_limit_are_refused_and_connection_stays_open() {
    let rate: Rate = "2/min".parse().unwrap();
    let peer_rate = Some(Rate { burst: NonZero::new(2).unwrap(), ..rate });
    let limits = Limits { peer_rate, ..Limits::default() };
    let server = Running::with(None, limits);
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    assert_eq!(server.s3.put("/bucket/key", b"bytes").status, 200);
    let mut stream = server.s3.connect();
    for method in ["GET", "HEAD", "DELETE"] {
        let head = format!("{method} /bucket/key HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut received = [0; 1024];
        let bytes = stream.read(&mut received).unwrap();
        let refusal = String::from_utf8_lossy(&received[..bytes]).into_owned();
        assert!(refusal.starts_with("HTTP/1.1 503 "), "{method}: {refusal}");
        assert!(refusal.contains("\r\nretry-after: 30\r\n"), "{method}: {refusal}");
        assert_eq!(refusal.contains("<Code>SlowDown</Code>"), method != "HEAD", "{refusal}");
    }
    let refused = server.s3.put("/bucket/key", &[0; 1 << 20]);
    assert_refused(&refused, 503, "SlowDown");
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(server.admin.get("/health").status, 200, "the admin address has no such limit");
    assert_eq!(metric(&server, "haul_requests_refused_total"), 4);
}
