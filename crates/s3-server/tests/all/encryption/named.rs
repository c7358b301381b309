//! Objects encrypted with a key of the operator that the request names (SSE-KMS).

use super::helper::{
    A, KEY_NAME, PART_BYTES, SOURCE_A, SSE_S3, TAX, etag, get, is_stored, key_text, named_key_text,
    put, server,
};
use crate::client::{Reply, Running, assert_refused, noise};

const BODY: &[u8] = b"content for a key with a name";

fn encryption(reply: &Reply) -> (Option<&str>, Option<&str>) {
    (reply.header(SSE_S3.0), reply.header(KEY_NAME))
}

const NAMED: (Option<&str>, Option<&str>) = (Some("aws:kms"), Some("tax"));

#[test]
fn object_is_encrypted_with_the_key_of_its_request() {
    let server = server();
    let plain = put(&server, "/bucket/key", &[], BODY);
    let arn = [TAX[0], (KEY_NAME, "arn:aws:kms:us-east-1:123:alias/tax")];
    for headers in [TAX, arn] {
        let stored = put(&server, "/bucket/key", &headers, BODY);
        assert_eq!(encryption(&stored), NAMED);
        assert_ne!(etag(&stored), etag(&plain), "the MD5 is not revealed");
        let got = server.s3.get("/bucket/key");
        assert_eq!((&*got.body, encryption(&got)), (BODY, NAMED));
        assert_eq!(encryption(&server.s3.head("/bucket/key")), NAMED);
        assert_refused(&get(&server, "/bucket/key", &headers), 400, "InvalidArgument");
        assert_refused(&get(&server, "/bucket/key", &A), 400, "InvalidRequest");
    }
    put(&server, "/bucket/own", &TAX, BODY);
    assert_eq!(server.s3.delete("/bucket/key").status, 204);
}

#[test]
fn request_with_an_unknown_key_or_without_a_key_stores_nothing() {
    let server = server();
    for (headers, status, code) in [
        (&TAX[..1], 400, "InvalidArgument"),
        (&TAX[1..], 400, "InvalidArgument"),
        (&[SSE_S3, TAX[1]], 400, "InvalidArgument"),
        (&[TAX[0], TAX[1], A[0], A[1], A[2]], 400, "InvalidArgument"),
        (&[TAX[0], (KEY_NAME, "taxes")], 400, "KMS.NotFoundException"),
        (&[(SSE_S3.0, "aws:kms:dsse"), TAX[1]], 501, "NotImplemented"),
    ] {
        let refused = server.s3.send("PUT", "/bucket/key", headers, b"x");
        assert_refused(&refused, status, code);
    }
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
}

#[test]
fn newest_key_of_the_name_encrypts_and_all_decrypt() {
    let (own, first, second) = (key_text(), named_key_text("tax"), named_key_text("tax"));
    let dir = tempfile::tempdir().unwrap();
    let server = Running::with_encryption(dir, Some(&format!("{own}{first}")));
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    put(&server, "/bucket/old", &TAX, BODY);
    let all = format!("{own}{first}{second}");
    let server = Running::with_encryption(server.into_dir(), Some(&all));
    put(&server, "/bucket/new", &TAX, BODY);
    put(&server, "/bucket/own", &[SSE_S3], BODY);
    for key in ["/bucket/old", "/bucket/new"] {
        assert_eq!(encryption(&server.s3.get(key)), NAMED, "{key}");
    }
    let server = Running::with_encryption(server.into_dir(), Some(&second));
    assert_eq!(server.s3.get("/bucket/new").body, BODY);
    assert_refused(&server.s3.get("/bucket/old"), 500, "InternalError");
    assert_refused(&server.s3.get("/bucket/own"), 500, "InternalError");
    let refused = server.s3.send("PUT", "/bucket/key", &[SSE_S3], b"x");
    assert_refused(&refused, 501, "NotImplemented");
}

#[test]
fn default_of_a_bucket_names_a_key() {
    let server = server();
    let default = |key: &str| {
        format!(
            "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>\
             <SSEAlgorithm>aws:kms</SSEAlgorithm>{key}</ApplyServerSideEncryptionByDefault>\
             <BucketKeyEnabled>true</BucketKeyEnabled></Rule></ServerSideEncryptionConfiguration>"
        )
    };
    let set = |key: &str| server.s3.put("/bucket?encryption", default(key).as_bytes());
    assert_refused(&set(""), 400, "InvalidArgument");
    let unknown = set("<KMSMasterKeyID>taxes</KMSMasterKeyID>");
    assert_refused(&unknown, 400, "KMS.NotFoundException");
    assert_eq!(set("<KMSMasterKeyID>tax</KMSMasterKeyID>").status, 200);
    let found = server.s3.get("/bucket?encryption");
    assert_eq!(found.xml("KMSMasterKeyID").as_deref(), Some("tax"));
    assert_eq!(encryption(&put(&server, "/bucket/key", &[], BODY)), NAMED);
    assert!(!is_stored(server.dir(), BODY));
    let own = put(&server, "/bucket/own", &[SSE_S3], BODY);
    assert_eq!(encryption(&own), (Some("AES256"), None));
}

#[test]
fn parts_and_copies_have_the_encryption_of_their_object() {
    let server = server();
    let started = server.s3.send("POST", "/bucket/big?uploads", &TAX, b"");
    assert_eq!(encryption(&started), NAMED);
    let upload = started.xml("UploadId").unwrap();
    let body = noise(PART_BYTES + 1);
    let mut parts = String::new();
    for (number, part) in (1..).zip(body.chunks(PART_BYTES)) {
        let target = format!("/bucket/big?partNumber={number}&uploadId={upload}");
        let stored = put(&server, &target, &[], part);
        assert_eq!(encryption(&stored), NAMED);
        let tag = etag(&stored);
        parts += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>");
    }
    let list = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    let target = format!("/bucket/big?uploadId={upload}");
    let completed = server.s3.post(&target, &list);
    assert_eq!((completed.status, encryption(&completed)), (200, NAMED));
    assert_eq!(server.s3.get("/bucket/big").body, body);

    put(&server, "/bucket/customer", &A, BODY);
    for (source, source_headers, content) in
        [("big", &[][..], &body[..]), ("customer", &SOURCE_A[..], BODY)]
    {
        let source = format!("/bucket/{source}");
        let copy = [("x-amz-copy-source", &*source)];
        for (headers, expected) in
            [(&TAX[..], NAMED), (&[SSE_S3], (Some("AES256"), None)), (&[], (None, None))]
        {
            let headers = [&copy[..], source_headers, headers].concat();
            let copied = put(&server, "/bucket/copy", &headers, b"");
            assert_eq!(encryption(&copied), expected, "{source}");
            let got = server.s3.get("/bucket/copy");
            assert_eq!(encryption(&got), expected, "{source}");
            assert!(got.body == content, "{source}");
        }
    }
}
