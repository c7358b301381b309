//! Tests that an interactive connection waits for a few byte budgets of bulk transfers on the same
//! thread, not for the end of the transfers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use haul_tcp_relay::{Config, Limits, PoolOptions, TransferMode};

use crate::support::{Relay, config, listener};

const BULK: usize = 4;
/// The content of bulk transfers, constant so that creating it takes no time.
static PIECE: [u8; 1 << 20] = [7; 1 << 20];
const PIECES: usize = 200;
const BUDGET_BYTES: usize = 64 << 10;
/// The maximum number of bytes that a bulk connection moves in one turn: its budget, and a last
/// burst that may exceed the budget by up to 64 KiB.
const TURN_BYTES: u64 = 128 << 10;
/// The maximum number of turns of each bulk connection during a keystroke. The key and its echo
/// each wait for at most two turns, one in progress and one more. Another four turns may pass until
/// the kernel schedules the threads that type and echo.
const TURNS: u64 = 8;

#[test]
fn keystroke_waits_for_a_bounded_number_of_turns() {
    for transfer_mode in [TransferMode::Copy, TransferMode::Splice, TransferMode::Auto] {
        let (typing, typing_address) = listener();
        let (bulk, bulk_address) = listener();
        let limits = Limits { budget_bytes: BUDGET_BYTES, ..Limits::default() };
        let pool = PoolOptions { pipe_bytes: 64 << 10, ..PoolOptions::default() };
        // All connections share one thread. Round robin assigns the first connection to the first
        // target.
        let relay = Relay::start(Config {
            transfer_mode,
            pool,
            limits,
            ..config([vec![typing_address], vec![bulk_address; BULK]].concat())
        });
        let keys = relay.connect();
        keys.set_nodelay(true).unwrap();
        let mut echo = typing.accept().unwrap().0;
        echo.set_nodelay(true).unwrap();
        let is_over = AtomicBool::new(false);
        let mut moved = thread::scope(|scope| {
            scope.spawn(move || {
                let mut key = [0];
                while echo.read(&mut key).unwrap() == 1 {
                    echo.write_all(&key).unwrap();
                }
            });
            let mut sinks = Vec::new();
            for _ in 0..BULK {
                let mut client = relay.connect();
                let mut target = bulk.accept().unwrap().0;
                scope.spawn(move || {
                    (0..PIECES).for_each(|_| client.write_all(&PIECE).unwrap());
                });
                sinks.push(scope.spawn(move || {
                    let mut piece = vec![0; PIECE.len()];
                    for _ in 0..PIECES {
                        target.read_exact(&mut piece).unwrap();
                        assert!(piece == PIECE);
                    }
                }));
            }
            let typist = scope.spawn(|| type_keys(&relay, &keys, &is_over));
            sinks.into_iter().for_each(|sink| sink.join().unwrap());
            is_over.store(true, Relaxed);
            let moved = typist.join().unwrap();
            keys.shutdown(Shutdown::Write).unwrap();
            moved
        });
        // The kernel may delay the typing thread for long, so only the median is checked.
        moved.sort_unstable();
        let (count, median) = (moved.len(), moved[moved.len() / 2]);
        println!(
            "{transfer_mode:?}: {count} keystrokes, median of {median} bulk bytes during each"
        );
        assert!(count > 20, "{transfer_mode:?}: {count}");
        assert!(median <= BULK as u64 * TURNS * TURN_BYTES, "{transfer_mode:?}: {median}");
    }
}

/// Sends keystrokes until the bulk transfers end; returns the number of bulk bytes relayed between
/// each keystroke and its echo.
fn type_keys(relay: &Relay, mut keys: &TcpStream, is_over: &AtomicBool) -> Vec<u64> {
    let mut moved = Vec::new();
    let bulk = || {
        let up = relay.stats().up;
        up.bytes_copied + up.bytes_spliced
    };
    while !is_over.load(Relaxed) {
        let before = bulk();
        keys.write_all(b"k").unwrap();
        keys.read_exact(&mut [0; 1]).unwrap();
        moved.push(bulk() - before);
    }
    moved
}
