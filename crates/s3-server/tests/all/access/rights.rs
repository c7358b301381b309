//! Each right with each operation.

use super::{Keyed, is_allowed};
use crate::client::assert_refused;

const TAGS: &str = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";

const RULES: &str = "<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix>tmp/</Prefix></Filter>\
     <Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>";

/// Returns each operation: method, target, body, and the right that it needs; `any` stands for any
/// right to the bucket.
fn operations() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    vec![
        ("GET", "/bucket/dir/key", "", "read"),
        ("GET", "/bucket/dir/key?partNumber=1", "", "read"),
        ("HEAD", "/bucket/dir/key", "", "read"),
        ("GET", "/bucket/dir/key?tagging=", "", "read"),
        ("GET", "/bucket/dir/key?acl=", "", "read"),
        ("PUT", "/bucket/dir/key?acl=", "", "admin"),
        ("PUT", "/bucket/dir/new", "small", "write"),
        ("PUT", "/bucket/dir/key?tagging=", TAGS, "write"),
        ("DELETE", "/bucket/dir/key?tagging=", "", "write"),
        ("POST", "/bucket/dir/upload?uploads=", "", "write"),
        ("PUT", "/bucket/dir/upload?partNumber=1&uploadId=none", "part", "write"),
        ("GET", "/bucket/dir/upload?uploadId=none", "", "write"),
        ("POST", "/bucket/dir/upload?uploadId=none", "<CompleteMultipartUpload/>", "write"),
        ("DELETE", "/bucket/dir/upload?uploadId=none", "", "write"),
        ("GET", "/bucket", "", "list"),
        ("GET", "/bucket?list-type=2", "", "list"),
        ("GET", "/bucket?versions=", "", "list"),
        ("GET", "/bucket?uploads=", "", "list"),
        ("DELETE", "/bucket/dir/gone", "", "delete"),
        ("GET", "/bucket?lifecycle=", "", "admin"),
        ("PUT", "/bucket?lifecycle=", RULES, "admin"),
        ("DELETE", "/bucket?lifecycle=", "", "admin"),
        ("PUT", "/bucket?policy=", "{}", "admin"),
        ("GET", "/bucket?policy=", "", "admin"),
        ("PUT", "/bucket?versioning=", "<VersioningConfiguration/>", "admin"),
        ("PUT", "/bucket?cors=", "<CORSConfiguration/>", "admin"),
        ("DELETE", "/bucket", "", "admin"),
        ("HEAD", "/bucket", "", "any"),
        ("GET", "/bucket?location=", "", "any"),
        ("GET", "/bucket?versioning=", "", "any"),
        ("GET", "/bucket?acl=", "", "admin"),
        ("PUT", "/bucket?acl=", "", "admin"),
        ("GET", "/bucket?policyStatus=", "", "any"),
    ]
}

#[test]
fn each_right_allows_its_operations_and_no_others() {
    let mut keyed = Keyed::new();
    for right in ["read", "write", "list", "delete", "admin"] {
        let key = keyed.key(right, &[(right, "bucket")]);
        for (method, target, body, needed) in operations() {
            let reply = keyed.send(&key, method, target, body.as_bytes());
            let expected = [right, "any"].contains(&needed) || right == "admin";
            assert_eq!(is_allowed(&reply, method), expected, "{right}: {method} {target}");
        }
    }
    let message = keyed.send(&keyed.list.keys()[1].clone(), "GET", "/bucket/key", b"");
    let expected = "User write is not authorized to perform GetObject on bucket/key: it needs the \
                    right read";
    assert_eq!(message.xml("Message").as_deref(), Some(expected));
}

#[test]
fn key_without_rights_is_refused_everything_but_its_empty_list_of_buckets() {
    let mut keyed = Keyed::new();
    let key = keyed.key("alice", &[("read,write,list,delete,admin", "mine")]);
    for (method, target, body, _) in operations() {
        let reply = keyed.send(&key, method, target, body.as_bytes());
        assert!(!is_allowed(&reply, method), "{method} {target}");
    }
    assert!(!is_allowed(&keyed.send(&key, "PUT", "/new-bucket", b""), "PUT"));
    let buckets = keyed.send(&key, "GET", "/", b"");
    assert_eq!((buckets.status, buckets.all_xml("Name").len()), (200, 0));
}

#[test]
fn administrator_has_all_rights() {
    let keyed = Keyed::new();
    for (method, target, body, _) in operations() {
        if target != "/bucket" || method != "DELETE" {
            let reply = keyed.root(method, target, body.as_bytes());
            assert_ne!(reply.status, 403, "{method} {target}: {}", reply.text());
        }
    }
    assert_eq!(keyed.root("GET", "/", b"").all_xml("Name"), ["bucket", "other"]);
}

