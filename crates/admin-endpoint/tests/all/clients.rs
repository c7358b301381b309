//! Clients that are many, silent or slow.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use haul_admin_endpoint::CONNECTIONS_MAX;

use crate::world::{Fixed, HEALTH, OK, all, connect, say, start, until};

fn is_answered(address: SocketAddr) {
    let mut client = connect(address);
    say(&mut client, HEALTH);
    until(&mut client, OK);
}

/// Whether the server still waits for it.
fn is_open(client: &TcpStream) -> bool {
    client.set_nonblocking(true).unwrap();
    let read = (&*client).read(&mut [0]);
    matches!(read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn silent_clients_hold_nobody_up() {
    let (_admin, address) = start(Fixed::default());
    let since = Instant::now();
    let mut silent: Vec<_> = (0..200).map(|_| connect(address)).collect();
    silent.iter_mut().step_by(2).for_each(|client| say(client, "GET /heal"));
    is_answered(address);
    let still = silent.iter().filter(|client| is_open(client)).count();
    // Had they been served one after the other, none of them would be there any more.
    assert!(still >= 100 || since.elapsed() > Duration::from_secs(5), "{still}");
    // More than there are places for: the last ones have to hurry.
    silent.extend((0..CONNECTIONS_MAX / 2).map(|_| connect(address)));
    is_answered(address);
}

#[test]
fn silent_clients_are_closed_in_the_end() {
    let (_admin, address) = start(Fixed::default());
    let mut silent = connect(address);
    let mut begun = connect(address);
    say(&mut begun, "GET /health HTTP/1.1\r\n");
    assert_eq!((all(&mut silent), all(&mut begun)), (String::new(), String::new()));
}

#[test]
fn who_asks_without_end_and_takes_nothing_is_answered_once_at_a_time() {
    let metrics_bytes = 64 << 20;
    let told = Fixed { metrics_bytes, ..Fixed::default() };
    let (_admin, address) = start(told.clone());
    let mut greedy = connect(address);
    say(&mut greedy, &"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50));
    greedy.read_exact(&mut [0; 100]).unwrap();
    for _ in 0..10 {
        is_answered(address);
    }
    assert_eq!(told.asked.load(Relaxed), 1, "the others wait until this one is taken");
    let mut taken = 100;
    let mut buffer = vec![0; 1 << 16];
    while told.asked.load(Relaxed) == 1 {
        taken += greedy.read(&mut buffer).unwrap();
    }
    assert!(taken > metrics_bytes / 4, "{taken}");
    drop(greedy);
    is_answered(address);
}
