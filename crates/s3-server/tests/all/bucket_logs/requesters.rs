use haul_s3_server::{Key, Limits};

use super::{POLICY, document, fields, lines};
use crate::access::Keyed;
use crate::client::{Running, assert_refused};
use crate::signing::{Signer, hash};

/// Starts a server with the records of `bucket` delivered to `logs`.
fn keyed() -> Keyed {
    let keyed = Keyed::new();
    assert_eq!(keyed.root("PUT", "/logs", b"").status, 200);
    assert_refused(&keyed.root("PUT", "/logs?policy=", POLICY.as_bytes()), 204, "");
    let document = document("logs", "log/", "");
    assert_refused(&keyed.root("PUT", "/bucket?logging=", document.as_bytes()), 200, "");
    keyed
}

/// Stops the server; returns these fields of its records, in the order of the requests.
fn records(keyed: Keyed, wanted: &[usize]) -> Vec<String> {
    let server = Running::on(keyed.server.into_dir(), None, Limits::default());
    let mut lines = lines(&server.s3);
    lines.sort_by_key(|line| fields(line)[5].clone());
    let requester = |line: &String| {
        let fields = fields(line);
        wanted.iter().map(|at| fields[*at].clone()).collect::<Vec<_>>().join(" ")
    };
    lines.iter().map(requester).collect()
}

#[test]
fn access_log_is_configured_by_the_owner_or_an_administrator_only() {
    let mut keyed = keyed();
    let (ann, ben) =
        (keyed.key_with("ann", &[], |key| key.creates_buckets = true), keyed.key("ben", &[]));
    assert_eq!(keyed.send(&ann, "PUT", "/of-ann", b"").status, 200);
    let policy = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*",
        "Resource":"arn:aws:s3:::of-ann"}}"#;
    assert_refused(&keyed.send(&ann, "PUT", "/of-ann?policy=", policy.as_bytes()), 204, "");
    let document = document("logs", "log/", "");
    let put = |key: &Key| keyed.send(key, "PUT", "/of-ann?logging=", document.as_bytes());
    let get = |key: &Key| keyed.send(key, "GET", "/of-ann?logging=", b"");
    assert_refused(&put(&ben), 403, "AccessDenied");
    assert_refused(&get(&ben), 403, "AccessDenied");
    assert_refused(&put(&ann), 200, "");
    assert_eq!(get(&ann).xml("TargetBucket").as_deref(), Some("logs"));
    assert_eq!(keyed.root("GET", "/of-ann?logging=", b"").status, 200);
    let other = keyed.send(&ann, "PUT", "/bucket?logging=", document.as_bytes());
    assert_refused(&other, 403, "AccessDenied");
}

#[test]
fn records_have_the_user_and_the_kind_of_its_signature() {
    let mut keyed = keyed();
    let ann = keyed.key("ann", &[("read", "bucket")]);
    let s3 = keyed.server.s3;
    keyed.send(&ann, "GET", "/bucket/key", b"");
    let presigned = keyed.signer(&ann).presign("GET", "/bucket/key", 0, 60);
    assert_eq!(s3.get(&presigned).status, 200);
    assert_eq!(s3.get("/bucket/key").status, 403);
    let forged = Signer { client: s3, access_key: &ann.access_key, secret_key: "wrong" };
    assert_eq!(forged.send("GET", "/bucket/key", &hash(b""), b"").status, 403);
    // Refused before the signature is verified.
    let expired = forged.presign("GET", "/bucket/key", 120, 60);
    assert_eq!(s3.get(&expired).status, 403);
    keyed.root("GET", "/bucket/key", b"");
    let found = records(keyed, &[0, 4, 9, 10, 19, 21]);
    let expected = [
        "haul ann 200 - SigV4 AuthHeader",
        "haul ann 200 - SigV4 QueryString",
        "haul - 403 AccessDenied - -",
        "haul - 403 SignatureDoesNotMatch SigV4 AuthHeader",
        "haul - 403 AccessDenied SigV4 QueryString",
        "haul haul 200 - SigV4 AuthHeader",
    ];
    assert_eq!(found, expected);
}

#[test]
fn signatures_of_urls_are_not_recorded() {
    let keyed = keyed();
    let signer = Signer { client: keyed.server.s3, access_key: "root", secret_key: "root-secret" };
    let presigned = signer.presign("GET", "/bucket/key", 0, 60);
    assert_eq!(keyed.server.s3.get(&presigned).status, 200);
    let found = records(keyed, &[8]);
    assert!(found[0].contains("&X-Amz-Signature=REDACTED HTTP/1.1"), "{found:?}");
}

#[test]
fn records_state_that_only_a_list_allowed_the_request() {
    let mut keyed = keyed();
    let ben = keyed.key("ben", &[]);
    let read = |target: &str| assert_eq!(keyed.send(&ben, "GET", target, b"").status, 200);
    let acl = |target: &str| {
        let signer =
            Signer { client: keyed.server.s3, access_key: "root", secret_key: "root-secret" };
        let more = [("x-amz-acl", "public-read")];
        let reply = signer.send_with("PUT", target, &hash(b""), &more, |_| Vec::new());
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    acl("/bucket?acl=");
    acl("/bucket/key?acl=");
    read("/bucket");
    read("/bucket/key");
    let policy = r#"{"Statement":{"Effect":"Allow","Principal":"*",
        "Action":["s3:GetObject","s3:ListBucket"],
        "Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"]}}"#;
    assert_refused(&keyed.root("PUT", "/bucket?policy=", policy.as_bytes()), 204, "");
    read("/bucket");
    read("/bucket/key");
    let found = records(keyed, &[6, 25]);
    let expected = [
        "REST.PUT.ACL -",
        "REST.PUT.ACL -",
        "REST.GET.BUCKET Yes",
        "REST.GET.OBJECT Yes",
        "REST.PUT.BUCKETPOLICY -",
        "REST.GET.BUCKET -",
        "REST.GET.OBJECT -",
    ];
    assert_eq!(found, expected);
}
