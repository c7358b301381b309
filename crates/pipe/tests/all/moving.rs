//! Tests of moving bytes between sockets: the bytes are unchanged, and a result names the side that
//! would block.

use proptest::prelude::*;

use crate::*;

#[test]
fn empty_source_end_of_file_and_full_target_are_distinguished() {
    let (mut peer, from) = pair();
    let (mut to, mut out) = pair();
    let pool = pool(1);
    let mut lease = pool.lease().unwrap();
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::SourceEmpty);

    let before = write_until_full(&mut to);
    peer.write_all(b"waits").unwrap();
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::Bytes(5));
    assert_eq!(lease.drain(&to, ALL, false).unwrap(), DrainOutcome::TargetFull);
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::PipeFull);
    assert_eq!(lease.pending_bytes(), 5);

    assert_eq!(read_now(&mut out).len(), before);
    assert_eq!(lease.drain(&to, ALL, false).unwrap(), DrainOutcome::Bytes(5));
    assert_eq!(read_now(&mut out), b"waits");
    drop(peer);
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::End);
    assert_eq!(lease.drain(&to, ALL, false).unwrap(), DrainOutcome::Bytes(0));
}

/// Each write to the source takes a slot of the pipe, even a write of one byte, so few bytes can
/// fill a pipe.
#[test]
fn a_pipe_is_full_when_its_slots_are() {
    let (mut peer, from) = pair();
    let pool = pool(1);
    let mut lease = pool.lease().unwrap();
    let slots = lease.capacity_bytes() / 4096;
    for _ in 0..2 * slots {
        peer.write_all(b"1").unwrap();
    }
    while lease.fill(&from, ALL).unwrap() != Filled::PipeFull {}
    assert_eq!(lease.pending_bytes(), slots);
    lease.discard(ALL).unwrap();
    assert_eq!(lease.pending_bytes(), 0);
    while lease.fill(&from, ALL).unwrap() != Filled::PipeFull {}
    assert_eq!(lease.pending_bytes(), slots);
}

#[test]
fn zero_length_calls_move_nothing_and_report_no_end() {
    let (peer, from) = pair();
    let (to, _out) = pair();
    let pool = pool(1);
    let mut lease = pool.lease().unwrap();
    drop(peer);
    assert_eq!(lease.fill(&from, 0).unwrap(), Filled::Bytes(0));
    assert_eq!(lease.drain(&to, 0, false).unwrap(), DrainOutcome::Bytes(0));
    assert_eq!(lease.read(&mut []).unwrap(), 0);
    assert_eq!(lease.fill(&from, 1).unwrap(), Filled::End);
}

/// One step of two transfers that share a pool of one pipe.
#[derive(Debug, Clone)]
enum Step {
    Write { transfer: usize, bytes: usize },
    Fill { transfer: usize, bytes_max: usize },
    Drain { transfer: usize, bytes_max: usize },
    Discard { transfer: usize, bytes: usize },
    Receive { transfer: usize },
    Release { transfer: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let transfer = || 0..2_usize;
    prop_oneof![
        (transfer(), 1..100_000_usize)
            .prop_map(|(transfer, bytes)| Step::Write { transfer, bytes }),
        (transfer(), 0..200_000_usize)
            .prop_map(|(transfer, bytes_max)| Step::Fill { transfer, bytes_max }),
        (transfer(), 0..200_000_usize)
            .prop_map(|(transfer, bytes_max)| Step::Drain { transfer, bytes_max }),
        (transfer(), 0..9000_usize).prop_map(|(transfer, bytes)| Step::Discard { transfer, bytes }),
        transfer().prop_map(|transfer| Step::Receive { transfer }),
        transfer().prop_map(|transfer| Step::Release { transfer }),
    ]
}

/// A transfer and the bytes expected at each stage.
struct Transfer {
    peer: UnixStream,
    from: UnixStream,
    to: UnixStream,
    out: UnixStream,
    lease: Option<haul_pipe::Lease>,
    tag: u8,
    written: u64,
    in_source: Vec<u8>,
    in_pipe: Vec<u8>,
    in_target: Vec<u8>,
}

impl Transfer {
    fn new(tag: u8) -> Self {
        let ((peer, from), (to, out)) = (pair(), pair());
        let (in_source, in_pipe, in_target) = (Vec::new(), Vec::new(), Vec::new());
        Self { peer, from, to, out, lease: None, tag, written: 0, in_source, in_pipe, in_target }
    }

    /// Writes bytes that differ from their neighbours, and from all bytes of the other transfer.
    fn write(&mut self, bytes: usize) {
        let next = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as u8 | self.tag << 7;
        let piece: Vec<u8> = (self.written..self.written + bytes as u64).map(next).collect();
        let taken = self.peer.write(&piece).unwrap_or(0);
        self.written += taken as u64;
        self.in_source.extend(&piece[..taken]);
    }

    fn fill(&mut self, pool: &PipePool, bytes_max: usize) {
        if self.lease.is_none() {
            self.lease = pool.lease().ok();
        }
        let Some(lease) = &mut self.lease else { return };
        match lease.fill(&self.from, bytes_max).unwrap() {
            Filled::Bytes(bytes) => {
                assert!(bytes <= bytes_max && (bytes > 0 || bytes_max == 0));
                self.in_pipe.extend(self.in_source.drain(..bytes));
            }
            Filled::SourceEmpty => assert!(self.in_source.is_empty() && self.in_pipe.is_empty()),
            Filled::PipeFull => assert!(!self.in_pipe.is_empty()),
            Filled::End => panic!("the source is still open"),
        }
        assert_eq!(lease.pending_bytes(), self.in_pipe.len());
    }

    fn drain(&mut self, bytes_max: usize) {
        let Some(lease) = &mut self.lease else { return };
        match lease.drain(&self.to, bytes_max, false).unwrap() {
            DrainOutcome::Bytes(bytes) => self.in_target.extend(self.in_pipe.drain(..bytes)),
            DrainOutcome::TargetFull => assert!(!self.in_target.is_empty()),
        }
        assert_eq!(lease.pending_bytes(), self.in_pipe.len());
    }

    fn discard(&mut self, bytes: usize) {
        let Some(lease) = &mut self.lease else { return };
        lease.discard(bytes).unwrap();
        self.in_pipe.drain(..bytes.min(self.in_pipe.len()));
    }

    fn receive(&mut self) {
        assert!(read_now(&mut self.out) == std::mem::take(&mut self.in_target));
    }

    fn release(&mut self) {
        self.lease = None;
        self.in_pipe.clear();
    }
}

proptest! {
    #[test]
    fn every_byte_arrives_once_in_order_at_its_own_target(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let pool = pool(1);
        let mut transfers = [Transfer::new(0), Transfer::new(1)];
        for step in steps {
            match step {
                Step::Write { transfer, bytes } => transfers[transfer].write(bytes),
                Step::Fill { transfer, bytes_max } => transfers[transfer].fill(&pool, bytes_max),
                Step::Drain { transfer, bytes_max } => transfers[transfer].drain(bytes_max),
                Step::Discard { transfer, bytes } => transfers[transfer].discard(bytes),
                Step::Receive { transfer } => transfers[transfer].receive(),
                Step::Release { transfer } => transfers[transfer].release(),
            }
            let leased = transfers.iter().filter(|transfer| transfer.lease.is_some()).count();
            prop_assert_eq!(pool.stats().leased, leased);
        }
        for mut transfer in transfers {
            transfer.receive();
        }
    }
}
