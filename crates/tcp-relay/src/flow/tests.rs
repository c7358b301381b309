//! Tests of a single flow between two sockets, one call of `run` after another.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use haul_pipe::{PipePool, PoolOptions};
use haul_reactor::Socket;

use super::{Direction, FailedSide, Flow, Stop};
use crate::thread_context::{COPY_BYTES_MAX, ThreadContext};
use crate::transfer_mode::TransferMode;

const PIPE_BYTES: usize = 64 << 10;
const BUDGET_BYTES: usize = 16 << 10;

/// A flow with the peers of its source and its destination.
struct Harness {
    thread: ThreadContext,
    flow: Flow,
    client: UnixStream,
    from: Socket,
    to: Socket,
    server: UnixStream,
}

impl Harness {
    fn new(transfer_mode: TransferMode, pipes_max: usize) -> Self {
        let pool = PipePool::new(PoolOptions { pipe_bytes: PIPE_BYTES, pipes_max });
        let thread = ThreadContext::new(pool, transfer_mode);
        let (client, from) = UnixStream::pair().unwrap();
        let (to, server) = UnixStream::pair().unwrap();
        for socket in [&client, &from, &to, &server] {
            socket.set_nonblocking(true).unwrap();
        }
        let flow = Flow::new(Direction::Up, &thread);
        Self {
            thread,
            flow,
            client,
            from: Socket::new(from.into()),
            to: Socket::new(to.into()),
            server,
        }
    }

    /// Runs the flow once, with one budget; returns the result and the number of bytes read.
    fn run(&mut self) -> (Result<Stop, FailedSide>, usize) {
        let before = self.bytes_read();
        let mut budget = BUDGET_BYTES;
        // A new `Socket` is marked ready, as after an event of the reactor.
        let (from, to) = (&self.from, &self.to);
        let mut from = Socket::new(rustix::io::dup(from).unwrap());
        let mut to = Socket::new(rustix::io::dup(to).unwrap());
        let stop = self.flow.run(&mut from, &mut to, &mut self.thread, &mut budget);
        (stop, self.bytes_read() - before)
    }

    fn bytes_read(&self) -> usize {
        let mut stats = crate::stats::Stats::default();
        stats.add(&self.thread.counters, self.thread.pool.stats());
        usize::try_from(stats.up.bytes_copied + stats.up.bytes_spliced).unwrap()
    }

    /// Writes to the source until it would block; returns the number of bytes written.
    fn fill_source(&mut self) -> usize {
        std::iter::from_fn(|| self.client.write(&[7; 4096]).ok()).sum()
    }

    fn read_destination(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // `WouldBlock` ends the read; the bytes before it are kept.
        self.server.read_to_end(&mut bytes).ok();
        bytes
    }
}

const MODES: [TransferMode; 2] = [TransferMode::Copy, TransferMode::Splice];

#[test]
fn full_destination_stops_reading_from_the_source() {
    for transfer_mode in MODES {
        let mut harness = Harness::new(transfer_mode, 1);
        while harness.fill_source() > 0 && harness.run().0.unwrap() != Stop::DestinationFull {}
        let buffered = harness.flow.buffered_bytes();
        assert!(
            buffered > 0 && buffered <= COPY_BYTES_MAX.max(PIPE_BYTES),
            "{transfer_mode:?}: {buffered}"
        );
        harness.fill_source();
        for _ in 0..10 {
            assert_eq!(
                (harness.run().0.unwrap(), harness.run().1),
                (Stop::DestinationFull, 0),
                "{transfer_mode:?}"
            );
        }
        assert_eq!(
            harness.thread.pool.stats().leased,
            usize::from(transfer_mode == TransferMode::Splice)
        );

        // The flow resumes when the destination is drained, and buffers nothing at the end.
        let mut read = 0;
        loop {
            read += harness.read_destination().len();
            if harness.run().0.unwrap() == Stop::SourceEmpty {
                break;
            }
        }
        read += harness.read_destination().len();
        assert_eq!(
            (read, harness.flow.buffered_bytes()),
            (harness.bytes_read(), 0),
            "{transfer_mode:?}"
        );
        assert_eq!(
            (harness.thread.pool.stats().leased, harness.thread.pool.stats().closed),
            (0, 0)
        );
    }
}

#[test]
fn run_stops_within_one_burst_of_its_budget() {
    for transfer_mode in MODES {
        let mut harness = Harness::new(transfer_mode, 1);
        let (mut budgets, mut read) = (0, 0);
        for _ in 0..50 {
            harness.fill_source();
            let (stop, bytes_read) = harness.run();
            assert!(bytes_read < BUDGET_BYTES + PIPE_BYTES, "{transfer_mode:?}: {bytes_read}");
            budgets += usize::from(stop.unwrap() == Stop::BudgetUsed);
            read += harness.read_destination().len();
        }
        assert!(budgets > 0 && read > 50 * BUDGET_BYTES, "{transfer_mode:?}: {budgets} {read}");
    }
}

