//! What a connection holds, and how many there may be.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use haul_tcp_relay::{Config, Ended, Limits, Moving, PoolOptions};

use crate::endpoint::{End, Script, Stream, follow};
use crate::world::{Relay, config, listener};

#[test]
fn a_stalled_reader_stops_the_writer_and_a_bounded_part_is_taken() {
    const BYTES: u64 = 64 << 20;
    // What the sockets of both sides may hold besides, at most.
    const TAKEN_MAX: u64 = 24 << 20;
    for moving in [Moving::Copy, Moving::Splice] {
        let (target, address) = listener();
        let relay = Relay::start(Config { moving, ..config([address]) });
        let (up, down) = (Stream::new(1, true), Stream::new(1, false));
        let near = Script {
            sends: up,
            send_bytes: BYTES,
            gets: down,
            piece: 1 << 16,
            reads_late: false,
            resets_at: None,
        };
        let far = Script { sends: down, send_bytes: 0, gets: up, ..near };
        let client = relay.connect();
        let client = thread::spawn(move || follow(client, &near));
        let socket = target.accept().unwrap().0;
        let taken = || {
            let up = relay.stats().up;
            up.bytes_copied + up.bytes_spliced
        };
        let mut quiet = 0;
        let mut last = 0;
        // Stalled: thousands of looks find that nothing moves.
        while quiet < 20_000 {
            let now = taken();
            assert!(now <= TAKEN_MAX, "{moving:?}: {now}");
            quiet = if now == last && now > 0 { quiet + 1 } else { 0 };
            last = now;
            thread::yield_now();
        }
        assert!(relay.stats().pipes.leased <= 1);
        assert_eq!(follow(socket, &far), End::Clean(BYTES), "{moving:?}");
        assert_eq!(client.join().unwrap(), End::Clean(0), "{moving:?}");
    }
}

#[test]
fn an_idle_connection_holds_no_pipe_and_in_steady_state_none_is_made() {
    let (target, address) = listener();
    let relay = Relay::start(Config { moving: Moving::Splice, ..config([address]) });
    let mut pairs: Vec<(TcpStream, TcpStream)> =
        (0..50).map(|_| (relay.connect(), target.accept().unwrap().0)).collect();
    let message = vec![5; 100_000];
    let mut exchange = |rounds: usize| {
        for round in 0..rounds {
            let (near, far) = &mut pairs[round % 50];
            thread::scope(|scope| {
                scope.spawn(|| near.write_all(&message).unwrap());
                far.read_exact(&mut vec![0; message.len()]).unwrap();
            });
        }
    };
    exchange(50);
    let made = relay.stats().pipes.made;
    assert!((1..=2).contains(&made), "{made} for 50 connections");
    exchange(500);
    let stats = relay.until(|stats| stats.pipes.leased == 0);
    assert_eq!((stats.pipes.made, stats.pipes.closed), (made, 0));
    assert_eq!((stats.active, stats.up.bytes_spliced), (50, 55_000_000));
}

#[test]
fn when_all_pipes_are_lent_bytes_are_copied_and_counted() {
    let (target, address) = listener();
    let pool = PoolOptions { pipes_max: 1, ..PoolOptions::default() };
    let relay = Relay::start(Config { moving: Moving::Splice, pool, ..config([address]) });
    // The only pipe is held by a connection whose target does not read.
    let _stalled = relay.stall(&target);
    let mut near = relay.connect();
    let mut far = target.accept().unwrap().0;
    near.write_all(b"hello").unwrap();
    let mut greeting = [0; 5];
    far.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"hello");
    let stats = relay.stats();
    assert!(stats.no_pipe >= 1 && stats.up.bytes_copied == 5, "{stats:?}");
    assert_eq!(stats.pipes.made, 1);
}

#[test]
fn too_many_connections_wait_and_are_served() {
    let (target, address) = listener();
    let limits = Limits { connections_max: 3, ..Limits::default() };
    let relay = Relay::start(Config { limits, ..config([address]) });
    let mut clients: Vec<_> = (0..12_u8)
        .map(|number| {
            let mut client = relay.connect();
            client.write_all(&[number]).unwrap();
            Some(client)
        })
        .collect();
    let mut served: Vec<u8> = Vec::new();
    while served.len() < 12 {
        let mut far = target.accept().unwrap().0;
        let mut number = [0];
        far.read_exact(&mut number).unwrap();
        assert!(relay.stats().active <= 3);
        served.push(number[0]);
        drop(far);
        // Its client ends, too, and there is room for the next one.
        let mut client = clients[usize::from(number[0])].take().unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }
    served.sort_unstable();
    assert_eq!(served, Vec::from_iter(0..12));
}

#[test]
fn connections_may_end_once_it_drains_and_are_cut_off_when_they_do_not() {
    let (target, address) = listener();
    let limits = Limits { drain_time_max: Duration::from_secs(1), ..Limits::default() };
    let relay = Relay::start(Config { limits, threads: 2, ..config([address]) });
    let pair = || {
        let mut near = relay.connect();
        near.write_all(b"hello").unwrap();
        let mut far = target.accept().unwrap().0;
        far.read_exact(&mut [0; 5]).unwrap();
        (near, far)
    };
    let (mut ends, mut stays) = (pair(), pair());
    relay.handle.drain();
    // Nothing is accepted any more, and what goes on, goes on.
    let mut late = 0;
    while TcpStream::connect(relay.tcp()).is_ok() {
        late += 1;
        thread::yield_now();
    }
    ends.0.write_all(b"more").unwrap();
    drop(ends.0);
    let mut more = String::new();
    ends.1.read_to_string(&mut more).unwrap();
    assert_eq!(more, "more");
    drop(ends.1);
    for end in [&mut stays.0, &mut stays.1] {
        let error = end.read(&mut [0; 1]).map_err(|error| error.kind());
        assert_eq!(error, Err(ErrorKind::ConnectionReset));
    }
    // Those who came just before it began to drain are not answered by the target.
    let drained = relay.drain().ended(Ended::Drained);
    assert!((1..=1 + late).contains(&drained), "{drained} of {late}");
}
