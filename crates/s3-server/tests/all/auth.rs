//! Signatures: required with credentials, taken off without.

use haul_s3_server::{Credentials, Limits};

use crate::client::{Reply, Running, assert_refused};
use crate::signing::{Signer, hash};

const ACCESS: &str = "haul-test-key";
const SECRET: &str = "haul-test-secret";
const STREAMING: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";

fn server() -> Running {
    let credentials = Credentials { access_key: ACCESS.into(), secret_key: SECRET.into() };
    Running::with(Some(credentials), Limits::default())
}

fn signer<'a>(server: &Running, access_key: &'a str, secret_key: &'a str) -> Signer<'a> {
    Signer { client: server.s3, access_key, secret_key }
}

fn put(signer: &Signer, target: &str, body: &[u8]) -> Reply {
    signer.send("PUT", target, &hash(body), body)
}

#[test]
fn with_credentials_only_the_right_signature_goes_through() {
    let server = server();
    let right = signer(&server, ACCESS, SECRET);
    assert_eq!(put(&right, "/bucket", b"").status, 200);
    assert_eq!(put(&right, "/bucket/key", b"hello").status, 200);
    assert_eq!(right.send("GET", "/bucket/key", &hash(b""), b"").text(), "hello");

    for (method, target) in
        [("GET", "/"), ("GET", "/bucket/key"), ("PUT", "/bucket/key"), ("DELETE", "/bucket/key")]
    {
        assert_refused(&server.s3.send(method, target, &[], b""), 403, "AccessDenied");
    }
    let wrong = put(&signer(&server, ACCESS, "wrong"), "/bucket/key", b"x");
    assert_refused(&wrong, 403, "SignatureDoesNotMatch");
    let unknown = put(&signer(&server, "unknown", SECRET), "/bucket/key", b"x");
    assert_refused(&unknown, 403, "InvalidAccessKeyId");
    let tampered = right.send("PUT", "/bucket/key", &hash(b"hello"), b"hellO");
    assert_refused(&tampered, 400, "XAmzContentSHA256Mismatch");
    let old = [("authorization", "AWS haul-test-key:c2lnbmF0dXJl")];
    assert_refused(&server.s3.send("GET", "/bucket/key", &old, b""), 400, "InvalidRequest");
    assert_eq!(right.send("GET", "/bucket/key", &hash(b""), b"").text(), "hello");
}

#[test]
fn signed_hash_is_compared_also_by_operations_without_a_body() {
    let server = server();
    let right = signer(&server, ACCESS, SECRET);
    put(&right, "/bucket", b"");
    assert_eq!(put(&right, "/bucket/key", b"hello").status, 200);
    let source: &[(&str, &str)] = &[("x-amz-copy-source", "bucket/key")];
    let wrong = hash(b"other");
    for (method, target, more) in [
        ("GET", "/bucket/key", &[][..]),
        ("HEAD", "/bucket/key", &[]),
        ("GET", "/bucket?list-type=2", &[]),
        ("GET", "/", &[]),
        ("PUT", "/bucket/copy", source),
        ("POST", "/bucket/key?uploads=", &[]),
        ("DELETE", "/bucket/key?tagging=", &[]),
        ("DELETE", "/bucket/key", &[]),
        ("DELETE", "/bucket", &[]),
    ] {
        for body in [&b""[..], b"unread"] {
            let reply = right.send_with(method, target, &wrong, more, |_| body.to_vec());
            let code = if method == "HEAD" { "" } else { "XAmzContentSHA256Mismatch" };
            assert_refused(&reply, 400, code);
        }
        if method == "GET" {
            let reply = right.send_with(method, target, &hash(b"read"), more, |_| b"read".to_vec());
            assert_eq!(reply.status, 200, "{target}");
        }
    }
    assert_eq!(right.send("GET", "/bucket/key", &hash(b""), b"").text(), "hello");
    assert_eq!(right.send("GET", "/bucket/copy", &hash(b""), b"").status, 404);
}

