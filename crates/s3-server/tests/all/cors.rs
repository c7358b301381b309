//! Requests of web pages of other origins.

use crate::client::{Reply, Running, assert_refused};

const RULES: &str = "<CORSConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
    <CORSRule><AllowedOrigin>https://*.example.org</AllowedOrigin>\
    <AllowedMethod>GET</AllowedMethod><AllowedMethod>PUT</AllowedMethod>\
    <AllowedHeader>x-amz-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader>\
    <MaxAgeSeconds>600</MaxAgeSeconds></CORSRule>\
    <CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>HEAD</AllowedMethod></CORSRule>\
    </CORSConfiguration>";

const PAGE: (&str, &str) = ("origin", "https://a.example.org");

fn server() -> Running {
    let server = Running::new();
    assert_refused(&server.s3.put("/bucket?cors", RULES.as_bytes()), 200, "");
    assert_refused(&server.s3.put("/bucket/key", b"hello"), 200, "");
    server
}

fn preflight(server: &Running, target: &str, headers: &[(&str, &str)]) -> Reply {
    server.s3.send("OPTIONS", target, headers, b"")
}

fn allowed_origin(reply: &Reply) -> Option<&str> {
    reply.header("access-control-allow-origin")
}

#[test]
fn rules_are_stored_returned_and_deleted() {
    let server = Running::new();
    assert_refused(&server.s3.get("/bucket?cors"), 404, "NoSuchCORSConfiguration");
    assert_refused(&server.s3.put("/bucket?cors", RULES.as_bytes()), 200, "");
    let found = server.s3.get("/bucket?cors");
    assert_eq!(found.all_xml("AllowedOrigin"), ["https://*.example.org", "*"]);
    assert_eq!(found.all_xml("AllowedMethod"), ["GET", "PUT", "HEAD"]);
    let invalid = RULES.replace("HEAD", "TRACE");
    assert_refused(&server.s3.put("/bucket?cors", invalid.as_bytes()), 400, "InvalidRequest");
    assert_eq!(server.s3.get("/bucket?cors").all_xml("AllowedMethod").len(), 3);
    assert_refused(&server.s3.delete("/bucket?cors"), 204, "");
    assert_refused(&server.s3.delete("/bucket?cors"), 204, "");
    assert_refused(&server.s3.get("/bucket?cors"), 404, "NoSuchCORSConfiguration");
    assert_refused(&server.s3.put("/absent?cors", RULES.as_bytes()), 404, "NoSuchBucket");
}

#[test]
fn preflight_request_is_allowed_by_a_rule_only() {
    let server = server();
    let method = ("access-control-request-method", "PUT");
    let asked = ("access-control-request-headers", "X-Amz-Date,x-amz-acl");
    let reply = preflight(&server, "/bucket/key", &[PAGE, method, asked]);
    assert_refused(&reply, 200, "");
    assert_eq!(allowed_origin(&reply), Some(PAGE.1));
    assert_eq!(reply.header("access-control-allow-methods"), Some("GET, PUT"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("x-amz-date, x-amz-acl"));
    assert_eq!(reply.header("access-control-expose-headers"), Some("ETag"));
    assert_eq!(reply.header("access-control-max-age"), Some("600"));
    assert_eq!(reply.header("access-control-allow-credentials"), Some("true"));
    assert!(reply.header("vary").unwrap().contains("Origin"));

    let other_page = ("origin", "https://example.com");
    let other_header = ("access-control-request-headers", "x-amz-date, cookie");
    for headers in [
        &[other_page, method][..],
        &[PAGE, method, other_header],
        &[PAGE, ("access-control-request-method", "DELETE")],
    ] {
        let reply = preflight(&server, "/bucket/key", headers);
        assert_refused(&reply, 403, "AccessForbidden");
        assert_eq!(allowed_origin(&reply), None);
    }
    assert_refused(&preflight(&server, "/absent/key", &[PAGE, method]), 404, "NoSuchBucket");
    for headers in [&[][..], &[PAGE], &[method]] {
        assert_refused(&preflight(&server, "/bucket/key", headers), 400, "BadRequest");
    }
    assert_refused(&preflight(&server, "/", &[PAGE, method]), 400, "BadRequest");
}

#[test]
fn responses_to_allowed_pages_have_the_headers_of_the_rule() {
    let server = server();
    for _ in 0..2 {
        // Also from memory.
        assert_eq!(allowed_origin(&server.s3.get("/bucket/key")), None);
        let reply = server.s3.send("GET", "/bucket/key", &[PAGE], b"");
        assert_eq!((reply.status, reply.text().as_str()), (200, "hello"));
        assert_eq!(allowed_origin(&reply), Some(PAGE.1));
    }
    let missing = server.s3.send("GET", "/bucket/missing", &[PAGE], b"");
    assert_refused(&missing, 404, "NoSuchKey");
    assert_eq!(allowed_origin(&missing), Some(PAGE.1), "a page may read errors, too");
    let put = server.s3.send("PUT", "/bucket/key", &[PAGE], b"changed");
    assert_eq!((put.status, allowed_origin(&put)), (200, Some(PAGE.1)));
    let head = server.s3.send("HEAD", "/bucket/key", &[("origin", "https://example.com")], b"");
    assert_eq!((head.status, allowed_origin(&head)), (200, Some("*")));
    // The method is not in a rule for this page, and this server has no keys.
    let refused = server.s3.send("DELETE", "/bucket/key", &[PAGE], b"");
    assert_refused(&refused, 403, "AccessDenied");
}

#[test]
fn preflight_with_very_many_headers_is_refused() {
    let server = server();
    let target = "/bucket/key";
    let requested = |count: usize| {
        let names = vec!["x-amz-date"; count].join(",");
        let headers = [
            PAGE,
            ("access-control-request-method", "PUT"),
            ("access-control-request-headers", &*names),
        ];
        preflight(&server, target, &headers).status
    };
    assert_eq!([100, 101].map(requested), [200, 403]);
}
