//! Pages: objects, index documents and error documents.

use haul_testing::eventually;

use super::{ERROR, HOST, INDEX, Site, assert_page, assert_redirect};
use crate::client::{Running, assert_refused, noise};

#[test]
fn pages_are_objects_with_their_headers() {
    let site = Site::new(INDEX);
    let lifetime = [("cache-control", "max-age=60"), ("content-type", "text/x-test")];
    assert_refused(&site.root("PUT", "/bucket/typed", &lifetime, b"typed"), 200, "");
    // The second time, the objects are in memory.
    for _ in 0..2 {
        for (target, expected) in [
            ("/", "home"),
            ("/index.html", "home"),
            ("/docs/", "docs"),
            ("/docs%2F", "docs"),
            ("/docs/page.html", "page"),
            ("/a%20b%25.txt", "encoded"),
        ] {
            let reply = site.get(target);
            assert_eq!((reply.status, &*reply.text()), (200, expected), "{target}");
            let head = site.send("HEAD", target, &[]);
            let length = expected.len().to_string();
            assert_eq!((head.status, head.header("content-length")), (200, Some(&*length)));
            assert_eq!(head.text(), "");
        }
        let typed = site.get("/typed");
        assert_eq!(typed.header("content-type"), Some("text/x-test"));
        assert_eq!(typed.header("cache-control"), Some("max-age=60"));
        assert!(site.get("/").header("content-type").unwrap().starts_with("text/html"));
        let etag = typed.header("etag").unwrap();
        let ranged = site.send("GET", "/typed", &[("range", "bytes=1-2")]);
        assert_eq!((ranged.status, &*ranged.text()), (206, "yp"));
        assert_eq!(ranged.header("content-range"), Some("bytes 1-2/5"));
        let same = site.send("GET", "/typed", &[("if-none-match", etag)]);
        assert_eq!((same.status, &*same.text()), (304, ""));
        assert_eq!(same.header("cache-control"), Some("max-age=60"));
        assert_page(
            &site.send("GET", "/typed", &[("if-match", "\"x\"")]),
            412,
            "PreconditionFailed",
        );
        assert_page(&site.send("GET", "/typed", &[("range", "bytes=9-")]), 416, "InvalidRange");
    }
    let big = noise(5_000_001);
    assert_refused(&site.root("PUT", "/bucket/big", &[], &big), 200, "");
    for _ in 0..3 {
        assert!(site.get("/big").body() == big);
    }
    // The cache of hot objects sends the current object.
    site.put("/bucket/index.html", "new home");
    assert_eq!(site.get("/").text(), "new home");
}

#[test]
fn missing_objects_have_the_error_document_with_their_status() {
    let site = Site::new(&format!("{INDEX}{ERROR}"));
    for target in ["/missing", "/missing/", "/docs/missing?a=b"] {
        let reply = site.get(target);
        assert_eq!((reply.status, &*reply.text()), (404, "sorry"), "{target}");
        assert_eq!(reply.header("x-amz-error-code"), Some("NoSuchKey"));
        assert_eq!(reply.header("etag"), None, "it is not that of the target");
        let head = site.send("HEAD", target, &[]);
        assert_eq!((head.status, head.header("content-length")), (404, Some("5")));
    }
    // Conditions and ranges are those of the requested object.
    for more in [("range", "bytes=1-1"), ("if-none-match", "*"), ("if-match", "\"x\"")] {
        let reply = site.send("GET", "/missing", &[more]);
        assert_eq!((reply.status, &*reply.text()), (404, "sorry"), "{more:?}");
    }
    assert_refused(&site.root("DELETE", "/bucket/error.html", &[], b""), 204, "");
    assert_page(&site.get("/missing"), 404, "NoSuchKey");
}

#[test]
fn rights_are_those_of_anonymous_reads() {
    let site = Site::new(&format!("{INDEX}{ERROR}"));
    assert_refused(&site.root("DELETE", "/bucket?policy=", &[], b""), 204, "");
    for target in ["/", "/index.html", "/missing", "/docs"] {
        assert_page(&site.get(target), 403, "AccessDenied");
    }
    // Through an access list, the error document of an object that is denied.
    let public = [("x-amz-acl", "public-read")];
    assert_refused(&site.root("PUT", "/bucket/error.html", &public, b"denied"), 200, "");
    let denied = site.get("/");
    assert_eq!((denied.status, &*denied.text()), (403, "denied"));
    assert_refused(&site.root("PUT", "/bucket/index.html", &public, b"listed"), 200, "");
    assert_eq!(site.get("/").text(), "listed");
    let block = "<PublicAccessBlockConfiguration><IgnorePublicAcls>true</IgnorePublicAcls>\
                 </PublicAccessBlockConfiguration>";
    site.put("/bucket?publicAccessBlock=", block);
    assert_page(&site.get("/"), 403, "AccessDenied");
    site.allow_reads("bucket");
    assert_eq!(site.get("/").text(), "listed");
    let restricted = "</IgnorePublicAcls><RestrictPublicBuckets>true</RestrictPublicBuckets>";
    let block = block.replace("</IgnorePublicAcls>", restricted);
    site.put("/bucket?publicAccessBlock=", &block);
    assert_page(&site.get("/"), 403, "AccessDenied");
}

