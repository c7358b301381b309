//! Encrypted objects in one piece: who can read them, ranges, defaults, versions.

use super::helper::{
    A, B, DEFAULT, KEY_MD5, SEGMENT, SSE_S3, etag, get, is_stored, key_text, put, server,
};
use crate::client::{Reply, Running, assert_refused, noise};

#[test]
fn object_of_a_customer_is_read_with_its_key_only() {
    let server = server();
    let body = b"the content of a customer, which the store must not have";
    let plain =
        put(&server, "/bucket/plain", &[("x-amz-meta-a", "1")], b"plain, and stored as it is");
    let stored = put(&server, "/bucket/key", &A, body);
    assert_eq!(stored.header(KEY_MD5), Some(A[2].1));
    assert!(is_stored(server.dir(), b"plain, and stored as it is"));
    assert!(!is_stored(server.dir(), body));
    for round in 0..3 {
        let got = get(&server, "/bucket/key", &A);
        assert!(got.is_whole() && got.body == body, "{round}");
        assert_eq!(etag(&got), etag(&stored));
        assert_eq!(got.header(KEY_MD5), Some(A[2].1));
        assert_refused(&get(&server, "/bucket/key", &[]), 400, "InvalidRequest");
        assert_refused(&get(&server, "/bucket/key", &B), 400, "InvalidRequest");
        let only_md5 = get(&server, "/bucket/key", &[A[0], A[2]]);
        assert_refused(&only_md5, 400, "InvalidArgument");
    }
    assert_eq!(server.s3.head("/bucket/key").status, 400);
    let head = server.s3.send("HEAD", "/bucket/key", &A, b"");
    assert_eq!(head.header("content-length"), Some(body.len().to_string().as_str()));
    let attributes = [&A[..], &[("x-amz-object-attributes", "ObjectSize")]].concat();
    let attributes = get(&server, "/bucket/key?attributes", &attributes);
    assert_eq!(attributes.xml("ObjectSize"), Some(body.len().to_string()));
    let listed = server.s3.get("/bucket?list-type=2");
    assert_eq!(listed.all_xml("Size"), [body.len().to_string(), "26".to_owned()]);
    assert_refused(&get(&server, "/bucket/plain", &A), 400, "InvalidRequest");
    assert_eq!(etag(&server.s3.get("/bucket/plain")), etag(&plain));
}

#[test]
fn put_with_an_incomplete_key_stores_nothing() {
    let server = server();
    for headers in [&A[..2], &A[1..], &[A[0], A[1], B[2]], &[A[0], A[1], A[2], SSE_S3]] {
        let refused = server.s3.send("PUT", "/bucket/key", headers, b"x");
        assert_refused(&refused, 400, "InvalidArgument");
    }
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
}

#[test]
fn ranges_are_read_at_all_borders_of_segments() {
    let server = server();
    // In a volume, read block by block, and in a file.
    for bytes in [1, SEGMENT, 3 * SEGMENT + 10, 40 * SEGMENT + 1] {
        let body = noise(bytes);
        put(&server, "/bucket/key", &A, &body);
        assert!(get(&server, "/bucket/key", &A).body == body, "{bytes}");
        let borders = [0, SEGMENT, 2 * SEGMENT, 3 * SEGMENT, 32 * SEGMENT, bytes];
        for border in borders.into_iter().filter(|border| *border <= bytes) {
            let starts = [border.saturating_sub(1), border, border + 1];
            for start in starts.into_iter().filter(|start| *start < bytes) {
                for end in [start + 1, start + SEGMENT, start + SEGMENT + 1, bytes] {
                    let end = end.min(bytes);
                    let range = format!("bytes={start}-{}", end - 1);
                    let headers = [&A[..], &[("range", &*range)]].concat();
                    let got = get(&server, "/bucket/key", &headers);
                    assert_eq!(got.status, 206, "{range} {}", got.text());
                    assert!(got.body == body[start..end], "{range} of {bytes}");
                    let whole = format!("bytes {start}-{}/{bytes}", end - 1);
                    assert_eq!(got.header("content-range"), Some(&*whole));
                }
            }
        }
        let past = format!("bytes={bytes}-");
        let past = get(&server, "/bucket/key", &[&A[..], &[("range", &*past)]].concat());
        assert_refused(&past, 416, "InvalidRange");
    }
    put(&server, "/bucket/empty", &A, b"");
    let empty = get(&server, "/bucket/empty", &A);
    assert_eq!((empty.status, empty.header("content-length")), (200, Some("0")));
}

