//! Encrypted uploads in parts, and copies.

use super::helper::{A, B, KEY_MD5, PART_BYTES, SEGMENT, SOURCE_A, SSE_S3, etag, get, put, server};
use crate::client::{Header, Reply, Running, assert_refused, noise};

struct Upload<'a> {
    server: &'a Running,
    target: String,
}

impl<'a> Upload<'a> {
    fn start(server: &'a Running, target: &str, headers: &[Header<'_>]) -> Self {
        let reply = server.s3.send("POST", &format!("{target}?uploads"), headers, b"");
        assert_eq!(reply.status, 200, "{}", reply.text());
        Self { server, target: format!("{target}?uploadId={}", reply.xml("UploadId").unwrap()) }
    }

    fn part(&self, number: u16, headers: &[Header<'_>], body: &[u8]) -> Reply {
        let target = format!("{}&partNumber={number}", self.target);
        self.server.s3.send("PUT", &target, headers, body)
    }

    fn complete(&self, headers: &[Header<'_>], parts: &[(u16, &Reply)]) -> Reply {
        let part = |(number, part): &(u16, &Reply)| {
            let tag = etag(part);
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
        };
        let parts: String = parts.iter().map(part).collect();
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        self.server.s3.send("POST", &self.target, headers, body.as_bytes())
    }
}

/// Uploads 2 parts and 77 bytes, under these numbers.
fn upload(server: &Running, target: &str, headers: &[Header<'_>], body: &[u8]) -> Reply {
    let upload = Upload::start(server, target, headers);
    let part_headers: &[Header<'_>] = if headers.len() == 3 { headers } else { &[] };
    let parts =
        [(2, 0..PART_BYTES), (5, PART_BYTES..2 * PART_BYTES), (9, 2 * PART_BYTES..body.len())];
    let parts =
        parts.map(|(number, range)| (number, upload.part(number, part_headers, &body[range])));
    let parts: Vec<_> = parts.iter().map(|(number, reply)| (*number, reply)).collect();
    let done = upload.complete(part_headers, &parts);
    assert_eq!(done.status, 200, "{}", done.text());
    done
}

#[test]
fn parts_become_one_encrypted_object() {
    let server = server();
    let body = noise(2 * PART_BYTES + 77);
    for (target, headers) in [("/bucket/c", &A[..]), ("/bucket/s", &[SSE_S3])] {
        let read_headers: &[Header<'_>] = if headers.len() == 3 { headers } else { &[] };
        let done = upload(&server, target, headers, &body);
        assert!(done.xml("ETag").unwrap().contains("-3"), "{}", done.text());
        let got = get(&server, target, read_headers);
        assert!(got.is_whole() && got.body == body);
        for start in [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES] {
            for bytes in [1, 2, 77, PART_BYTES] {
                let end = (start + bytes).min(body.len());
                let range = format!("bytes={start}-{}", end - 1);
                let got = get(&server, target, &[read_headers, &[("range", &*range)]].concat());
                assert!(got.body == body[start..end], "{range} {}", got.status);
            }
        }
        for (number, range) in [(1, 0..PART_BYTES), (3, 2 * PART_BYTES..body.len())] {
            let got = get(&server, &format!("{target}?partNumber={number}"), read_headers);
            assert!(got.body == body[range] && got.header("x-amz-mp-parts-count") == Some("3"));
        }
    }
    let bytes = body.len().to_string();
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Size"), [&*bytes, &*bytes]);
    let condition = [("x-amz-if-match-size", &*bytes)];
    assert_eq!(server.s3.send("DELETE", "/bucket/c", &condition, b"").status, 204);
}

#[test]
fn part_needs_the_key_of_its_upload() {
    let server = server();
    let upload = Upload::start(&server, "/bucket/key", &A);
    assert_refused(&upload.part(1, &[], b"x"), 400, "InvalidRequest");
    assert_refused(&upload.part(1, &B, b"x"), 400, "InvalidRequest");
    let part = upload.part(1, &A, b"hello");
    assert_eq!(part.header(KEY_MD5), Some(A[2].1));
    assert_eq!(etag(&upload.part(1, &A, b"hello")), etag(&part), "a client may repeat a part");
    let listed = server.s3.get(&upload.target);
    assert_eq!(listed.all_xml("Size"), ["5"]);
    assert_refused(&upload.complete(&[], &[(1, &part)]), 400, "InvalidRequest");
    assert_refused(&upload.complete(&B, &[(1, &part)]), 400, "InvalidRequest");
    for attempt in ["first", "repeated"] {
        let done = upload.complete(&A, &[(1, &part)]);
        assert_eq!((done.status, done.header(KEY_MD5)), (200, Some(A[2].1)), "{attempt}");
    }
    assert_eq!(get(&server, "/bucket/key", &A).body, b"hello");
    let plain = Upload::start(&server, "/bucket/plain", &[]);
    assert_refused(&plain.part(1, &A, b"x"), 400, "InvalidRequest");
}

#[test]
fn copies_have_the_requested_encryption() {
    let server = server();
    let body = noise(2 * PART_BYTES + 77);
    let small = noise(SEGMENT + 7);
    for (source, headers) in [("plain", &[][..]), ("customer", &A), ("operator", &[SSE_S3])] {
        put(&server, &format!("/bucket/{source}-small"), headers, &small);
        upload(&server, &format!("/bucket/{source}-parts"), headers, &body);
        for (kind, content) in [("small", &small), ("parts", &body)] {
            let from = format!("/bucket/{source}-{kind}");
            let mut given = vec![("x-amz-copy-source", &*from)];
            if source == "customer" {
                let without = server.s3.send("PUT", "/bucket/copy", &given, b"");
                assert_refused(&without, 400, "InvalidRequest");
                given.extend(SOURCE_A);
            }
            for (wanted, read_headers) in [(&[][..], &[][..]), (&B, &B), (&[SSE_S3], &[])] {
                put(&server, "/bucket/copy", &[&given, wanted].concat(), b"");
                let got = get(&server, "/bucket/copy", read_headers);
                assert!(got.is_whole() && got.body == *content, "{from} {wanted:?}");
                let operator = (wanted == [SSE_S3]).then_some("AES256");
                assert_eq!(got.header(SSE_S3.0), operator, "{from}");

                let upload = Upload::start(&server, "/bucket/copied-part", wanted);
                let range = ("x-amz-copy-source-range", "bytes=7-65542");
                let headers = [&given[..], &[range], read_headers].concat();
                let part = upload.part(4, &headers, b"");
                let tag = part.xml("ETag").unwrap_or_else(|| panic!("{}", part.text()));
                let tag = tag.replace("&quot;", "");
                let body = format!(
                    "<CompleteMultipartUpload><Part><PartNumber>4</PartNumber><ETag>{tag}</ETag>\
                     </Part></CompleteMultipartUpload>"
                );
                let done = server.s3.send("POST", &upload.target, read_headers, body.as_bytes());
                assert_eq!(done.status, 200, "{}", done.text());
                let got = get(&server, "/bucket/copied-part", read_headers);
                assert!(got.body == content[7..65543], "{from} {wanted:?}");
            }
        }
    }
}

/// A change of the encryption alone is enough for a copy of an object to itself.
#[test]
fn object_is_decrypted_and_gets_another_key_in_place() {
    let server = server();
    let body = noise(SEGMENT + 7);
    let itself = ("x-amz-copy-source", "/bucket/itself");
    for (wanted, read_headers) in [(&[][..], &[][..]), (&B, &B), (&[SSE_S3], &[])] {
        put(&server, "/bucket/itself", &A, &body);
        put(&server, "/bucket/itself", &[&[itself], &SOURCE_A[..], wanted].concat(), b"");
        assert_eq!(get(&server, "/bucket/itself", read_headers).body, body, "{wanted:?}");
    }
    put(&server, "/bucket/itself", &[], &body);
    let same = server.s3.send("PUT", "/bucket/itself", &[itself], b"");
    assert_refused(&same, 400, "InvalidRequest");
}