#[test]
fn policy_that_compares_tags_hides_missing_objects() {
    let site = Site::new(INDEX);
    assert_page(&site.get("/missing"), 404, "NoSuchKey");
    let policy = r#"{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject",
        "Resource":"arn:aws:s3:::bucket/*"},{"Effect":"Deny","Principal":"*",
        "Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/*","Condition":{"StringEquals":
        {"s3:ExistingObjectTag/secret":"yes"}}}]}"#;
    assert_refused(&site.root("PUT", "/bucket?policy=", &[], policy.as_bytes()), 204, "");
    let tags = [("x-amz-tagging", "secret=yes")];
    assert_refused(&site.root("PUT", "/bucket/secret", &tags, b"x"), 200, "");
    assert_page(&site.get("/secret"), 403, "AccessDenied");
    assert_page(&site.get("/missing"), 403, "AccessDenied");
    assert_eq!(site.get("/").text(), "home");
}

#[test]
fn directory_without_its_slash_is_redirected_to_its_index() {
    let site = Site::new(&format!("{INDEX}{ERROR}"));
    assert_redirect(&site.get("/docs"), 302, "/docs/");
    assert_redirect(&site.get("/docs?a=b"), 302, "/docs/?a=b");
    assert_redirect(&site.send("HEAD", "/docs", &[("range", "bytes=0-0")]), 302, "/docs/");
    // An object with the name has precedence.
    site.put("/bucket/docs", "object");
    assert_eq!(site.get("/docs").text(), "object");
    assert_refused(&site.root("DELETE", "/bucket/docs/index.html", &[], b""), 204, "");
    assert_refused(&site.root("DELETE", "/bucket/docs", &[], b""), 204, "");
    assert_eq!(site.get("/docs").status, 404);
    // The location is on this host.
    site.put("/bucket//evil.example/index.html", "x");
    assert_redirect(&site.get("//evil.example"), 302, "/%2Fevil.example/");
    assert_eq!(site.get("/%2Fevil.example/").text(), "x");
}

#[test]
fn pages_of_other_origins_read_as_rules_allow() {
    let site = Site::new(INDEX);
    let page = ("origin", "https://a.example");
    let method = ("access-control-request-method", "GET");
    assert_page(&site.send("OPTIONS", "/", &[page, method]), 403, "AccessForbidden");
    let rules = "<CORSConfiguration><CORSRule><AllowedOrigin>https://a.example</AllowedOrigin>\
        <AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>";
    site.put("/bucket?cors=", rules);
    let preflight = site.send("OPTIONS", "/", &[page, method]);
    assert_eq!((preflight.status, &*preflight.text()), (200, ""));
    for reply in [
        preflight,
        site.send("GET", "/", &[page]),
        site.send("GET", "/missing", &[page]),
        site.send("GET", "/docs", &[page]),
    ] {
        assert_eq!(reply.header("access-control-allow-origin"), Some(page.1), "{}", reply.status);
    }
    let other = ("origin", "https://b.example");
    assert_page(&site.send("OPTIONS", "/", &[other, method]), 403, "AccessForbidden");
    let read = site.send("GET", "/", &[other]);
    assert_eq!((&*read.text(), read.header("access-control-allow-origin")), ("home", None));
    assert_page(&site.send("OPTIONS", "/", &[method]), 400, "BadRequest");
}

#[test]
fn requests_are_counted_and_logged() {
    let site = Site::new(INDEX);
    let metric = |name: &str| {
        let text = site.server.admin.get("/metrics").text();
        text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect::<Vec<_>>()
    };
    let count = "haul_requests_total{kind=\"get\",status=\"2xx\"}";
    let before = metric(count);
    assert_eq!(site.get("/").status, 200);
    eventually("the request is counted", || metric(count) != before);
    site.put("/logs", "");
    let policy = r#"{"Statement":{"Effect":"Allow",
        "Principal":{"Service":"logging.s3.amazonaws.com"},"Action":"s3:PutObject",
        "Resource":"arn:aws:s3:::logs/*"}}"#;
    assert_refused(&site.root("PUT", "/logs?policy=", &[], policy.as_bytes()), 204, "");
    let logging = "<BucketLoggingStatus><LoggingEnabled><TargetBucket>logs</TargetBucket>\
        <TargetPrefix>log/</TargetPrefix></LoggingEnabled></BucketLoggingStatus>";
    site.put("/bucket?logging=", logging);
    assert_eq!(site.get("/?a=b").text(), "home");
    assert_eq!(site.get("/missing").status, 404);
    let records = || {
        let keys = site.root("GET", "/logs?list-type=2", &[], b"").all_xml("Key");
        let read = |key: &String| site.root("GET", &format!("/logs/{key}"), &[], b"").text();
        keys.iter().map(read).collect::<String>()
    };
    eventually("the records are delivered", || records().contains("/missing"));
    let records = records();
    for part in [
        "WEBSITE.GET.OBJECT index.html \"GET /?a=b HTTP/1.1\" 200 - 4 4 ",
        "WEBSITE.GET.OBJECT missing \"GET /missing HTTP/1.1\" 404 NoSuchKey ",
    ] {
        assert!(records.contains(part), "{part} in {records}");
    }
}

#[test]
fn without_keys_every_object_is_public() {
    let server = Running::with_websites(&["localhost"], None);
    let index = format!("<WebsiteConfiguration>{INDEX}</WebsiteConfiguration>");
    assert_refused(&server.s3.put("/bucket?website", index.as_bytes()), 200, "");
    assert_refused(&server.s3.put("/bucket/index.html", b"home"), 200, "");
    let website = server.website.unwrap();
    let get = |host| website.send("GET", "/", &[("host", host)], b"");
    assert_eq!(get(HOST.1).text(), "home");
    // A page that resolves its own name to this machine reads nothing.
    assert_page(&get("evil.example"), 404, "NoSuchBucket");
}
