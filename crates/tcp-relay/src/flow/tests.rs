//! One direction between two sockets, turn by turn.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use haul_pipe::{PipePool, PoolOptions};
use haul_reactor::Socket;

use super::{Broken, Core, Direction, Flow, SCRATCH_BYTES, Stop};
use crate::choice::Moving;

const PIPE_BYTES: usize = 64 << 10;
const SHARE_BYTES: usize = 16 << 10;

/// A flow, what writes to its source, and what reads from its target.
struct Way {
    core: Core,
    flow: Flow,
    client: UnixStream,
    from: Socket,
    to: Socket,
    server: UnixStream,
}

impl Way {
    fn new(moving: Moving, pipes_max: usize) -> Self {
        let pool = PipePool::new(PoolOptions { pipe_bytes: PIPE_BYTES, pipes_max });
        let core = Core::new(pool, moving);
        let (client, from) = UnixStream::pair().unwrap();
        let (to, server) = UnixStream::pair().unwrap();
        for socket in [&client, &from, &to, &server] {
            socket.set_nonblocking(true).unwrap();
        }
        let flow = Flow::new(Direction::Up, &core);
        Self {
            core,
            flow,
            client,
            from: Socket::new(from.into()),
            to: Socket::new(to.into()),
            server,
        }
    }

    /// Runs it for a share. How it stopped, and how many bytes it took.
    fn run(&mut self) -> (Result<Stop, Broken>, usize) {
        let before = self.taken();
        let mut share = SHARE_BYTES;
        // The reactor would tell that it is ready again.
        let (from, to) = (&self.from, &self.to);
        let mut from = Socket::new(rustix::io::dup(from).unwrap());
        let mut to = Socket::new(rustix::io::dup(to).unwrap());
        let stop = self.flow.run(&mut from, &mut to, &mut self.core, &mut share);
        (stop, self.taken() - before)
    }

    fn taken(&self) -> usize {
        let mut stats = crate::stats::Stats::default();
        stats.add(&self.core.counters, self.core.pool.stats());
        usize::try_from(stats.up.bytes_copied + stats.up.bytes_spliced).unwrap()
    }

    /// Writes as much as the source takes.
    fn fill_source(&mut self) -> usize {
        std::iter::from_fn(|| self.client.write(&[7; 4096]).ok()).sum()
    }

    fn read_target(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // What is there is kept though the end is not.
        self.server.read_to_end(&mut bytes).ok();
        bytes
    }
}

const BOTH: [Moving; 2] = [Moving::Copy, Moving::Splice];

#[test]
fn nothing_is_taken_while_the_target_takes_nothing() {
    for moving in BOTH {
        let mut way = Way::new(moving, 1);
        while way.fill_source() > 0 && way.run().0.unwrap() != Stop::TargetFull {}
        let held = way.flow.held_bytes();
        assert!(held > 0 && held <= SCRATCH_BYTES.max(PIPE_BYTES), "{moving:?}: {held}");
        way.fill_source();
        for _ in 0..10 {
            assert_eq!((way.run().0.unwrap(), way.run().1), (Stop::TargetFull, 0), "{moving:?}");
        }
        assert_eq!(way.core.pool.stats().leased, usize::from(moving == Moving::Splice));

        // When it takes again, all goes on, and nothing is held in the end.
        let mut read = 0;
        loop {
            read += way.read_target().len();
            if way.run().0.unwrap() == Stop::SourceEmpty {
                break;
            }
        }
        read += way.read_target().len();
        assert_eq!((read, way.flow.held_bytes()), (way.taken(), 0), "{moving:?}");
        assert_eq!((way.core.pool.stats().leased, way.core.pool.stats().closed), (0, 0));
    }
}

#[test]
fn a_share_ends_within_a_burst_of_its_length() {
    for moving in BOTH {
        let mut way = Way::new(moving, 1);
        let (mut shares, mut read) = (0, 0);
        for _ in 0..50 {
            way.fill_source();
            let (stop, taken) = way.run();
            assert!(taken < SHARE_BYTES + PIPE_BYTES, "{moving:?}: {taken}");
            shares += usize::from(stop.unwrap() == Stop::ShareUsed);
            read += way.read_target().len();
        }
        assert!(shares > 0 && read > 50 * SHARE_BYTES, "{moving:?}: {shares} {read}");
    }
}

