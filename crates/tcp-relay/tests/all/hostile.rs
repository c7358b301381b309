//! A hundred thousand connections that do what they like: foreign, lost and repeated bytes would
//! be noticed, and so would a stream that was cut and looks whole.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, thread};

use haul_tcp_relay::{Config, PoolOptions};

use crate::endpoint::{End, Script, Stream, follow, mix};
use crate::world::{Relay, config, listener};

const CONNECTIONS: u64 = 100_000;
/// Clients at a time, and as many targets.
const AT_A_TIME: usize = 8;
/// What a target hears in place of a connection's number when all is over.
const OVER: u64 = u64::MAX;

fn seed() -> u64 {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |t| t.as_secs());
    let seed = env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(clock);
    println!("SEED={seed}");
    seed
}

/// What both ends of a connection do: its number says it.
fn scripts(seed: u64, number: u64) -> (Script, Script) {
    let mut state = mix(seed ^ mix(number));
    let mut chance = |below: u64| {
        state = mix(state);
        state % below
    };
    let piece = 1 << (4 + chance(13));
    let length = |kind: u64, many: u64| match kind {
        0..=2 => 0,
        3..=14 => many % 3000,
        _ => many % (piece as u64 * 24),
    };
    let up_bytes = length(chance(18), chance(1 << 40));
    let down_bytes = length(chance(18), chance(1 << 40));
    let total = up_bytes + down_bytes;
    let late = chance(4);
    let mut resets = || (chance(6) == 0).then(|| chance(total + 1));
    let (up, down) = (Stream::new(number, true), Stream::new(number, false));
    let near = Script {
        sends: up,
        send_bytes: up_bytes,
        gets: down,
        piece,
        reads_late: late == 0,
        resets_at: resets(),
    };
    let far = Script {
        sends: down,
        send_bytes: down_bytes,
        gets: up,
        reads_late: late == 1,
        resets_at: resets(),
        ..near
    };
    (near, far)
}

/// How often each thing happened.
#[derive(Default)]
struct Seen {
    clean: AtomicU64,
    broken: AtomicU64,
    reset: AtomicU64,
}

impl Seen {
    /// Notes how one end saw the connection end; fails when it may not have ended so.
    fn note(&self, number: u64, end: End, expected_bytes: u64, other_resets: bool) {
        let counter = match end {
            End::Clean(bytes) => {
                assert_eq!(bytes, expected_bytes, "connection {number} looks whole and is not");
                &self.clean
            }
            End::Broken(_) => {
                assert!(other_resets, "connection {number} broke, and nobody wanted it");
                &self.broken
            }
            End::ResetByMe => &self.reset,
        };
        counter.fetch_add(1, Relaxed);
    }
}

fn client(relay: &Relay, seed: u64, number: u64, seen: &Seen) {
    let (near, far) = scripts(seed, number);
    let mut socket = relay.connect();
    socket.write_all(&number.to_le_bytes()).unwrap();
    seen.note(number, follow(socket, &near), far.send_bytes, far.resets_at.is_some());
}

fn target(listener: &TcpListener, seed: u64, seen: &Seen) {
    loop {
        let mut socket = listener.accept().unwrap().0;
        let mut number = [0; 8];
        if let Err(error) = socket.read_exact(&mut number) {
            // The client was gone before it said who it was.
            assert_ne!(error.kind(), ErrorKind::UnexpectedEof, "a reset came as an end");
            continue;
        }
        let number = u64::from_le_bytes(number);
        if number == OVER {
            return;
        }
        let (near, far) = scripts(seed, number);
        seen.note(number, follow(socket, &far), near.send_bytes, near.resets_at.is_some());
    }
}

#[test]
fn a_hundred_thousand_hostile_connections_get_their_own_bytes_alone() {
    let seed = seed();
    let (listener, address) = listener();
    let pool = PoolOptions { pipe_bytes: 64 << 10, pipes_max: 1 };
    let relay = Relay::start(Config { threads: 2, pool, ..config([address]) });
    let (next, near, far) = (AtomicU64::new(0), Seen::default(), Seen::default());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| target(&listener, seed, &far));
        }
        let clients: Vec<_> = (0..AT_A_TIME)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Relaxed);
                        if number >= CONNECTIONS {
                            return;
                        }
                        client(&relay, seed, number, &near);
                    }
                })
            })
            .collect();
        let all_well = clients.into_iter().all(|client| client.join().is_ok());
        for _ in 0..AT_A_TIME {
            let mut last = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            last.write_all(&OVER.to_le_bytes()).unwrap();
        }
        assert!(all_well);
    });
    let stats = relay.drain();
    let counts = |seen: &Seen| [&seen.clean, &seen.broken, &seen.reset].map(|c| c.load(Relaxed));
    println!("{:?} {:?} {stats:?}", counts(&near), counts(&far));
    assert_eq!(stats.ended.iter().sum::<u64>(), CONNECTIONS);
    assert_eq!((stats.active, stats.pipes.leased), (0, 0));
    // Each of what this is about did happen.
    for seen in [&near, &far] {
        assert!(counts(seen).iter().all(|count| *count > CONNECTIONS / 50), "{:?}", counts(seen));
    }
    assert!(stats.pipes.closed > 0, "pipes with bytes inside");
    assert!(stats.up.bytes_spliced > 0 && stats.down.bytes_copied > 0);
}
