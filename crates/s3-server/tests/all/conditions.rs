//! Conditional requests.

use crate::client::{Running, assert_refused};

const ETAG: &str = "\"5d41402abc4b2a76b9719d911017c592\"";
const OTHER: &str = "\"00000000000000000000000000000000\"";
const WEAK: &str = "W/\"5d41402abc4b2a76b9719d911017c592\"";
const LIST: &str = "\"x\", \"5d41402abc4b2a76b9719d911017c592\"";
const PAST: &str = "Wed, 21 Oct 2015 07:28:00 GMT";
const FUTURE: &str = "Wed, 21 Oct 2065 07:28:00 GMT";

#[test]
fn conditions_of_reads_are_evaluated() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"hello");
    for (headers, status) in [
        (&[("if-match", ETAG)][..], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", OTHER)], 412),
        (&[("if-match", LIST)], 200),
        (&[("if-match", WEAK)], 412),
        (&[("if-none-match", ETAG)], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", OTHER)], 200),
        (&[("if-none-match", LIST)], 304),
        (&[("if-none-match", WEAK)], 304),
        (&[("if-modified-since", PAST)], 200),
        (&[("if-modified-since", FUTURE)], 304),
        (&[("if-unmodified-since", PAST)], 412),
        (&[("if-unmodified-since", FUTURE)], 200),
        (&[("if-match", ETAG), ("if-unmodified-since", PAST)], 200),
        (&[("if-none-match", OTHER), ("if-modified-since", FUTURE)], 200),
    ] {
        let got = server.s3.send("GET", "/bucket/key", headers, b"");
        assert_eq!(got.status, status, "{headers:?}");
        let head = server.s3.send("HEAD", "/bucket/key", headers, b"");
        assert_eq!(head.status, status, "{headers:?}");
        if status == 304 {
            assert_eq!((got.header("etag"), got.body.len()), (Some(ETAG), 0));
            assert!(got.header("last-modified").is_some());
        }
    }
}

#[test]
fn if_range_with_another_etag_sends_the_whole_object() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"hello");
    for (if_range, status) in [(ETAG, 206), (OTHER, 200)] {
        let headers = [("range", "bytes=1-2"), ("if-range", if_range)];
        assert_eq!(server.s3.send("GET", "/bucket/key", &headers, b"").status, status);
    }
}

#[test]
fn write_succeeds_only_if_its_condition_holds() {
    let server = Running::new();
    let put = |header, value| server.s3.send("PUT", "/bucket/key", &[(header, value)], b"hello");
    assert_refused(&put("if-match", ETAG), 404, "NoSuchKey");
    assert_refused(&put("if-match", "*"), 404, "NoSuchKey");
    assert_eq!(put("if-none-match", "*").status, 200);
    assert_refused(&put("if-none-match", "*"), 412, "PreconditionFailed");
    assert_eq!(put("if-match", ETAG).status, 200);
    assert_refused(&put("if-match", OTHER), 412, "PreconditionFailed");
    assert_refused(&put("if-none-match", ETAG), 501, "NotImplemented");
}

#[test]
fn one_of_many_conditional_creates_succeeds() {
    let server = Running::new();
    let s3 = server.s3;
    let statuses: Vec<_> = std::thread::scope(|scope| {
        let put = move || s3.send("PUT", "/bucket/key", &[("if-none-match", "*")], b"x").status;
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(put)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 7);
}
