//! Checksums and lengths that clients declare are verified before anything is stored.

use std::io::Write;

use crate::client::{Reply, Running, assert_refused, noise};

const HELLO: &[u8] = b"hello";
const CHECKSUMS: [(&str, &str); 5] = [
    ("x-amz-checksum-crc32", "NhCmhg=="),
    ("x-amz-checksum-crc32c", "mnG7TA=="),
    ("x-amz-checksum-crc64nvme", "M3eFcAZSQlc="),
    ("x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00="),
    ("x-amz-checksum-sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="),
];

#[test]
fn checksum_is_verified_stored_and_returned() {
    let server = Running::new();
    for (name, value) in CHECKSUMS {
        let put = server.s3.send("PUT", "/bucket/key", &[(name, value)], HELLO);
        assert_eq!((put.status, put.header(name)), (200, Some(value)), "{}", put.text());
        for method in ["GET", "HEAD"] {
            let mode = [("x-amz-checksum-mode", "ENABLED")];
            let reply = server.s3.send(method, "/bucket/key", &mode, b"");
            assert_eq!(reply.header(name), Some(value), "{method}");
            assert_eq!(reply.header("x-amz-checksum-type"), Some("FULL_OBJECT"));
            assert_eq!(server.s3.send(method, "/bucket/key", &[], b"").header(name), None);
            // The checksum covers the whole object, so a range has none.
            let part = [mode[0], ("range", "bytes=0-1")];
            assert_eq!(server.s3.send(method, "/bucket/key", &part, b"").header(name), None);
        }
        server.s3.delete("/bucket/key");
        let wrong = server.s3.send("PUT", "/bucket/key", &[(name, value)], b"hellO");
        assert_refused(&wrong, 400, "BadDigest");
        assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
    }
}

#[test]
fn checksums_of_big_objects_are_verified() {
    let server = Running::new();
    let body = noise(7_000_000);
    let (name, right) = ("x-amz-checksum-crc32", crc32_base64(&body));
    for (value, status) in [(right.as_str(), 200), ("AAAAAA==", 400)] {
        let put = server.s3.send("PUT", &format!("/bucket/{status}"), &[(name, value)], &body);
        assert_eq!(put.status, status, "{}", put.text());
    }
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key"), ["200"]);
}

fn crc32_base64(bytes: &[u8]) -> String {
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes);
    base64_simd::STANDARD.encode_to_string(&crc.to_be_bytes()[4..])
}

#[test]
fn content_md5_is_verified() {
    let server = Running::new();
    let put =
        |value, body: &[u8]| server.s3.send("PUT", "/bucket/key", &[("content-md5", value)], body);
    let right = "XUFAKrxLKna5cZ2REBfFkg==";
    assert_refused(&put(right, b"hellO"), 400, "BadDigest");
    assert_refused(&put("short", HELLO), 400, "InvalidDigest");
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
    assert_eq!(put(right, HELLO).status, 200);
    assert_refused(&put(right, &noise(5_000_000)), 400, "BadDigest");
}

#[test]
fn signed_hash_is_verified_even_without_credentials() {
    let server = Running::new();
    let hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let put =
        |body: &[u8]| server.s3.send("PUT", "/bucket/key", &[("x-amz-content-sha256", hash)], body);
    assert_refused(&put(b"hellO"), 400, "XAmzContentSHA256Mismatch");
    assert_eq!(put(HELLO).status, 200);
}

/// Returns a body in `aws-chunked` framing, with this trailer.
fn trailing(body: &[u8], trailer: &str) -> Vec<u8> {
    let mut framed = Vec::new();
    for chunk in body.chunks(1 << 20) {
        framed.extend(format!("{:x}\r\n", chunk.len()).bytes());
        framed.extend_from_slice(chunk);
        framed.extend_from_slice(b"\r\n");
    }
    framed.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
    framed
}

fn put_trailing(server: &Running, length: usize, framed: &[u8]) -> Reply {
    let length = length.to_string();
    let headers = [
        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ("x-amz-decoded-content-length", length.as_str()),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
        ("content-encoding", "aws-chunked"),
    ];
    server.s3.send("PUT", "/bucket/key", &headers, framed)
}

#[test]
fn checksum_in_trailer_is_verified() {
    let server = Running::new();
    for body in [HELLO.to_vec(), Vec::new(), noise(6_000_000)] {
        let right = format!("x-amz-checksum-crc32:{}\r\n", crc32_base64(&body));
        let wrong = "x-amz-checksum-crc32:AAAAAQ==\r\n";
        let put = put_trailing(&server, body.len(), &trailing(&body, &right));
        assert_eq!(put.status, 200, "{}", put.text());
        let got = server.s3.get("/bucket/key");
        assert!(got.body == body && got.header("content-encoding").is_none());
        server.s3.delete("/bucket/key");
        let put = put_trailing(&server, body.len(), &trailing(&body, wrong));
        assert_refused(&put, 400, "BadDigest");
        let put = put_trailing(&server, body.len(), &trailing(&body, ""));
        assert_refused(&put, 400, "MalformedTrailerError");
        assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
    }
}

#[test]
fn malformed_framing_and_wrong_decoded_length_are_refused() {
    let server = Running::new();
    let trailer = "x-amz-checksum-crc32:NhCmhg==\r\n";
    let framed = trailing(HELLO, trailer);
    assert_refused(&put_trailing(&server, 6, &framed), 400, "IncompleteBody");
    assert_refused(&put_trailing(&server, 4, &framed), 400, "IncompleteBody");
    assert_refused(&put_trailing(&server, 5, &framed[..7]), 400, "IncompleteBody");
    assert_refused(&put_trailing(&server, 5, b"zz\r\nhello"), 400, "IncompleteBody");
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
}

