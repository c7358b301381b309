//! Multipart uploads.

use std::sync::mpsc;

use base64_simd::STANDARD;
use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_testing::PATIENCE;
use ring::digest::{SHA256, digest};

use crate::client::{Reply, Running, assert_refused, noise};

const PART_BYTES: usize = 5 << 20;

struct Upload<'a> {
    server: &'a Running,
    key: &'a str,
    id: String,
}

impl<'a> Upload<'a> {
    fn start(server: &'a Running, key: &'a str, headers: &[(&str, &str)]) -> Self {
        let reply = server.s3.send("POST", &format!("/bucket/{key}?uploads"), headers, b"");
        assert_eq!(reply.status, 200, "{}", reply.text());
        Self { server, key, id: reply.xml("UploadId").unwrap() }
    }

    fn target(&self, query: &str) -> String {
        format!("/bucket/{}?{query}uploadId={}", self.key, self.id)
    }

    fn part(&self, number: u32, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let target = self.target(&format!("partNumber={number}&"));
        self.server.s3.send("PUT", &target, headers, body)
    }

    fn complete(&self, headers: &[(&str, &str)], parts: &[(u32, &str)]) -> Reply {
        let parts: Vec<_> = parts.iter().map(|(number, etag)| (*number, *etag, "")).collect();
        self.complete_with(headers, &parts)
    }

    /// Completes the upload with a list of numbers, ETags and further elements of the parts.
    fn complete_with(&self, headers: &[(&str, &str)], parts: &[(u32, &str, &str)]) -> Reply {
        let parts: String = parts
            .iter()
            .map(|(number, etag, more)| {
                format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>{more}</Part>")
            })
            .collect();
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        self.server.s3.send("POST", &self.target(""), headers, body.as_bytes())
    }
}

fn etag(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.header("etag").unwrap().to_owned()
}

#[test]
fn parts_become_one_object() {
    let server = Running::new();
    let body = noise(2 * PART_BYTES + 77);
    let upload = Upload::start(&server, "big", &[("x-amz-meta-a", "1")]);
    // Parts in any order, one of them uploaded twice.
    let third = etag(&upload.part(9, &[], &body[2 * PART_BYTES..]));
    upload.part(1, &[], b"to be replaced");
    let first = etag(&upload.part(1, &[], &body[..PART_BYTES]));
    let second = etag(&upload.part(2, &[], &body[PART_BYTES..2 * PART_BYTES]));

    let listed = server.s3.get(&upload.target(""));
    assert_eq!(listed.all_xml("PartNumber"), ["1", "2", "9"]);
    assert_eq!(listed.all_xml("Size"), ["5242880", "5242880", "77"]);
    let page = server.s3.get(&upload.target("max-parts=1&part-number-marker=1&"));
    assert_eq!(page.all_xml("PartNumber"), ["2"]);
    assert_eq!(page.xml("NextPartNumberMarker").as_deref(), Some("2"));
    assert_eq!(server.s3.get("/bucket?uploads").all_xml("UploadId"), [upload.id.as_str()]);
    assert_refused(&server.s3.get("/bucket/big"), 404, "NoSuchKey");

    let done = upload.complete(&[], &[(1, &first), (2, &second), (9, &third)]);
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(done.xml("ETag").unwrap().contains("-3"), "{}", done.text());
    let got = server.s3.get("/bucket/big");
    assert!(got.is_whole() && got.body == body);
    assert!(got.header("etag").unwrap().ends_with("-3\""));
    assert_eq!(got.header("x-amz-meta-a"), Some("1"));
    assert!(server.s3.get("/bucket?uploads").all_xml("UploadId").is_empty());

    let part = server.s3.get("/bucket/big?partNumber=3");
    assert_eq!((part.status, part.header("x-amz-mp-parts-count")), (206, Some("3")));
    assert!(part.body == body[2 * PART_BYTES..]);
    assert_refused(&server.s3.get("/bucket/big?partNumber=4"), 416, "InvalidPartNumber");

    // A client that did not receive the response repeats the request.
    let again = upload.complete(&[], &[(1, &first), (2, &second), (9, &third)]);
    assert_eq!(again.xml("ETag"), done.xml("ETag"), "{}", again.text());
    assert_refused(&upload.complete(&[], &[(1, &first)]), 404, "NoSuchUpload");
}

