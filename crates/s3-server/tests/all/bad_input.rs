//! Invalid requests: they are refused with the error code of S3, and the server continues to work.

use std::io::Write;

use haul_file_store::Options;
use haul_s3_server::{Config, Error, Limits, Server};
use haul_testing::{Transport, over};

use crate::client::{Reply, Running, assert_refused, noise};

over!(Plain Inherited Tls => (
    invalid_keys_and_bucket_names_are_refused,
    request_to_unknown_bucket_is_no_such_bucket,
    client_that_still_sends_receives_the_refusal,
    invalid_bodies_are_refused,
    invalid_headers_are_refused,
    malformed_http_is_refused_and_affects_no_other_client,
    truncated_body_is_incomplete_not_an_internal_error,
    every_error_has_a_message,
    web_pages_cannot_reach_a_server_without_credentials,
    silent_client_is_disconnected,
    every_response_has_a_request_id_which_errors_repeat,
    refusal_before_the_body_is_read_closes_the_connection,
));

fn invalid_keys_and_bucket_names_are_refused(transport: Transport) {
    let server = Running::over(transport);
    let long = format!("/bucket/{}", "k".repeat(1025));
    let very_long = format!("/bucket/{}", "k".repeat(5000));
    for (target, code) in [
        ("/bucket/a%00b", "InvalidArgument"),
        ("/bucket/%FF%FE", "InvalidURI"),
        (&long, "KeyTooLongError"),
        (&very_long, "KeyTooLongError"),
        ("/Bucket/key", "InvalidBucketName"),
        ("/b/key", "InvalidBucketName"),
        ("/../key", "InvalidBucketName"),
        ("/127.0.0.1/key", "InvalidBucketName"),
    ] {
        for method in ["PUT", "GET", "DELETE"] {
            assert_refused(&server.s3.send(method, target, &[], b""), 400, code);
        }
    }
    let longest = format!("/bucket/{}", "k".repeat(1024));
    assert_eq!(server.s3.put(&longest, b"x").status, 200);
    assert_eq!(server.s3.get(&longest).text(), "x");
}

fn request_to_unknown_bucket_is_no_such_bucket(transport: Transport) {
    let server = Running::over(transport);
    for (method, target) in [
        ("PUT", "/nowhere/key"),
        ("GET", "/nowhere/key"),
        ("DELETE", "/nowhere/key"),
        ("GET", "/nowhere"),
        ("DELETE", "/nowhere"),
        ("GET", "/nowhere?uploads"),
        ("GET", "/nowhere?location"),
    ] {
        assert_refused(&server.s3.send(method, target, &[], b""), 404, "NoSuchBucket");
    }
}

fn client_that_still_sends_receives_the_refusal(transport: Transport) {
    let server = Running::over(transport);
    let body = noise(20_000_000);
    assert_refused(&server.s3.put("/nowhere/key", &body), 404, "NoSuchBucket");
    assert_refused(&server.s3.put("/B/key", &body), 400, "InvalidBucketName");
}