#[test]
fn errors_of_signatures_tell_what_was_signed() {
    let server = server();
    let wrong = put(&signer(&server, ACCESS, "wrong"), "/bucket/key", b"x");
    assert_eq!(wrong.xml("AWSAccessKeyId").as_deref(), Some(ACCESS));
    let text = wrong.xml("StringToSign").unwrap();
    assert!(text.starts_with("AWS4-HMAC-SHA256\n"), "{text}");
    let canonical = wrong.xml("CanonicalRequest").unwrap();
    assert!(canonical.starts_with("PUT\n/bucket/key\n"), "{canonical}");
    assert!(text.ends_with(&hash(canonical.as_bytes())), "{text}");
    assert_eq!(wrong.xml("SignatureProvided").map(|digits| digits.len()), Some(64));
    let unknown = put(&signer(&server, "unknown", SECRET), "/bucket/key", b"x");
    assert_eq!(unknown.xml("AWSAccessKeyId").as_deref(), Some("unknown"));
}

/// The text that version 2 signs has names and values as they are: the holder of a URL must not find
/// another request with the same text.
#[test]
fn url_of_version_2_is_signed_for_one_request() {
    let server = server();
    let right = signer(&server, ACCESS, SECRET);
    put(&right, "/bucket", b"");
    put(&right, "/bucket/src", b"source");
    let headers = [("x-amz-copy-source", "bucket/src"), ("x-amz-metadata-directive", "REPLACE")];
    let copy = right.presign_v2("PUT", "/bucket/copy", &headers);
    let names = "x-amz-copy-source=bucket%2Fsrc&x-amz-metadata-directive=";
    let joined = "x-amz-copy-source%3Abucket/src%0Ax-amz-metadata-directive=";
    assert!(copy.contains(names), "{copy}");
    let other = server.s3.put(&copy.replace(names, joined), b"other");
    assert_refused(&other, 400, "InvalidArgument");
    assert_eq!(server.s3.put(&copy, b"").status, 200);

    let attachment = "response-content-disposition=attachment";
    let version = right.presign_v2("GET", &format!("/bucket/src?{attachment}&versionId=null"), &[]);
    let hidden = version.replace("&versionId=", "%26versionId%3D");
    assert_ne!(hidden, version);
    assert_refused(&server.s3.get(&hidden), 400, "InvalidRequest");
    assert_eq!(server.s3.get(&version).text(), "source");
}

/// boto3 signs the path of a bucket with a slash at its end, and sends it without.
#[test]
fn url_of_version_2_for_a_bucket_is_signed_with_or_without_a_slash() {
    let server = server();
    let right = signer(&server, ACCESS, SECRET);
    put(&right, "/bucket", b"");
    let signed = right.presign_v2("GET", "/bucket/", &[]);
    assert_eq!(server.s3.get(&signed).status, 200);
    assert_eq!(server.s3.get(&signed.replace("/bucket/", "/bucket")).status, 200);
    let key = right.presign_v2("GET", "/bucket/key/", &[]);
    let other = server.s3.get(&key.replace("/key/", "/key"));
    assert_refused(&other, 403, "SignatureDoesNotMatch");
}

#[test]
fn what_is_no_region_is_answered_with_the_region_to_sign_for() {
    let server = server();
    let credential = format!("{ACCESS}/20261122/US/s3/aws4_request");
    let header = format!(
        "AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host;x-amz-date, Signature=0"
    );
    let headers = [("authorization", header.as_str()), ("x-amz-content-sha256", "0")];
    let reply = server.s3.send("GET", "/", &headers, b"");
    assert_refused(&reply, 400, "AuthorizationHeaderMalformed");
    assert_eq!(reply.xml("Region").as_deref(), Some("us-east-1"));
    let message = reply.xml("Message").unwrap();
    assert!(message.contains("US") && message.contains("us-east-1"), "{message}");

    let query = format!("/bucket/key?X-Amz-Credential={}", credential.replace('/', "%2F"));
    let reply = server.s3.get(&query);
    assert_refused(&reply, 400, "AuthorizationQueryParametersError");
    assert_eq!(reply.xml("Region").as_deref(), Some("us-east-1"));
    let wrong = put(&signer(&server, ACCESS, "wrong"), "/bucket/key", b"x");
    assert_eq!(wrong.xml("Region"), None);
}

#[test]
fn presigned_urls_are_good_for_their_time_and_seven_days_at_most() {
    let server = server();
    let right = signer(&server, ACCESS, SECRET);
    put(&right, "/bucket", b"");
    put(&right, "/bucket/key", b"hello");
    let get =
        |age_s, expires_s| server.s3.get(&right.presign("GET", "/bucket/key", age_s, expires_s));
    assert_eq!(get(0, 60).text(), "hello");
    assert_eq!(get(0, 604_800).text(), "hello");
    assert_refused(&get(61, 60), 403, "AccessDenied");
    assert_refused(&get(0, 604_801), 400, "AuthorizationQueryParametersError");
    let put = right.presign("PUT", "/bucket/other", 0, 60);
    assert_refused(&server.s3.get(&put), 403, "SignatureDoesNotMatch");
    assert_eq!(server.s3.put(&put, b"x").status, 200);
}