#[test]
fn invalid_lists_of_parts_are_refused() {
    let server = Running::new();
    let upload = Upload::start(&server, "key", &[]);
    let small = etag(&upload.part(1, &[], b"small"));
    let last = etag(&upload.part(2, &[], b"last"));
    let zeros = "00000000000000000000000000000000";
    for (parts, code) in [
        (&[(1, small.as_str()), (2, last.as_str())][..], "EntityTooSmall"),
        (&[(2, &last), (1, &small)], "InvalidPartOrder"),
        (&[(1, zeros)], "InvalidPart"),
        (&[(7, &small)], "InvalidPart"),
        (&[], "MalformedXML"),
    ] {
        assert_refused(&upload.complete(&[], parts), 400, code);
    }
    assert_refused(&upload.part(0, &[], b""), 400, "InvalidArgument");
    assert_refused(&upload.part(10_001, &[], b""), 400, "InvalidArgument");
    assert_eq!(upload.complete(&[], &[(1, &small)]).status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "small");
}

#[test]
fn completion_of_an_upload_that_is_gone_is_no_repetition() {
    let server = Running::new();
    let first = Upload::start(&server, "key", &[]);
    let part = etag(&first.part(1, &[], b"same"));
    assert_eq!(first.complete(&[], &[(1, &part)]).status, 200);
    let second = Upload::start(&server, "key", &[]);
    assert_eq!(etag(&second.part(1, &[], b"same")), part);
    assert_eq!(first.complete(&[], &[(1, &part)]).status, 200, "a repetition");
    assert_refused(&server.s3.delete(&second.target("")), 204, "");
    assert_refused(&second.complete(&[], &[(1, &part)]), 404, "NoSuchUpload");
}

#[test]
fn an_aborted_upload_is_gone() {
    let server = Running::new();
    let upload = Upload::start(&server, "key", &[]);
    let part = etag(&upload.part(1, &[], b"x"));
    assert_eq!(server.s3.delete(&upload.target("")).status, 204);
    assert_refused(&server.s3.delete(&upload.target("")), 404, "NoSuchUpload");
    assert_refused(&upload.part(1, &[], b"x"), 404, "NoSuchUpload");
    assert_refused(&upload.complete(&[], &[(1, &part)]), 404, "NoSuchUpload");
    assert_refused(&server.s3.get(&upload.target("")), 404, "NoSuchUpload");
    assert_refused(&server.s3.post("/nowhere/key?uploads", ""), 404, "NoSuchBucket");
}

#[test]
fn parts_can_be_copied_from_objects() {
    let server = Running::new();
    let body = noise(PART_BYTES + 1000);
    server.s3.put("/bucket/from", &body);
    let upload = Upload::start(&server, "to", &[]);
    let source = ("x-amz-copy-source", "/bucket/from");
    let range = ("x-amz-copy-source-range", "bytes=0-5242879");
    let first = upload.part(1, &[source, range], b"").xml("ETag").unwrap();
    let rest = ("x-amz-copy-source-range", "bytes=5242880-5243879");
    let second = upload.part(2, &[source, rest], b"").xml("ETag").unwrap();
    let far = ("x-amz-copy-source-range", "bytes=9999999-99999999");
    assert_refused(&upload.part(3, &[source, far], b""), 416, "InvalidRange");
    let long = ("x-amz-copy-source-range", "bytes=5242880-5243880");
    assert_refused(&upload.part(3, &[source, long], b""), 416, "InvalidRange");
    let open = ("x-amz-copy-source-range", "bytes=5-");
    assert_refused(&upload.part(3, &[source, open], b""), 400, "InvalidArgument");
    assert_eq!(upload.complete(&[], &[(1, &first), (2, &second)]).status, 200);
    assert!(server.s3.get("/bucket/to").body == body);
}

