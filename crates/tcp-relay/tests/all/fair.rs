//! A terminal beside bulk: whoever types waits for turns, not for the end of somebody's file.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use haul_tcp_relay::{Config, Limits, Moving, PoolOptions};

use crate::world::{Relay, config, listener};

const BULK: usize = 4;
/// What bulk is made of, which costs nobody the time to make it.
static PIECE: [u8; 1 << 20] = [7; 1 << 20];
const PIECES: usize = 200;
const SHARE_BYTES: usize = 64 << 10;
/// A share, and the burst that ends it.
const TURN_BYTES: u64 = 128 << 10;
/// A key goes there and its echo back: a turn each, one under way before each, and as many again
/// for the two threads that type and echo, which the kernel must let run.
const TURNS: u64 = 8;

#[test]
fn a_key_stroke_waits_for_a_bounded_number_of_turns_beside_bulk() {
    for moving in [Moving::Copy, Moving::Splice, Moving::Auto] {
        let (typing, typing_address) = listener();
        let (bulk, bulk_address) = listener();
        let limits = Limits { share_bytes: SHARE_BYTES, ..Limits::default() };
        let pool = PoolOptions { pipe_bytes: 64 << 10, ..PoolOptions::default() };
        // One thread for both: the first connection is for the first target, the others take turns.
        let relay = Relay::start(Config {
            moving,
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
        // The kernel, too, lets others go first now and then: half of the strokes must be quick.
        moved.sort_unstable();
        let (count, median) = (moved.len(), moved[moved.len() / 2]);
        println!("{moving:?}: {count} strokes, {median} bytes of bulk beside half of them");
        assert!(count > 20, "{moving:?}: {count}");
        assert!(median <= BULK as u64 * TURNS * TURN_BYTES, "{moving:?}: {median}");
    }
}

/// Types until bulk is over. How many bytes of bulk went by beside each stroke and its echo.
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
