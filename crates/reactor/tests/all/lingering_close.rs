//! Tests of the lingering close.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use haul_reactor::LingeringClose;

use crate::*;

const BYTES_MAX: usize = 1 << 20;

/// Returns a lingering socket with this limit, and its peer, which does not block.
fn lingering(bytes_max: usize, deadline: Instant) -> (LingeringClose, Socket, UnixStream) {
    let (near, peer) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    peer.set_nonblocking(true).unwrap();
    let mut socket = Socket::new(near.into());
    let lingering = LingeringClose::begin(&mut socket, bytes_max, deadline).unwrap();
    (lingering, socket, peer)
}

/// Returns a duplicate of the socket that counts as readable, as after an event.
fn readable(socket: &Socket) -> Socket {
    Socket::new(socket.as_fd().try_clone_to_owned().unwrap())
}

#[test]
fn peer_reads_eof_and_its_bytes_are_discarded_until_its_own() {
    let now = Instant::now();
    let deadline = now + Duration::from_secs(5);
    let (mut lingering, mut socket, mut peer) = lingering(BYTES_MAX, deadline);
    assert_eq!(lingering.drive(&mut socket, now), Next::Wait(Some(deadline)));
    assert_eq!(peer.read(&mut [0; 9]).unwrap(), 0, "EOF");
    peer.write_all(b"more").unwrap();
    let mut socket = readable(&socket);
    assert_eq!(lingering.drive(&mut socket, now), Next::Wait(Some(deadline)));
    drop(peer);
    let mut socket = readable(&socket);
    assert_eq!(lingering.drive(&mut socket, now), Next::Close);
}

#[test]
fn lingering_ends_at_its_byte_limit_and_deadline() {
    let now = Instant::now();
    let (mut lingering, mut socket, mut peer) = lingering(3, now + Duration::from_secs(5));
    peer.write_all(b"123").unwrap();
    assert!(matches!(lingering.drive(&mut socket, now), Next::Wait(_)));
    assert_eq!(lingering.drive(&mut socket, now + Duration::from_secs(5)), Next::Close);
    peer.write_all(b"4").unwrap();
    let mut socket = readable(&socket);
    assert_eq!(lingering.drive(&mut socket, now), Next::Close);
}

#[test]
fn lingering_yields_after_its_byte_budget() {
    let now = Instant::now();
    let (mut lingering, mut socket, mut peer) = lingering(BYTES_MAX, now + Duration::from_secs(5));
    let (mut written, mut yields) = (0, 0);
    // The send buffer holds less than `BYTES_MAX`, and more than the budget of one call (64 KiB).
    loop {
        match peer.write(&[0; 64 << 10]) {
            Ok(bytes) => written += bytes,
            Err(_full) => {
                socket = readable(&socket);
                match lingering.drive(&mut socket, now) {
                    Next::Yield => yields += 1,
                    Next::Wait(_) => {}
                    Next::Close => break,
                }
            }
        }
    }
    assert!(written > BYTES_MAX, "{written}");
    assert!(yields > 1, "{yields}");
}