#[test]
fn claims_and_conditions_are_those_of_the_content() {
    let server = server();
    let md5_of_hello = ("content-md5", "XUFAKrxLKna5cZ2REBfFkg==");
    let crc = ("x-amz-checksum-crc32", "NhCmhg==");
    let stored = put(&server, "/bucket/key", &[&A[..], &[md5_of_hello, crc]].concat(), b"hello");
    assert_eq!(stored.header("x-amz-checksum-crc32"), Some("NhCmhg=="));
    let wrong = [&A[..], &[md5_of_hello]].concat();
    assert_refused(&server.s3.send("PUT", "/bucket/x", &wrong, b"hullo"), 400, "BadDigest");
    let tag = etag(&stored);
    assert_ne!(tag, "\"5d41402abc4b2a76b9719d911017c592\"", "not the MD5 of the content");
    let mode = ("x-amz-checksum-mode", "ENABLED");
    let got = get(&server, "/bucket/key", &[&A[..], &[("if-match", &*tag), mode]].concat());
    assert_eq!((got.status, got.header("x-amz-checksum-crc32")), (200, Some("NhCmhg==")));
    let same = get(&server, "/bucket/key", &[&A[..], &[("if-none-match", &*tag)]].concat());
    assert_eq!(same.status, 304);
    let overwrite = [&A[..], &[("if-match", &*tag)]].concat();
    put(&server, "/bucket/key", &overwrite, b"hello");
    let again = server.s3.send("PUT", "/bucket/key", &overwrite, b"hello");
    assert_refused(&again, 412, "PreconditionFailed");
    let if_length = |bytes| [("x-amz-if-match-size", bytes)];
    let wrong = server.s3.send("DELETE", "/bucket/key", &if_length("6"), b"");
    assert_refused(&wrong, 412, "PreconditionFailed");
    assert_eq!(server.s3.send("DELETE", "/bucket/key", &if_length("5"), b"").status, 204);
}

#[test]
fn operator_encrypts_with_its_newest_key() {
    let (first, second) = (key_text(), key_text());
    let both = format!("{first}{second}");
    let server = Running::with_encryption(tempfile::tempdir().unwrap(), Some(&first));
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    let body = b"content that the operator encrypts";
    let plain = etag(&put(&server, "/bucket/plain", &[], body));
    assert_eq!(server.s3.delete("/bucket/plain").status, 204);
    let stored = put(&server, "/bucket/old", &[SSE_S3], body);
    assert_eq!(stored.header(SSE_S3.0), Some("AES256"));
    assert_eq!(etag(&stored), plain, "the MD5 of the content, which clients verify");

    let server = Running::with_encryption(server.into_dir(), Some(&both));
    put(&server, "/bucket/new", &[SSE_S3], body);
    for key in ["/bucket/old", "/bucket/new"] {
        let got = server.s3.get(key);
        assert!(got.body == body && got.header(SSE_S3.0) == Some("AES256"), "{key}");
        assert_refused(&get(&server, key, &A), 400, "InvalidRequest");
        assert_refused(&get(&server, key, &[SSE_S3]), 400, "InvalidArgument");
    }
    let server = Running::with_encryption(server.into_dir(), Some(&second));
    assert_eq!(server.s3.get("/bucket/new").body, body);
    assert_refused(&server.s3.get("/bucket/old"), 500, "InternalError");
    let server = Running::with_encryption(server.into_dir(), None);
    assert_refused(&server.s3.get("/bucket/new"), 500, "InternalError");
    let refused = server.s3.send("PUT", "/bucket/new", &[SSE_S3], body);
    assert_refused(&refused, 501, "NotImplemented");
    assert_refused(&server.s3.put("/bucket?encryption", DEFAULT.as_bytes()), 501, "NotImplemented");
}

