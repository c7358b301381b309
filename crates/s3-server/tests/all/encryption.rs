//! Server-side encryption, with keys of customers and of the operator.

use std::fs;
use std::path::Path;

use haul_file_store::{Attributes, Precondition, Store};
use haul_s3_server::EncryptionKey;

use crate::client::{Header, Reply, Running, assert_refused, noise, small};

const SEGMENT: usize = 64 << 10;
const PART_BYTES: usize = 5 << 20;

const ALGORITHM: Header<'_> = ("x-amz-server-side-encryption-customer-algorithm", "AES256");
const KEY: &str = "x-amz-server-side-encryption-customer-key";
const KEY_MD5: &str = "x-amz-server-side-encryption-customer-key-md5";
const A: [Header<'_>; 3] = [
    ALGORITHM,
    (KEY, "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs="),
    (KEY_MD5, "DWygnHRtgiJ77HCm+1rvHw=="),
];
const B: [Header<'_>; 3] = [
    ALGORITHM,
    (KEY, "6b+WOZ1T3cqZMxgThRcXAQBrS5mXKdDUphvpxptl9/4="),
    (KEY_MD5, "arxBvwY2V4SiOne6yppVPQ=="),
];
const SOURCE_A: [Header<'_>; 3] = [
    ("x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256"),
    ("x-amz-copy-source-server-side-encryption-customer-key", A[1].1),
    ("x-amz-copy-source-server-side-encryption-customer-key-md5", A[2].1),
];
const SSE_S3: Header<'_> = ("x-amz-server-side-encryption", "AES256");

const DEFAULT: &str = "<ServerSideEncryptionConfiguration><Rule>\
    <ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>\
    </ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>";

fn key_text() -> String {
    EncryptionKey::generate().unwrap().to_text()
}

/// Returns a server with encryption keys, and a bucket named `bucket`.
fn server() -> Running {
    let server = Running::with_encryption(tempfile::tempdir().unwrap(), Some(&key_text()));
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    server
}

fn put(server: &Running, target: &str, headers: &[Header<'_>], body: &[u8]) -> Reply {
    let reply = server.s3.send("PUT", target, headers, body);
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    reply
}

fn get(server: &Running, target: &str, headers: &[Header<'_>]) -> Reply {
    server.s3.send("GET", target, headers, b"")
}

/// Returns `true` if a file of the store has these bytes.
fn is_stored(dir: &Path, wanted: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => is_stored(&path, wanted),
            false => {
                let bytes = fs::read(path).unwrap();
                bytes.windows(wanted.len()).any(|window| window == wanted)
            }
        }
    })
}

fn etag(reply: &Reply) -> String {
    reply.header("etag").unwrap().to_owned()
}

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
    let kms = [("x-amz-server-side-encryption", "aws:kms")];
    let refused = server.s3.send("PUT", "/bucket/key", &kms, b"x");
    assert_refused(&refused, 501, "NotImplemented");
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
    let of_length = |bytes| [("x-amz-if-match-size", bytes)];
    let wrong = server.s3.send("DELETE", "/bucket/key", &of_length("6"), b"");
    assert_refused(&wrong, 412, "PreconditionFailed");
    assert_eq!(server.s3.send("DELETE", "/bucket/key", &of_length("5"), b"").status, 204);
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
    let of_part: &[Header<'_>] = if headers.len() == 3 { headers } else { &[] };
    let parts =
        [(2, 0..PART_BYTES), (5, PART_BYTES..2 * PART_BYTES), (9, 2 * PART_BYTES..body.len())];
    let parts = parts.map(|(number, range)| (number, upload.part(number, of_part, &body[range])));
    let parts: Vec<_> = parts.iter().map(|(number, reply)| (*number, reply)).collect();
    let done = upload.complete(of_part, &parts);
    assert_eq!(done.status, 200, "{}", done.text());
    done
}

