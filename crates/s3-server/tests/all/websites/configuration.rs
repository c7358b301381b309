//! The configuration as a bucket setting, and the buckets that hosts select.

use super::{ERROR, INDEX, Site, assert_page};
use crate::client::assert_refused;

#[test]
fn configuration_is_stored_returned_and_deleted() {
    let site = Site::bare();
    let root = |method, target| site.root(method, target, &[], b"");
    assert_refused(&root("GET", "/bucket?website="), 404, "NoSuchWebsiteConfiguration");
    site.configure("bucket", &format!("{INDEX}{ERROR}"));
    let found = root("GET", "/bucket?website=");
    assert_eq!(found.xml("Suffix").as_deref(), Some("index.html"), "{}", found.text());
    assert_eq!(found.xml("Key").as_deref(), Some("error.html"));
    let malformed = site.root("PUT", "/bucket?website=", &[], b"<WebsiteConfiguration/>");
    assert_refused(&malformed, 400, "MalformedXML");
    let empty = INDEX.replace("index.html", "");
    let empty = format!("<WebsiteConfiguration>{empty}</WebsiteConfiguration>");
    let empty = site.root("PUT", "/bucket?website=", &[], empty.as_bytes());
    assert_refused(&empty, 400, "InvalidArgument");
    assert_eq!(root("GET", "/bucket?website=").xml("Suffix").as_deref(), Some("index.html"));
    for _ in 0..2 {
        assert_refused(&root("DELETE", "/bucket?website="), 204, "");
    }
    assert_refused(&root("GET", "/bucket?website="), 404, "NoSuchWebsiteConfiguration");
    for method in ["GET", "DELETE"] {
        assert_refused(&root(method, "/absent?website="), 404, "NoSuchBucket");
    }
    let long = vec![b' '; (128 << 10) + 1];
    let long = site.root("PUT", "/bucket?website=", &[], &long);
    assert_refused(&long, 400, "MaxMessageLengthExceeded");
    // Without a signature, nobody changes the website, whatever the policy of the bucket allows.
    site.allow_reads("bucket");
    for method in ["PUT", "GET", "DELETE"] {
        assert_eq!(site.server.s3.send(method, "/bucket?website", &[], b"").status, 403);
    }
}

#[test]
fn host_selects_the_bucket() {
    let site = Site::new(INDEX);
    for bucket in ["www.example.org", "docs.bucket"] {
        site.put(&format!("/{bucket}"), "");
        site.configure(bucket, INDEX);
        site.allow_reads(bucket);
        site.put(&format!("/{bucket}/index.html"), bucket);
    }
    for (host, expected) in [
        ("bucket.localhost", "home"),
        ("BUCKET.LocalHost:8080", "home"),
        ("bucket", "home"),
        ("www.example.org", "www.example.org"),
        ("WWW.example.org:80", "www.example.org"),
        ("www.example.org.localhost", "www.example.org"),
        ("docs.bucket.localhost", "docs.bucket"),
    ] {
        let reply = site.get_at(host, "/");
        assert_eq!((reply.status, &*reply.text()), (200, expected), "{host}");
    }
    for host in ["absent.localhost", "localhost", "127.0.0.1:80", "[::1]:80", "other.example.org"] {
        assert_page(&site.get_at(host, "/"), 404, "NoSuchBucket");
    }
    let nested = site.get_at("a.b.localhost:81", "/x");
    assert_page(&nested, 301, "WebsiteRedirect");
    assert_eq!(nested.header("location"), Some("http://localhost:81/"));
    // The authority of a target replaces the host.
    assert_eq!(site.get_at("absent.localhost", "http://bucket.localhost/").text(), "home");
    site.put("/plain", "");
    let plain = site.get_at("plain.localhost", "/");
    assert_page(&plain, 404, "NoSuchWebsiteConfiguration");
    // The path never names a bucket.
    assert_page(&site.get("/bucket/index.html"), 404, "NoSuchKey");
}

#[test]
fn website_follows_its_configuration_at_once() {
    let site = Site::new(INDEX);
    assert_eq!(site.get("/").text(), "home");
    site.configure("bucket", &INDEX.replace("index", "error"));
    assert_eq!(site.get("/").text(), "sorry");
    assert_refused(&site.root("DELETE", "/bucket?website=", &[], b""), 204, "");
    assert_page(&site.get("/"), 404, "NoSuchWebsiteConfiguration");
    assert_page(&site.get("/index.html"), 404, "NoSuchWebsiteConfiguration");
}
