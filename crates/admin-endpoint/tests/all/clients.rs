//! Tests that many, idle or slow clients do not delay other clients.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use haul_admin_endpoint::CONNECTIONS_MAX;

use crate::harness::{Fixed, HEALTH, OK, connect, read_to_end, read_until, send, start};

fn check_health(address: SocketAddr) {
    let mut client = connect(address);
    send(&mut client, HEALTH);
    read_until(&mut client, OK);
}

/// `true` if the server has not closed the connection.
fn is_open(client: &TcpStream) -> bool {
    client.set_nonblocking(true).unwrap();
    let read = (&*client).read(&mut [0]);
    matches!(read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn idle_clients_do_not_delay_others() {
    let (_admin, address) = start(Fixed::default());
    let since = Instant::now();
    let mut idle: Vec<_> = (0..200).map(|_| connect(address)).collect();
    idle.iter_mut().step_by(2).for_each(|client| send(client, "GET /heal"));
    check_health(address);
    let open = idle.iter().filter(|client| is_open(client)).count();
    // Idle clients are still connected, so the health check did not wait until they timed out. On a
    // slow machine this cannot be checked.
    assert!(open >= 100 || since.elapsed() > Duration::from_secs(5), "{open}");
    // If more than half of the maximum number of clients are connected, the timeout is one second.
    idle.extend((0..CONNECTIONS_MAX / 2).map(|_| connect(address)));
    check_health(address);
}

#[test]
fn idle_clients_time_out() {
    let (_admin, address) = start(Fixed::default());
    let mut idle = connect(address);
    let mut partial = connect(address);
    send(&mut partial, "GET /health HTTP/1.1\r\n");
    assert_eq!((read_to_end(&mut idle), read_to_end(&mut partial)), (String::new(), String::new()));
}

#[test]
fn client_that_does_not_read_has_one_response_buffered() {
    let metrics_bytes = 64 << 20;
    let source = Fixed { metrics_bytes, ..Fixed::default() };
    let (_admin, address) = start(source.clone());
    let mut greedy = connect(address);
    send(&mut greedy, &"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50));
    greedy.read_exact(&mut [0; 100]).unwrap();
    for _ in 0..10 {
        check_health(address);
    }
    assert_eq!(source.calls.load(Relaxed), 1, "the next response is built after this one is sent");
    let mut read_bytes = 100;
    let mut buffer = vec![0; 1 << 16];
    while source.calls.load(Relaxed) == 1 {
        read_bytes += greedy.read(&mut buffer).unwrap();
    }
    assert!(read_bytes > metrics_bytes / 4, "{read_bytes}");
    drop(greedy);
    check_health(address);
}