#[test]
fn signed_chunks_are_decoded_and_verified() {
    let server = server();
    let right = signer(&server, ACCESS, SECRET);
    put(&right, "/bucket", b"");
    let send = |key: &str, length: &str, flip: Option<usize>, cut: bool| {
        let more = [("x-amz-decoded-content-length", length), ("content-encoding", "aws-chunked")];
        right.send_with("PUT", key, STREAMING, &more, |seed| {
            let mut body = seed.chunks(&[&[b'a'; 70_000], b"end"]);
            if let Some(at) = flip {
                body[at] ^= 1;
            }
            if cut {
                // At the end of a chunk, where the framing alone would not tell.
                let chunk = body.windows(2).rposition(|pair| pair == b"0;").unwrap();
                body.truncate(chunk);
            }
            body
        })
    };
    assert_eq!(send("/bucket/key", "70003", None, false).status, 200);
    let got = right.send("GET", "/bucket/key", &hash(b""), b"");
    assert!(got.body.len() == 70_003 && got.body.ends_with(b"aend"));
    assert_eq!(got.header("content-encoding"), None);
    let flipped = send("/bucket/bad", "70003", Some(200), false);
    assert_refused(&flipped, 403, "SignatureDoesNotMatch");
    assert_refused(&send("/bucket/bad", "70004", None, false), 400, "IncompleteBody");
    let gone = right.send("GET", "/bucket/bad", &hash(b""), b"");
    assert_refused(&gone, 404, "NoSuchKey");
}

#[test]
fn without_credentials_any_signature_is_taken_off() {
    let server = Running::new();
    let any = signer(&server, "whatever", "they-like");
    assert_eq!(put(&any, "/bucket/key", b"hello").status, 200);
    assert_eq!(any.send("GET", "/bucket/key", &hash(b""), b"").text(), "hello");
    let presigned = any.presign("GET", "/bucket/key", 3600, 60);
    assert_eq!(server.s3.get(&presigned).text(), "hello");
    let presigned = any.presign("PUT", "/bucket/other", 0, 60);
    assert_eq!(server.s3.put(&presigned, b"x").status, 200);
    let old = "/bucket/key?AWSAccessKeyId=a&Signature=b&Expires=1";
    assert_eq!(server.s3.get(old).text(), "hello");

    let more = [("x-amz-decoded-content-length", "7"), ("content-encoding", "aws-chunked,gzip")];
    let reply = any
        .send_with("PUT", "/bucket/chunked", STREAMING, &more, |seed| seed.chunks(&[b"chunked"]));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let got = server.s3.get("/bucket/chunked");
    assert_eq!((got.text().as_str(), got.header("content-encoding")), ("chunked", Some("gzip")));
}

#[test]
fn hot_objects_are_sent_to_signed_requests_only() {
    let server = server();
    let right = signer(&server, ACCESS, SECRET);
    let names = ["/bucket/key", "/bucket/a%20b/%C3%A4%2B~"];
    assert_eq!(put(&right, "/bucket", b"").status, 200);
    for name in names {
        assert_eq!(put(&right, name, name.as_bytes()).status, 200);
        for body in [hash(b""), "UNSIGNED-PAYLOAD".to_owned()] {
            assert_eq!(right.send("GET", name, &body, b"").text(), name);
            assert_eq!(right.send("HEAD", name, &body, b"").status, 200);
        }
    }
    let metrics = server.admin.get("/metrics").text();
    let hits = metrics.lines().find_map(|line| line.strip_prefix("haul_cache_hits_total "));
    assert_eq!(hits, Some("8"), "they are cached by their puts");
    for name in names {
        for wrong in [signer(&server, ACCESS, "wrong"), signer(&server, "unknown", SECRET)] {
            assert_eq!(wrong.send("GET", name, &hash(b""), b"").status, 403);
        }
        assert_refused(&server.s3.send("GET", name, &[], b""), 403, "AccessDenied");
    }
}