#[test]
fn rights_end_at_their_bucket_and_prefix() {
    let mut keyed = Keyed::new();
    let key = keyed.key("alice", &[("read,write,list,delete", "bucket/dir/")]);
    for (method, target, is_expected) in [
        ("GET", "/bucket/dir/key", true),
        ("GET", "/bucket/key", false),
        ("GET", "/bucket/dir", false),
        ("GET", "/other/dir/key", false),
        ("PUT", "/bucket/dir/a", true),
        ("PUT", "/bucket/a", false),
        ("PUT", "/other/dir/a", false),
        ("GET", "/bucket?list-type=2&prefix=dir%2F", true),
        ("GET", "/bucket?list-type=2&prefix=dir%2Fk", true),
        ("GET", "/bucket?list-type=2&prefix=dir", false),
        ("GET", "/bucket?list-type=2", false),
        ("GET", "/bucket?prefix=dir%2F", true),
        ("GET", "/bucket?prefix=", false),
        ("GET", "/bucket?prefix=dir%2F&versions=", true),
        ("GET", "/bucket?versions=", false),
        ("GET", "/bucket?prefix=dir%2F&uploads=", true),
        ("GET", "/bucket?uploads=", false),
        ("DELETE", "/bucket/dir/a", true),
        ("DELETE", "/bucket/key", false),
        ("DELETE", "/bucket", false),
    ] {
        let reply = keyed.send(&key, method, target, b"");
        assert_eq!(is_allowed(&reply, method), is_expected, "{method} {target}");
    }
    let listed = keyed.send(&key, "GET", "/bucket?list-type=2&prefix=dir%2F", b"");
    assert_eq!(listed.all_xml("Key"), ["dir/key"]);
    assert_eq!(keyed.send(&key, "GET", "/", b"").all_xml("Name"), ["bucket"]);
}

#[test]
fn copy_needs_read_at_its_source_and_write_at_its_target() {
    let mut keyed = Keyed::new();
    let upload = keyed.root("POST", "/other/upload?uploads=", b"").xml("UploadId").unwrap();
    let part = format!("/other/upload?partNumber=1&uploadId={upload}");
    for (grants, expected) in [
        (&[("read", "bucket"), ("write", "other")][..], 200),
        (&[("read", "bucket"), ("read", "other")], 403),
        (&[("write", "bucket"), ("write", "other")], 403),
        (&[("read", "bucket/dir/"), ("write", "other")], 403),
        (&[("list", "bucket"), ("write", "other")], 403),
    ] {
        let key = keyed.key("alice", grants);
        for to in ["/other/copy", &*part] {
            let reply = keyed.copy(&key, "/bucket/key", to);
            assert_eq!(reply.status, expected, "{grants:?} {to}: {}", reply.text());
        }
    }
}

#[test]
fn delete_objects_refuses_each_key_without_the_right() {
    let mut keyed = Keyed::new();
    let key = keyed.key("alice", &[("delete", "bucket/dir/")]);
    let keys = ["dir/key", "key"].map(|key| format!("<Object><Key>{key}</Key></Object>"));
    let body = format!("<Delete>{}</Delete>", keys.concat());
    let reply = keyed.send(&key, "POST", "/bucket?delete=", body.as_bytes());
    let deleted = reply.xml("Deleted").unwrap();
    assert_eq!((reply.status, deleted.contains("<Key>dir/key</Key>")), (200, true));
    let error = reply.xml("Error").unwrap();
    assert!(error.contains("<Key>key</Key>") && error.contains("AccessDenied"), "{error}");
    assert_eq!(keyed.root("GET", "/bucket/dir/key", b"").status, 404);
    assert_eq!(keyed.root("GET", "/bucket/key", b"").status, 200);
    let reply = keyed.send(&key, "POST", "/other?delete=", body.as_bytes());
    assert_refused(&reply, 403, "AccessDenied");
}

#[test]
fn missing_names_are_hidden_without_the_right_to_list() {
    let mut keyed = Keyed::new();
    let reader = keyed.key("reader", &[("read,write", "*")]);
    let lister = keyed.key("lister", &[("read,write,list", "*")]);
    for method in ["GET", "HEAD"] {
        let answers = [&reader, &lister];
        let statuses = answers.map(|key| keyed.send(key, method, "/bucket/missing", b"").status);
        assert_eq!(statuses, [403, 404], "{method}");
    }
    let statuses = [&reader, &lister].map(|key| keyed.copy(key, "/other/none", "/bucket/a").status);
    assert_eq!(statuses, [403, 404]);
}

#[test]
fn missing_buckets_are_reported_to_all_clients() {
    let mut keyed = Keyed::new();
    let none = keyed.key("none", &[]);
    for (method, target) in [
        ("GET", "/missing"),
        ("GET", "/missing/key"),
        ("HEAD", "/missing/key"),
        ("HEAD", "/missing"),
        ("GET", "/missing?location="),
        ("PUT", "/missing/key"),
        ("POST", "/missing/key?uploads="),
        ("DELETE", "/missing"),
    ] {
        let status = keyed.send(&none, method, target, b"").status;
        assert_eq!(status, 404, "{method} {target}");
        assert_eq!(keyed.server.s3.send(method, target, &[], b"").status, 404, "{method} {target}");
    }
    let writer = keyed.key("writer", &[("write", "bucket")]);
    assert_refused(&keyed.copy(&writer, "/missing/key", "/bucket/a"), 404, "NoSuchBucket");
    assert_refused(&keyed.send(&none, "GET", "/bucket/key", b""), 403, "AccessDenied");
}

#[test]
fn operation_that_the_server_lacks_is_refused_for_every_client() {
    let mut keyed = Keyed::new();
    let key = keyed.key("alice", &[("admin", "*")]);
    for target in ["/bucket?accelerate=", "/bucket?id=a&metrics=", "/bucket?session="] {
        assert_refused(&keyed.send(&key, "GET", target, b""), 501, "NotImplemented");
        assert_refused(&keyed.root("GET", target, b""), 501, "NotImplemented");
    }
}