#[test]
fn checksum_of_object_is_computed_from_checksums_of_parts() {
    let server = Running::new();
    let body = noise(PART_BYTES + 1000);
    let (front, back) = body.split_at(PART_BYTES);
    let mode = [("x-amz-checksum-mode", "ENABLED")];
    for (kind, suffix) in [("FULL_OBJECT", ""), ("COMPOSITE", "-2")] {
        let headers = [("x-amz-checksum-algorithm", "CRC32"), ("x-amz-checksum-type", kind)];
        let upload = Upload::start(&server, "key", &headers);
        let first = upload.part(1, &[("x-amz-checksum-crc32", &crc32(front))], front);
        assert_eq!(first.header("x-amz-checksum-crc32"), Some(crc32(front).as_str()));
        // The server computes the checksum of a part for which the client declares none, unless
        // that of the object is made of them.
        if kind == "COMPOSITE" {
            assert_refused(&upload.part(2, &[], back), 400, "InvalidRequest");
        }
        let sent = [("x-amz-checksum-crc32", crc32(back))];
        let sent: Vec<_> = sent.iter().map(|(name, value)| (*name, &**value)).collect();
        let second = upload.part(2, if suffix.is_empty() { &[] } else { &sent }, back);
        assert_eq!(second.header("x-amz-checksum-crc32"), Some(crc32(back).as_str()));
        let wrong = upload.part(3, &[("x-amz-checksum-sha1", "AAAA")], back);
        assert_refused(&wrong, 400, "InvalidRequest");
        let (first, second) = (etag(&first), etag(&second));
        let element = |bytes| format!("<ChecksumCRC32>{}</ChecksumCRC32>", crc32(bytes));
        let elements = [element(front), element(back)];
        let parts = [(1, first.as_str(), &*elements[0]), (2, second.as_str(), &*elements[1])];
        let wrong = upload.complete_with(&[("x-amz-checksum-crc32", "AAAAAA==")], &parts);
        assert_refused(&wrong, 400, "BadDigest");
        let done = upload.complete_with(&[], &parts);
        assert_eq!(done.status, 200);
        // A repeated request gets the same response.
        let again = upload.complete_with(&[], &parts);
        for name in ["ETag", "ChecksumCRC32", "ChecksumType"] {
            assert!(done.xml(name).is_some(), "{name}");
            assert_eq!(done.xml(name), again.xml(name), "{name}");
        }
        let got = server.s3.send("HEAD", "/bucket/key", &mode, b"");
        assert_eq!(got.header("x-amz-checksum-type"), Some(kind));
        let checksum = got.header("x-amz-checksum-crc32").unwrap();
        assert!(checksum.ends_with(suffix));
        assert_eq!(checksum == crc32(&body), kind == "FULL_OBJECT", "{checksum}");
    }
}

fn crc32(bytes: &[u8]) -> String {
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes);
    STANDARD.encode_to_string(&crc.to_be_bytes()[4..])
}

#[test]
fn requests_that_complete_an_upload_at_the_same_time_all_succeed() {
    let server = Running::new();
    for _ in 0..20 {
        let upload = Upload::start(&server, "key", &[]);
        let part = etag(&upload.part(1, &[], b"part"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let done = upload.complete(&[], &[(1, &part)]);
                    assert_eq!(done.status, 200, "{}", done.text());
                });
            }
        });
    }
}

#[test]
fn upload_that_was_started_at_another_time_is_not_aborted() {
    let server = Running::new();
    let upload = Upload::start(&server, "key", &[]);
    let abort = |time| {
        let condition = [("x-amz-if-match-initiated-time", time)];
        server.s3.send("DELETE", &upload.target(""), &condition, b"")
    };
    let started = server.s3.get("/bucket?uploads").xml("Initiated").unwrap();
    assert_refused(&abort("Thu, 01 Jan 2015 00:00:00 GMT"), 412, "PreconditionFailed");
    assert_refused(&abort("yesterday"), 400, "InvalidArgument");
    assert_eq!(abort(&started).status, 204);
}

#[test]
fn completion_supports_conditions() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"old");
    let upload = Upload::start(&server, "key", &[]);
    let part = etag(&upload.part(1, &[], b"new"));
    let refused = upload.complete(&[("if-none-match", "*")], &[(1, &part)]);
    assert_refused(&refused, 412, "PreconditionFailed");
    assert_eq!(server.s3.get("/bucket/key").text(), "old");
    let old = "\"149603e6c03516362a8da23f624db945\"";
    assert_eq!(upload.complete(&[("if-match", old)], &[(1, &part)]).status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "new");
}

#[test]
fn missing_upload_is_reported_before_invalid_parts() {
    let server = Running::new();
    let target = "/bucket/key?uploadId=abc1234def";
    let part = "<Part><PartNumber>1</PartNumber><ETag>1234</ETag></Part>";
    let body = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
    assert_refused(&server.s3.post(target, &body), 404, "NoSuchUpload");
}

