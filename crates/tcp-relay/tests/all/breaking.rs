//! What breaks on one side is seen to break on the other.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use haul_tcp_relay::{Config, Ended, Limits, Moving};

use crate::endpoint::reset_on_close;
use crate::world::{Relay, config, listener};

/// Both ends of one connection.
struct Pair {
    near: TcpStream,
    far: TcpStream,
}

fn relay_and_pair(moving: Moving) -> (Relay, Pair) {
    let (target, address) = listener();
    let relay = Relay::start(Config { moving, ..config([address]) });
    let near = relay.connect();
    (relay, Pair { near, far: target.accept().unwrap().0 })
}

fn reset(socket: TcpStream) {
    reset_on_close(&socket);
    drop(socket);
}

/// Reads until something other than bytes comes.
fn end_of(mut socket: TcpStream) -> Result<(), ErrorKind> {
    std::io::copy(&mut socket, &mut std::io::sink()).map(drop).map_err(|error| error.kind())
}

#[test]
fn a_reset_at_any_point_resets_the_other_side() {
    type Prepare = fn(&mut Pair);
    let points: [(&str, Prepare); 6] = [
        ("before any byte", |_| {}),
        ("after bytes each way", |pair| {
            pair.near.write_all(&[1; 1000]).unwrap();
            pair.far.read_exact(&mut [0; 1000]).unwrap();
            pair.far.write_all(&[2; 1000]).unwrap();
            pair.near.read_exact(&mut [0; 1000]).unwrap();
        }),
        ("with bytes on their way up", |pair| pair.near.write_all(&[1; 100_000]).unwrap()),
        ("with bytes on their way down", |pair| pair.far.write_all(&[1; 100_000]).unwrap()),
        ("with both sides stalled", |pair| {
            for socket in [&mut pair.near, &mut pair.far] {
                socket.set_nonblocking(true).unwrap();
                while socket.write(&[3; 65_536]).is_ok() {}
                socket.set_nonblocking(false).unwrap();
            }
        }),
        ("after the other side has ended", |pair| {
            pair.far.shutdown(Shutdown::Write).unwrap();
            assert_eq!(pair.near.read(&mut [0; 1]).unwrap(), 0);
        }),
    ];
    for moving in [Moving::Auto, Moving::Copy, Moving::Splice] {
        for (point, prepare) in points {
            for near_goes in [true, false] {
                let (relay, mut pair) = relay_and_pair(moving);
                prepare(&mut pair);
                let Pair { near, mut far } = pair;
                let left = match near_goes {
                    true => {
                        reset(near);
                        far
                    }
                    false => {
                        // It notices only when something is sent to it, or said by it.
                        far.write_all(b"x").unwrap_or_default();
                        reset(far);
                        near
                    }
                };
                let what = format!("{moving:?}, {point}, near goes: {near_goes}");
                // What had come may be read first, and an end of that direction before the reset.
                let had_end = !near_goes && point == "after the other side has ended";
                match end_of(left) {
                    Ok(()) => assert!(had_end, "{what}"),
                    Err(kind) => assert_eq!(kind, ErrorKind::ConnectionReset, "{what}"),
                }
                let stats = relay.drain();
                // A target that goes as soon as it is connected counts as none.
                let broken = stats.ended(Ended::Reset) + stats.ended(Ended::NoTarget);
                assert_eq!((broken, stats.pipes.leased), (1, 0), "{what}");
            }
        }
    }
}

/// Nobody reads any more from a client whose target takes nothing.
#[test]
fn a_client_that_resets_while_its_target_takes_nothing_is_noticed() {
    for moving in [Moving::Copy, Moving::Splice] {
        let (target, address) = listener();
        let limits = Limits { idle_time_max: Some(Duration::from_secs(10)), ..Limits::default() };
        let relay = Relay::start(Config { moving, limits, ..config([address]) });
        let mut near = relay.connect();
        let _far = target.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        let mut refused = 0;
        while refused < 2000 {
            refused = if near.write(&[1; 65_536]).is_ok() { 0 } else { refused + 1 };
            thread::yield_now();
        }
        reset(near);
        let stats = relay.until(|stats| stats.active == 0);
        assert_eq!(stats.ended(Ended::Reset), 1, "{moving:?}: {stats:?}");
    }
}

