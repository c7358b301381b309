//! Requests to the hosts of buckets.

use haul_s3_server::Credentials;

use crate::client::{Header, Reply, Running, assert_refused};
use crate::signing::{Signer, hash};

const DOMAINS: [&str; 2] = ["localhost", "s3.example.com"];

const OF_BUCKET: Header<'static> = ("host", "bucket.localhost:9000");

/// Sends a request to the host of the bucket.
fn send(server: &Running, method: &str, target: &str, more: &[Header], body: &[u8]) -> Reply {
    server.s3.send(method, target, &[&[OF_BUCKET], more].concat(), body)
}

#[test]
fn host_of_a_bucket_takes_the_place_of_its_path() {
    let server = Running::with_domains(&DOMAINS, None);
    let put = send(&server, "PUT", "/a/b%20c", &[], b"hello");
    assert_eq!(put.status, 200, "{}", put.text());
    // The second time, the object is in memory.
    for _ in 0..2 {
        assert_eq!(send(&server, "GET", "/a/b%20c", &[], b"").text(), "hello");
        assert_eq!(server.s3.get("/bucket/a/b%20c").text(), "hello");
    }
    let ranged = send(&server, "GET", "/a/b%20c", &[("range", "bytes=1-2")], b"");
    assert_eq!((ranged.status, &*ranged.text()), (206, "el"));
    assert_eq!(send(&server, "HEAD", "/a/b%20c", &[], b"").header("content-length"), Some("5"));
    // A condition takes a request to the service.
    let same = [("if-match", "\"5d41402abc4b2a76b9719d911017c592\"")];
    assert_eq!(send(&server, "GET", "/a/b%20c", &same, b"").text(), "hello");
    for listed in [
        send(&server, "GET", "/?list-type=2", &[], b""),
        send(&server, "GET", "/", &[], b""),
        server.s3.get("/bucket"),
        server.s3.send("GET", "/bucket", &[("host", "localhost:9000")], b""),
    ] {
        assert_eq!(listed.all_xml("Key"), ["a/b c"], "{}", listed.text());
    }
    let buckets = server.s3.send("GET", "/", &[("host", "localhost")], b"");
    assert_eq!(buckets.all_xml("Name"), ["bucket"]);
    let absent = send(&server, "GET", "/bucket/a/b%20c", &[], b"");
    assert_refused(&absent, 404, "NoSuchKey");
    let other = server.s3.send("GET", "/a", &[("host", "absent.localhost")], b"");
    assert_refused(&other, 404, "NoSuchBucket");
    let created = server.s3.send("PUT", "/", &[("host", "new.bucket.localhost")], b"");
    assert_eq!(created.status, 200, "{}", created.text());
    assert_eq!(server.s3.head("/new.bucket").status, 200);
    assert_eq!(send(&server, "DELETE", "/a/b%20c", &[], b"").status, 204);
    assert_eq!(server.s3.get("/bucket/a/b%20c").status, 404);
}

#[test]
fn without_domains_the_host_is_ignored() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"hello");
    assert_eq!(send(&server, "GET", "/bucket/key", &[], b"").text(), "hello");
    assert_refused(&send(&server, "GET", "/key", &[], b""), 404, "NoSuchBucket");
}

#[test]
fn signatures_of_requests_to_hosts_of_buckets_are_verified() {
    let credentials = Credentials { access_key: "root".into(), secret_key: "root-secret".into() };
    let server = Running::with_domains(&DOMAINS, Some(credentials));
    let (access_key, secret_key) = ("root", "root-secret");
    let signer = Signer { client: server.s3, access_key, secret_key };
    let host = ("host", "bucket.S3.example.com:80");
    let signed = |method: &str, target: &str, more: &[Header], body: &[u8]| {
        let more = [&[host], more].concat();
        signer.send_with(method, target, &hash(body), &more, |_| body.to_vec())
    };
    assert_refused(&signed("PUT", "/key", &[], b"hello"), 200, "");
    for _ in 0..2 {
        assert_eq!(signed("GET", "/key", &[], b"").text(), "hello");
    }
    let listed = signed("GET", "/?list-type=2", &[], b"");
    assert_eq!(listed.all_xml("Key"), ["key"], "{}", listed.text());
    let copied = signed("PUT", "/copy", &[("x-amz-copy-source", "/bucket/key")], b"");
    assert_refused(&copied, 200, "");
    let upload = signed("POST", "/big?uploads=", &[], b"").xml("UploadId").unwrap();
    let part = signed("PUT", &format!("/big?partNumber=1&uploadId={upload}"), &[], b"part");
    let etag = part.header("etag").unwrap().to_owned();
    let parts = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let completed = signed("POST", &format!("/big?uploadId={upload}"), &[], parts.as_bytes());
    let location = completed.xml("Location");
    assert_eq!(location.as_deref(), Some("http://bucket.S3.example.com:80/big"));

    let url = signer.presign_for(host.1, "GET", "/key", (0, 60));
    assert_eq!(server.s3.send("GET", &url, &[host], b"").text(), "hello");
    // The signature is that of the host and of the path that the client used.
    for (host, target) in [
        ("s3.example.com", url.clone()),
        ("other.s3.example.com", url.clone()),
        ("s3.example.com", url.replacen("/key", "/bucket/key", 1)),
        (host.1, url.replacen("/key", "/copy", 1)),
    ] {
        let refused = server.s3.send("GET", &target, &[("host", host)], b"");
        assert_refused(&refused, 403, "SignatureDoesNotMatch");
    }
    // The authority of an absolute target is the host that is used, so it is the one that is signed.
    for authority in ["other.s3.example.com", "s3.example.com"] {
        let absolute = format!("http://{authority}{url}");
        let refused = server.s3.send("GET", &absolute, &[host], b"");
        assert_refused(&refused, 403, "SignatureDoesNotMatch");
    }
    let absolute = format!("http://{}{url}", host.1);
    assert_eq!(server.s3.send("GET", &absolute, &[host], b"").text(), "hello");
    let unsigned = server.s3.send("GET", "/key", &[host], b"");
    assert_refused(&unsigned, 403, "AccessDenied");
}

#[test]
fn forms_and_preflight_requests_use_the_host_of_a_bucket() {
    let server = Running::with_domains(&DOMAINS, None);
    let form = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nfrom form\r\n\
                --x\r\nContent-Disposition: form-data; name=\"success_action_status\"\r\n\r\n201\r\n\
                --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nhello\r\n\
                --x--\r\n";
    let kind = [("content-type", "multipart/form-data; boundary=x")];
    let stored = send(&server, "POST", "/", &kind, form.as_bytes());
    assert_eq!(stored.status, 201, "{}", stored.text());
    assert!(stored.xml("Location").unwrap().ends_with("bucket.localhost:9000/from%20form"));
    assert_eq!(server.s3.get("/bucket/from%20form").text(), "hello");

    let rules = "<CORSConfiguration><CORSRule><AllowedOrigin>https://example.org</AllowedOrigin>\
                 <AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>";
    assert_refused(&send(&server, "PUT", "/?cors", &[], rules.as_bytes()), 200, "");
    let page = [("origin", "https://example.org"), ("access-control-request-method", "GET")];
    let preflight = send(&server, "OPTIONS", "/from%20form", &page, b"");
    assert_eq!(preflight.status, 200);
    assert_eq!(preflight.header("access-control-allow-methods"), Some("GET"));
    let read = send(&server, "GET", "/from%20form", &page[..1], b"");
    assert_eq!(
        (&*read.text(), read.header("access-control-allow-origin").is_some()),
        ("hello", true)
    );
}
