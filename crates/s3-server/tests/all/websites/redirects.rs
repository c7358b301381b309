//! Redirects: those of rules, of objects, and of whole websites.

use super::{ERROR, INDEX, Site, assert_redirect};
use crate::client::assert_refused;

const RULES: &str = "<RoutingRules>\
    <RoutingRule><Condition><KeyPrefixEquals>old/</KeyPrefixEquals></Condition>\
    <Redirect><ReplaceKeyPrefixWith>new/</ReplaceKeyPrefixWith></Redirect></RoutingRule>\
    <RoutingRule><Condition><KeyPrefixEquals>gone/</KeyPrefixEquals>\
    <HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals></Condition>\
    <Redirect><HostName>example.org</HostName><Protocol>https</Protocol>\
    <ReplaceKeyWith>search?in=gone</ReplaceKeyWith><HttpRedirectCode>307</HttpRedirectCode>\
    </Redirect></RoutingRule></RoutingRules>";

#[test]
fn rules_redirect_before_and_after_the_read() {
    let site = Site::new(&format!("{INDEX}{ERROR}{RULES}"));
    for method in ["GET", "HEAD"] {
        let reply = site.send(method, "/old/a%20b?c=d", &[]);
        assert_redirect(&reply, 301, "http://bucket.localhost:80/new/a%20b?c=d");
        let reply = site.send(method, "/gone/a", &[]);
        assert_redirect(&reply, 307, "https://example.org/search?in=gone");
    }
    assert_eq!(site.get("/missing").text(), "sorry");
    // A rule for keys needs no right to them, and one for failures only a failure.
    site.put("/bucket/gone/a", "here again");
    assert_eq!(site.get("/gone/a").text(), "here again");
    assert_refused(&site.root("DELETE", "/bucket?policy=", &[], b""), 204, "");
    assert_eq!(site.get("/old/a").status, 301);
    assert_eq!(site.get("/gone/b").status, 403);
}

#[test]
fn objects_redirect_with_their_own_location() {
    let site = Site::new(INDEX);
    for (key, location) in [("moved", "/docs/"), ("away", "https://example.org/?a=b#c")] {
        let headers =
            [("x-amz-website-redirect-location", location), ("cache-control", "max-age=9")];
        let target = format!("/bucket/{key}");
        assert_refused(&site.root("PUT", &target, &headers, b"old"), 200, "");
        // The second time, the object is in memory.
        for _ in 0..3 {
            for method in ["GET", "HEAD"] {
                let reply = site.send(method, &format!("/{key}"), &[]);
                assert_redirect(&reply, 301, location);
                assert_eq!(reply.header("cache-control"), Some("max-age=9"));
            }
            // At the S3 address, it is an object.
            assert_eq!(site.root("GET", &target, &[], b"").text(), "old");
        }
    }
}

/// Ranges and conditions are about the bytes of an object, which a redirect replaces.
#[test]
fn objects_redirect_regardless_of_ranges_and_conditions() {
    let site = Site::new(&format!("{INDEX}{ERROR}"));
    let location = [("x-amz-website-redirect-location", "/docs/")];
    for (target, body) in [("/bucket/empty", &b""[..]), ("/bucket/full", b"old")] {
        let stored = site.root("PUT", target, &location, body);
        let etag = stored.header("etag").unwrap();
        for header in [
            ("range", "bytes=0-1"),
            ("range", "bytes=100-200"),
            ("if-none-match", etag),
            ("if-none-match", "*"),
            ("if-match", "\"other\""),
            ("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT"),
        ] {
            for method in ["GET", "HEAD"] {
                let reply = site.send(method, target.strip_prefix("/bucket").unwrap(), &[header]);
                assert_redirect(&reply, 301, "/docs/");
            }
        }
    }
    let page = site.get("/docs/page.html");
    let current = ("if-none-match", page.header("etag").unwrap());
    assert_eq!(site.send("GET", "/docs/page.html", &[current]).status, 304);
    assert_eq!(site.send("GET", "/docs/page.html", &[("range", "bytes=100-200")]).status, 416);
}

#[test]
fn website_redirects_all_requests() {
    let site = Site::new(
        "<RedirectAllRequestsTo><HostName>example.org</HostName><Protocol>https</Protocol>\
         </RedirectAllRequestsTo>",
    );
    assert_redirect(&site.get("/"), 301, "https://example.org/");
    assert_redirect(&site.get("/a%20b/?c=d"), 301, "https://example.org/a%20b/?c=d");
    assert_redirect(&site.get("//evil.example"), 301, "https://example.org//evil.example");
}
