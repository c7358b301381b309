//! The short path of plain PUTs, whose outcomes equal those of the S3 service.

use std::io::{Read, Write};
use std::sync::Arc;

use haul_disk_sim::MemoryDisk;
use haul_s3_server::{AccessLog, AuditLog, Credentials, Limits, Lines, LogFormat, Logs};
use haul_testing::eventually;
use parking_lot::Mutex;
use serde_json::Value;

use crate::client::{Header, Reply, Running, assert_refused, noise};
use crate::inline::headers;
use crate::signing::{Signer, hash};

/// A header that the service ignores, and the short path does not know.
const THROUGH_SERVICE: Header<'static> = ("x-amz-request-payer", "requester");

const RULES: &str = "<LifecycleConfiguration><Rule><ID>old one</ID><Status>Enabled</Status><Filter>\
                     <Prefix>expiring</Prefix></Filter><Expiration><Days>3</Days></Expiration></Rule>\
                     </LifecycleConfiguration>";

#[derive(Default)]
struct Stored(Mutex<Vec<Value>>);

impl Lines for Stored {
    fn append(&self, line: &[u8]) {
        self.0.lock().push(serde_json::from_slice(line).unwrap());
    }
}

impl Stored {
    /// Waits for a line and removes it. Returns it without the fields that differ in each line.
    fn take(&self) -> Value {
        eventually("the line is written", || !self.0.lock().is_empty());
        let mut lines = std::mem::take(&mut *self.0.lock());
        assert_eq!(lines.len(), 1, "{lines:?}");
        let mut line = lines.remove(0);
        assert_eq!(line["request_id"].as_str().unwrap().len(), 16);
        for name in ["time", "request_id", "duration_us"] {
            line.as_object_mut().unwrap().remove(name);
        }
        line
    }
}

struct Logged {
    server: Running,
    access: Arc<Stored>,
    audit: Arc<Stored>,
}

impl Logged {
    /// A server with logs and a bucket with rules; its lines so far are removed.
    fn new() -> Self {
        let (access, audit) = (Arc::new(Stored::default()), Arc::new(Stored::default()));
        let lines = |stored: &Arc<Stored>| Arc::clone(stored) as Arc<dyn Lines>;
        let logs = Logs {
            access: Some(AccessLog { lines: lines(&access), format: LogFormat::Json }),
            audit: Some(AuditLog::new(lines(&audit))),
        };
        let logged = Self { server: Running::with_logs(None, logs), access, audit };
        for (target, body) in [("/bucket", ""), ("/bucket?lifecycle", RULES)] {
            assert_eq!(logged.server.s3.put(target, body.as_bytes()).status, 200);
            logged.lines();
        }
        logged
    }

    /// Returns the lines of the last request in both logs.
    fn lines(&self) -> [Value; 2] {
        [self.access.take(), self.audit.take()]
    }

    /// Sends a request, and returns its response and its lines.
    fn send(&self, target: &str, headers: &[Header], body: &[u8]) -> (Reply, [Value; 2]) {
        let reply = self.server.s3.send("PUT", target, headers, body);
        (reply, self.lines())
    }

    /// Returns the headers of an object, and its tags.
    fn object(&self, target: &str) -> (u16, Vec<(String, String)>, String) {
        let head = [("x-amz-checksum-mode", "ENABLED"), THROUGH_SERVICE];
        let described = self.server.s3.send("HEAD", target, &head, b"");
        self.access.take();
        let tags = self.server.s3.get(&format!("{target}?tagging")).all_xml("Tag").concat();
        self.access.take();
        let headers = headers(&described).into_iter();
        let is_same = |(name, _): &(String, String)| name != "last-modified";
        (described.status, headers.filter(is_same).collect(), tags)
    }
}

const MANY: [Header; 12] = [
    ("content-type", "text/x-test"),
    ("cache-control", "max-age=3"),
    ("content-disposition", "attachment; filename=\"a b\""),
    ("content-encoding", "gzip"),
    ("content-language", "de, en"),
    ("expires", "Wed, 21 Oct 2065 07:28:00 GMT"),
    ("x-amz-meta-one", "1"),
    ("X-Amz-Meta-Two", "a b  c"),
    ("x-amz-meta-empty", ""),
    ("x-amz-tagging", "b=2&a=1"),
    ("x-amz-website-redirect-location", "/other"),
    ("x-amz-checksum-crc32c", "yZRlqg=="),
];

