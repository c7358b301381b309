//! Requests that could evade the policy of a bucket.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Keyed;
use super::policy::{anonymous, set, statement};
use crate::client::assert_refused;
use crate::signing::hash;

#[test]
fn object_that_replaces_one_with_other_tags_is_not_read() {
    let mut keyed = Keyed::new();
    let writer = keyed.key("ann", &[("write", "bucket")]);
    let tagged = r#""StringEquals":{"s3:ExistingObjectTag/level":"public"}"#;
    set(&keyed, &statement("Allow", r#""*""#, "GetObject", "/*", tagged));
    let put = |level: &str| {
        let (tags, body) = (format!("level={level}"), level.as_bytes());
        let headers = [("x-amz-tagging", &*tags)];
        let signer = keyed.signer(&writer);
        let put = signer.send_with("PUT", "/bucket/key", &hash(body), &headers, |_| body.to_vec());
        assert_eq!(put.status, 200, "{}", put.text());
    };
    put("public");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = || {
            let mut reads = 0;
            while !is_over.load(Relaxed) {
                let read = anonymous(&keyed, "GET", "/bucket/key");
                let is_allowed = read.status == 200 && read.text() == "public";
                assert!(is_allowed || read.status == 403, "{} {}", read.status, read.text());
                reads += u32::from(is_allowed);
            }
            reads
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        (0..200).for_each(|_| ["secret", "public"].into_iter().for_each(put));
        is_over.store(true, Relaxed);
        let reads: u32 = readers.map(|reader| reader.join().unwrap()).iter().sum();
        assert!(reads > 0);
    });
}

#[test]
fn denied_header_is_found_beside_other_bytes_and_values() {
    let keyed = Keyed::new();
    let evil = r#""StringLike":{"aws:UserAgent":"*evil*"}"#;
    let statements = [
        statement("Allow", r#""*""#, "GetObject", "/*", ""),
        statement("Deny", r#""*""#, "GetObject", "/*", evil),
    ];
    set(&keyed, &statements.join(","));
    assert_eq!(keyed.root("PUT", "/bucket/key", b"hello").status, 200);
    let get = |agents: &[&str]| {
        let headers: Vec<_> = agents.iter().map(|agent| ("user-agent", *agent)).collect();
        keyed.server.s3.send("GET", "/bucket/key", &headers, b"").status
    };
    assert_eq!(get(&["good"]), 200);
    for agents in [&["evil"][..], &["evil\u{e9}"], &["good", "evil"]] {
        assert_eq!(get(agents), 403, "{agents:?}");
    }
}

#[test]
fn copy_with_an_empty_version_reads_nothing() {
    let mut keyed = Keyed::new();
    let user = keyed.key("ann", &[("read,write", "bucket")]);
    set(&keyed, &statement("Deny", r#""*""#, "GetObject", "/secret", ""));
    assert_eq!(keyed.root("PUT", "/bucket/secret", b"hello").status, 200);
    let copy = |source| keyed.copy(&user, source, "/bucket/copy");
    assert_refused(&copy("/bucket/secret"), 403, "AccessDenied");
    assert_refused(&copy("/bucket/secret?versionId="), 400, "InvalidArgument");
}

/// Documents of clients without the right would cost memory: the server asks for none.
#[test]
fn client_without_a_right_is_refused_before_it_sends_a_document() {
    let keyed = Keyed::new();
    for operation in ["tagging", "retention", "legal-hold", "acl"] {
        let head = format!(
            "PUT /bucket/key?{operation} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\
             Expect: 100-continue\r\n\r\n"
        );
        assert_refused(&keyed.server.s3.raw(head.as_bytes()), 403, "AccessDenied");
    }
}

/// What is decided about is what is done.
#[test]
fn denied_header_cannot_be_hidden_behind_another_one() {
    let mut keyed = Keyed::new();
    let user = keyed.key("ann", &[("write", "bucket")]);
    let public = r#""StringEquals":{"s3:x-amz-acl":"public-read"}"#;
    set(&keyed, &statement("Deny", r#""*""#, "PutObject", "/*", public));
    for second in ["zzz", ""] {
        let headers = [("x-amz-acl", "public-read"), ("x-amz-acl", second)];
        let put = keyed.send_with(&user, "PUT", "/bucket/key", &headers);
        assert_refused(&put, 400, "InvalidRequest");
    }
}
