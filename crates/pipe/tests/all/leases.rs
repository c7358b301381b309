//! Tests of leases: empty pipes are reused, non-empty ones are closed, and limits hold.

use haul_pipe::{NoPipe, PoolStats};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_uid;

use crate::*;

#[test]
fn an_empty_pipe_is_reused() {
    let (mut peer, from) = pair();
    let (to, mut out) = pair();
    let pool = pool(4);
    for round in 0..1000 {
        peer.write_all(b"burst").unwrap();
        let mut lease = pool.lease().unwrap();
        assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::Bytes(5));
        assert_eq!(lease.drain(&to, ALL, false).unwrap(), DrainOutcome::Bytes(5), "{round}");
        assert_eq!(read_now(&mut out), b"burst");
    }
    assert_eq!(pool.stats(), PoolStats { created: 1, free: 1, ..PoolStats::default() });
}

#[test]
fn leftover_bytes_never_reach_another_transfer() {
    let (mut peer, from) = pair();
    let (to, mut out) = pair();
    let pool = pool(1);
    peer.write_all(b"the first one's secret").unwrap();
    let mut lease = pool.lease().unwrap();
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::Bytes(22));
    assert_eq!(lease.drain(&to, 4, false).unwrap(), DrainOutcome::Bytes(4));
    drop(lease);
    let stats = pool.stats();
    assert_eq!((stats.closed, stats.free, stats.leased), (1, 0, 0));

    peer.write_all(b"mine").unwrap();
    let mut lease = pool.lease().unwrap();
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::Bytes(4));
    assert_eq!(lease.drain(&to, ALL, false).unwrap(), DrainOutcome::Bytes(4));
    assert_eq!(read_now(&mut out), b"the mine");
}

#[test]
fn a_failed_transfer_closes_its_nonempty_pipe() {
    let (mut peer, from) = pair();
    let (to, out) = pair();
    let pool = pool(1);
    peer.write_all(b"lost").unwrap();
    drop(out);
    let mut lease = pool.lease().unwrap();
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::Bytes(4));
    let error = lease.drain(&to, ALL, false).unwrap_err();
    assert_eq!(error.source.kind(), ErrorKind::BrokenPipe);
    assert!(!error.is_refusal());
    assert_eq!(
        error.to_string(),
        "cannot move bytes from a pipe to the target: Broken pipe (os error 32)"
    );
    assert_eq!(lease.pending_bytes(), 4);
    drop(lease);
    assert_eq!((pool.stats().closed, pool.stats().free), (1, 0));
}

#[test]
fn leases_are_limited_to_pipes_max() {
    let pool = pool(2);
    let (first, second) = (pool.lease().unwrap(), pool.lease().unwrap());
    assert!(matches!(pool.lease(), Err(NoPipe::Exhausted(2))));
    drop(first);
    let third = pool.lease().unwrap();
    assert!(pool.lease().is_err());
    drop((second, third));
    let stats = pool.stats();
    assert_eq!((stats.created, stats.refused, stats.leased, stats.free), (2, 2, 0, 2));
}

#[test]
fn a_lease_outlives_its_pool_and_returns_from_another_thread() {
    let pool = pool(1);
    let lease = pool.lease().unwrap();
    let clone = pool.clone();
    drop(pool);
    std::thread::spawn(move || drop(lease)).join().unwrap();
    assert_eq!(clone.stats().free, 1);
    let lease = clone.lease().unwrap();
    drop(clone);
    drop(lease);
}

#[test]
fn a_pipe_has_the_requested_capacity() {
    let pool = PipePool::new(PoolOptions { pipe_bytes: 1 << 20, pipes_max: 1 });
    assert_eq!(pool.lease().unwrap().capacity_bytes(), 1 << 20);
    assert_eq!(pool.stats().undersized, 0);
}

/// The test requests a larger pipe than the kernel grants to any user.
#[test]
fn an_undersized_pipe_works() {
    let (mut peer, from) = pair();
    let (to, mut out) = pair();
    let pool = PipePool::new(PoolOptions { pipe_bytes: usize::MAX, pipes_max: 1 });
    let mut lease = pool.lease().unwrap();
    assert!(lease.capacity_bytes() >= 8192 && pool.stats().undersized == 1);
    peer.write_all(b"all the same").unwrap();
    lease.fill(&from, ALL).unwrap();
    lease.drain(&to, ALL, false).unwrap();
    assert_eq!(read_now(&mut out), b"all the same");
}

/// The kernel limits the total size of all pipes of an unprivileged user, and does not limit root.
/// If the test runs as root, its thread therefore switches to an unused user id.
#[test]
fn undersized_pipes_grow_when_others_are_closed() {
    let thread = std::thread::spawn(|| {
        if geteuid().is_root() {
            set_thread_uid(Uid::from_raw(1_000_000_000 + std::process::id())).unwrap();
        }
        let options = PoolOptions { pipe_bytes: 1 << 20, pipes_max: 4096 };
        let (others, pool) = (PipePool::new(options), PipePool::new(options));
        let mut large = Vec::new();
        while others.stats().undersized == 0 {
            large.push(others.lease().unwrap());
        }
        let small = pool.lease().unwrap();
        let small_bytes = small.capacity_bytes();
        assert!(small_bytes < 1 << 20, "{small_bytes}");
        drop(small);
        assert_eq!(pool.lease().unwrap().capacity_bytes(), small_bytes);
        drop((large, others));
        assert_eq!(pool.lease().unwrap().capacity_bytes(), 1 << 20);
        assert_eq!((pool.stats().created, pool.stats().undersized), (1, 1));
    });
    thread.join().unwrap();
}

#[test]
fn refusals_are_distinguished_from_failures() {
    let pool = pool(1);
    let mut lease = pool.lease().unwrap();
    // A directory cannot be spliced.
    let dir = std::fs::File::open("/").unwrap();
    let error = lease.fill_at(&dir, 0, 4096).unwrap_err();
    assert!(error.is_refusal(), "{error}");
    // `splice(2)` refuses a target opened for appending; the bytes stay in the pipe and can be
    // read.
    let (mut peer, from) = pair();
    peer.write_all(b"kept").unwrap();
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::Bytes(4));
    let file = tempfile::tempdir().unwrap();
    let to = std::fs::File::options()
        .append(true)
        .create(true)
        .open(file.path().join("appended"))
        .unwrap();
    assert!(lease.drain(&to, ALL, false).unwrap_err().is_refusal());
    let mut kept = [0; 16];
    assert_eq!(lease.read(&mut kept).unwrap(), 4);
    assert_eq!(&kept[..4], b"kept");
    drop(lease);
    assert_eq!((pool.stats().free, pool.stats().closed), (1, 0));
}

#[test]
fn filling_from_a_write_only_descriptor_fails() {
    let pool = pool(1);
    let mut lease = pool.lease().unwrap();
    let (_peer, from) = pair();
    let write_only = std::fs::File::options().write(true).open("/dev/null").unwrap();
    assert!(lease.fill(&write_only, ALL).is_err());
    // The lease remains usable.
    assert_eq!(lease.fill(&from, ALL).unwrap(), Filled::SourceEmpty);
}
