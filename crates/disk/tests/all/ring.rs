//! Tests concurrent reads of real files through io_uring.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use haul_disk::{AlignedBuf, PAGE_BYTES, Ring, RingOp, RingRequest, evict, resident};
use haul_testing::skip;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::disk_dir;

/// Creates a ring; `None` if the kernel does not permit one.
fn ring<F: std::os::fd::AsFd>(depth: u32) -> Option<Ring<F>> {
    match Ring::new(depth) {
        Ok(ring) => Some(ring),
        Err(error) => {
            assert!(error.is_unsupported(), "{error:?}");
            skip("io_uring is not available");
            None
        }
    }
}

/// Creates a file in which each byte of a page is the number of this page.
fn numbered(pages: u8) -> Rc<OwnedFd> {
    let mut file = tempfile::tempfile_in(disk_dir().path()).unwrap();
    for page in 0..pages {
        file.write_all(&[page; PAGE_BYTES]).unwrap();
    }
    file.sync_all().unwrap();
    Rc::new(file.into())
}

fn page<F>(file: F, page: u64) -> RingRequest<F> {
    let buffer = AlignedBuf::zeroed(PAGE_BYTES);
    let offset = page * PAGE_BYTES as u64;
    RingRequest { file, offset, buffer, bytes: PAGE_BYTES, op: RingOp::Read, tag: page }
}

