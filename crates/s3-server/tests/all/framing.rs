//! Requests without a length or a host, on servers with and without keys.

use haul_s3_server::{Credentials, Limits};

use crate::client::{Reply, Running, assert_refused};
use crate::signing::{Signer, hash};

const ACCESS: &str = "access";
const SECRET: &str = "secret0123456789";

/// Starts a server with keys, and a bucket named `bucket`.
fn server_with_keys() -> Running {
    let credentials = Credentials { access_key: ACCESS.into(), secret_key: SECRET.into() };
    let server = Running::with(Some(credentials), Limits::default());
    assert_eq!(signer(&server).send("PUT", "/bucket", &hash(b""), b"").status, 200);
    server
}

fn signer(server: &Running) -> Signer<'static> {
    Signer { client: server.s3, access_key: ACCESS, secret_key: SECRET }
}

/// Sends a signed PUT whose field `Content-Length` is replaced by another.
fn put_with_field(server: &Running, hash: &str, field: &str, body: &[u8]) -> Reply {
    let bytes = signer(server).request("PUT", "/bucket/key", hash, &[], |_| Vec::new());
    let head = String::from_utf8(bytes).unwrap().replace("content-length: 0\r\n", field);
    server.s3.raw(&[head.as_bytes(), body].concat())
}

#[test]
fn put_without_any_length_is_refused() {
    let server = server_with_keys();
    let refused = put_with_field(&server, &hash(b"hello"), "", b"hello");
    assert_refused(&refused, 411, "MissingContentLength");
    let server = Running::new();
    for target in ["/bucket/key", "/bucket/key?partNumber=1&uploadId=1"] {
        let head = server.s3.head_bytes("PUT", target, &[]);
        assert_refused(&server.s3.raw(&head), 411, "MissingContentLength");
    }
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
}

#[test]
fn signed_put_in_chunks_of_http_needs_no_length() {
    let server = server_with_keys();
    let chunked = "transfer-encoding: chunked\r\n";
    let chunks = b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    let get = || signer(&server).send("GET", "/bucket/key", &hash(b""), b"").text();
    for hash in [hash(b"hello"), "UNSIGNED-PAYLOAD".to_owned()] {
        let reply = put_with_field(&server, &hash, chunked, chunks);
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("etag"), Some("\"5d41402abc4b2a76b9719d911017c592\""));
        assert_eq!(get(), "hello");
    }
    let refused = put_with_field(&server, &hash(b"other"), chunked, chunks);
    assert_refused(&refused, 400, "XAmzContentSHA256Mismatch");
    let cut = put_with_field(&server, &hash(b"hel"), chunked, b"3\r\nhel\r\n2\r\nl");
    assert!(cut.status == 0 || cut.status == 400, "{}", cut.status);
    assert_eq!(get(), "hello");
}

#[test]
fn xml_body_that_differs_from_its_signed_hash_is_refused() {
    let server = server_with_keys();
    for (method, target) in [("POST", "/bucket?delete="), ("PUT", "/bucket/key?tagging=")] {
        let reply = signer(&server).send(method, target, &hash(b"<Delete>"), b"<Delate>");
        assert_refused(&reply, 400, "XAmzContentSHA256Mismatch");
    }
    let chunked = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
    let more = [("x-amz-decoded-content-length", "8")];
    let request = |body: &[u8]| {
        signer(&server).send_with("POST", "/bucket?delete=", chunked, &more, |_| body.to_vec())
    };
    assert_refused(&request(b"8\r\n<Delete>\r\n0\r\n\r\n"), 400, "InvalidRequest");
}

#[test]
fn request_needs_exactly_one_host() {
    for server in [server_with_keys(), Running::new()] {
        let host = server.s3.0.address;
        for hosts in [String::new(), format!("host: {host}\r\nhost: {host}\r\n")] {
            for target in ["/bucket", &format!("http://{host}/bucket")] {
                let head = format!("GET {target} HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
                assert_eq!(server.s3.raw(head.as_bytes()).status, 400, "{head}");
            }
        }
    }
    // Without keys, a name in the target counts as the host.
    let server = Running::new();
    let head = "GET http://evil.example/bucket HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_refused(&server.s3.raw(head.as_bytes()), 403, "AccessDenied");
}
