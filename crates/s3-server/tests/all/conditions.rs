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
        (&[("if-unmodified-since", "Thu, 1 Jan 2009 00:00:00 GMT")], 412),
        (&[("if-unmodified-since", "Thu Jan 1 00:00:00 2009")], 412),
        (&[("if-unmodified-since", "Mon, 01 Jan 1900 00:00:00 GMT")], 412),
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
    let exists = put("if-none-match", "*");
    assert_refused(&exists, 412, "PreconditionFailed");
    assert_eq!(exists.xml("Condition").as_deref(), Some("If-None-Match"));
    assert_eq!(put("if-match", ETAG).status, 200);
    let differs = put("if-match", OTHER);
    assert_refused(&differs, 412, "PreconditionFailed");
    assert_eq!(differs.xml("Condition").as_deref(), Some("If-Match"));
    assert_refused(&put("if-none-match", ETAG), 412, "PreconditionFailed");
    assert_eq!(put("if-none-match", OTHER).status, 200);
    assert_refused(&put("if-none-match", WEAK), 412, "PreconditionFailed");
    assert_refused(&put("if-none-match", LIST), 501, "NotImplemented");
}

#[test]
fn copy_replaces_an_object_only_if_its_condition_holds() {
    let server = Running::new();
    server.s3.put("/bucket/source", b"other");
    let source = ("x-amz-copy-source", "/bucket/source");
    let copy =
        |header, value| server.s3.send("PUT", "/bucket/key", &[source, (header, value)], b"");
    assert_refused(&copy("if-match", ETAG), 404, "NoSuchKey");
    let missing = [("x-amz-copy-source", "/bucket/missing")];
    let missing = server.s3.send("PUT", "/bucket/key", &missing, b"");
    assert_refused(&missing, 404, "NoSuchKey");
    assert_eq!(missing.all_xml("Key"), ["missing"]);
    assert_eq!(copy("if-none-match", "*").status, 200);
    server.s3.put("/bucket/key", b"hello");
    for refused in [("if-none-match", "*"), ("if-none-match", ETAG), ("if-match", OTHER)] {
        assert_refused(&copy(refused.0, refused.1), 412, "PreconditionFailed");
        assert_eq!(server.s3.get("/bucket/key").text(), "hello", "{refused:?}");
    }
    assert_eq!(copy("if-match", ETAG).status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "other");
}

/// A request that names a version where none can be named would change the current object.
#[test]
fn changes_of_the_current_object_take_no_version() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"hello");
    let copy = [("x-amz-copy-source", "/bucket/key")];
    for (method, target, headers) in [
        ("PUT", "/bucket/key?versionId=null", &[][..]),
        ("PUT", "/bucket/key?versionId=", &[]),
        ("PUT", "/bucket/key?versionId=null", &copy),
        ("PUT", "/bucket/other", &[("x-amz-copy-source", "/bucket/key?versionId=")]),
        ("POST", "/bucket/key?uploads&versionId=null", &[]),
        ("DELETE", "/bucket/key?versionId=", &[]),
        ("GET", "/bucket/key?versionId=", &[]),
        ("GET", "/bucket/key?acl&versionId=", &[]),
    ] {
        let refused = server.s3.send(method, target, headers, b"");
        assert_refused(&refused, 400, "InvalidArgument");
        assert_eq!(server.s3.get("/bucket/key").text(), "hello", "{method} {target}");
    }
}