#[test]
fn outcome_of_a_plain_put_equals_that_of_the_service() {
    let logged = Logged::new();
    let sha256 = hash(b"hello world");
    let wrong = hash(b"hello worlD");
    let (names, long) =
        ([0, 1, 2, 3, 4, 5, 6, 7, 8].map(|n| format!("x-amz-meta-{n}")), "x".repeat(2000));
    let much = names.each_ref().map(|name| (name.as_str(), long.as_str()));
    let table: &[(&str, &[Header])] = &[
        ("/bucket/a", &[]),
        ("/bucket/a%20b/%C3%A4+%2F.css", &[]),
        ("/bucket/expiring", &[]),
        ("/bucket/all", &MANY),
        ("/bucket/a?x-id=PutObject", &[("content-md5", "XrY7u+Ae7tCTyyK7j1rNww==")]),
        ("/bucket/a", &[("x-amz-content-sha256", &sha256), ("x-amz-acl", "private")]),
        ("/bucket/a", &[("x-amz-sdk-checksum-algorithm", "SHA256")]),
        ("/bucket/a", &[("x-amz-checksum-sha1", "Kq5sNclPz7QV2+lfQIuc6R7oRu0=")]),
        ("/bucket/a", &[("x-amz-storage-class", "STANDARD_IA"), ("date", "today")]),
        // Errors.
        ("/none/a", &[]),
        ("/xn--a/a", &[]),
        ("/bucket/a", &[("content-md5", "XrY7u+Ae7tCTyyK7j1rNwg==")]),
        ("/bucket/a", &[("content-md5", "")]),
        ("/bucket/a", &[("x-amz-content-sha256", &wrong)]),
        (
            "/bucket/a",
            &[("x-amz-content-sha256", &wrong), ("content-md5", "XrY7u+Ae7tCTyyK7j1rNwg==")],
        ),
        ("/bucket/a", &[("x-amz-checksum-crc32", "AAAAAA==")]),
        ("/bucket/a", &[("x-amz-checksum-crc32", "")]),
        ("/bucket/a", &[("x-amz-checksum-crc32", "DUoRhQ=="), ("x-amz-checksum-sha1", "x")]),
        ("/bucket/a", &[("x-amz-tagging", "a=1&a=2")]),
        ("/bucket/a", &much),
        ("/bucket/a", &[("host", "evil.example")]),
        ("/bucket/a", &[("origin", "http://evil.example")]),
    ];
    let mut errors = 0;
    for (target, fields) in table {
        let context = format!("{target} {fields:?}");
        let (short, short_lines) = logged.send(target, fields, b"hello world");
        let short_object = logged.object("/bucket/a");
        let through_service = [*fields, &[THROUGH_SERVICE]].concat();
        let (served, served_lines) = logged.send(target, &through_service, b"hello world");
        assert_eq!(short.status, served.status, "{context}");
        assert_eq!(headers(&short), headers(&served), "{context}");
        let ids = [&short, &served].map(|reply| reply.header("x-amz-request-id").unwrap());
        assert_eq!(
            short.text().replace(ids[0], ""),
            served.text().replace(ids[1], ""),
            "{context}"
        );
        assert_eq!(short_lines, served_lines, "{context}");
        let object = target.split('?').next().unwrap();
        assert!(short.status != 200 || logged.object(object).0 == 200, "{context}");
        assert_eq!(short_object, logged.object("/bucket/a"), "{context}");
        errors += usize::from(short.status >= 400);
    }
    assert_eq!(errors, 13);
    eventually("no request is in flight", || {
        logged.server.admin.get("/metrics").text().contains("haul_requests_in_flight 0\n")
    });
}

#[test]
fn attributes_of_a_plain_put_equal_those_of_the_service() {
    let logged = Logged::new();
    for fields in [&MANY[..], &MANY[..11], &MANY[..1], &[]] {
        let bodies: [(&str, &[Header]); 2] =
            [("/bucket/a", &[]), ("/bucket/b", &[THROUGH_SERVICE])];
        let objects = bodies.map(|(target, more)| {
            let (reply, _) = logged.send(target, &[fields, more].concat(), b"hello world");
            assert_eq!(reply.status, 200, "{}", reply.text());
            logged.object(target)
        });
        assert_eq!(objects[0], objects[1]);
    }
}

#[test]
fn body_of_a_plain_put_may_arrive_in_pieces_and_on_request() {
    let server = Running::new();
    let send = |fields: &[Header], pieces: &[&[u8]]| {
        let mut stream = server.s3.connect();
        stream.tcp().set_nodelay(true).unwrap();
        let all = [&[("content-length", "11")], fields].concat();
        // The first piece arrives with the head, so that the server has no reason to request it.
        let head = server.s3.head_bytes("PUT", "/bucket/key", &all);
        stream.write_all(&[&head, pieces[0]].concat()).unwrap();
        pieces[1..].iter().for_each(|piece| stream.write_all(piece).unwrap());
        Reply::read(&mut stream).status
    };
    assert_eq!(send(&[], &[b"hel", b"lo wor", b"ld"]), 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "hello world");
    // The client sends the body without the interim response.
    assert_eq!(send(&[("expect", "100-continue")], &[b"HELLO WORLD"]), 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "HELLO WORLD");
    let mut stream = server.s3.connect();
    let fields = [("content-length", "5"), ("expect", "100-continue")];
    stream.write_all(&server.s3.head_bytes("PUT", "/bucket/key", &fields)).unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "hello");
}

