//! Tests of backpressure, leased pipes, the connection limit and draining.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use haul_tcp_relay::{Config, EndReason, Limits, PoolOptions, TransferMode};

use crate::scripted_peer::{Outcome, Script, Stream, follow};
use crate::support::{Relay, config, listener};

#[test]
fn stalled_reader_applies_backpressure_to_the_writer() {
    const BYTES: u64 = 64 << 20;
    // The maximum number of bytes that the socket buffers of both sides hold, with a margin.
    const TAKEN_MAX: u64 = 24 << 20;
    for transfer_mode in [TransferMode::Copy, TransferMode::Splice] {
        let (target, address) = listener();
        let relay = Relay::start(Config { transfer_mode, ..config([address]) });
        let (up, down) = (Stream::new(1, true), Stream::new(1, false));
        let client_script = Script {
            sends: up,
            send_bytes: BYTES,
            gets: down,
            piece: 1 << 16,
            reads_late: false,
            resets_at: None,
        };
        let server_script = Script { sends: down, send_bytes: 0, gets: up, ..client_script };
        let client = relay.connect();
        let client = thread::spawn(move || follow(client, &client_script));
        let socket = target.accept().unwrap().0;
        let taken = || {
            let up = relay.stats().up;
            up.bytes_copied + up.bytes_spliced
        };
        let mut quiet = 0;
        let mut last = 0;
        // The relay has stalled when no byte moves for thousands of polls.
        while quiet < 20_000 {
            let now = taken();
            assert!(now <= TAKEN_MAX, "{transfer_mode:?}: {now}");
            quiet = if now == last && now > 0 { quiet + 1 } else { 0 };
            last = now;
            thread::yield_now();
        }
        assert!(relay.stats().pipes.leased <= 1);
        assert_eq!(follow(socket, &server_script), Outcome::Clean(BYTES), "{transfer_mode:?}");
        assert_eq!(client.join().unwrap(), Outcome::Clean(0), "{transfer_mode:?}");
    }
}

#[test]
fn idle_connections_lease_no_pipe() {
    let (target, address) = listener();
    let relay = Relay::start(Config { transfer_mode: TransferMode::Splice, ..config([address]) });
    let mut pairs: Vec<(TcpStream, TcpStream)> =
        (0..50).map(|_| (relay.connect(), target.accept().unwrap().0)).collect();
    let message = vec![5; 100_000];
    let mut exchange = |rounds: usize| {
        for round in 0..rounds {
            let (client, server) = &mut pairs[round % 50];
            thread::scope(|scope| {
                scope.spawn(|| client.write_all(&message).unwrap());
                server.read_exact(&mut vec![0; message.len()]).unwrap();
            });
        }
    };
    exchange(50);
    let made = relay.stats().pipes.created;
    assert!((1..=2).contains(&made), "{made} for 50 connections");
    exchange(500);
    let stats = relay.until(|stats| stats.pipes.leased == 0);
    assert_eq!((stats.pipes.created, stats.pipes.closed), (made, 0));
    assert_eq!((stats.active, stats.up.bytes_spliced), (50, 55_000_000));
}

#[test]
fn exhausted_pipe_pool_falls_back_to_copy() {
    let (target, address) = listener();
    let pool = PoolOptions { pipes_max: 1, ..PoolOptions::default() };
    let relay =
        Relay::start(Config { transfer_mode: TransferMode::Splice, pool, ..config([address]) });
    // The only pipe is leased by a connection whose target does not read.
    let _stalled = relay.stall(&target);
    let mut client = relay.connect();
    let mut server = target.accept().unwrap().0;
    client.write_all(b"hello").unwrap();
    let mut greeting = [0; 5];
    server.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"hello");
    let stats = relay.stats();
    assert!(stats.no_pipe >= 1 && stats.up.bytes_copied == 5, "{stats:?}");
    assert_eq!(stats.pipes.created, 1);
}

#[test]
fn connections_over_the_limit_wait_and_are_served() {
    let (target, address) = listener();
    let limits = Limits { connections_max: 3, peer_connections_max: Some(0), ..Limits::default() };
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
        let mut server = target.accept().unwrap().0;
        let mut number = [0];
        server.read_exact(&mut number).unwrap();
        assert!(relay.stats().active <= 3);
        served.push(number[0]);
        drop(server);
        // The client closes its side of the connection, so the relay accepts the next client.
        let mut client = clients[usize::from(number[0])].take().unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }
    served.sort_unstable();
    assert_eq!(served, Vec::from_iter(0..12));
}

#[test]
fn draining_waits_for_connections_and_resets_the_rest() {
    let drain_times = [Duration::from_hours(1), Duration::from_millis(1)];
    for (drain_time_max, is_long) in drain_times.into_iter().zip([true, false]) {
        let (target, address) = listener();
        let limits = Limits { drain_time_max, ..Limits::default() };
        let relay = Relay::start(Config { limits, threads: 2, ..config([address]) });
        let mut client = relay.connect();
        client.write_all(b"hello").unwrap();
        let mut server = target.accept().unwrap().0;
        server.read_exact(&mut [0; 5]).unwrap();
        relay.handle.drain();
        // A draining relay accepts no more connections; the open connections continue.
        let mut late = 0;
        while TcpStream::connect(relay.tcp()).is_ok() {
            late += 1;
            thread::yield_now();
        }
        if is_long {
            client.write_all(b"more").unwrap();
            drop(client);
            let mut more = String::new();
            server.read_to_string(&mut more).unwrap();
            assert_eq!(more, "more");
        } else {
            for end in [&mut client, &mut server] {
                let error = end.read(&mut [0; 1]).map_err(|error| error.kind());
                assert_eq!(error, Err(ErrorKind::ConnectionReset));
            }
            // The target never accepted the connections that the relay accepted before draining.
            let drained = relay.drain().ended(EndReason::Drained);
            assert!((1..=1 + late).contains(&drained), "{drained} of {late}");
        }
    }
}