#[test]
fn what_was_put_goes_first_and_a_known_length_is_taken_exactly() {
    for moving in [Moving::Copy, Moving::Splice, Moving::Auto] {
        for length in [0_usize, 1, 5, 100, 70_000] {
            let mut way = Way::new(moving, 1);
            way.flow.put(b"first".to_vec());
            way.flow.expect(Some(length as u64));
            let body = vec![1; length];
            let all = [body.as_slice(), b"next"].concat();
            let mut left = all.as_slice();
            let mut got = Vec::new();
            loop {
                let sent = way.client.write(left).unwrap_or_default();
                left = &left[sent..];
                let stop = way.run().0.unwrap();
                got.extend(way.read_target());
                if stop == Stop::Complete {
                    break;
                }
            }
            assert_eq!(got, [b"first".as_slice(), &body].concat(), "{moving:?} {length}");
            assert!(left.is_empty(), "{moving:?} {length}");
            let mut rest = [0; 8];
            let from = &way.from;
            let bytes = rustix::io::read(from, &mut rest).unwrap();
            assert_eq!(&rest[..bytes], b"next", "{moving:?} {length}");
        }
    }
}

#[test]
fn without_a_pipe_that_is_worth_it_bytes_are_copied() {
    let too_small = PoolOptions { pipe_bytes: SCRATCH_BYTES / 2, pipes_max: 1 };
    for pool in [PoolOptions { pipes_max: 0, ..PoolOptions::default() }, too_small] {
        let mut way = Way::new(Moving::Splice, 0);
        way.core.pool = PipePool::new(pool);
        way.client.write_all(&[3; 10_000]).unwrap();
        assert_eq!(way.run().0.unwrap(), Stop::SourceEmpty, "{pool:?}");
        assert_eq!(way.read_target(), [3; 10_000], "{pool:?}");
        assert!(way.core.counters.no_pipe.get() > 0, "{pool:?}");
    }
}

#[test]
fn nothing_is_held_back_once_nothing_follows() {
    let burst = [5; SCRATCH_BYTES];
    let mut way = Way::new(Moving::Splice, 1);
    way.client.write_all(&burst).unwrap();
    assert_eq!(way.run().0.unwrap(), Stop::ShareUsed);
    assert!(way.flow.is_held_back);
    assert_eq!(way.run().0.unwrap(), Stop::SourceEmpty);
    assert!(!way.flow.is_held_back);

    let mut way = Way::new(Moving::Splice, 1);
    way.flow.expect(Some(burst.len() as u64));
    way.client.write_all(&burst).unwrap();
    assert_eq!(way.run().0.unwrap(), Stop::Complete);
    assert!(!way.flow.is_held_back);
}

#[test]
fn an_end_is_told_after_the_last_byte() {
    for moving in BOTH {
        let mut way = Way::new(moving, 1);
        way.client.write_all(b"last").unwrap();
        way.client.shutdown(Shutdown::Write).unwrap();
        // A read that was not filled says that this is all for now.
        while way.run().0.unwrap() != Stop::Ended {}
        assert!(way.flow.has_ended(), "{moving:?}");
        assert_eq!(way.read_target(), b"last");

        let mut way = Way::new(moving, 1);
        while way.fill_source() > 0 && way.run().0.unwrap() != Stop::TargetFull {}
        way.client.shutdown(Shutdown::Write).unwrap();
        assert!(!way.flow.has_ended() && way.run().0.unwrap() == Stop::TargetFull, "{moving:?}");
    }
}

#[test]
fn a_target_that_is_gone_breaks_the_flow_and_its_pipe_is_closed() {
    for moving in BOTH {
        let mut way = Way::new(moving, 1);
        way.server.shutdown(Shutdown::Both).unwrap();
        way.client.write_all(b"lost").unwrap();
        assert_eq!(way.run().0.unwrap_err(), Broken::Target, "{moving:?}");
        way.flow.give_up();
        assert_eq!(way.core.pool.stats().leased, 0);
        assert_eq!(way.core.pool.stats().closed, u64::from(moving == Moving::Splice));
    }
}
