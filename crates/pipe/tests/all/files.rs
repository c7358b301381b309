//! Tests of splicing from files, through the page cache and with `O_DIRECT`.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

use crate::*;

const DIRECT: i32 = OFlags::DIRECT.bits() as i32;

#[test]
fn any_range_of_a_file_is_spliced_unchanged() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let content = pattern(300_000);
    std::fs::write(dir.path().join("file"), &content).unwrap();
    let file = File::open(dir.path().join("file")).unwrap();
    let pool = pool(1);
    for range in [0..1, 0..4096, 1..5000, 4095..70_000, 299_999..300_000, 100_000..300_000] {
        let (to, mut out) = pair();
        let mut lease = pool.lease().unwrap();
        let (mut at, mut received) = (range.start, Vec::new());
        while at < range.end {
            match lease.fill_at(&file, at as u64, range.end - at).unwrap() {
                Filled::Bytes(bytes) => at += bytes,
                other => panic!("{other:?}"),
            }
            while lease.pending_bytes() > 0 {
                lease.drain(&to, ALL, false).unwrap();
                received.extend(read_now(&mut out));
            }
        }
        assert!(received == content[range.clone()], "{range:?}");
    }
    assert_eq!(pool.lease().unwrap().fill_at(&file, 300_000, 1).unwrap(), Filled::End);
    assert_eq!(pool.stats().created, 1);
}

#[test]
fn direct_splice_leaves_no_pages_cached_and_delivers_the_tail() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("file");
    let content = pattern(200_123);
    std::fs::write(&path, &content).unwrap();
    let file = File::options().read(true).custom_flags(DIRECT).open(&path).unwrap();
    file.sync_all().unwrap();
    haul_disk::evict(&file.as_fd(), 0, u64::MAX).unwrap();

    let pool = PipePool::new(PoolOptions { pipe_bytes: 1 << 20, pipes_max: 1 });
    let mut lease = pool.lease().unwrap();
    // An aligned length may extend past the end of the file.
    assert_eq!(lease.fill_at(&file, 0, 1 << 20).unwrap(), Filled::Bytes(200_123));
    lease.discard(4097).unwrap();
    let (to, mut out) = pair();
    let mut received = Vec::new();
    while lease.pending_bytes() > 0 {
        lease.drain(&to, ALL, true).unwrap();
        received.extend(read_now(&mut out));
    }
    assert!(received == content[4097..]);
    assert_eq!(haul_disk::resident(&file.as_fd(), 0, u64::MAX).unwrap().resident_bytes, 0);
}

#[test]
fn unaligned_direct_splice_is_a_refusal() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, pattern(20_000)).unwrap();
    let file = File::options().read(true).custom_flags(DIRECT).open(&path).unwrap();
    let pool = pool(1);
    let mut lease = pool.lease().unwrap();
    assert!(lease.fill_at(&file, 100, 4096).unwrap_err().is_refusal());
    assert!(lease.fill_at(&file, 512, 1000).unwrap_err().is_refusal());
    assert_eq!(lease.fill_at(&file, 4096, 4096).unwrap(), Filled::Bytes(4096));
}