#[test]
fn cut_body_is_incomplete_and_stores_nothing() {
    let server = Running::new();
    for more in [&[][..], &[THROUGH_SERVICE]] {
        let mut stream = server.s3.connect();
        let fields = [&[("content-length", "5")], more].concat();
        stream.write_all(&server.s3.head_bytes("PUT", "/bucket/key", &fields)).unwrap();
        stream.write_all(b"hel").unwrap();
        stream.tcp().shutdown(std::net::Shutdown::Write).unwrap();
        assert_refused(&Reply::read(&mut stream), 400, "IncompleteBody");
    }
    assert_eq!(server.s3.get("/bucket/key").status, 404);
}

#[test]
fn body_that_stalls_is_refused_after_its_time() {
    let limits =
        Limits { stall_time_max: std::time::Duration::from_millis(50), ..Limits::default() };
    let server = Running::with(None, limits);
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    let mut stream = server.s3.connect();
    let fields = [("content-length", "5")];
    stream.write_all(&server.s3.head_bytes("PUT", "/bucket/key", &fields)).unwrap();
    stream.write_all(b"hel").unwrap();
    assert_refused(&Reply::read(&mut stream), 400, "RequestTimeout");
}

#[test]
fn plain_put_on_a_full_or_failed_disk_is_refused() {
    let disk = MemoryDisk::default();
    let server = Running::in_memory(&disk);
    disk.limit(Some(disk.used_bytes() + 200_000));
    let body = noise(8000);
    let refused = (0..1000).map(|n| server.s3.put(&format!("/bucket/{n}"), &body));
    let refused = refused.into_iter().find(|reply| reply.status != 200).unwrap();
    assert_refused(&refused, 507, "XHaulStorageFull");
    disk.limit(None);
    assert_eq!(server.s3.put("/bucket/more", &body).status, 200);
    disk.fail(haul_disk::Op::Sync, 1, u64::MAX, rustix::io::Errno::IO);
    assert_refused(&server.s3.put("/bucket/lost", &body), 503, "ServiceUnavailable");
}

#[test]
fn plain_put_waits_for_memory() {
    let limits = Limits {
        body_memory_bytes_max: 8 << 20,
        peer_body_memory_bytes_max: 4 << 20,
        ..Limits::default()
    };
    let server = Running::with(None, limits);
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    let wait_for = |count: &str| {
        eventually("the requests are in flight", || {
            let text = server.admin.get("/metrics").text();
            text.contains(&format!("haul_requests_in_flight {count}\n"))
        });
    };
    // A body that takes all the memory of the peer.
    let mut stream = server.s3.connect();
    let body = noise(4 << 20);
    let fields = [("content-length", "4194304")];
    stream.write_all(&server.s3.head_bytes("PUT", "/bucket/big", &fields)).unwrap();
    stream.write_all(&body[..1]).unwrap();
    wait_for("1");
    let s3 = server.s3;
    let waiting = std::thread::spawn(move || s3.put("/bucket/key", b"hello").status);
    wait_for("2");
    assert!(!waiting.is_finished());
    stream.write_all(&body[1..]).unwrap();
    assert_eq!((Reply::read(&mut stream).status, waiting.join().unwrap()), (200, 200));
}

/// A body of chunks, longer than declared, whose end is not sent.
#[test]
fn chunked_body_longer_than_declared_is_refused_before_it_is_buffered() {
    let server = Running::new();
    for (length, trailer) in
        [("5", &[("x-amz-trailer", "x-amz-checksum-crc32")][..]), ("9000", &[])]
    {
        let fields = [
            ("content-length", "10000000"),
            ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
            ("x-amz-decoded-content-length", length),
        ];
        let mut stream = server.s3.connect();
        let head = server.s3.head_bytes("PUT", "/bucket/key", &[&fields[..], trailer].concat());
        stream.write_all(&head).unwrap();
        stream.write_all(b"800000\r\n").unwrap();
        stream.write_all(&noise(100_000)).unwrap();
        assert_refused(&Reply::read(&mut stream), 400, "IncompleteBody");
    }
}