#[test]
fn each_completion_has_the_bytes_of_its_read() {
    let file = numbered(200);
    evict(&*file, 0, u64::MAX).unwrap();
    let Some(mut ring) = ring(16) else { return };
    let mut next = 0;
    let mut seen = BTreeSet::new();
    loop {
        while next < 200 && !ring.is_full() {
            ring.push(page(Rc::clone(&file), next * 7 % 200)).unwrap();
            next += 1;
        }
        let Some(done) = ring.wait().unwrap() else { break };
        assert_eq!(done.outcome.unwrap(), PAGE_BYTES);
        let number = u8::try_from(done.request.tag).unwrap();
        assert!(done.request.buffer.iter().all(|byte| *byte == number), "page {number}");
        assert!(seen.insert(number), "page {number} twice");
    }
    assert_eq!(seen.len(), 200);
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn submit_and_wait_returns_when_so_many_reads_have_completed() {
    let (near, far) = UnixStream::pair().unwrap();
    let file = numbered(4);
    let Some(mut ring) = ring::<Rc<OwnedFd>>(8) else { return };
    ring.submit_and_wait(3).unwrap();
    assert!(ring.take().is_none());
    // Nothing is written to the socket, so this read does not complete.
    let far = Rc::new(OwnedFd::from(far));
    ring.push(RingRequest { offset: 0, tag: 99, ..page(far, 0) }).unwrap();
    (0..4).for_each(|number| ring.push(page(Rc::clone(&file), number)).unwrap());
    ring.submit_and_wait(4).unwrap();
    let tags: BTreeSet<u64> =
        std::iter::from_fn(|| ring.take()).map(|done| done.request.tag).collect();
    assert_eq!(tags, BTreeSet::from([0, 1, 2, 3]));
    drop(near);
    // Only one read is left.
    ring.submit_and_wait(100).unwrap();
    assert_eq!(ring.take().unwrap().outcome.unwrap(), 0);
    ring.submit_and_wait(1).unwrap();
}

#[test]
fn full_ring_returns_the_read() {
    let file = numbered(3);
    let Some(mut ring) = ring(2) else { return };
    ring.push(page(Rc::clone(&file), 0)).unwrap();
    ring.push(page(Rc::clone(&file), 1)).unwrap();
    assert!(ring.is_full());
    let returned = ring.push(page(Rc::clone(&file), 2)).unwrap_err();
    assert_eq!((returned.tag, ring.in_flight()), (2, 2));
    ring.submit().unwrap();
    assert!(ring.wait().unwrap().is_some());
    ring.push(returned).unwrap();
    assert!(ring.wait().unwrap().is_some() && ring.wait().unwrap().is_some());
    assert!(ring.wait().unwrap().is_none());
}

#[test]
fn end_of_file_and_errors_are_reported_per_read() {
    let file = numbered(2);
    let Some(mut ring) = ring(4) else { return };
    let buffer = AlignedBuf::zeroed(4 * PAGE_BYTES);
    let bytes = buffer.len();
    let last = page(Rc::clone(&file), 1);
    ring.push(RingRequest { buffer, bytes, ..last }).unwrap();
    ring.push(page(Rc::clone(&file), 9)).unwrap();
    ring.push(RingRequest { offset: u64::MAX, tag: 77, ..page(Rc::clone(&file), 0) }).unwrap();
    let dir = Rc::new(OwnedFd::from(File::open(disk_dir().path()).unwrap()));
    ring.push(RingRequest { tag: 88, ..page(dir, 0) }).unwrap();
    for _ in 0..4 {
        let done = ring.wait().unwrap().unwrap();
        match (done.request.tag, done.outcome) {
            (1, Ok(PAGE_BYTES)) | (9, Ok(0)) => {}
            (77, Err(error)) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL)),
            (88, Err(error)) => assert_eq!(error.raw_os_error(), Some(libc::EISDIR)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn read_is_limited_to_the_buffer() {
    let file = numbered(4);
    let Some(mut ring) = ring(1) else { return };
    ring.push(RingRequest { bytes: usize::MAX, ..page(file, 0) }).unwrap();
    assert_eq!(ring.wait().unwrap().unwrap().outcome.unwrap(), PAGE_BYTES);
}

#[test]
fn dropping_a_ring_waits_for_reads_in_flight() {
    let (mut near, far) = UnixStream::pair().unwrap();
    let file = numbered(8);
    let Some(mut ring) = ring::<Rc<OwnedFd>>(8) else { return };
    let far = Rc::new(OwnedFd::from(far));
    ring.push(RingRequest { offset: 0, ..page(Rc::clone(&far), 0) }).unwrap();
    (1..8).for_each(|number| ring.push(page(Rc::clone(&file), number)).unwrap());
    ring.submit().unwrap();
    // The socket is empty, so the read is in flight and writes into its buffer from now on.
    let writer = std::thread::spawn(move || {
        near.write_all(&[7; PAGE_BYTES]).unwrap();
        near
    });
    drop(ring);
    // The dropped ring has released its references to the files.
    assert_eq!((Rc::strong_count(&far), Rc::strong_count(&file)), (1, 1));
    let near = writer.join().unwrap();
    let mut rest = [0; 16];
    near.set_nonblocking(true).unwrap();
    drop(near);
    let mut far = UnixStream::from(Rc::into_inner(far).unwrap());
    // All bytes were read into the ring's buffer before it was freed.
    assert_eq!(std::io::Read::read(&mut far, &mut rest).unwrap(), 0);
}

#[test]
fn dropping_a_ring_discards_queued_reads() {
    let file = numbered(2);
    let Some(mut ring) = ring(2) else { return };
    ring.push(page(Rc::clone(&file), 0)).unwrap();
    drop(ring);
    assert_eq!(Rc::strong_count(&file), 1);
}

#[test]
fn uncached_read_adds_no_pages() {
    let file = numbered(64);
    evict(&*file, 0, u64::MAX).unwrap();
    if resident(&*file, 0, u64::MAX).unwrap().resident_bytes > 0 {
        return skip("the file system is in memory");
    }
    let Some(mut ring) = ring(4) else { return };
    let buffer = AlignedBuf::zeroed(64 * PAGE_BYTES);
    let bytes = buffer.len();
    ring.push(RingRequest { buffer, bytes, op: RingOp::ReadUncached, ..page(Rc::clone(&file), 0) })
        .unwrap();
    let done = ring.wait().unwrap().unwrap();
    match done.outcome {
        Ok(read) => assert_eq!(read, 64 * PAGE_BYTES),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            return skip("the file system does not support uncached reads");
        }
        Err(error) => panic!("{error}"),
    }
    assert!(
        done.request.buffer.chunks(PAGE_BYTES).zip(0..).all(|(page, number)| page[0] == number)
    );
    assert_eq!(resident(&*file, 0, u64::MAX).unwrap().resident_bytes, 0);
}

#[test]
fn writes_reach_the_file_and_return_their_buffers() {
    let file = numbered(64);
    let Some(mut ring) = ring(8) else { return };
    let mut waiting: Vec<u64> = (0..64).rev().collect();
    let mut completed = 0;
    while completed < 64 {
        while let Some(number) = waiting.pop_if(|_| !ring.is_full()) {
            let mut request = RingRequest { op: RingOp::Write, ..page(Rc::clone(&file), number) };
            request.buffer.fill(u8::try_from(number + 100).unwrap());
            ring.push(request).unwrap();
        }
        ring.submit_and_wait(4).unwrap();
        for done in std::iter::from_fn(|| ring.take()) {
            assert_eq!(done.outcome.unwrap(), PAGE_BYTES);
            assert_eq!(u64::from(done.request.buffer[0]), done.request.tag + 100);
            completed += 1;
        }
    }
    let mut page = [0; PAGE_BYTES];
    for number in 0..64 {
        rustix::io::pread(&*file, &mut page, number * PAGE_BYTES as u64).unwrap();
        assert!(page.iter().all(|byte| u64::from(*byte) == number + 100), "page {number}");
    }
}

#[test]
fn a_write_to_a_read_only_file_fails_in_its_completion() {
    let file: OwnedFd =
        File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap().into();
    let Some(mut ring) = ring(1) else { return };
    ring.push(RingRequest { op: RingOp::Write, ..page(file, 0) }).unwrap();
    let done = ring.wait().unwrap().unwrap();
    assert_eq!(done.outcome.unwrap_err().raw_os_error(), Some(Errno::BADF.raw_os_error()));
}
