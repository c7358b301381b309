//! Quotas of buckets: every request that adds bytes or objects is refused, before its body is sent.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::client::{Client, Header, Reply, Running, assert_refused, noise};
use crate::forms::Form;

/// Sets the quota of `bucket`.
fn set(client: Client, limits: &str) {
    let body = format!("<QuotaConfiguration>{limits}</QuotaConfiguration>");
    let reply = client.put("/bucket?quota", body.as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn set_bytes(client: Client, bytes: usize) {
    set(client, &format!("<Bytes>{bytes}</Bytes>"));
}

/// Returns the bytes and the number of objects in use.
fn used(client: Client) -> (u64, u64) {
    let reply = client.get("/bucket?quota");
    let number = |name| reply.xml(name).unwrap().parse().unwrap();
    (number("UsedBytes"), number("UsedObjects"))
}

#[track_caller]
fn assert_exceeded(reply: &Reply) {
    assert_refused(reply, 403, "QuotaExceeded");
}

fn start(client: Client, key: &str) -> String {
    client.post(&format!("/bucket/{key}?uploads"), "").xml("UploadId").unwrap()
}

/// Sends a PUT in chunks of HTTP, without a length.
fn put_chunks(client: Client, target: &str, body: &[u8]) -> Reply {
    let mut bytes = client.head_bytes("PUT", target, &[("transfer-encoding", "chunked")]);
    for piece in body.chunks(20_000) {
        bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
        bytes.extend(piece);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    client.raw(&bytes)
}

/// Sends a PUT in unsigned chunks of S3.
fn put_aws_chunks(client: Client, target: &str, body: &[u8]) -> Reply {
    let decoded = body.len().to_string();
    let headers = [
        ("content-encoding", "aws-chunked"),
        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ("x-amz-decoded-content-length", &decoded),
    ];
    let framed = [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    client.send("PUT", target, &headers, &framed)
}

#[test]
fn every_write_is_refused_at_the_quota_and_accepted_below_it() {
    for length in [5000, 9 << 20] {
        let server = Running::new();
        let client = server.s3;
        assert_eq!(client.put("/source", b"").status, 200);
        let body = noise(length);
        assert_eq!(client.put("/source/key", &body).status, 200);
        assert_eq!(client.put("/bucket/first", b"first").status, 200);
        let id = start(client, "upload");
        let part = format!("/bucket/upload?partNumber=1&uploadId={id}");
        let copy = [("x-amz-copy-source", "/source/key")];
        let none: [Header; 0] = [];
        let form = Form::new(&[("key", "form")], &body);
        let writes: [(&str, &dyn Fn() -> Reply); 9] = [
            ("PutObject", &|| client.put("/bucket/put", &body)),
            ("of unknown length", &|| put_chunks(client, "/bucket/chunks", &body)),
            ("in chunks", &|| put_aws_chunks(client, "/bucket/aws", &body)),
            ("PostObject", &|| form.send(client)),
            ("CopyObject", &|| client.send("PUT", "/bucket/copy", &copy, b"")),
            ("UploadPart", &|| client.send("PUT", &part, &none, &body)),
            ("UploadPart of unknown length", &|| put_chunks(client, &part, &body)),
            ("UploadPart in chunks", &|| put_aws_chunks(client, &part, &body)),
            ("UploadPartCopy", &|| client.send("PUT", &part, &copy, b"")),
        ];
        set_bytes(client, 5 + length - 1);
        for (name, write) in writes {
            let reply = write();
            assert!(reply.text().contains("QuotaExceeded"), "{name}: {}", reply.text());
            assert_exceeded(&reply);
            assert_eq!(used(client), (5, 1), "{name}");
        }
        set_bytes(client, 5 + 7 * length);
        for (name, write) in writes {
            let reply = write();
            assert!(matches!(reply.status, 200 | 204), "{name}: {}", reply.text());
        }
        assert_eq!(used(client), (5 + 6 * length as u64, 6));
    }
}

#[test]
fn body_is_not_requested_if_the_quota_has_no_room() {
    let server = Running::new();
    set_bytes(server.s3, 1000);
    let ask = |target: &str, length: &str| {
        let headers = [("expect", "100-continue"), ("content-length", length)];
        let mut stream = server.s3.connect();
        stream.write_all(&server.s3.head_bytes("PUT", target, &headers)).unwrap();
        Reply::read(&mut stream)
    };
    let part = format!("/bucket/k?partNumber=1&uploadId={}", start(server.s3, "k"));
    for target in ["/bucket/key", &part] {
        for length in ["1001", "5000000000"] {
            assert_exceeded(&ask(target, length));
        }
    }
    assert_eq!(server.s3.put("/bucket/key", &[7; 1000]).status, 200);
    let chunked = [("expect", "100-continue"), ("transfer-encoding", "chunked")];
    let mut stream = server.s3.connect();
    stream.write_all(&server.s3.head_bytes("PUT", "/bucket/other", &chunked)).unwrap();
    assert_exceeded(&Reply::read(&mut stream));
    assert_exceeded(&server.s3.post("/bucket/other?uploads", ""));
}

#[test]
fn completion_counts_an_object_and_changes_of_attributes_count_nothing() {
    let server = Running::new();
    let client = server.s3;
    let id = start(client, "key");
    let part = client.put(&format!("/bucket/key?partNumber=1&uploadId={id}"), &[7; 1000]);
    let etag = part.header("etag").unwrap();
    let list = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let complete = || client.post(&format!("/bucket/key?uploadId={id}"), &list);
    assert_eq!(client.put("/bucket/other", b"").status, 200);
    set(client, "<Bytes>1000</Bytes><Objects>1</Objects>");
    assert_exceeded(&complete());
    let message = client.put("/bucket/third", b"").xml("Message").unwrap();
    assert!(message.contains("bucket") && message.contains("1 of at most 1 objects"), "{message}");
    assert_eq!(client.delete("/bucket/other").status, 204);
    assert_eq!(complete().status, 200);
    assert_eq!(used(client), (1000, 1));
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    assert_eq!(client.put("/bucket/key?tagging", tags.as_bytes()).status, 200);
    assert_eq!(used(client), (1000, 1));
    assert_eq!(client.delete("/bucket?quota").status, 204);
    assert_eq!(client.put("/bucket/third", &[7; 5000]).status, 200);
    let reply = client.get("/bucket?quota");
    assert!(reply.xml("Bytes").is_none() && reply.xml("Objects").is_none(), "{}", reply.text());
}

#[test]
fn invalid_quotas_change_nothing() {
    let server = Running::new();
    set(server.s3, "<Objects>7</Objects>");
    for (body, code) in [
        ("", "MissingRequestBodyError"),
        ("<QuotaConfiguration/>", "MalformedXML"),
        ("<QuotaConfiguration><Bytes>1 GiB</Bytes></QuotaConfiguration>", "MalformedXML"),
        ("<Quota><Bytes>1</Bytes></Quota>", "MalformedXML"),
    ] {
        assert_refused(&server.s3.put("/bucket?quota", body.as_bytes()), 400, code);
    }
    let reply = server.s3.get("/bucket?quota");
    assert_eq!((reply.xml("Objects").as_deref(), reply.xml("Bytes")), (Some("7"), None));
    for method in ["GET", "PUT", "DELETE"] {
        let reply = server.s3.send(method, "/absent?quota", &[], b"<QuotaConfiguration/>");
        assert_refused(&reply, 404, "NoSuchBucket");
    }
}

#[test]
fn metrics_have_the_buckets_with_a_quota_and_count_refusals() {
    let server = Running::new();
    assert_eq!(server.s3.put("/unlimited", b"").status, 200);
    let metrics = || server.admin.get("/metrics").text();
    assert!(!metrics().contains("haul_s3_bucket_quota_"));
    set(server.s3, "<Bytes>1000</Bytes>");
    assert_eq!(server.s3.put("/bucket/key", &[7; 900]).status, 200);
    for target in ["/bucket/other", "/bucket/key"] {
        assert_exceeded(&server.s3.put(target, &[7; 101]));
    }
    let text = metrics();
    for line in [
        "haul_s3_bucket_quota_bytes{bucket=\"bucket\"} 1000",
        "haul_s3_bucket_quota_used_bytes{bucket=\"bucket\"} 900",
        "haul_s3_quota_refused_total 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("unlimited") && !text.contains("quota_objects"), "{text}");
    let buckets = server.admin.get("/buckets.json").text();
    assert!(buckets.contains("\"quota_bytes\":1000"), "{buckets}");
}

#[test]
fn sixteen_writers_of_versions_never_exceed_a_quota() {
    const LIMIT: usize = 2_000_000;
    const LENGTH_MAX: usize = 80_000;
    let server = Running::new();
    let client = server.s3;
    let enabled = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    assert_eq!(client.put("/bucket?versioning", enabled).status, 200);
    set_bytes(client, LIMIT);
    let is_over = AtomicBool::new(false);
    let body = noise(LENGTH_MAX);
    let (most, refused) = thread::scope(|scope| {
        let (body, is_over) = (&body, &is_over);
        let watching = scope.spawn(move || {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(used(client).0);
            }
            most
        });
        let write = |writer: usize| {
            let outcome = |number: usize| {
                // Small objects, and those that are streamed.
                let length = if number.is_multiple_of(3) { 3000 } else { LENGTH_MAX - 31 * number };
                let reply =
                    client.put(&format!("/bucket/{writer}/{}", number % 4), &body[..length]);
                if reply.status != 200 {
                    assert_exceeded(&reply);
                }
                usize::from(reply.status != 200)
            };
            (0..20).map(outcome).sum::<usize>()
        };
        let writers: Vec<_> = (0..16).map(|writer| scope.spawn(move || write(writer))).collect();
        let refused: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        is_over.store(true, Ordering::Relaxed);
        (watching.join().unwrap(), refused)
    });
    let left = LIMIT as u64 - used(client).0;
    assert!(most <= LIMIT as u64 && left < 3000 && refused > 100, "{most} {left} {refused}");
    // All of it is in the listing.
    let listing = client.get("/bucket?versions");
    let sizes: u64 = listing.all_xml("Size").iter().map(|size| size.parse::<u64>().unwrap()).sum();
    assert_eq!(sizes, used(client).0);
}