#[test]
fn incomplete_body_stores_nothing() {
    let server = Running::new();
    let body = noise(8_000_000);
    for (declared, sent) in [(100, 50), (4 << 20, 1 << 20), (8_000_000, 7_999_999)] {
        let declared = declared.to_string();
        let head = server.s3.head_bytes("PUT", "/bucket/key", &[("content-length", &declared)]);
        let mut stream = server.s3.connect();
        stream.write_all(&head).unwrap();
        stream.write_all(&body[..sent]).unwrap();
        stream.shutdown_write().unwrap();
        let reply = Reply::read(&mut stream);
        assert!([0, 400].contains(&reply.status), "{}", reply.status);
        assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
    }
}

#[test]
fn second_checksum_is_refused() {
    let server = Running::new();
    let two = server.s3.send("PUT", "/bucket/key", &CHECKSUMS[..2], HELLO);
    assert_refused(&two, 400, "InvalidRequest");
    let other = if CHECKSUMS[0].0.ends_with("crc32") { "sha1" } else { "crc32" };
    let announced = format!("x-amz-checksum-{other}");
    let both = [CHECKSUMS[0], ("x-amz-trailer", &*announced)];
    assert_refused(&server.s3.send("PUT", "/bucket/key", &both, HELLO), 400, "InvalidRequest");
}

#[test]
fn checksums_of_documents_are_verified() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"bytes");
    let tagging = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    let delete = "<Delete><Object><Key>key</Key></Object></Delete>";
    let policy = "{}";
    for (method, target, body) in [
        ("POST", "/bucket?delete=", delete),
        ("PUT", "/bucket/key?tagging=", tagging),
        ("PUT", "/bucket?tagging=", tagging),
        ("PUT", "/bucket?policy=", policy),
    ] {
        let send = |name: &str, value: &str| {
            server.s3.send(method, target, &[(name, value)], body.as_bytes())
        };
        let wrong = "AAAAAAAAAAAAAAAAAAAAAA==";
        assert_refused(&send("content-md5", wrong), 400, "BadDigest");
        assert_refused(&send("content-md5", "xx"), 400, "InvalidDigest");
        assert_refused(&send("x-amz-checksum-crc32", "AAAAAA=="), 400, "BadDigest");
    }
    assert_eq!(server.s3.get("/bucket/key").text(), "bytes");
    assert_refused(&server.s3.get("/bucket?tagging="), 404, "NoSuchTagSet");
    let crc = crc32_base64(delete.as_bytes());
    let headers = [("x-amz-checksum-crc32", &*crc)];
    let deleted = server.s3.send("POST", "/bucket?delete=", &headers, delete.as_bytes());
    assert_refused(&deleted, 200, "");
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
}

#[test]
fn part_without_its_number_or_its_upload_changes_nothing() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"bytes");
    let start = server.s3.send("POST", "/bucket/key?uploads", &[], b"");
    let upload = format!("uploadId={}", start.xml("UploadId").unwrap());
    let copy = ("x-amz-copy-source", "/bucket/key");
    for key in ["key", "new"] {
        for (query, status, code) in
            [(&*upload, 405, "MethodNotAllowed"), ("partNumber=1", 400, "InvalidArgument")]
        {
            for headers in [&[][..], &[copy]] {
                let target = format!("/bucket/{key}?{query}");
                let reply = server.s3.send("PUT", &target, headers, b"part");
                assert_refused(&reply, status, code);
            }
        }
    }
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key"), ["key"]);
    // Each parameter alone selects an operation of other methods.
    assert_eq!(server.s3.get("/bucket/key?partNumber=1").text(), "bytes");
    assert_eq!(server.s3.send("HEAD", "/bucket/key?partNumber=1", &[], b"").status, 206);
    let parts = server.s3.get(&format!("/bucket/key?{upload}"));
    assert_eq!((parts.status, parts.all_xml("Part").len()), (200, 0), "{}", parts.text());
    assert_refused(&server.s3.delete(&format!("/bucket/key?{upload}")), 204, "");
    assert_eq!(server.s3.get("/bucket/key").text(), "bytes");
}

#[test]
fn operations_that_are_not_known_change_nothing() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"bytes");
    server.s3.put("/empty", b"");
    for (method, target) in [
        ("PUT", "/bucket/other?renameObject="),
        ("PUT", "/bucket/key?annotation=a"),
        ("DELETE", "/bucket/key?annotation=a"),
        ("PUT", "/bucket/key?encryption="),
        ("DELETE", "/bucket/key?retention="),
        ("DELETE", "/empty?versioning="),
        ("DELETE", "/empty?metadataConfiguration="),
        ("PUT", "/new?abac="),
        ("POST", "/bucket/key?unknown="),
    ] {
        assert_refused(&server.s3.send(method, target, &[], b"<xml/>"), 501, "NotImplemented");
    }
    assert_eq!(server.s3.get("/bucket/key").text(), "bytes");
    assert_refused(&server.s3.get("/bucket/other"), 404, "NoSuchKey");
    assert_refused(&server.s3.get("/empty"), 200, "");
    assert_refused(&server.s3.get("/new"), 404, "NoSuchBucket");
}