#[test]
fn unfinished_upload_does_not_prevent_deletion_of_its_bucket() {
    let server = Running::new();
    let upload = Upload::start(&server, "key", &[]);
    upload.part(1, &[], b"left behind");
    server.s3.put("/bucket/other", b"x");
    assert_refused(&server.s3.delete("/bucket"), 409, "BucketNotEmpty");
    // A failed deletion of the bucket aborts no uploads.
    assert_eq!(upload.part(2, &[], b"more").status, 200);
    server.s3.delete("/bucket/other");
    assert_eq!(server.s3.delete("/bucket").status, 204);
    server.s3.put("/bucket", b"");
    assert!(server.s3.get("/bucket?uploads").all_xml("UploadId").is_empty());
}

#[test]
fn bucket_with_more_uploads_than_a_page_has_is_deleted() {
    let disk = MemoryDisk::default();
    let server = Running::in_memory(&disk);
    (0..1002).for_each(|n| drop(Upload::start(&server, &format!("{}", n % 7), &[])));
    let page = server.s3.get("/bucket?uploads");
    assert_eq!(page.all_xml("UploadId").len(), 1000);
    assert_eq!(server.s3.delete("/bucket").status, 204);
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    assert!(server.s3.get("/bucket?uploads").all_xml("UploadId").is_empty());
}

#[test]
fn object_attributes_list_parts_in_pages() {
    let server = Running::new();
    let upload = Upload::start(&server, "key", &[]);
    let body = noise(PART_BYTES);
    let first = etag(&upload.part(1, &[], &body));
    let second = etag(&upload.part(2, &[], &body));
    let third = etag(&upload.part(3, &[], b"end"));
    assert_eq!(upload.complete(&[], &[(1, &first), (2, &second), (3, &third)]).status, 200);
    let ask = |headers: &[(&str, &str)]| {
        let headers = [&[("x-amz-object-attributes", "ObjectParts,ETag")], headers].concat();
        server.s3.send("GET", "/bucket/key?attributes", &headers, b"")
    };
    let all = ask(&[]);
    assert_eq!(all.all_xml("Size"), ["5242880", "5242880", "3"], "{}", all.text());
    assert_eq!(all.xml("IsTruncated").as_deref(), Some("false"));
    // Only in this response, S3 returns the ETag without quotes.
    assert!(all.xml("ETag").unwrap().ends_with("-3"), "{}", all.text());
    let page = ask(&[("x-amz-max-parts", "1"), ("x-amz-part-number-marker", "1")]);
    assert_eq!(page.all_xml("PartNumber"), ["2"]);
    assert_eq!(page.xml("NextPartNumberMarker").as_deref(), Some("2"));
    assert_eq!(page.xml("IsTruncated").as_deref(), Some("true"));
    assert_eq!(page.xml("PartsCount").as_deref(), Some("3"));
    let rest = ask(&[("x-amz-max-parts", "1"), ("x-amz-part-number-marker", "2")]);
    let next = rest.xml("NextPartNumberMarker");
    assert_eq!((rest.xml("Size"), next), (Some("3".into()), Some("3".into())));
    assert_eq!(rest.xml("IsTruncated").as_deref(), Some("false"));
}

#[test]
fn checksums_of_parts_are_returned_after_completion() {
    let server = Running::new();
    let body = noise(PART_BYTES + 5);
    for (algorithm, header, element, kind) in [
        ("CRC32", "x-amz-checksum-crc32", "ChecksumCRC32", "FULL_OBJECT"),
        ("SHA256", "x-amz-checksum-sha256", "ChecksumSHA256", "COMPOSITE"),
    ] {
        let chosen = [("x-amz-checksum-algorithm", algorithm), ("x-amz-checksum-type", kind)];
        let upload = Upload::start(&server, "key", &chosen);
        let part = |number, content: &[u8]| {
            let sha256 = STANDARD.encode_to_string(digest(&SHA256, content));
            // A checksum of checksums needs that of each part.
            let given = [("x-amz-checksum-sha256", &*sha256)];
            upload.part(number, if algorithm == "SHA256" { &given } else { &[] }, content)
        };
        let first = part(1, &body[..PART_BYTES]);
        let second = part(2, &body[PART_BYTES..]);
        let expected = [&first, &second].map(|part| part.header(header).unwrap().to_owned());
        let (first, second) = (etag(&first), etag(&second));
        let elements = expected.clone().map(|value| format!("<{element}>{value}</{element}>"));
        let parts = [(1, &*first, &*elements[0]), (2, &*second, &*elements[1])];
        assert_eq!(upload.complete_with(&[], &parts).status, 200);
        let tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
        assert_eq!(server.s3.put("/bucket/key?tagging", tags).status, 200);
        // A copy is one part.
        server.s3.send("PUT", "/bucket/copy", &[("x-amz-copy-source", "/bucket/key")], b"");
        let copy =
            server.s3.send("HEAD", "/bucket/copy", &[("x-amz-checksum-mode", "ENABLED")], b"");
        assert!(copy.header("etag").is_some_and(|etag| !etag.contains('-')));
        assert!(copy.header(header).is_some_and(|checksum| !checksum.contains('-')));
        assert_eq!(copy.header("x-amz-checksum-type"), Some("FULL_OBJECT"));

        for key in ["key"] {
            let wanted = [("x-amz-object-attributes", "ObjectParts,Checksum")];
            let target = format!("/bucket/{key}?attributes");
            let attributes = server.s3.send("GET", &target, &wanted, b"");
            let all_parts = attributes.all_xml(element);
            assert!(expected.iter().all(|part| all_parts.contains(part)), "{}", attributes.text());
            assert_eq!(all_parts.len(), 3, "{}", attributes.text());
            for (number, checksum) in (1..).zip(&expected) {
                let target = format!("/bucket/{key}?partNumber={number}");
                let mode = [("x-amz-checksum-mode", "ENABLED")];
                for method in ["GET", "HEAD"] {
                    let part = server.s3.send(method, &target, &mode, b"");
                    assert_eq!(part.header(header), Some(checksum.as_str()), "{method} {number}");
                    assert_eq!(part.header("x-amz-checksum-type"), Some(kind));
                }
            }
        }
    }
}

