//! Tests with thousands of connections that stall and reset at random. The test detects foreign,
//! lost and repeated bytes, and truncated streams that look complete.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use haul_tcp_relay::{Config, PoolOptions};
use haul_testing::{Random, Transport, depth, over};

use crate::scripted_peer::{Outcome, Script, Stream, follow};
use crate::support::{Relay, config, listener};

/// The number of connections over a transport. Handshakes make those over TLS slow.
fn connections(transport: Transport) -> u64 {
    let each = match transport {
        Transport::Plain => 10_000,
        Transport::Inherited => 1000,
        Transport::Tls => 500,
    };
    each * depth()
}

over!(Plain Inherited Tls => (hostile_connections_receive_only_their_own_bytes));

/// The number of concurrent clients, and of target threads.
const AT_A_TIME: usize = 8;
/// The number that a client sends instead of its connection's number to end a target thread.
const OVER: u64 = u64::MAX;

/// Returns the scripts of the client and the server of a connection, derived from its number.
fn scripts(seed: u64, number: u64) -> (Script, Script) {
    let mut random = Random(seed ^ Random(number).number());
    let mut chance = |below: u64| random.below(below);
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
    let client_script = Script {
        sends: up,
        send_bytes: up_bytes,
        gets: down,
        piece,
        reads_late: late == 0,
        resets_at: resets(),
    };
    let server_script = Script {
        sends: down,
        send_bytes: down_bytes,
        gets: up,
        reads_late: late == 1,
        resets_at: resets(),
        ..client_script
    };
    (client_script, server_script)
}

/// Counts of how connections ended.
#[derive(Default)]
struct Outcomes {
    clean: AtomicU64,
    broken: AtomicU64,
    reset: AtomicU64,
}

impl Outcomes {
    /// Counts how a connection ended for one side; fails if this end is not allowed.
    fn record(&self, number: u64, end: Outcome, expected_bytes: u64, other_resets: bool) {
        let counter = match end {
            Outcome::Clean(bytes) => {
                assert_eq!(
                    bytes, expected_bytes,
                    "connection {number} is truncated but looks complete"
                );
                &self.clean
            }
            Outcome::Broken(_) => {
                assert!(other_resets, "connection {number} failed without a reset by its peer");
                &self.broken
            }
            Outcome::ResetByMe => &self.reset,
        };
        counter.fetch_add(1, Relaxed);
    }
}

fn client(relay: &Relay, seed: u64, number: u64, outcomes: &Outcomes) {
    let (client_script, server_script) = scripts(seed, number);
    let mut socket = relay.endpoint().connect().unwrap();
    socket.write_all(&number.to_le_bytes()).unwrap();
    outcomes.record(
        number,
        follow(socket, &client_script),
        server_script.send_bytes,
        server_script.resets_at.is_some(),
    );
}

fn target(listener: &TcpListener, seed: u64, outcomes: &Outcomes) {
    loop {
        let mut socket = listener.accept().unwrap().0;
        let mut number = [0; 8];
        if let Err(error) = socket.read_exact(&mut number) {
            // The client reset the connection before its number arrived.
            assert_ne!(error.kind(), ErrorKind::UnexpectedEof, "a reset was forwarded as EOF");
            continue;
        }
        let number = u64::from_le_bytes(number);
        if number == OVER {
            return;
        }
        let (client_script, server_script) = scripts(seed, number);
        outcomes.record(
            number,
            follow(socket, &server_script),
            client_script.send_bytes,
            client_script.resets_at.is_some(),
        );
    }
}

fn hostile_connections_receive_only_their_own_bytes(transport: Transport) {
    let connections = connections(transport);
    let Random(seed) = Random::from_environment();
    let (listener, address) = listener();
    let pool = PoolOptions { pipe_bytes: 64 << 10, pipes_max: 1 };
    let relay = Relay::over(transport, Config { threads: 2, pool, ..config([address]) });
    let (next, client_outcomes, server_outcomes) =
        (AtomicU64::new(0), Outcomes::default(), Outcomes::default());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| target(&listener, seed, &server_outcomes));
        }
        let clients: Vec<_> = (0..AT_A_TIME)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Relaxed);
                        if number >= connections {
                            return;
                        }
                        client(&relay, seed, number, &client_outcomes);
                    }
                })
            })
            .collect();
        let all_passed = clients.into_iter().all(|client| client.join().is_ok());
        for _ in 0..AT_A_TIME {
            let mut last = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            last.write_all(&OVER.to_le_bytes()).unwrap();
        }
        assert!(all_passed);
    });
    let stats = relay.drain();
    let counts = |outcomes: &Outcomes| {
        [&outcomes.clean, &outcomes.broken, &outcomes.reset].map(|c| c.load(Relaxed))
    };
    println!("{:?} {:?} {stats:?}", counts(&client_outcomes), counts(&server_outcomes));
    assert_eq!(stats.ended.iter().sum::<u64>(), connections);
    assert_eq!((stats.active, stats.pipes.leased), (0, 0));
    // Each kind of end has occurred.
    for outcomes in [&client_outcomes, &server_outcomes] {
        assert!(
            counts(outcomes).iter().all(|count| *count > connections / 50),
            "{:?}",
            counts(outcomes)
        );
    }
    assert!(stats.down.bytes_copied > 0);
    if transport == Transport::Tls {
        // Decrypted bytes are in the memory of the relay, so they need no pipe.
        assert_eq!(stats.pipes.created, 0);
    } else {
        // A reset rarely finds bytes inside a pipe: of some thousand connections, a few do.
        assert!(stats.pipes.closed > 0 || connections < 10_000, "pipes with bytes inside");
        assert!(stats.up.bytes_spliced > 0);
    }
}
