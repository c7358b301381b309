//! Storing, reading, copying, deleting.

use std::io::{Read, Write};

use crate::client::{Reply, Running, assert_refused, noise};

const HELLO_MD5: &str = "\"5d41402abc4b2a76b9719d911017c592\"";

#[test]
fn an_object_comes_back_as_it_was_put() {
    let server = Running::new();
    let put = server.s3.put("/bucket/key", b"hello");
    assert_eq!((put.status, put.header("etag")), (200, Some(HELLO_MD5)));
    let got = server.s3.get("/bucket/key");
    assert_eq!((got.status, &got.body[..]), (200, &b"hello"[..]));
    let head = server.s3.head("/bucket/key");
    assert_eq!((head.status, head.body.len()), (200, 0));
    for reply in [got, head] {
        assert_eq!(reply.header("etag"), Some(HELLO_MD5));
        assert_eq!(reply.header("content-length"), Some("5"));
        assert_eq!(reply.header("content-type"), Some("binary/octet-stream"));
        assert_eq!(reply.header("accept-ranges"), Some("bytes"));
        assert!(reply.header("last-modified").unwrap().ends_with(" GMT"));
    }
}

#[test]
fn headers_given_with_an_object_come_back_with_it() {
    let server = Running::new();
    let headers = [
        ("content-type", "text/x-test"),
        ("cache-control", "max-age=60"),
        ("content-disposition", "attachment"),
        ("content-language", "de"),
        ("expires", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("x-amz-meta-colour", "blue"),
        ("x-amz-meta-word", "=?UTF-8?B?w6Q=?="),
    ];
    let encoding = ("content-encoding", "gzip,aws-chunked");
    let given = [&headers[..], &[encoding]].concat();
    assert_eq!(server.s3.send("PUT", "/bucket/key.html", &given, b"x").status, 200);
    for reply in [server.s3.get("/bucket/key.html"), server.s3.head("/bucket/key.html")] {
        for (name, value) in headers {
            assert_eq!(reply.header(name), Some(value), "{name}");
        }
        assert_eq!(reply.header("content-encoding"), Some("gzip"));
    }
    let other = "/bucket/key.html?response-content-type=a%2Fb&response-cache-control=no-store";
    for reply in [server.s3.get(other), server.s3.head(other)] {
        assert_eq!(reply.header("content-type"), Some("a/b"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
}

#[test]
fn a_type_that_was_not_given_is_guessed_by_the_name() {
    let server = Running::new();
    server.s3.put("/bucket/a.html", b"");
    assert_eq!(server.s3.get("/bucket/a.html").header("content-type"), Some("text/html"));
}

#[test]
fn objects_of_every_size_come_back_whole() {
    let server = Running::new();
    for bytes in [0, 1, 4095, 70_000, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9_000_001] {
        let body = noise(bytes);
        assert_eq!(server.s3.put("/bucket/key", &body).status, 200, "{bytes}");
        let got = server.s3.get("/bucket/key");
        assert!(got.status == 200 && got.is_whole() && got.body == body, "{bytes}");
    }
}

#[test]
fn ranges_are_sent_and_impossible_ones_refused() {
    let server = Running::new();
    let body = noise(6_000_000);
    server.s3.put("/bucket/big", &body);
    server.s3.put("/bucket/small", &body[..100]);
    server.s3.put("/bucket/medium", &body[..900_000]);
    let get = |key: &str, range| server.s3.send("GET", key, &[("range", range)], b"");
    for (key, range, first, end) in [
        ("/bucket/small", "bytes=0-0", 0, 1),
        ("/bucket/small", "bytes=90-", 90, 100),
        ("/bucket/small", "bytes=-10", 90, 100),
        ("/bucket/small", "bytes=50-1000", 50, 100),
        ("/bucket/medium", "bytes=0-", 0, 900_000),
        ("/bucket/medium", "bytes=0-0", 0, 1),
        ("/bucket/medium", "bytes=65535-65536", 65_535, 65_537),
        ("/bucket/medium", "bytes=100000-500000", 100_000, 500_001),
        ("/bucket/medium", "bytes=100000-800000", 100_000, 800_001),
        ("/bucket/medium", "bytes=-70000", 830_000, 900_000),
        ("/bucket/big", "bytes=4095-4096", 4095, 4097),
        ("/bucket/big", "bytes=1048570-3145740", 1_048_570, 3_145_741),
        ("/bucket/big", "bytes=-1", 5_999_999, 6_000_000),
    ] {
        let reply = get(key, range);
        assert_eq!(reply.status, 206, "{range}");
        assert!(reply.is_whole() && reply.body == body[first..end], "{range}");
        let all = match key {
            "/bucket/small" => 100,
            "/bucket/medium" => 900_000,
            _ => body.len(),
        };
        let told = format!("bytes {first}-{}/{all}", end - 1);
        assert_eq!(reply.header("content-range"), Some(told.as_str()));
        let head = server.s3.send("HEAD", key, &[("range", range)], b"");
        assert_eq!((head.status, head.header("content-range")), (206, Some(told.as_str())));
    }
    for range in ["bytes=100-", "bytes=-0"] {
        let reply = get("/bucket/small", range);
        assert_refused(&reply, 416, "InvalidRange");
        assert_eq!(reply.header("content-range"), Some("bytes */100"));
    }
    for range in ["bytes=9-3", "bytes=0-1,5-6", "lines=1-2"] {
        let reply = get("/bucket/small", range);
        assert_eq!((reply.status, reply.body.len()), (200, 100), "{range}");
    }
}

#[test]
fn a_body_of_unknown_length_is_stored() {
    let server = Running::new();
    let body = noise(5_000_000);
    let mut bytes = server.s3.head_bytes("PUT", "/bucket/key", &[("transfer-encoding", "chunked")]);
    for chunk in body.chunks(300_000) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(server.s3.raw(&bytes).status, 200);
    assert!(server.s3.get("/bucket/key").body == body);
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on() {
    let server = Running::new();
    let headers = [("expect", "100-continue"), ("content-length", "5")];
    let mut stream = server.s3.connect();
    stream.write_all(&server.s3.head_bytes("PUT", "/bucket/key", &headers)).unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200);

    // A bucket that is not there is told before anything is sent.
    for length in ["5", "5000000"] {
        let headers = [("expect", "100-continue"), ("content-length", length)];
        let mut stream = server.s3.connect();
        stream.write_all(&server.s3.head_bytes("PUT", "/nowhere/key", &headers)).unwrap();
        assert_refused(&Reply::read(&mut stream), 404, "NoSuchBucket");
    }
}

#[test]
fn keys_are_names_and_never_paths() {
    let server = Running::new();
    let keys = [
        "a/../b",
        "../../etc/passwd",
        ".",
        "..",
        "a//b",
        "/lead",
        "trail/",
        "sp ace+plus%25",
        "ä/日本",
        "quote\"<>&'",
        "tab\tline",
    ];
    for (index, key) in keys.iter().enumerate() {
        let target = format!("/bucket/{}", encoded(key));
        assert_eq!(server.s3.put(&target, index.to_string().as_bytes()).status, 200, "{key}");
    }
    for (index, key) in keys.iter().enumerate() {
        let target = format!("/bucket/{}", encoded(key));
        assert_eq!(server.s3.get(&target).text(), index.to_string(), "{key}");
    }
    let listed = server.s3.get("/bucket?list-type=2&encoding-type=url").all_xml("Key");
    let mut expected: Vec<_> = keys.to_vec();
    expected.sort_unstable();
    let expected: Vec<_> = expected.iter().map(|key| encoded(key)).collect();
    assert_eq!(listed, expected);
}

fn encoded(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/*".contains(&byte);
    let encode = |byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") };
    key.bytes().map(encode).collect()
}

#[test]
fn deleting_is_done_once_and_succeeds_twice() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"x");
    assert_eq!(server.s3.delete("/bucket/key").status, 204);
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
    assert_eq!(server.s3.head("/bucket/key").status, 404);
    assert_eq!(server.s3.delete("/bucket/key").status, 204);
    assert_refused(&server.s3.delete("/nowhere/key"), 404, "NoSuchBucket");
}

#[test]
fn many_objects_are_deleted_at_once() {
    let server = Running::new();
    for key in ["a", "b", "c"] {
        server.s3.put(&format!("/bucket/{key}"), b"x");
    }
    let long = "k".repeat(5000);
    let list = |quiet: bool, keys: &[&str]| {
        let objects: String =
            keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
        format!("<Delete><Quiet>{quiet}</Quiet>{objects}</Delete>")
    };
    let reply = server.s3.post("/bucket?delete", &list(false, &["a", "gone", &long]));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.all_xml("Deleted").len(), 2);
    assert_eq!(reply.all_xml("Code"), ["KeyTooLongError"]);
    let reply = server.s3.post("/bucket?delete", &list(true, &["b"]));
    assert_eq!((reply.status, reply.all_xml("Deleted").len()), (200, 0));
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key"), ["c"]);
    assert_refused(&server.s3.post("/nowhere?delete", &list(true, &["b"])), 404, "NoSuchBucket");
    let many: Vec<_> = vec!["x"; 1001];
    assert_refused(&server.s3.post("/bucket?delete", &list(true, &many)), 400, "MalformedXML");
}

#[test]
fn a_copy_keeps_or_replaces_what_was_kept_with_the_object() {
    let server = Running::new();
    let given = [("x-amz-meta-a", "1"), ("content-type", "a/b"), ("x-amz-tagging", "t=1")];
    server.s3.send("PUT", "/bucket/from", &given, b"hello");
    let copy = |to: &str, more: &[(&str, &str)]| {
        let headers = [&[("x-amz-copy-source", "/bucket/from")], more].concat();
        server.s3.send("PUT", to, &headers, b"")
    };
    let reply = copy("/bucket/to", &[]);
    assert_eq!((reply.status, reply.xml("ETag").is_some()), (200, true), "{}", reply.text());
    let got = server.s3.get("/bucket/to");
    assert_eq!((got.header("x-amz-meta-a"), got.text().as_str()), (Some("1"), "hello"));
    assert_eq!(got.header("x-amz-tagging-count"), Some("1"));

    let replace = ("x-amz-metadata-directive", "REPLACE");
    assert_eq!(copy("/bucket/to", &[replace, ("x-amz-meta-b", "2")]).status, 200);
    let got = server.s3.get("/bucket/to");
    assert_eq!((got.header("x-amz-meta-a"), got.header("x-amz-meta-b")), (None, Some("2")));

    assert_refused(&copy("/bucket/from", &[]), 400, "InvalidRequest");
    assert_eq!(copy("/bucket/from", &[replace, ("x-amz-meta-c", "3")]).status, 200);
    let got = server.s3.get("/bucket/from");
    assert_eq!((got.header("x-amz-meta-c"), got.text().as_str()), (Some("3"), "hello"));

    let other = ("x-amz-copy-source-if-match", "\"00000000000000000000000000000000\"");
    assert_refused(&copy("/bucket/to", &[other]), 412, "PreconditionFailed");
    let same = ("x-amz-copy-source-if-none-match", HELLO_MD5);
    assert_refused(&copy("/bucket/to", &[same]), 412, "PreconditionFailed");
    let gone = [("x-amz-copy-source", "bucket/gone")];
    assert_refused(&server.s3.send("PUT", "/bucket/to", &gone, b""), 404, "NoSuchKey");
}

#[test]
fn tags_are_set_read_and_deleted() {
    let server = Running::new();
    server.s3.send("PUT", "/bucket/key", &[("x-amz-tagging", "a=1")], b"hello");
    assert_eq!(server.s3.get("/bucket/key?tagging").all_xml("Value"), ["1"]);
    let tags = "<Tagging><TagSet><Tag><Key>b</Key><Value>x y</Value></Tag></TagSet></Tagging>";
    assert_eq!(server.s3.send("PUT", "/bucket/key?tagging", &[], tags.as_bytes()).status, 200);
    let reply = server.s3.get("/bucket/key?tagging");
    assert_eq!(
        (reply.all_xml("Key"), reply.all_xml("Value")),
        (vec!["b".into()], vec!["x y".into()])
    );
    assert_eq!(server.s3.delete("/bucket/key?tagging").status, 204);
    assert!(server.s3.get("/bucket/key?tagging").all_xml("Key").is_empty());
    assert_eq!(server.s3.get("/bucket/key").text(), "hello");
}

#[test]
fn attributes_tell_what_was_asked() {
    let server = Running::new();
    server.s3.send("PUT", "/bucket/key", &[("x-amz-checksum-crc32", "NhCmhg==")], b"hello");
    let headers = [("x-amz-object-attributes", "ObjectSize,Checksum,ETag")];
    let reply = server.s3.send("GET", "/bucket/key?attributes", &headers, b"");
    assert_eq!(reply.xml("ObjectSize").as_deref(), Some("5"), "{}", reply.text());
    assert_eq!(reply.xml("ChecksumCRC32").as_deref(), Some("NhCmhg=="));
    assert!(reply.xml("ETag").unwrap().contains("5d41402abc4b2a76b9719d911017c592"));
}

#[test]
fn buckets_are_made_listed_and_removed_when_empty() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"");
    assert_eq!(server.s3.put("/bucket", b"").status, 200, "the owner repeats the creation");
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key"), ["key"]);
    server.s3.delete("/bucket/key");
    for name in ["a-.b", "a.-b"] {
        assert_refused(&server.s3.put(&format!("/{name}"), b""), 400, "InvalidBucketName");
    }
    server.s3.put("/another", b"");
    assert_eq!(server.s3.get("/").all_xml("Name"), ["another", "bucket"]);
    assert_eq!(server.s3.get("/?prefix=b").all_xml("Name"), ["bucket"]);
    let page = server.s3.get("/?max-buckets=1");
    assert_eq!(page.all_xml("Name"), ["another"]);
    let token = page.xml("ContinuationToken").unwrap();
    let page = server.s3.get(&format!("/?max-buckets=1&continuation-token={token}"));
    assert_eq!(
        (page.all_xml("Name"), page.xml("ContinuationToken")),
        (vec!["bucket".into()], None)
    );

    assert_eq!(server.s3.head("/bucket").status, 200);
    assert_eq!(server.s3.head("/nowhere").status, 404);
    assert_eq!(server.s3.get("/bucket?location").status, 200);
    server.s3.put("/bucket/key", b"x");
    assert_refused(&server.s3.delete("/bucket"), 409, "BucketNotEmpty");
    server.s3.delete("/bucket/key");
    assert_eq!(server.s3.delete("/bucket").status, 204);
    assert_refused(&server.s3.delete("/bucket"), 404, "NoSuchBucket");
}

#[test]
fn features_there_are_none_of_are_answered_as_never_set_up() {
    let server = Running::new();
    for (query, status, code) in [
        ("policy", 404, "NoSuchBucketPolicy"),
        ("tagging", 404, "NoSuchTagSet"),
        ("encryption", 404, "ServerSideEncryptionConfigurationNotFoundError"),
        ("cors", 404, "NoSuchCORSConfiguration"),
        ("website", 404, "NoSuchWebsiteConfiguration"),
        ("object-lock", 404, "ObjectLockConfigurationNotFoundError"),
        ("replication", 404, "ReplicationConfigurationNotFoundError"),
        ("publicAccessBlock", 404, "NoSuchPublicAccessBlockConfiguration"),
        ("ownershipControls", 404, "OwnershipControlsNotFoundError"),
        ("versioning", 200, ""),
        ("logging", 200, ""),
        ("notification", 200, ""),
        ("requestPayment", 200, ""),
        ("acl", 200, ""),
        ("metrics&id=1", 501, "NotImplemented"),
    ] {
        assert_refused(&server.s3.get(&format!("/bucket?{query}")), status, code);
    }
    assert_refused(&server.s3.get("/nowhere?versioning"), 404, "NoSuchBucket");
    server.s3.put("/bucket/key", b"");
    let acl = server.s3.get("/bucket/key?acl");
    assert_eq!(acl.xml("Permission").as_deref(), Some("FULL_CONTROL"), "{}", acl.text());
}
