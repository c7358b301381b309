//! Tests that resets and timeouts are forwarded as resets, never as EOF.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use haul_tcp_relay::{Config, EndReason, Limits, ManualClock, TransferMode};

use crate::scripted_peer::reset_on_close;
use crate::support::{Relay, config, listener};

/// Both ends of a relayed connection.
struct Pair {
    client: TcpStream,
    server: TcpStream,
}

fn relay_and_pair(transfer_mode: TransferMode) -> (Relay, Pair) {
    let (target, address) = listener();
    let relay = Relay::start(Config { transfer_mode, ..config([address]) });
    let client = relay.connect();
    (relay, Pair { client, server: target.accept().unwrap().0 })
}

fn reset(socket: TcpStream) {
    reset_on_close(&socket);
    drop(socket);
}

/// Reads to EOF or an error.
fn read_to_end(mut socket: TcpStream) -> Result<(), ErrorKind> {
    std::io::copy(&mut socket, &mut std::io::sink()).map(drop).map_err(|error| error.kind())
}

#[test]
fn reset_at_any_point_resets_the_other_side() {
    type Prepare = fn(&mut Pair);
    let points: [(&str, Prepare); 6] = [
        ("before any byte", |_| {}),
        ("after bytes each way", |pair| {
            pair.client.write_all(&[1; 1000]).unwrap();
            pair.server.read_exact(&mut [0; 1000]).unwrap();
            pair.server.write_all(&[2; 1000]).unwrap();
            pair.client.read_exact(&mut [0; 1000]).unwrap();
        }),
        ("with bytes on their way up", |pair| pair.client.write_all(&[1; 100_000]).unwrap()),
        ("with bytes on their way down", |pair| pair.server.write_all(&[1; 100_000]).unwrap()),
        ("with both sides stalled", |pair| {
            for socket in [&mut pair.client, &mut pair.server] {
                socket.set_nonblocking(true).unwrap();
                while socket.write(&[3; 65_536]).is_ok() {}
                socket.set_nonblocking(false).unwrap();
            }
        }),
        ("after the other side has ended", |pair| {
            pair.server.shutdown(Shutdown::Write).unwrap();
            assert_eq!(pair.client.read(&mut [0; 1]).unwrap(), 0);
        }),
    ];
    for transfer_mode in [TransferMode::Auto, TransferMode::Copy, TransferMode::Splice] {
        for (point, prepare) in points {
            for client_resets in [true, false] {
                let (relay, mut pair) = relay_and_pair(transfer_mode);
                prepare(&mut pair);
                let Pair { client, mut server } = pair;
                let left = match client_resets {
                    true => {
                        reset(client);
                        server
                    }
                    false => {
                        // Without a byte in flight the relay might not notice the reset.
                        server.write_all(b"x").unwrap_or_default();
                        reset(server);
                        client
                    }
                };
                let what = format!("{transfer_mode:?}, {point}, client resets: {client_resets}");
                // A peer may read earlier bytes, and an earlier EOF, before it reads the reset.
                let may_read_eof = !client_resets && point == "after the other side has ended";
                match read_to_end(left) {
                    Ok(()) => assert!(may_read_eof, "{what}"),
                    Err(kind) => assert_eq!(kind, ErrorKind::ConnectionReset, "{what}"),
                }
                let stats = relay.drain();
                // If a target resets while the relay connects to it, the connection counts as one
                // without a target.
                let broken = stats.ended(EndReason::Reset) + stats.ended(EndReason::NoTarget);
                assert_eq!((broken, stats.pipes.leased), (1, 0), "{what}");
            }
        }
    }
}

/// The relay does not read from a client whose target is full, so only an event reports the reset.
#[test]
fn client_reset_behind_a_full_target_is_detected() {
    for transfer_mode in [TransferMode::Copy, TransferMode::Splice] {
        let (target, address) = listener();
        let relay = Relay::start(Config { transfer_mode, ..config([address]) });
        let mut client = relay.connect();
        let _far = target.accept().unwrap().0;
        client.set_nonblocking(true).unwrap();
        let mut refused = 0;
        while refused < 2000 {
            refused = if client.write(&[1; 65_536]).is_ok() { 0 } else { refused + 1 };
            thread::yield_now();
        }
        reset(client);
        let stats = relay.until(|stats| stats.active == 0);
        assert_eq!(stats.ended(EndReason::Reset), 1, "{transfer_mode:?}: {stats:?}");
    }
}