fn invalid_bodies_are_refused(transport: Transport) {
    let server = Running::over(transport);
    for body in ["", "x", "<Delete>", "<Delete/>", "<a>", "<Delete><Object/></Delete>", "\0"] {
        let reply = server.s3.post("/bucket?delete", body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
    }
    let head = server.s3.head_bytes("POST", "/bucket?delete", &[("content-length", "9000000")]);
    assert_refused(&server.s3.raw(&head), 400, "MaxMessageLengthExceeded");
    let form = [("content-type", "multipart/form-data; boundary=x")];
    let reply = server.s3.send("POST", "/bucket", &form, b"--x--");
    assert_refused(&reply, 400, "InvalidArgument");
    let huge = [("content-length", "5368709121")];
    let reply = server.s3.raw(&server.s3.head_bytes("PUT", "/bucket/key", &huge));
    assert_refused(&reply, 400, "EntityTooLarge");
}

fn invalid_headers_are_refused(transport: Transport) {
    let server = Running::over(transport);
    let put = |name, value| server.s3.send("PUT", "/bucket/key", &[(name, value)], b"x");
    assert_refused(&put("x-amz-tagging", "=&="), 400, "InvalidArgument");
    assert_refused(&put("x-amz-tagging", "a!=b"), 400, "InvalidTag");
    assert_refused(&put("x-amz-server-side-encryption", "AES256"), 501, "NotImplemented");
    assert_refused(&put("x-amz-object-lock-mode", "GOVERNANCE"), 400, "InvalidArgument");
    assert_refused(&put("x-amz-storage-class", "soon"), 400, "InvalidStorageClass");
    assert_refused(&put("x-amz-copy-source", "bucket"), 400, "InvalidArgument");
    assert_refused(&put("x-amz-copy-source", "bucket/a%00b"), 400, "InvalidArgument");
    let long = "x".repeat(20_000);
    assert_refused(&put("x-amz-meta-a", &long), 400, "MetadataTooLarge");
    let longer = "x".repeat(40_000);
    assert_eq!(put("x-amz-meta-a", &longer).status, 431);
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
    assert_eq!(server.s3.put("/bucket/key", b"x").status, 200);
    for method in ["GET", "HEAD"] {
        let target = "/bucket/key?response-content-type=a%0Ab";
        assert_eq!(server.s3.send(method, target, &[], b"").status, 400, "{method}");
    }
}

fn malformed_http_is_refused_and_affects_no_other_client(transport: Transport) {
    let server = Running::over(transport);
    for bytes in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /bucket/key HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"PUT /bucket/key HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        b"PUT /bucket/key HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut stream = server.s3.connect();
        Write::write_all(&mut stream, bytes).unwrap();
        stream.shutdown_write().unwrap();
        let status = Reply::read(&mut stream).status;
        assert!([0, 400, 505].contains(&status), "{bytes:?}: {status}");
    }
    for method in ["PATCH", "OPTIONS", "TRACE", "BREW"] {
        let status = server.s3.send(method, "/bucket/key", &[], b"").status;
        assert!((400..=501).contains(&status), "{method}: {status}");
    }
    assert_eq!(server.s3.get("/bucket").status, 200);
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
}

fn truncated_body_is_incomplete_not_an_internal_error(transport: Transport) {
    let server = Running::over(transport);
    for (method, target) in [
        ("POST", "/bucket?delete"),
        ("PUT", "/bucket/key"),
        ("PUT", "/bucket/key?tagging"),
        ("POST", "/bucket/key?uploadId=1"),
    ] {
        let mut stream = server.s3.connect();
        let head = server.s3.head_bytes(method, target, &[("content-length", "20")]);
        stream.write_all(&[&head, &b"<Delete>"[..]].concat()).unwrap();
        stream.shutdown_write().unwrap();
        let reply = Reply::read(&mut stream);
        assert_refused(&reply, 400, "IncompleteBody");
        assert!(reply.xml("Message").is_some_and(|message| !message.is_empty()), "{target}");
    }
}

fn every_error_has_a_message(transport: Transport) {
    let server = Running::over(transport);
    for (method, target, body) in [
        ("PUT", "/Bucket", ""),
        ("POST", "/bucket?delete", "x"),
        ("PUT", "/bucket/key?tagging", "<a/>"),
        ("GET", "/bucket/%FF", ""),
        ("GET", "/bucket/nothing", ""),
        ("PATCH", "/bucket/key", ""),
    ] {
        let reply = server.s3.send(method, target, &[], body.as_bytes());
        let messages = reply.all_xml("Message");
        assert!(reply.status >= 400, "{method} {target}");
        assert!(
            messages.len() == 1 && !messages[0].is_empty(),
            "{method} {target}: {}",
            reply.text()
        );
    }
}

