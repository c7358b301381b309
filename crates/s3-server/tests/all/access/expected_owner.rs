//! Requests that name the expected owners of their buckets.

use super::Keyed;
use crate::client::assert_refused;

const OWNER: &str = "x-amz-expected-bucket-owner";
const SOURCE_OWNER: &str = "x-amz-source-expected-bucket-owner";

#[test]
fn request_is_refused_if_the_bucket_has_another_owner() {
    let mut keyed = Keyed::new();
    let ann = keyed.key_with("ann", &[("read", "bucket")], |key| key.creates_buckets = true);
    assert_eq!(keyed.send(&ann, "PUT", "/of-ann", b"").status, 200);
    let small = keyed.send(&ann, "PUT", "/of-ann/key", b"hello");
    assert_eq!(small.status, 200);
    for (method, target, allowed) in [
        ("PUT", "/of-ann/new", 200),
        ("GET", "/of-ann/key", 200),
        ("HEAD", "/of-ann/key", 200),
        ("GET", "/of-ann", 200),
        ("GET", "/of-ann?policyStatus=", 200),
        ("HEAD", "/of-ann", 200),
        ("PUT", "/of-ann?acl=", 200),
        ("DELETE", "/of-ann/key", 204),
        ("DELETE", "/of-ann?tagging=", 204),
    ] {
        for wrong in ["haul", "annx", ""] {
            let refused = keyed.send_with(&ann, method, target, &[(OWNER, wrong)]);
            assert_eq!(refused.status, 403, "{method} {target}");
            if method != "HEAD" {
                assert_refused(&refused, 403, "AccessDenied");
            }
        }
        let more = [(OWNER, "ann"), ("x-amz-acl", "private")];
        let more = if target.ends_with("?acl=") { &more[..] } else { &more[..1] };
        let reply = keyed.send_with(&ann, method, target, more);
        assert_eq!(reply.status, allowed, "{method} {target}: {}", reply.text());
    }
    let unsigned = keyed.server.s3.send("GET", "/of-ann", &[(OWNER, "ben")], b"");
    assert_refused(&unsigned, 403, "AccessDenied");
}

#[test]
fn copy_is_refused_if_the_bucket_of_its_source_has_another_owner() {
    let mut keyed = Keyed::new();
    let ann = keyed.key_with("ann", &[("read", "bucket")], |key| key.creates_buckets = true);
    assert_eq!(keyed.send(&ann, "PUT", "/of-ann", b"").status, 200);
    let copy = |to: &str, owner: &str, source_owner: &str| {
        let more =
            [("x-amz-copy-source", "/bucket/key"), (OWNER, owner), (SOURCE_OWNER, source_owner)];
        keyed.send_with(&ann, "PUT", to, &more)
    };
    assert_refused(&copy("/of-ann/copy", "ann", "ann"), 403, "AccessDenied");
    assert_refused(&copy("/of-ann/copy", "haul", "haul"), 403, "AccessDenied");
    assert_refused(&copy("/of-ann/copy", "ann", "haul"), 200, "");
    let upload = keyed.send(&ann, "POST", "/of-ann/big?uploads=", b"").xml("UploadId").unwrap();
    let part = format!("/of-ann/big?partNumber=1&uploadId={upload}");
    assert_refused(&copy(&part, "ann", "ann"), 403, "AccessDenied");
    assert_refused(&copy(&part, "ann", "haul"), 200, "");
}