#[test]
fn bytes_sent_before_a_reset_are_delivered() {
    for transfer_mode in [TransferMode::Copy, TransferMode::Splice] {
        let (relay, Pair { mut client, mut server }) = relay_and_pair(transfer_mode);
        client.write_all(b"a request that is not read").unwrap();
        while server.peek(&mut [0; 32]).unwrap() < 26 {}
        server.write_all(b"last response").unwrap();
        // The kernel resets a connection that is closed with unread bytes.
        drop(server);
        let mut response = [0; 13];
        client.read_exact(&mut response).unwrap();
        assert_eq!(&response, b"last response");
        assert_eq!(read_to_end(client), Err(ErrorKind::ConnectionReset), "{transfer_mode:?}");
        assert_eq!(relay.drain().ended(EndReason::Reset), 1);
    }
}

/// A write to a side may fail before the relay has read the last bytes that this side sent. The
/// relay must deliver these bytes to the other side nevertheless.
#[test]
fn bytes_before_a_reset_are_delivered_during_an_upload() {
    for round in 0..120 {
        let transfer_mode =
            [TransferMode::Auto, TransferMode::Copy, TransferMode::Splice][round % 3];
        let (relay, mut pair) = relay_and_pair(transfer_mode);
        if round % 2 == 0 {
            std::mem::swap(&mut pair.client, &mut pair.server);
        }
        let Pair { mut client, mut server } = pair;
        let mut sending = client.try_clone().unwrap();
        let upload = thread::spawn(move || {
            loop {
                if let Err(error) = sending.write_all(&[1; 4096]) {
                    return error.kind();
                }
            }
        });
        server.read_exact(&mut [0; 10_000]).unwrap();
        server.write_all(b"last response").unwrap();
        // The kernel resets a connection that is closed with unread bytes.
        assert_eq!(server.peek(&mut [0]).unwrap(), 1);
        drop(server);
        let mut response = [0; 13];
        client.read_exact(&mut response).unwrap();
        assert_eq!(&response, b"last response", "{transfer_mode:?}");
        // The kernel reports the reset to one of the two calls, and EOF or EPIPE to the other.
        // After a clean close, the read would return EOF and the write EPIPE.
        let (read, written) = (read_to_end(client), upload.join().unwrap());
        assert!(read == Err(ErrorKind::ConnectionReset) || written == ErrorKind::ConnectionReset);
        assert_eq!(relay.drain().ended(EndReason::Reset), 1);
    }
}

#[test]
fn idle_and_half_closed_connections_time_out() {
    let times = |idle, half_closed| Limits {
        idle_time_max: Some(Duration::from_millis(idle)),
        half_closed_time_max: Some(Duration::from_millis(half_closed)),
        ..Limits::default()
    };
    let hour = 3_600_000;
    for (limits, shut, reason) in
        [(times(1, hour), false, EndReason::Idle), (times(hour, 1), true, EndReason::HalfClosed)]
    {
        let (target, address) = listener();
        let relay = Relay::start(Config { limits, ..config([address]) });
        let mut client = relay.connect();
        let server = target.accept().unwrap().0;
        if shut {
            client.shutdown(Shutdown::Write).unwrap();
        } else {
            client.write_all(b"x").unwrap_or_default();
        }
        assert_eq!(read_to_end(client), Err(ErrorKind::ConnectionReset), "{reason:?}");
        drop(server);
        assert_eq!(relay.drain().ended(reason), 1);
    }
}

#[test]
fn traffic_prevents_the_idle_timeout() {
    let clock = ManualClock::new();
    let limits = Limits { idle_time_max: Some(Duration::from_secs(60)), ..Limits::default() };
    let (target, address) = listener();
    let relay = Relay::start(Config { limits, clock: (&clock).into(), ..config([address]) });
    let pair = || {
        let mut client = relay.connect();
        client.write_all(b"x").unwrap();
        let mut server = target.accept().unwrap().0;
        server.read_exact(&mut [0; 1]).unwrap();
        (client, server)
    };
    let (_idle, (mut client, mut server)) = (pair(), pair());
    for idle_timeouts in [0, 1, 1] {
        clock.advance(Duration::from_secs(40));
        relay.until(|stats| stats.ended(EndReason::Idle) == idle_timeouts);
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0; 1]).unwrap();
    }
    drop(client);
    assert_eq!(read_to_end(server), Ok(()));
    let stats = relay.until(|stats| stats.active == 0);
    assert_eq!((stats.ended(EndReason::Clean), stats.ended(EndReason::Idle)), (1, 1));
}
