//! Tests of the queue that threads share.

use std::thread;

use haul_md5_lanes::{Lanes, Md5Queue};
use md5::{Digest as _, Md5};

/// Lengths below and above the one from which messages share lanes.
const LENGTHS: &[usize] = &[0, 100, 4096, 8191, 8192, 9000, 16384, 16440, 65536, 70000];

#[test]
fn concurrent_threads_get_their_own_digests() {
    for lanes in Lanes::available() {
        let queue = &Md5Queue::new(lanes);
        thread::scope(|scope| {
            for thread in 0..40_usize {
                scope.spawn(move || {
                    for round in 0..40 {
                        let bytes = LENGTHS[(thread + round) % LENGTHS.len()];
                        let fill = (thread * 7 + round).to_le_bytes()[0];
                        let message = vec![fill; bytes];
                        let expected: [u8; 16] = Md5::digest(&message).into();
                        assert_eq!(queue.digest(&message), expected, "{bytes} bytes of {fill}");
                    }
                });
            }
        });
    }
}

#[test]
fn lone_caller_gets_its_digest() {
    let queue = Md5Queue::default();
    let message = vec![3; 100_000];
    let expected: [u8; 16] = Md5::digest(&message).into();
    assert_eq!([queue.digest(&message), queue.digest(&message)], [expected; 2]);
}