#[test]
fn answer_that_nothing_changed_renews_the_copy_of_a_cache() {
    let server = Running::new();
    let fields = [("cache-control", "max-age=60"), ("expires", PAST)];
    server.s3.send("PUT", "/bucket/key", &fields, b"hello");
    let current = server.s3.send("GET", "/bucket/key", &[("if-none-match", "*")], b"");
    assert_eq!(current.status, 304);
    for (name, value) in fields {
        assert_eq!(current.header(name), Some(value));
    }
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

#[test]
fn object_is_deleted_only_if_all_conditions_hold() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"hello");
    let modified = server.s3.head("/bucket/key").header("last-modified").unwrap().to_owned();
    let delete = |headers: &[(&str, &str)]| server.s3.send("DELETE", "/bucket/key", headers, b"");
    let (size, date) = ("x-amz-if-match-size", "x-amz-if-match-last-modified-time");
    for refused in [
        &[("if-match", OTHER)][..],
        &[("if-match", "strange")],
        &[("if-match", WEAK)],
        &[(size, "4")],
        &[(date, PAST)],
        &[("if-match", ETAG), (size, "4")],
    ] {
        assert_refused(&delete(refused), 412, "PreconditionFailed");
        assert_eq!(server.s3.get("/bucket/key").text(), "hello", "{refused:?}");
    }
    for accepted in [
        &[("if-match", ETAG)][..],
        &[("if-match", "*")],
        &[(size, "5")],
        &[(date, &modified)],
        &[("if-match", ETAG), (size, "5"), (date, &modified)],
    ] {
        server.s3.put("/bucket/key", b"hello");
        // The object may have been stored again in another second.
        let modified = server.s3.head("/bucket/key").header("last-modified").unwrap().to_owned();
        let accepted: Vec<_> = accepted
            .iter()
            .map(|&(name, value)| (name, if name == date { modified.as_str() } else { value }))
            .collect();
        assert_eq!(delete(&accepted).status, 204, "{accepted:?}");
        assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
        // A client that did not receive the response repeats the request.
        assert_eq!(delete(&accepted).status, 204, "{accepted:?}");
    }
    assert_refused(
        &server.s3.send("DELETE", "/nowhere/key", &[(size, "5")], b""),
        404,
        "NoSuchBucket",
    );
}

#[test]
fn listed_objects_are_deleted_only_if_their_conditions_hold() {
    let server = Running::new();
    for key in ["a", "b", "c", "d"] {
        server.s3.put(&format!("/bucket/{key}"), b"hello");
    }
    let object =
        |key: &str, conditions: &str| format!("<Object><Key>{key}</Key>{conditions}</Object>");
    let delete = |objects: &[String]| {
        server.s3.post("/bucket?delete", &format!("<Delete>{}</Delete>", objects.concat()))
    };
    let reply = delete(&[
        object("a", &format!("<ETag>{OTHER}</ETag>")),
        object("b", "<Size>4</Size>"),
        object("c", &format!("<LastModifiedTime>{PAST}</LastModifiedTime>")),
        object("d", &format!("<ETag>{ETAG}</ETag><Size>5</Size>")),
        object("gone", "<Size>5</Size>"),
    ]);
    assert_eq!(reply.all_xml("Code"), ["PreconditionFailed"; 3], "{}", reply.text());
    assert_eq!(reply.all_xml("Deleted"), ["<Key>d</Key>", "<Key>gone</Key>"]);
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key"), ["a", "b", "c"]);
    // Each entry of a repeated key has its own condition.
    let reply = delete(&[object("a", "<Size>4</Size>"), object("a", "<Size>5</Size>")]);
    assert_eq!(reply.all_xml("Code"), ["PreconditionFailed"], "{}", reply.text());
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key"), ["b", "c"]);
}

#[test]
fn one_of_many_conditional_deletes_finds_the_object() {
    let server = Running::new();
    let s3 = server.s3;
    // Each writer replaces the object it has read, or deletes it: all changes are seen.
    for round in 0..20 {
        let body = format!("{round}");
        let etag = s3.put("/bucket/key", body.as_bytes()).header("etag").unwrap().to_owned();
        let condition = [("if-match", etag.as_str())];
        let (replaced, deleted) = std::thread::scope(|scope| {
            let put = scope.spawn(|| s3.send("PUT", "/bucket/key", &condition, b"new").status);
            let delete = scope.spawn(|| s3.send("DELETE", "/bucket/key", &condition, b"").status);
            (put.join().unwrap(), delete.join().unwrap())
        });
        let left = s3.get("/bucket/key");
        match (replaced, deleted) {
            (200, 412) => assert_eq!(left.text(), "new"),
            (404, 204) => assert_eq!(left.status, 404),
            other => panic!("{other:?}, then {}", left.status),
        }
    }
}