#[test]
fn parts_become_one_encrypted_object() {
    let server = server();
    let body = noise(2 * PART_BYTES + 77);
    for (target, headers) in [("/bucket/c", &A[..]), ("/bucket/s", &[SSE_S3])] {
        let of_read: &[Header<'_>] = if headers.len() == 3 { headers } else { &[] };
        let done = upload(&server, target, headers, &body);
        assert!(done.xml("ETag").unwrap().contains("-3"), "{}", done.text());
        let got = get(&server, target, of_read);
        assert!(got.is_whole() && got.body == body);
        for start in [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES] {
            for bytes in [1, 2, 77, PART_BYTES] {
                let end = (start + bytes).min(body.len());
                let range = format!("bytes={start}-{}", end - 1);
                let got = get(&server, target, &[of_read, &[("range", &*range)]].concat());
                assert!(got.body == body[start..end], "{range} {}", got.status);
            }
        }
        for (number, range) in [(1, 0..PART_BYTES), (3, 2 * PART_BYTES..body.len())] {
            let got = get(&server, &format!("{target}?partNumber={number}"), of_read);
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
    assert_eq!(upload.complete(&A, &[(1, &part)]).status, 200);
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
            for (wanted, of_read) in [(&[][..], &[][..]), (&B, &B), (&[SSE_S3], &[])] {
                put(&server, "/bucket/copy", &[&given, wanted].concat(), b"");
                let got = get(&server, "/bucket/copy", of_read);
                assert!(got.is_whole() && got.body == *content, "{from} {wanted:?}");
                let operator = (wanted == [SSE_S3]).then_some("AES256");
                assert_eq!(got.header(SSE_S3.0), operator, "{from}");

                let upload = Upload::start(&server, "/bucket/copied-part", wanted);
                let range = ("x-amz-copy-source-range", "bytes=7-65542");
                let headers = [&given[..], &[range], of_read].concat();
                let part = upload.part(4, &headers, b"");
                let tag = part.xml("ETag").unwrap_or_else(|| panic!("{}", part.text()));
                let tag = tag.replace("&quot;", "");
                let body = format!(
                    "<CompleteMultipartUpload><Part><PartNumber>4</PartNumber><ETag>{tag}</ETag>\
                     </Part></CompleteMultipartUpload>"
                );
                let done = server.s3.send("POST", &upload.target, of_read, body.as_bytes());
                assert_eq!(done.status, 200, "{}", done.text());
                let got = get(&server, "/bucket/copied-part", of_read);
                assert!(got.body == content[7..65543], "{from} {wanted:?}");
            }
        }
    }
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

/// Changes the object `bucket/changed` to these stored bytes and attributes.
fn change(store: &Store, bytes: &[u8], attributes: &Attributes) {
    let mut writer = store.object_writer(Some(bytes.len() as u64)).unwrap();
    writer.write(bytes).unwrap();
    let written = writer.finish().unwrap().encoded([1; 16]);
    let none = Precondition::None;
    store.put_written("bucket", "changed", written, attributes, &none).unwrap();
}

#[test]
fn changed_objects_are_refused() {
    let keys = key_text();
    let mut dir = tempfile::tempdir().unwrap();
    let body = noise(3 * SEGMENT);
    let changes = [
        "none",
        "a bit",
        "cut",
        "swapped",
        "appended",
        "of another object",
        "other attributes",
        "no attributes",
        "not marked",
    ];
    for changed in changes {
        let server = Running::with_encryption(dir, Some(&keys));
        server.s3.put("/bucket", b"");
        put(&server, "/bucket/changed", &[SSE_S3], &body);
        put(&server, "/bucket/other", &[SSE_S3], &body);
        dir = server.into_dir();
        let (store, _) = Store::open(dir.path(), small()).unwrap();
        let read = |key| {
            let object = store.get("bucket", key).unwrap();
            let length = usize::try_from(object.info.bytes).unwrap();
            (object.read(0, length).unwrap().to_vec(), object.attributes)
        };
        let ((mut bytes, mut attributes), other) = (read("changed"), read("other"));
        let sealed = SEGMENT + 16;
        match changed {
            "a bit" => bytes[32 + sealed] ^= 1,
            "cut" => bytes.truncate(32 + 2 * sealed),
            "swapped" => bytes[32..32 + 2 * sealed].rotate_left(sealed),
            "appended" => bytes.extend_from_slice(&other.0[32..]),
            "of another object" => bytes = other.0,
            "other attributes" => (bytes, attributes) = other,
            "no attributes" => attributes = Attributes::new(),
            _ => {}
        }
        match changed {
            "not marked" => {
                let none = Precondition::None;
                drop(store.put("bucket", "changed", &bytes, &attributes, &none).unwrap());
            }
            _ => change(&store, &bytes, &attributes),
        }
        store.close().unwrap();
        let server = Running::with_encryption(dir, Some(&keys));
        // Each segment is verified before it is sent.
        let range = [("range", "bytes=65536-65540")];
        let (got, part) =
            (server.s3.get("/bucket/changed"), get(&server, "/bucket/changed", &range));
        if changed == "none" {
            assert!(got.body == body && part.body == body[65536..65541]);
        } else {
            assert_refused(&got, 500, "InternalError");
            assert_refused(&part, 500, "InternalError");
        }
        dir = server.into_dir();
    }
}