fn signed_server() -> Running {
    let credentials = Credentials { access_key: "key".into(), secret_key: "secret".into() };
    let server = Running::with(Some(credentials), Limits::default());
    let signer = Signer { client: server.s3, access_key: "key", secret_key: "secret" };
    assert_eq!(signer.send("PUT", "/bucket", &hash(b""), b"").status, 200);
    server
}

#[test]
fn signed_put_is_stored_and_a_wrong_one_refused_as_by_the_service() {
    let server = signed_server();
    let signer = |access_key, secret_key| Signer { client: server.s3, access_key, secret_key };
    let right = signer("key", "secret");
    let unsigned = "UNSIGNED-PAYLOAD".to_owned();
    for more in [&[][..], &[("x-amz-meta-a", "b")], &[THROUGH_SERVICE]] {
        let put = |signer: &Signer, target: &str, hash: &str| {
            signer.send_with("PUT", target, hash, more, |_| b"hello".to_vec())
        };
        for hash in [&hash(b"hello"), &unsigned] {
            let reply = put(&right, "/bucket/key?x-id=PutObject", hash);
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        assert_refused(
            &put(&right, "/bucket/bad", &hash(b"hellO")),
            400,
            "XAmzContentSHA256Mismatch",
        );
        let wrong = put(&signer("key", "wrong"), "/bucket/bad", &hash(b"hello"));
        assert_refused(&wrong, 403, "SignatureDoesNotMatch");
        let unknown = put(&signer("other", "secret"), "/bucket/bad", &hash(b"hello"));
        assert_refused(&unknown, 403, "InvalidAccessKeyId");
        assert_refused(&put(&right, "/none/bad", &hash(b"hello")), 404, "NoSuchBucket");
        let presigned = right.presign("PUT", "/bucket/presigned", 0, 60);
        // The signature of the URL covers no headers of AWS.
        let meta = ("x-amz-meta-a", "b");
        assert_refused(&server.s3.send("PUT", &presigned, &[meta], b"hello"), 403, "AccessDenied");
        assert_eq!(server.s3.send("PUT", &presigned, &[], b"hello").status, 200);
        let expired = right.presign("PUT", "/bucket/bad", 61, 60);
        assert_refused(&server.s3.send("PUT", &expired, &[], b"hello"), 403, "AccessDenied");
    }
    assert_refused(&server.s3.put("/bucket/bad", b"hello"), 403, "AccessDenied");
    for target in ["/bucket/key", "/bucket/presigned"] {
        assert_eq!(right.send("GET", target, &hash(b""), b"").text(), "hello");
    }
    assert_eq!(right.send("GET", "/bucket/bad", &hash(b""), b"").status, 404);
}

/// As clients of AWS send it over TLS, without the space between chunks.
#[test]
fn unsigned_chunks_with_a_trailer_are_stored_and_verified_as_by_the_service() {
    let server = signed_server();
    let right = Signer { client: server.s3, access_key: "key", secret_key: "secret" };
    let body = |value: &str| {
        format!("5\r\nhello\r\n6\r\n world\r\n0\r\nx-amz-checksum-crc32:{value}\r\n\r\n")
    };
    let (good, bad) = (body("DUoRhQ=="), body("AAAAAA=="));
    let missing = "b\r\nhello world\r\n0\r\n\r\n".to_owned();
    for (body, length, status, code) in [
        (&good, "11", 200, ""),
        (&bad, "11", 400, "BadDigest"),
        (&good, "12", 400, "IncompleteBody"),
        (&good, "10", 400, "IncompleteBody"),
        (&missing, "11", 400, "InvalidRequest"),
        (&good.replace("5\r\nhello", "z\r\nhello"), "11", 400, "InvalidRequest"),
    ] {
        let mut replies = Vec::new();
        for through_service in [&[][..], &[THROUGH_SERVICE]] {
            let fields = [
                ("x-amz-decoded-content-length", length),
                ("x-amz-trailer", "x-amz-checksum-crc32"),
                ("content-encoding", "aws-chunked"),
            ];
            let reply = right.send_with(
                "PUT",
                "/bucket/key",
                "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
                &[&fields[..], through_service].concat(),
                |_| body.clone().into_bytes(),
            );
            assert_eq!(reply.error(), (status, code.to_owned()), "{length} {body}");
            replies.push(headers(&reply));
        }
        assert_eq!(replies[0], replies[1]);
    }
    let mode = [("x-amz-checksum-mode", "ENABLED")];
    let got = right.send_with("GET", "/bucket/key", &hash(b""), &mode, |_| Vec::new());
    assert_eq!(got.text(), "hello world");
    assert_eq!(got.header("x-amz-checksum-crc32"), Some("DUoRhQ=="));
    assert_eq!(got.header("content-encoding"), None);
}
