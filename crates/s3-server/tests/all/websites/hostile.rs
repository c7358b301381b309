//! Requests that would be more than reads at the S3 address.

use std::io::Write;

use super::{ERROR, HOST, INDEX, Site, assert_page};
use crate::client::{Reply, assert_refused};
use crate::signing::Signer;

/// Queries that select other operations, versions or headers at the S3 address.
const QUERIES: [&str; 16] = [
    "acl",
    "policy",
    "website",
    "list-type=2",
    "prefix=a",
    "uploads",
    "uploadId=a",
    "tagging",
    "attributes",
    "partNumber=1",
    "versionId=null",
    "versionId=00000000000000000000000000000001",
    "response-content-type=text/x-evil&response-cache-control=no-store",
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0&X-Amz-Credential=a&X-Amz-Date=b",
    "AWSAccessKeyId=root&Signature=a&Expires=1",
    "x-amz-acl=public-read&%00=%FF&%",
];

#[track_caller]
fn assert_home(reply: &Reply) {
    assert_eq!((reply.status, &*reply.text()), (200, "home"));
    assert!(reply.header("content-type").unwrap().starts_with("text/html"));
    assert_eq!(reply.header("cache-control"), None);
}

#[test]
fn query_selects_no_operation() {
    let site = Site::new(INDEX);
    for query in QUERIES {
        assert_home(&site.get(&format!("/?{query}")));
        assert_home(&site.get(&format!("/index.html?{query}")));
        assert_eq!(site.send("HEAD", &format!("/?{query}"), &[]).status, 200, "{query}");
        assert_page(&site.get(&format!("/missing?{query}")), 404, "NoSuchKey");
    }
}

#[test]
fn earlier_versions_are_not_shown() {
    let site = Site::new(INDEX);
    let enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    site.put("/bucket?versioning=", enabled);
    let first = site.root("PUT", "/bucket/page", &[], b"secret draft");
    let version = first.header("x-amz-version-id").unwrap();
    site.put("/bucket/page", "published");
    let at_s3 = site.root("GET", &format!("/bucket/page?versionId={version}"), &[], b"");
    assert_eq!(at_s3.text(), "secret draft");
    let target = format!("/page?versionId={version}");
    assert_eq!(site.get(&target).text(), "published");
    assert_refused(&site.root("DELETE", "/bucket/page", &[], b""), 204, "");
    assert_page(&site.get(&target), 404, "NoSuchKey");
}

#[test]
fn signatures_and_fields_of_s3_have_no_effect() {
    let site = Site::new(INDEX);
    assert_refused(&site.root("DELETE", "/bucket?policy=", &[], b""), 204, "");
    let (access_key, secret_key) = ("root", "root-secret");
    // Valid signatures of the administrator.
    let signer = Signer { client: site.client(), access_key, secret_key };
    let host = HOST.1;
    let presigned = signer.presign_for(host, "GET", "/index.html", (0, 60));
    assert_page(&site.get(&presigned), 403, "AccessDenied");
    let hash = crate::signing::hash(b"");
    let signed = signer.send_with("GET", "/index.html", &hash, &[HOST], |_| Vec::new());
    assert_page(&signed, 403, "AccessDenied");
    site.allow_reads("bucket");
    assert_home(&signer.send_with("GET", "/index.html", &hash, &[HOST], |_| Vec::new()));
    for field in [
        ("authorization", "AWS4-HMAC-SHA256 Credential=root/x, SignedHeaders=host, Signature=0"),
        ("authorization", "Basic cm9vdDpyb290"),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        ("x-amz-expected-bucket-owner", "nobody"),
        ("x-amz-copy-source", "/other/secret"),
        ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
        ("x-amz-server-side-encryption", "aws:kms"),
        ("x-amz-checksum-mode", "ENABLED"),
        ("x-amz-security-token", "a"),
        ("content-type", "multipart/form-data; boundary=a"),
        ("x-forwarded-host", "other.localhost"),
        ("x-http-method-override", "DELETE"),
    ] {
        let reply = site.send("GET", "/", &[field]);
        assert_home(&reply);
        assert_eq!(reply.header("x-amz-checksum-crc64nvme"), None, "{field:?}");
    }
    assert_home(&site.get("/"));
}

#[test]
fn other_methods_change_nothing() {
    let site = Site::new(&format!("{INDEX}{ERROR}"));
    let everything = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*",
        "Resource":["arn:aws:s3:::bucket/*","arn:aws:s3:::bucket"]}}"#;
    assert_refused(&site.root("PUT", "/bucket?policy=", &[], everything.as_bytes()), 204, "");
    for method in ["PUT", "POST", "DELETE", "PATCH", "TRACE", "BREW"] {
        for target in ["/index.html", "/new", "/?website", "/?delete", "/new?uploads"] {
            let reply = site.client().send(method, target, &[HOST], b"body");
            assert_page(&reply, 405, "MethodNotAllowed");
            assert_eq!(reply.header("allow"), Some("GET, HEAD, OPTIONS"));
        }
    }
    assert_home(&site.get("/"));
    assert_eq!(site.root("GET", "/bucket/new", &[], b"").status, 404);
    // A body of a GET is ignored.
    assert_home(&site.client().send("GET", "/", &[HOST], b"a body"));
}

#[test]
fn paths_are_keys() {
    let site = Site::new(INDEX);
    site.put("/other", "");
    site.put("/other/secret", "secret");
    for target in [
        "/../other/secret",
        "/..%2fother%2fsecret",
        "/%2e%2e/other/secret",
        "/docs/../../other/secret",
        "/./index.html",
        "//index.html",
        "/docs\\..\\index.html",
        "/index.html/",
        "/index.html%00",
        "/<script>alert(1)</script>",
        "/%3Cscript%3Ealert(1)%3C/script%3E",
        "/health",
        "/minio/health/live",
        "/metrics",
    ] {
        let reply = site.get(target);
        assert!((400..500).contains(&reply.status), "{target}: {}", reply.status);
        assert!(
            !reply.text().contains("secret\n") && !reply.text().contains("<script"),
            "{target}"
        );
    }
    for target in ["/%", "/%zz", "/%FF", "/%c0%ae%c0%ae/"] {
        assert_page(&site.get(target), 400, "InvalidURI");
    }
    assert_page(&site.get(&format!("/{}", "k".repeat(1025))), 400, "KeyTooLongError");
    assert_page(&site.get(&format!("/{}", "%20".repeat(5000))), 400, "KeyTooLongError");
    assert!((400..500).contains(&site.get(&format!("/{}", "k".repeat(100_000))).status));
    // The location of a redirect is one line.
    site.put("/bucket/a%0D%0Ax:%20y/index.html", "x");
    let redirect = site.get("/a%0D%0Ax:%20y");
    assert_eq!(redirect.header("location"), Some("/a%0D%0Ax%3A%20y/"));
    assert_eq!(redirect.header("x"), None);
}

#[test]
fn connection_serves_requests_of_all_outcomes() {
    let site = Site::new(&format!("{INDEX}{ERROR}"));
    let mut stream = site.client().connect();
    for (target, expected) in
        [("/", 200), ("/missing", 404), ("/docs", 302), ("/", 200), ("/docs/", 200)]
    {
        let host = HOST.1;
        write!(stream, "GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
        assert_eq!(Reply::read(&mut stream).status, expected, "{target}");
    }
    // Without a host, no bucket is selected.
    write!(stream, "GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_page(&Reply::read(&mut stream), 404, "NoSuchBucket");
}