#[test]
fn default_of_a_bucket_encrypts_plain_puts() {
    let server = server();
    let none = server.s3.get("/bucket?encryption");
    assert_refused(&none, 404, "ServerSideEncryptionConfigurationNotFoundError");
    put(&server, "/bucket?encryption", &[], DEFAULT.as_bytes());
    assert_eq!(server.s3.get("/bucket?encryption").xml("SSEAlgorithm").as_deref(), Some("AES256"));
    let body = b"a plain PUT to a bucket with a default";
    let stored = put(&server, "/bucket/key", &[], body);
    assert_eq!(stored.header(SSE_S3.0), Some("AES256"));
    let chunked = [("transfer-encoding", "chunked")];
    let head = server.s3.head_bytes("PUT", "/bucket/chunked", &chunked);
    let chunk = format!("{:x}\r\n", body.len());
    let request = [&head[..], chunk.as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    assert_eq!(server.s3.raw(&request).header(SSE_S3.0), Some("AES256"));
    assert!(!is_stored(server.dir(), body));
    for key in ["/bucket/key", "/bucket/chunked"] {
        for _ in 0..3 {
            let got = server.s3.get(key);
            assert!(got.body == body && got.header(SSE_S3.0) == Some("AES256"), "{key}");
        }
        assert_eq!(server.s3.head(key).header(SSE_S3.0), Some("AES256"));
    }
    put(&server, "/bucket/copy", &[("x-amz-copy-source", "/bucket/key")], b"");
    assert_eq!(server.s3.get("/bucket/copy").header(SSE_S3.0), Some("AES256"));
    put(&server, "/bucket/own", &A, body);
    assert_eq!(get(&server, "/bucket/own", &A).header(SSE_S3.0), None);

    let server = Running::with_encryption(server.into_dir(), None);
    assert_refused(&server.s3.put("/bucket/more", b"x"), 501, "NotImplemented");
    assert_eq!(server.s3.delete("/bucket?encryption").status, 204);
    let stored = put(&server, "/bucket/more", &[], b"x");
    assert_eq!(stored.header(SSE_S3.0), None);
}

#[test]
fn versions_and_tags_keep_the_encryption() {
    let server = server();
    let enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    put(&server, "/bucket?versioning", &[], enabled.as_bytes());
    let first = put(&server, "/bucket/key", &A, b"first");
    let second = put(&server, "/bucket/key", &[SSE_S3], b"the second");
    put(&server, "/bucket/key", &[], b"3");
    let of = |reply: &Reply| format!("?versionId={}", reply.header("x-amz-version-id").unwrap());
    let (first, second) = (of(&first), of(&second));
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    put(&server, &format!("/bucket/key{first}&tagging"), &[], tags.as_bytes());
    assert_eq!(get(&server, &format!("/bucket/key{first}"), &A).body, b"first");
    assert_eq!(server.s3.get(&format!("/bucket/key{second}")).body, b"the second");
    assert_refused(&server.s3.get(&format!("/bucket/key{first}")), 400, "InvalidRequest");
    assert_eq!(server.s3.get("/bucket?versions").all_xml("Size"), ["1", "10", "5"]);
}

#[test]
fn tags_of_an_encrypted_object_are_changed_without_its_key() {
    let server = server();
    put(&server, "/bucket/key", &A, b"hello");
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    put(&server, "/bucket/key?tagging", &[], tags.as_bytes());
    let got = get(&server, "/bucket/key", &A);
    assert_eq!(
        (got.body.as_slice(), got.header("x-amz-tagging-count")),
        (&b"hello"[..], Some("1"))
    );
}
