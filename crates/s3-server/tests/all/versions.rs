//! Buckets with versions.

use crate::client::{Reply, Running, assert_refused};

/// Returns a server whose bucket has versioning enabled.
fn versioned() -> Running {
    let server = Running::new();
    set(&server, "Enabled");
    server
}

fn set(server: &Running, status: &str) {
    assert_eq!(try_set(server, &format!("<Status>{status}</Status>")).status, 200);
}

fn try_set(server: &Running, content: &str) -> Reply {
    let body = format!("<VersioningConfiguration>{content}</VersioningConfiguration>");
    server.s3.put("/bucket?versioning", body.as_bytes())
}

/// Stores an object and returns its version ID.
fn put(server: &Running, key: &str, body: &[u8]) -> String {
    let reply = server.s3.put(&format!("/bucket/{key}"), body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    version(&reply)
}

fn version(reply: &Reply) -> String {
    reply.header("x-amz-version-id").unwrap().to_owned()
}

#[test]
fn versioning_is_enabled_and_suspended() {
    let server = Running::new();
    assert_eq!(server.s3.get("/bucket?versioning").xml("Status"), None);
    for status in ["Enabled", "Suspended", "Enabled"] {
        set(&server, status);
        assert_eq!(server.s3.get("/bucket?versioning").xml("Status").as_deref(), Some(status));
    }
    let mfa = try_set(&server, "<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>");
    assert_refused(&mfa, 501, "NotImplemented");
    for bad in ["", "<Status>Off</Status>"] {
        assert_eq!(try_set(&server, bad).status, 400, "{bad}");
    }
    let body = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    let nowhere = server.s3.put("/nowhere?versioning", body.as_bytes());
    assert_refused(&nowhere, 404, "NoSuchBucket");
}

#[test]
fn bucket_without_versions_has_no_version_ids() {
    let server = Running::new();
    for reply in [
        server.s3.put("/bucket/key", b"hello"),
        server.s3.get("/bucket/key"),
        server.s3.head("/bucket/key"),
        server.s3.get("/bucket/key?versionId=null"),
        server.s3.delete("/bucket/absent"),
    ] {
        assert!(reply.status < 300, "{}", reply.text());
        assert_eq!(reply.header("x-amz-version-id"), None);
    }
    let listed = server.s3.get("/bucket?versions");
    assert_eq!(listed.all_xml("VersionId"), ["null"]);
    let target = "/bucket/key?versionId=0000000000000007";
    assert_refused(&server.s3.get(target), 404, "NoSuchVersion");
    assert_refused(&server.s3.delete(target), 404, "NoSuchVersion");
    for malformed in ["x", "0000000000000007a", "NULL"] {
        let target = format!("/bucket/key?versionId={malformed}");
        assert_refused(&server.s3.get(&target), 400, "InvalidArgument");
        assert_refused(&server.s3.delete(&target), 400, "InvalidArgument");
    }
    assert_eq!(server.s3.delete("/bucket/key?versionId=null").status, 204);
    assert_eq!(server.s3.get("/bucket/key").status, 404);
}

#[test]
fn versions_are_read_by_their_ids() {
    let server = versioned();
    let ids = [&b"first"[..], b"second", &[7; 20_000]].map(|body| put(&server, "key", body));
    for (id, body) in ids.iter().zip([&b"first"[..], b"second", &[7; 20_000]]) {
        let target = format!("/bucket/key?versionId={id}");
        let got = server.s3.get(&target);
        assert_eq!((got.status, got.body()), (200, body));
        assert_eq!(version(&got), *id);
        let head = server.s3.head(&target);
        assert_eq!((head.status, version(&head)), (200, id.clone()));
        assert_eq!(head.header("content-length"), Some(body.len().to_string().as_str()));
        let part = server.s3.send("GET", &target, &[("range", "bytes=1-2")], b"");
        assert_eq!((part.status, part.body()), (206, &body[1..3]));
        let headers = [("x-amz-object-attributes", "ObjectSize")];
        let target = format!("/bucket/key?attributes&versionId={id}");
        let attributes = server.s3.send("GET", &target, &headers, b"");
        assert_eq!(attributes.xml("ObjectSize"), Some(body.len().to_string()));
    }
    for _ in 0..3 {
        // Also once the object is cached.
        assert_eq!(version(&server.s3.get("/bucket/key")), ids[2]);
        assert_eq!(version(&server.s3.head("/bucket/key")), ids[2]);
    }
    assert_refused(&server.s3.get("/bucket/key?versionId=null"), 404, "NoSuchVersion");
}

#[test]
fn delete_marker_is_shown_and_removed() {
    let server = versioned();
    let stored = put(&server, "key", b"hello");
    let deleted = server.s3.delete("/bucket/key");
    assert_eq!((deleted.status, deleted.header("x-amz-delete-marker")), (204, Some("true")));
    let marker = version(&deleted);
    for method in ["GET", "HEAD"] {
        let missing = server.s3.send(method, "/bucket/key", &[], b"");
        assert_eq!((missing.status, version(&missing)), (404, marker.clone()));
        assert_eq!(missing.header("x-amz-delete-marker"), Some("true"));
        let target = format!("/bucket/key?versionId={marker}");
        let refused = server.s3.send(method, &target, &[], b"");
        assert_eq!((refused.status, version(&refused)), (405, marker.clone()));
        assert_eq!(refused.header("x-amz-delete-marker"), Some("true"));
        assert!(refused.header("last-modified").is_some());
    }
    assert_eq!(server.s3.get("/bucket/other").header("x-amz-delete-marker"), None);
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key").len(), 0);
    assert_refused(&server.s3.delete("/bucket"), 409, "BucketNotEmpty");
    let undone = server.s3.delete(&format!("/bucket/key?versionId={marker}"));
    assert_eq!((undone.header("x-amz-delete-marker"), version(&undone)), (Some("true"), marker));
    assert_eq!(server.s3.get("/bucket/key").text(), "hello");
    let last = server.s3.delete(&format!("/bucket/key?versionId={stored}"));
    assert_eq!((last.header("x-amz-delete-marker"), version(&last)), (None, stored));
    assert_eq!(server.s3.delete("/bucket").status, 204);
}

#[test]
fn versions_are_listed_in_pages() {
    let server = versioned();
    let mut expected: Vec<(String, String)> = Vec::new();
    for key in ["a", "b/1", "c"] {
        let mut ids: Vec<String> = (0..3).map(|_| put(&server, key, b"hello")).collect();
        ids.push(version(&server.s3.delete(&format!("/bucket/{key}"))));
        expected.extend(ids.into_iter().rev().map(|id| (key.to_owned(), id)));
    }
    let listed = server.s3.get("/bucket?versions");
    assert_eq!(listed.all_xml("DeleteMarker").len(), 3, "{}", listed.text());
    assert_eq!(listed.all_xml("Version").len(), 9);
    assert_eq!(listed.all_xml("IsLatest").iter().filter(|latest| *latest == "true").count(), 3);
    let mut found: Vec<(String, String)> = Vec::new();
    let mut target = "/bucket?versions&max-keys=2".to_owned();
    loop {
        let page = server.s3.get(&target);
        let entries = page.all_xml("Key").into_iter().zip(page.all_xml("VersionId"));
        found.extend(entries);
        if page.xml("IsTruncated").as_deref() == Some("false") {
            break;
        }
        let key = page.xml("NextKeyMarker").unwrap();
        let id = page.xml("NextVersionIdMarker").unwrap();
        target = format!("/bucket?versions&max-keys=2&key-marker={key}&version-id-marker={id}");
    }
    // In a page, delete markers follow the versions.
    found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    assert_eq!(found, expected);
    let folded = server.s3.get("/bucket?versions&delimiter=/&prefix=");
    assert_eq!(folded.all_xml("Prefix").iter().filter(|prefix| *prefix == "b/").count(), 1);
    assert_eq!(folded.all_xml("VersionId").len(), 8);
    let bad = server.s3.get("/bucket?versions&version-id-marker=null");
    assert_refused(&bad, 400, "InvalidArgument");
}

#[test]
fn many_versions_are_deleted_by_one_request() {
    let server = versioned();
    let first = put(&server, "a", b"first");
    put(&server, "a", b"second");
    put(&server, "b", b"hello");
    let body = format!(
        "<Delete><Object><Key>a</Key><VersionId>{first}</VersionId></Object>\
         <Object><Key>b</Key></Object><Object><Key>absent</Key></Object></Delete>"
    );
    let reply = server.s3.post("/bucket?delete", &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.all_xml("Deleted").len(), 3, "{}", reply.text());
    assert_eq!(reply.all_xml("DeleteMarkerVersionId").len(), 2);
    assert_eq!(reply.all_xml("VersionId"), [first]);
    assert_eq!(server.s3.get("/bucket/a").text(), "second");
    assert_eq!(server.s3.get("/bucket/b").status, 404);
    assert_eq!(server.s3.get("/bucket?versions").all_xml("VersionId").len(), 4);
}

#[test]
fn version_is_copied() {
    let server = versioned();
    let first = put(&server, "key", b"first");
    put(&server, "key", b"second");
    let source = format!("/bucket/key?versionId={first}");
    let headers = [("x-amz-copy-source", source.as_str())];
    let copied = server.s3.send("PUT", "/bucket/key", &headers, b"");
    assert_eq!(copied.status, 200, "{}", copied.text());
    assert_eq!(copied.header("x-amz-copy-source-version-id"), Some(first.as_str()));
    assert_ne!(version(&copied), first);
    assert_eq!(server.s3.get("/bucket/key").text(), "first");
    let upload = server.s3.send("POST", "/bucket/copy?uploads", &[], b"").xml("UploadId").unwrap();
    let target = format!("/bucket/copy?partNumber=1&uploadId={upload}");
    let part = server.s3.send("PUT", &target, &headers, b"");
    let etag = part.xml("ETag").unwrap();
    let body = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let target = format!("/bucket/copy?uploadId={upload}");
    let completed = server.s3.send("POST", &target, &[], body.as_bytes());
    assert_eq!(completed.status, 200, "{}", completed.text());
    let got = server.s3.get("/bucket/copy");
    assert_eq!((got.text().as_str(), version(&got)), ("first", version(&completed)));
}

#[test]
fn delete_marker_is_not_copied() {
    let server = versioned();
    put(&server, "key", b"hello");
    let marker = version(&server.s3.delete("/bucket/key"));
    let upload = server.s3.post("/bucket/parts?uploads", "").xml("UploadId").unwrap();
    let part = format!("/bucket/parts?partNumber=1&uploadId={upload}");
    for target in ["/bucket/copy", &part] {
        for (source, status, code) in [
            (format!("/bucket/key?versionId={marker}"), 400, "InvalidRequest"),
            ("/bucket/key".to_owned(), 404, "NoSuchKey"),
        ] {
            let copied = server.s3.send("PUT", target, &[("x-amz-copy-source", &source)], b"");
            assert_refused(&copied, status, code);
        }
    }
}

#[test]
fn tags_of_a_version_change_without_another_version() {
    let server = versioned();
    let first = put(&server, "key", b"first");
    put(&server, "key", b"second");
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    let target = format!("/bucket/key?tagging&versionId={first}");
    let set = server.s3.put(&target, tags.as_bytes());
    assert_eq!((set.status, version(&set)), (200, first.clone()), "{}", set.text());
    assert_eq!(server.s3.get(&target).all_xml("Value"), ["b"]);
    assert!(server.s3.get("/bucket/key?tagging").all_xml("Value").is_empty());
    assert_eq!(server.s3.put("/bucket/key?tagging", tags.as_bytes()).status, 200);
    assert_eq!(server.s3.get("/bucket/key?tagging").all_xml("Value"), ["b"]);
    assert_eq!(server.s3.get("/bucket?versions").all_xml("VersionId").len(), 2);
    assert_eq!(server.s3.get("/bucket/key").text(), "second");
}

#[test]
fn suspended_bucket_has_null_versions() {
    let server = versioned();
    let first = put(&server, "key", b"first");
    set(&server, "Suspended");
    for body in [b"second".as_slice(), b"third"] {
        let reply = server.s3.put("/bucket/key", body);
        assert_eq!((reply.status, reply.header("x-amz-version-id")), (200, None));
    }
    assert_eq!(server.s3.get("/bucket?versions").all_xml("VersionId"), ["null".to_owned(), first]);
    let got = server.s3.get("/bucket/key?versionId=null");
    assert_eq!((got.text().as_str(), version(&got)), ("third", "null".to_owned()));
    assert_eq!(version(&server.s3.get("/bucket/key")), "null");
    let deleted = server.s3.delete("/bucket/key");
    assert_eq!(
        (version(&deleted), deleted.header("x-amz-delete-marker")),
        ("null".to_owned(), Some("true"))
    );
}

/// No listing would show its marker, so that the bucket could never be deleted.
#[test]
fn object_without_a_key_is_not_deleted() {
    let server = versioned();
    for status in ["Enabled", "Suspended"] {
        set(&server, status);
        let document = "<Delete><Object><Key></Key></Object></Delete>";
        assert_refused(&server.s3.post("/bucket?delete", document), 400, "MalformedXML");
    }
    assert_refused(&server.s3.delete("/bucket"), 204, "");
}

#[test]
fn key_that_is_listed_twice_is_deleted_once() {
    let server = versioned();
    put(&server, "key", b"one");
    let twice = "<Delete><Object><Key>key</Key></Object><Object><Key>key</Key></Object></Delete>";
    let deleted = server.s3.send("POST", "/bucket?delete", &[], twice.as_bytes());
    assert_eq!(deleted.all_xml("DeleteMarkerVersionId").len(), 1, "{}", deleted.text());
    assert_eq!(server.s3.get("/bucket?versions").all_xml("DeleteMarker").len(), 1);
}

#[test]
fn delete_marker_has_no_access_list() {
    let server = versioned();
    put(&server, "key", b"one");
    server.s3.delete("/bucket/key");
    let private = [("x-amz-acl", "private")];
    let refused = server.s3.send("PUT", "/bucket/key?acl", &private, b"");
    assert_refused(&refused, 405, "MethodNotAllowed");
    assert_eq!(refused.header("allow"), Some("DELETE"));
    let missing = server.s3.send("PUT", "/bucket/missing?acl", &private, b"");
    assert_refused(&missing, 404, "NoSuchKey");
}