#[test]
fn what_a_target_said_before_it_went_arrives() {
    for moving in [Moving::Copy, Moving::Splice] {
        let (relay, Pair { mut near, mut far }) = relay_and_pair(moving);
        near.write_all(b"a request that is not read").unwrap();
        while far.peek(&mut [0; 32]).unwrap() < 26 {}
        far.write_all(b"no, thank you").unwrap();
        // Closed with bytes unread: the kernel makes a reset of it.
        drop(far);
        let mut answer = [0; 13];
        near.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"no, thank you");
        assert_eq!(end_of(near), Err(ErrorKind::ConnectionReset), "{moving:?}");
        assert_eq!(relay.drain().ended(Ended::Reset), 1);
    }
}

/// The write that fails and the last words come in one turn of the relay.
#[test]
fn what_either_side_said_before_it_went_arrives_while_the_other_goes_on_sending() {
    for round in 0..120 {
        let moving = [Moving::Auto, Moving::Copy, Moving::Splice][round % 3];
        let (relay, mut pair) = relay_and_pair(moving);
        if round % 2 == 0 {
            std::mem::swap(&mut pair.near, &mut pair.far);
        }
        let Pair { mut near, mut far } = pair;
        let mut sending = near.try_clone().unwrap();
        let upload = thread::spawn(move || {
            loop {
                if let Err(error) = sending.write_all(&[1; 4096]) {
                    return error.kind();
                }
            }
        });
        far.read_exact(&mut [0; 10_000]).unwrap();
        far.write_all(b"no, thank you").unwrap();
        // Closed with bytes unread: the kernel makes a reset of it.
        assert_eq!(far.peek(&mut [0]).unwrap(), 1);
        drop(far);
        let mut answer = [0; 13];
        near.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"no, thank you", "{moving:?}");
        // One of the two calls is told, the other finds an end. After a proper end it would be a
        // broken pipe.
        let (read, written) = (end_of(near), upload.join().unwrap());
        assert!(read == Err(ErrorKind::ConnectionReset) || written == ErrorKind::ConnectionReset);
        assert_eq!(relay.drain().ended(Ended::Reset), 1);
    }
}

#[test]
fn silence_ends_a_connection_when_it_lasts_too_long() {
    let times = |idle, half_closed| Limits {
        idle_time_max: Some(Duration::from_millis(idle)),
        half_closed_time_max: Some(Duration::from_millis(half_closed)),
        ..Limits::default()
    };
    let hour = 3_600_000;
    for (limits, shut, how) in
        [(times(1, hour), false, Ended::Idle), (times(hour, 1), true, Ended::HalfClosed)]
    {
        let (target, address) = listener();
        let relay = Relay::start(Config { limits, ..config([address]) });
        let mut near = relay.connect();
        let far = target.accept().unwrap().0;
        if shut {
            near.shutdown(Shutdown::Write).unwrap();
        } else {
            near.write_all(b"x").unwrap_or_default();
        }
        assert_eq!(end_of(near), Err(ErrorKind::ConnectionReset), "{how:?}");
        drop(far);
        assert_eq!(relay.drain().ended(how), 1);
    }
}

#[test]
fn a_connection_that_moves_is_not_idle() {
    let limits = Limits { idle_time_max: Some(Duration::from_millis(600)), ..Limits::default() };
    let (target, address) = listener();
    let relay = Relay::start(Config { limits, ..config([address]) });
    let mut near = relay.connect();
    let mut far = target.accept().unwrap().0;
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_millis(1500) {
        near.write_all(b"x").unwrap();
        far.read_exact(&mut [0; 1]).unwrap();
    }
    drop(near);
    assert_eq!(end_of(far), Ok(()));
    let stats = relay.drain();
    assert_eq!((stats.ended(Ended::Clean), stats.accepted), (1, 1));
}
