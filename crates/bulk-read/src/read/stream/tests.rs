//! Tests of the stream of one request.

use super::*;

const K: u64 = 1 << 10;
const MAX: u64 = BUFFER_BYTES_MAX as u64;

fn stream(file_bytes: u64, offset: u64, bytes: u64) -> Stream<()> {
    let fd = tempfile::tempfile().unwrap().into();
    let status = FileStatus { bytes: file_bytes, ..FileStatus::default() };
    let range = ReadRequest { file: FileId(0), offset, bytes };
    Stream::new(0, range, OpenFile::new(fd, status), false, ())
}

/// Returns all parts that can be submitted in the current state.
fn parts(stream: &mut Stream<()>) -> Vec<(u64, usize)> {
    std::iter::from_fn(|| stream.next_part()).map(|part| (part.offset, part.bytes)).collect()
}

/// Returns the length of the next piece to deliver.
fn delivered(stream: &mut Stream<()>) -> Option<u64> {
    stream.next_piece().map(|piece| piece.bytes())
}

fn buffer() -> AlignedBuf {
    AlignedBuf::zeroed(BUFFER_BYTES_MAX)
}

#[test]
fn extra_byte_is_requested_only_at_eof() {
    assert_eq!(parts(&mut stream(5000, 0, u64::MAX)), [(0, 5001)]);
    assert_eq!(parts(&mut stream(5000, 0, 4999)), [(0, 4999)]);
    assert_eq!(parts(&mut stream(5000, 4000, 4000)), [(4000, 1001)]);
    assert_eq!(parts(&mut stream(5000, 9000, 4000)), []);
    let (first, half) = (FIRST_BYTES as u64, BUFFER_BYTES_MAX / 2);
    let all = [
        (0, FIRST_BYTES),
        (first, BUFFER_BYTES_MAX),
        (first + MAX, half),
        (first + MAX + MAX / 2, half + 1),
    ];
    assert_eq!(parts(&mut stream(first + 2 * MAX, 0, u64::MAX)), all);
}

#[test]
fn submission_is_limited_by_the_window() {
    let mut stream = stream(100 << 20, 0, u64::MAX);
    let window = parts(&mut stream);
    let bytes: u64 = window.iter().map(|(_, bytes)| *bytes as u64).sum();
    assert!((WINDOW_BYTES..WINDOW_BYTES + MAX).contains(&bytes), "{window:?}");
    let (first, second) = (window[0], window[1]);
    assert_eq!(first, (0, FIRST_BYTES));
    let part = |(offset, bytes): (u64, usize)| Part { offset, bytes };
    stream.complete(part(second), buffer(), second.1);
    assert!(stream.next_piece().is_none(), "the first read is still in flight");
    assert_eq!(parts(&mut stream), []);
    stream.complete(part(first), buffer(), first.1);
    assert_eq!(delivered(&mut stream), Some(first.1 as u64));
    assert_eq!(delivered(&mut stream), Some(second.1 as u64));
    assert_eq!(delivered(&mut stream), None);
    assert_eq!(parts(&mut stream), [(bytes, BUFFER_BYTES_MAX)]);
}

#[test]
fn short_read_is_resubmitted() {
    let mut stream = stream(300 * K, 0, u64::MAX);
    let all = stream.next_part().unwrap();
    assert_eq!(all, Part { offset: 0, bytes: 300 * 1024 + 1 });
    stream.complete(all, buffer(), 100 * 1024);
    assert_eq!(delivered(&mut stream), Some(100 * K));
    let rest = stream.next_part().unwrap();
    assert_eq!(rest, Part { offset: 100 * K, bytes: 200 * 1024 });
    stream.complete(rest, buffer(), 200 * 1024);
    assert_eq!(delivered(&mut stream), Some(200 * K));
    assert!(stream.is_done() && !stream.grew && stream.next_part().is_none());
}

#[test]
fn extra_byte_marks_growth_and_is_not_delivered() {
    let mut stream = stream(5000, 0, u64::MAX);
    let part = stream.next_part().unwrap();
    stream.complete(part, buffer(), 5001);
    assert!(stream.grew);
    assert_eq!(delivered(&mut stream), Some(5000));
}

#[test]
fn holes_are_passed_in_order_and_not_read() {
    let bytes = 1 << 40;
    let mut stream = stream(bytes, 0, u64::MAX);
    stream.set_hole(Some(8 * K..bytes));
    assert!(!stream.queue_hole() && stream.hole_search().is_none());
    let part = stream.next_part().unwrap();
    assert_eq!(part, Part { offset: 0, bytes: 8192 }, "without the extra byte");
    assert!(stream.queue_hole() && stream.next_part().is_none());
    assert_eq!(delivered(&mut stream), None, "the zeros follow the data");
    stream.complete(part, buffer(), 8192);
    assert_eq!(delivered(&mut stream), Some(8 * K));
    assert_eq!(delivered(&mut stream), Some(bytes - 8 * K));
    assert!(stream.is_done() && stream.hole_search().is_none());
}

#[test]
fn put_back_part_is_retried_until_aborted() {
    let mut stream = stream(5000, 0, u64::MAX);
    let part = stream.next_part().unwrap();
    assert!(stream.next_part().is_none());
    stream.put_back(part);
    assert_eq!(stream.next_part(), Some(part));
    stream.put_back(part);
    assert_eq!(stream.abort().count(), 0);
    stream.state = None;
    assert!(stream.next_part().is_none());
}