#[test]
fn prepended_bytes_precede_exactly_the_set_length() {
    for transfer_mode in [TransferMode::Copy, TransferMode::Splice, TransferMode::Auto] {
        for length in [0_usize, 1, 5, 100, 70_000] {
            let mut harness = Harness::new(transfer_mode, 1);
            harness.flow.prepend(b"first".to_vec());
            harness.flow.set_length(Some(length as u64));
            let body = vec![1; length];
            let all = [body.as_slice(), b"next"].concat();
            let mut remaining = all.as_slice();
            let mut got = Vec::new();
            loop {
                let sent = harness.client.write(remaining).unwrap_or_default();
                remaining = &remaining[sent..];
                let stop = harness.run().0.unwrap();
                got.extend(harness.read_destination());
                if stop == Stop::Complete {
                    break;
                }
            }
            assert_eq!(got, [b"first".as_slice(), &body].concat(), "{transfer_mode:?} {length}");
            assert!(remaining.is_empty(), "{transfer_mode:?} {length}");
            let mut rest = [0; 8];
            let from = &harness.from;
            let bytes = rustix::io::read(from, &mut rest).unwrap();
            assert_eq!(&rest[..bytes], b"next", "{transfer_mode:?} {length}");
        }
    }
}

#[test]
fn missing_or_small_pipe_falls_back_to_copy() {
    let too_small = PoolOptions { pipe_bytes: COPY_BYTES_MAX / 2, pipes_max: 1 };
    for pool in [PoolOptions { pipes_max: 0, ..PoolOptions::default() }, too_small] {
        let mut harness = Harness::new(TransferMode::Splice, 0);
        harness.thread.pool = PipePool::new(pool);
        harness.client.write_all(&[3; 10_000]).unwrap();
        assert_eq!(harness.run().0.unwrap(), Stop::SourceEmpty, "{pool:?}");
        assert_eq!(harness.read_destination(), [3; 10_000], "{pool:?}");
        assert!(harness.thread.counters.no_pipe.get() > 0, "{pool:?}");
    }
}

#[test]
fn socket_is_uncorked_once_the_source_is_empty() {
    let burst = [5; COPY_BYTES_MAX];
    let mut harness = Harness::new(TransferMode::Splice, 1);
    harness.client.write_all(&burst).unwrap();
    assert_eq!(harness.run().0.unwrap(), Stop::BudgetUsed);
    assert!(harness.flow.is_corked);
    assert_eq!(harness.run().0.unwrap(), Stop::SourceEmpty);
    assert!(!harness.flow.is_corked);

    let mut harness = Harness::new(TransferMode::Splice, 1);
    harness.flow.set_length(Some(burst.len() as u64));
    harness.client.write_all(&burst).unwrap();
    assert_eq!(harness.run().0.unwrap(), Stop::Complete);
    assert!(!harness.flow.is_corked);
}

#[test]
fn eof_is_reported_after_the_last_byte() {
    for transfer_mode in MODES {
        let mut harness = Harness::new(transfer_mode, 1);
        harness.client.write_all(b"last").unwrap();
        harness.client.shutdown(Shutdown::Write).unwrap();
        // A short read is reported as an empty source before EOF is read.
        while harness.run().0.unwrap() != Stop::Eof {}
        assert!(harness.flow.is_finished(), "{transfer_mode:?}");
        assert_eq!(harness.read_destination(), b"last");

        let mut harness = Harness::new(transfer_mode, 1);
        while harness.fill_source() > 0 && harness.run().0.unwrap() != Stop::DestinationFull {}
        harness.client.shutdown(Shutdown::Write).unwrap();
        assert!(
            !harness.flow.is_finished() && harness.run().0.unwrap() == Stop::DestinationFull,
            "{transfer_mode:?}"
        );
    }
}

#[test]
fn failed_destination_closes_the_pipe() {
    for transfer_mode in MODES {
        let mut harness = Harness::new(transfer_mode, 1);
        harness.server.shutdown(Shutdown::Both).unwrap();
        harness.client.write_all(b"lost").unwrap();
        assert_eq!(harness.run().0.unwrap_err(), FailedSide::Destination, "{transfer_mode:?}");
        harness.flow.discard_buffered();
        assert_eq!(harness.thread.pool.stats().leased, 0);
        assert_eq!(
            harness.thread.pool.stats().closed,
            u64::from(transfer_mode == TransferMode::Splice)
        );
    }
}
