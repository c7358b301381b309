use super::{SOON, delivered_after, document, fields, logged, wait_for};
use crate::client::assert_refused;

/// Returns a record without the fields that differ between runs: time, request ID and durations.
fn stable(line: &str) -> String {
    let mut fields = fields(line);
    for at in [2, 5, 13, 14] {
        assert_ne!(fields.get(at).map(String::as_str), Some(""), "{line}");
        fields[at] = "*".to_owned();
    }
    fields.join(" ")
}

#[test]
fn each_request_to_the_bucket_has_a_record() {
    let server = logged(delivered_after(SOON));
    let (s3, host) = (&server.s3, server.s3.0.address);
    let agent: &[(&str, &str)] = &[("user-agent", "a \"b\""), ("referer", "http://x/ y")];
    let replies = [
        s3.put("/bucket/a%20b", b"hello"),
        s3.send("GET", "/bucket/a%20b", agent, b""),
        s3.send("GET", "/bucket/a%20b", &[("range", "bytes=1-2")], b""),
        s3.head("/bucket/a%20b"),
        s3.get("/bucket/none?versionId=null"),
        s3.get("/bucket?list-type=2"),
        s3.send("PUT", "/other/copy", &[("x-amz-copy-source", "/bucket/a%20b")], b""),
        s3.get("/bucket?versioning"),
        s3.delete("/bucket/a%20b"),
    ];
    let listed = replies[5].body.len();
    let (missing, versioning) = (replies[4].body.len(), replies[7].body.len());
    let expected = [
        "- REST.PUT.OBJECT a%20b PUT /bucket/a%20b HTTP/1.1 200 - - 5 * * - -",
        "- REST.GET.OBJECT a%20b GET /bucket/a%20b HTTP/1.1 200 - 5 5 * * http://x/ y a %22b%22",
        "- REST.GET.OBJECT a%20b GET /bucket/a%20b HTTP/1.1 206 - 2 5 * * - -",
        "- REST.HEAD.OBJECT a%20b HEAD /bucket/a%20b HTTP/1.1 200 - - 5 * * - -",
        &format!(
            "- REST.GET.OBJECT none GET /bucket/none?versionId=null HTTP/1.1 404 NoSuchVersion \
             {missing} - * * - -"
        ),
        &format!("- REST.GET.BUCKET - GET /bucket?list-type=2 HTTP/1.1 200 - {listed} - * * - -"),
        "- REST.COPY.OBJECT_GET a%20b PUT /other/copy HTTP/1.1 200 - - 5 * * - -",
        &format!(
            "- REST.GET.VERSIONING - GET /bucket?versioning HTTP/1.1 200 - {versioning} - * * - -"
        ),
        "- REST.DELETE.OBJECT a%20b DELETE /bucket/a%20b HTTP/1.1 204 - - - * * - -",
    ];
    let lines = wait_for(s3, replies.len());
    for ((line, reply), expected) in lines.iter().zip(&replies).zip(expected) {
        let expected = expected.replacen("- REST", "- * REST", 1);
        let version = if expected.contains("versionId") { "null" } else { "-" };
        let expected = format!("haul bucket * 127.0.0.1 {expected} {version} - - - - {host} - - -");
        assert_eq!(stable(line), expected);
        assert_eq!(Some(&*fields(line)[5]), reply.header("x-amz-request-id"));
        assert!(line.contains(" +0000] 127.0.0.1 "), "{line}");
        assert!(fields(line)[13..15].iter().all(|time| time.parse::<u64>().is_ok()), "{line}");
    }
}

#[test]
fn each_key_of_a_multi_object_delete_has_a_record() {
    let server = logged(delivered_after(SOON));
    let objects: String = ["a b", "c"].map(|k| format!("<Object><Key>{k}</Key></Object>")).concat();
    let body = format!("<Delete>{objects}</Delete>");
    assert_refused(&server.s3.post("/bucket?delete", &body), 200, "");
    let mut found: Vec<_> =
        wait_for(&server.s3, 3).iter().map(|line| fields(line)[6..10].join(" ")).collect();
    found.sort();
    let expected = [
        "BATCH.DELETE.OBJECT a%20b - 204",
        "BATCH.DELETE.OBJECT c - 204",
        "REST.POST.MULTI_OBJECT_DELETE - POST /bucket?delete HTTP/1.1 200",
    ];
    assert_eq!(found, expected);
}

#[test]
fn parts_of_uploads_have_records() {
    let server = logged(delivered_after(SOON));
    let s3 = &server.s3;
    let id = s3.post("/bucket/key?uploads", "").xml("UploadId").unwrap();
    let part = s3.put(&format!("/bucket/key?partNumber=1&uploadId={id}"), b"hello");
    let body = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>\
         </CompleteMultipartUpload>",
        part.header("etag").unwrap()
    );
    assert_eq!(s3.post(&format!("/bucket/key?uploadId={id}"), &body).status, 200);
    let found = wait_for(s3, 3);
    let found = found.iter().map(|line| fields(line)[6].clone()).collect::<Vec<_>>();
    assert_eq!(found, ["REST.POST.UPLOADS", "REST.PUT.PART", "REST.POST.UPLOAD"]);
}

#[test]
fn configuration_applies_from_the_next_request_on() {
    let server = logged(delivered_after(SOON));
    let s3 = &server.s3;
    assert_refused(&s3.put("/bucket?logging", b"<BucketLoggingStatus/>"), 200, "");
    assert_eq!(s3.put("/bucket/unlogged", b"").status, 200);
    let document = document("logs", "log/2/", "");
    assert_refused(&s3.put("/bucket?logging", document.as_bytes()), 200, "");
    assert_eq!(s3.put("/bucket/key", b"").status, 200);
    // The path of no bucket.
    assert!(s3.get("//bucket/key").status >= 400);
    let found: Vec<_> = wait_for(s3, 2).iter().map(|line| fields(line)[6..8].join(" ")).collect();
    assert_eq!(found, ["REST.PUT.LOGGING_STATUS -", "REST.PUT.OBJECT key"]);
}