#[test]
fn last_entry_of_a_repeated_part_is_completed() {
    let server = Running::new();
    let upload = Upload::start(&server, "key", &[]);
    let replaced = etag(&upload.part(1, &[], b"replaced"));
    let last = etag(&upload.part(1, &[], b"last"));
    assert_refused(&upload.complete(&[], &[(1, &last), (1, &replaced)]), 400, "InvalidPart");
    assert_eq!(upload.complete(&[], &[(1, &replaced), (1, &last)]).status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "last");
}

#[test]
fn parts_that_wait_for_their_key_stall_no_other_request() {
    let disk = MemoryDisk::default();
    let server = Running::in_memory(&disk);
    assert_eq!(server.s3.put("/bucket/other", b"hello").status, 200);
    let upload = &Upload::start(&server, "key", &[]);
    let (s3, admin) = (server.s3, server.admin);
    std::thread::scope(|scope| {
        disk.block(Op::Sync);
        // This request holds the lock of the key until its record is durable.
        let put = scope.spawn(move || s3.put("/bucket/key", b"object").status);
        disk.wait_until_blocked();
        let parts: Vec<_> = (1..=16)
            .map(|number| scope.spawn(move || upload.part(number, &[], b"part").status))
            .collect();
        let (answer, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for _ in 0..50 {
                let statuses = [s3.get("/bucket/other").status, admin.get("/health").status];
                if answer.send(statuses).is_err() {
                    return;
                }
            }
        });
        let answered = (0..50)
            .map_while(|_| answers.recv_timeout(PATIENCE).ok())
            .filter(|statuses| *statuses == [200; 2])
            .count();
        let waiting = parts.iter().filter(|part| !part.is_finished()).count();
        disk.unblock();
        assert_eq!(put.join().unwrap(), 200);
        assert!(parts.into_iter().all(|part| part.join().unwrap() == 200));
        assert_eq!((answered, waiting), (50, 16));
    });
}

#[test]
fn page_of_uploads_costs_only_the_reads_of_its_entries() {
    let disk = MemoryDisk::default();
    let server = Running::in_memory(&disk);
    let value = "v".repeat(1500);
    let mut ids: Vec<String> = (0..60)
        .map(|_| Upload::start(&server, "key", &[("x-amz-meta-a", &value)]).id.clone())
        .collect();
    ids.sort();
    let mut listed = Vec::new();
    for (number, id) in ids.iter().enumerate().take(5) {
        let marker = match number {
            0 => String::new(),
            _ => format!("&key-marker=key&upload-id-marker={}", ids[number - 1]),
        };
        let reads = disk.calls(Op::Read);
        let page = server.s3.get(&format!("/bucket?uploads&max-uploads=1{marker}"));
        assert_eq!(page.all_xml("UploadId"), [id.as_str()]);
        assert_eq!(page.xml("IsTruncated").as_deref(), Some("true"));
        listed.push(disk.calls(Op::Read) - reads);
    }
    assert!(listed.iter().all(|reads| (1..=8).contains(reads)), "{listed:?}");
}