fn web_pages_cannot_reach_a_server_without_credentials(transport: Transport) {
    let server = Running::over(transport);
    let host = [("host", "evil.example:9000")];
    assert_refused(&server.s3.send("GET", "/bucket", &host, b""), 403, "AccessDenied");
    let origin = [("origin", "http://evil.example"), ("content-type", "text/plain")];
    let delete = b"<Delete><Object><Key>a</Key></Object></Delete>";
    let reply = server.s3.send("POST", "/bucket?delete", &origin, delete);
    assert_refused(&reply, 403, "AccessDenied");
    assert_eq!(server.s3.send("GET", "/bucket", &[("host", "localhost")], b"").status, 200);
}

fn silent_client_is_disconnected(transport: Transport) {
    let short = std::time::Duration::from_millis(200);
    // Over TLS, the handshake may take longer than the time of a head.
    if transport != Transport::Tls {
        let limits = Limits { head_time_max: short, ..Limits::default() };
        let server = Running::over_with(transport, limits);
        assert_eq!(Reply::read(&mut server.s3.connect()).status, 0);
    }
    let limits = Limits { stall_time_max: short, ..Limits::default() };
    let server = Running::over_with(transport, limits);
    server.s3.put("/bucket", b"");
    let declared = [("content-length", "100")];
    let head = server.s3.head_bytes("PUT", "/bucket/key", &declared);
    assert_refused(&server.s3.raw(&head), 400, "RequestTimeout");
    assert_refused(&server.s3.get("/bucket/key"), 404, "NoSuchKey");
}

#[test]
fn public_address_without_credentials_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(crate::client::open(dir.path(), Options::default()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { listen: "0.0.0.0:0".parse().unwrap(), ..Config::default() };
    let outcome = runtime.block_on(async { Server::bind(config, store) });
    let Err(error @ Error::Public { .. }) = outcome else { panic!("the server listens") };
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

fn every_response_has_a_request_id_which_errors_repeat(transport: Transport) {
    let server = Running::over(transport);
    server.s3.put("/bucket/key", b"<Error></Error>");
    let good = server.s3.get("/bucket/key");
    assert_eq!(good.text(), "<Error></Error>");
    let bad = server.s3.get("/bucket/nothing");
    let id = bad.header("x-amz-request-id").unwrap();
    assert_eq!(bad.xml("RequestId").as_deref(), Some(id));
    assert_ne!(good.header("x-amz-request-id"), Some(id));
    assert!(bad.is_whole());
    assert!(server.s3.head("/bucket/nothing").header("x-amz-request-id").is_some());
}

fn refusal_before_the_body_is_read_closes_the_connection(transport: Transport) {
    let server = Running::over(transport);
    let answer = |target: &str, length: &str, body: &[u8]| {
        let mut stream = server.s3.connect();
        let head = format!("PUT {target} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}");
        stream.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        Reply::read(&mut stream)
    };
    // The response is sent before the body arrives.
    let refused = answer("/nowhere/key", "5", b"");
    assert_refused(&refused, 404, "NoSuchBucket");
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(answer("/bucket/key", "5", b"hello").header("connection"), None);
    assert_eq!(answer("/nowhere/key", "0", b"").header("connection"), None);
}

#[test]
fn unknown_storage_class_is_refused() {
    let server = Running::new();
    let put = |target: &str, more: &[(&str, &str)], class: &str| {
        let headers = [more, &[("x-amz-storage-class", class)]].concat();
        let method = if target.contains("uploads") { "POST" } else { "PUT" };
        server.s3.send(method, target, &headers, if more.is_empty() { b"hello" } else { b"" })
    };
    for (target, more) in [
        ("/bucket/key", &[][..]),
        ("/bucket/copy", &[("x-amz-copy-source", "/bucket/key")]),
        ("/bucket/upload?uploads=", &[("x-amz-meta-a", "b")]),
    ] {
        assert_refused(&put(target, more, "STANDARD_IA"), 200, "");
        assert_refused(&put(target, more, "FOO"), 400, "InvalidStorageClass");
    }
}
