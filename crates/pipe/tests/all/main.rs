//! Tests of the pipe pool with pipes, sockets and files of the kernel.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "helpers of tests, which may fail like them"
)]

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use haul_pipe::{DrainOutcome, Filled, PipePool, PoolOptions};

mod files;
mod leases;
mod moving;

const ALL: usize = usize::MAX;

fn pool(pipes_max: usize) -> PipePool {
    PipePool::new(PoolOptions { pipe_bytes: 64 << 10, pipes_max })
}

/// Returns a connected pair of non-blocking sockets.
fn pair() -> (UnixStream, UnixStream) {
    let pair = UnixStream::pair().unwrap();
    pair.0.set_nonblocking(true).unwrap();
    pair.1.set_nonblocking(true).unwrap();
    pair
}

/// Reads everything that is available without blocking.
fn read_now(from: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match from.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
        _ => bytes,
    }
}

/// Returns bytes that encode their own offset.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(4)).flat_map(|at| (at as u32).to_le_bytes()).take(bytes).collect()
}

/// Writes until the socket would block and returns the number of bytes written.
fn write_until_full(to: &mut UnixStream) -> usize {
    let (piece, mut bytes) = (pattern(64 << 10), 0);
    loop {
        match to.write(&piece) {
            Ok(more) => bytes += more,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return bytes;
            }
        }
    }
}
