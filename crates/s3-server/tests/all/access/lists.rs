//! Access lists of buckets and objects, beside the rights of keys and policies.

use super::users::{Users, counter, public_write, refused, statement};
use crate::client::assert_refused;

#[test]
fn list_of_a_bucket_allows_to_list_and_to_write() {
    let users = Users::new();
    let (ann, ben) = (&users.ann, &users.ben);
    users.set(ann, "/mine", &[("x-amz-grant-read", "id=ben")]);
    assert_eq!(users.send(ben, "GET", "/mine?list-type=2", b"").all_xml("Key"), ["key"]);
    assert_eq!(users.send(ben, "HEAD", "/mine", b"").status, 200);
    refused(&users.send(&users.carl, "GET", "/mine", b""));
    refused(&users.anonymous("GET", "/mine"));
    for (method, target) in [
        ("GET", "/mine/key"),
        ("PUT", "/mine/key"),
        ("DELETE", "/mine/key"),
        ("GET", "/mine?acl="),
        ("GET", "/mine?tagging="),
        ("DELETE", "/mine"),
    ] {
        refused(&users.send(ben, method, target, b""));
    }
    // A client that may list learns that an object is missing.
    assert_refused(&users.send(ben, "GET", "/mine/missing", b""), 404, "NoSuchKey");

    users.set(ann, "/mine", &[("x-amz-grant-write", "id=\"ben\"")]);
    assert_eq!(users.send(ben, "PUT", "/mine/key", b"new").status, 200);
    assert_eq!(users.send(ben, "PUT", "/mine/other", b"new").status, 200);
    let upload = users.send(ben, "POST", "/mine/upload?uploads=", b"").xml("UploadId").unwrap();
    assert_eq!(
        users.send(ben, "DELETE", &format!("/mine/upload?uploadId={upload}"), b"").status,
        204
    );
    refused(&users.send(ben, "GET", "/mine", b""));
    assert_eq!(users.send(ben, "HEAD", "/mine", b"").status, 403);
    refused(&users.send(ben, "DELETE", "/mine/key?versionId=null", b""));
    assert_eq!(users.send(ben, "DELETE", "/mine/key", b"").status, 204);
    let names = b"<Delete><Object><Key>other</Key></Object>\
        <Object><Key>key</Key><VersionId>null</VersionId></Object></Delete>";
    let deleted = users.send(ben, "POST", "/mine?delete=", names);
    assert_eq!(deleted.all_xml("Deleted").len(), 1, "{}", deleted.text());
    assert_eq!(deleted.all_xml("Code"), ["AccessDenied"], "{}", deleted.text());
    refused(&users.send(ben, "DELETE", "/mine?tagging=", b""));

    users.set(ann, "/mine", &[("x-amz-acl", "public-read-write")]);
    assert_eq!(users.anonymous("PUT", "/mine/anyones").status, 200);
    assert_eq!(users.list(ann, "/mine/anyones").0, "ann", "no one owns what has no signature");
    refused(&users.anonymous("GET", "/mine/anyones"));
    assert_eq!(users.anonymous("GET", "/mine").all_xml("Key"), ["anyones"]);
    assert_eq!(users.anonymous("DELETE", "/mine/anyones").status, 204);
    users.set(ann, "/mine", &[("x-amz-acl", "authenticated-read")]);
    assert_eq!(users.send(&users.carl, "GET", "/mine", b"").status, 200);
    refused(&users.anonymous("GET", "/mine"));
    users.set(ann, "/mine", &[("x-amz-acl", "private")]);
    refused(&users.send(&users.carl, "GET", "/mine", b""));
    assert_eq!(users.keyed.root("GET", "/mine", b"").status, 200);
}

#[test]
fn list_of_an_object_allows_to_read_it() {
    let mut users = Users::new();
    let writer = users.keyed.key("ben", &[("write", "other")]);
    let (ann, ben) = (&users.ann, &users.ben);
    refused(&users.anonymous("GET", "/mine/key"));
    users.put(ann, "/mine/key", "public-read", b"public");
    for _ in 0..2 {
        assert_eq!(users.anonymous("GET", "/mine/key").text(), "public");
        assert_eq!(users.send(ben, "GET", "/mine/key", b"").text(), "public");
    }
    assert_eq!(users.anonymous("HEAD", "/mine/key").status, 200);
    assert_eq!(users.anonymous("HEAD", "/mine/missing").status, 403);
    for (method, target) in
        [("PUT", "/mine/key"), ("DELETE", "/mine/key"), ("GET", "/mine/key?acl="), ("GET", "/mine")]
    {
        refused(&users.send(ben, method, target, b""));
    }
    // A PUT without a list makes the object private.
    users.put(ann, "/mine/key", "", b"private");
    refused(&users.anonymous("GET", "/mine/key"));

    users.set(ann, "/mine/key", &[("x-amz-grant-read", "id=ben")]);
    assert_eq!(users.send(ben, "GET", "/mine/key", b"").text(), "private");
    refused(&users.send(&users.carl, "GET", "/mine/key", b""));
    refused(&users.anonymous("GET", "/mine/key"));
    let copy = |to: &str| users.keyed.copy(&writer, "/mine/key", to);
    assert_eq!(copy("/other/copy").status, 200);
    assert_eq!(users.keyed.root("GET", "/other/copy", b"").text(), "private");
    let upload = users.keyed.root("POST", "/other/parts?uploads=", b"").xml("UploadId").unwrap();
    let part = format!("/other/parts?partNumber=1&uploadId={upload}");
    assert_eq!(copy(&part).status, 200);
    users.set(ann, "/mine/key", &[("x-amz-acl", "private")]);
    refused(&copy("/other/copy"));
    refused(&copy(&part));
    users.set(ann, "/mine/key", &[("x-amz-acl", "authenticated-read")]);
    assert_eq!(users.send(&users.carl, "GET", "/mine/key", b"").text(), "private");
    refused(&users.anonymous("GET", "/mine/key"));
}

#[test]
fn owner_of_a_bucket_can_always_replace_its_list() {
    let users = Users::new();
    let (ann, ben) = (&users.ann, &users.ben);
    assert_eq!(users.list(ann, "/mine"), ("ann".into(), vec!["FULL_CONTROL ann".to_owned()]));
    let none = "<AccessControlPolicy><Owner><ID>ann</ID></Owner>\
        <AccessControlList></AccessControlList></AccessControlPolicy>";
    assert_refused(&users.document(ann, "/mine?acl=", none), 200, "");
    assert_eq!(users.list(ann, "/mine"), ("ann".into(), vec![]));
    assert_eq!(users.send(ann, "GET", "/mine/key", b"").text(), "hello");

    users.set(ann, "/mine", &[("x-amz-grant-read-acp", "id=ben")]);
    assert_eq!(users.list(ben, "/mine").1, ["READ_ACP ben"]);
    refused(&users.with(ben, "/mine?acl=", &[("x-amz-acl", "private")], b""));
    users.set(ann, "/mine", &[("x-amz-grant-write-acp", "id=ben")]);
    refused(&users.send(ben, "GET", "/mine?acl=", b""));
    users.set(ben, "/mine", &[("x-amz-acl", "public-read")]);
    assert_eq!(users.list(ann, "/mine").1, ["READ AllUsers", "FULL_CONTROL ann"]);
    refused(&users.with(ben, "/mine?acl=", &[("x-amz-acl", "public-read")], b""));
    users.set(ann, "/mine", &[("x-amz-acl", "private")]);
    assert_eq!(users.list(ann, "/mine").1, ["FULL_CONTROL ann"]);

    // The list of a new bucket is part of its creation, and of each repetition.
    let create = |list: &str| users.with(ann, "/new", &[("x-amz-acl", list)], b"");
    assert_refused(&create("public-read"), 200, "");
    assert_eq!(users.anonymous("GET", "/new").status, 200);
    assert_refused(&create("public-read"), 200, "");
    assert_refused(&create("private"), 409, "BucketAlreadyExists");
    assert_refused(&users.send(ann, "PUT", "/new", b""), 409, "BucketAlreadyExists");
    assert_eq!(users.list(ann, "/new").1, ["READ AllUsers", "FULL_CONTROL ann"]);
    assert_refused(&users.send(ann, "PUT", "/mine", b""), 200, "");
}

#[test]
fn policy_denies_what_a_list_allows() {
    let users = Users::new();
    users.put(&users.ann, "/mine/key", "public-read", b"hello");
    users.set(&users.ann, "/mine", &[("x-amz-acl", "public-read")]);
    users.policy(&[statement("Deny", "ListBucket"), statement("Deny", "GetObject")].join(","));
    for target in ["/mine", "/mine/key"] {
        refused(&users.anonymous("GET", target));
        refused(&users.send(&users.ben, "GET", target, b""));
    }
    users.policy(&statement("Deny", "PutObject"));
    assert_eq!(users.anonymous("GET", "/mine/key").text(), "hello");
    assert_eq!(users.anonymous("GET", "/mine").status, 200);
}

#[test]
fn invalid_lists_are_refused() {
    let users = Users::new();
    let ann = &users.ann;
    let email = "emailAddress=a@example.org";
    for (headers, status, code) in [
        (&[][..], 400, "MissingSecurityHeader"),
        (&[("x-amz-acl", "public")], 400, "InvalidArgument"),
        (&[("x-amz-acl", "log-delivery-write")], 400, "InvalidArgument"),
        (&[("x-amz-grant-read", "id=unknown")], 400, "InvalidArgument"),
        (&[("x-amz-grant-read", email)], 400, "UnresolvableGrantByEmailAddress"),
        (&[("x-amz-grant-read", "id=ben"), ("x-amz-acl", "private")], 400, "InvalidRequest"),
    ] {
        for target in ["/mine?acl=", "/mine/key?acl="] {
            assert_refused(&users.with(ann, target, headers, b""), status, code);
        }
        if !headers.is_empty() {
            assert_refused(&users.with(ann, "/mine/key", headers, b"x"), status, code);
            assert_refused(&users.with(ann, "/new", headers, b""), status, code);
        }
    }
    let other = public_write().replace("<ID>ann</ID>", "<ID>ben</ID>");
    refused(&users.document(ann, "/mine?acl=", &other));
    let malformed = public_write().replace("WRITE", "ALL");
    assert_refused(&users.document(ann, "/mine?acl=", &malformed), 400, "MalformedACLError");
    assert_refused(&users.document(ann, "/mine?acl=", "<AccessControl"), 400, "MalformedXML");
    assert_refused(
        &users.with(ann, "/mine/none?acl=", &[("x-amz-acl", "private")], b""),
        404,
        "NoSuchKey",
    );
    assert_eq!(users.list(ann, "/mine").1, ["FULL_CONTROL ann"]);
    assert_eq!(users.send(ann, "GET", "/mine/key", b"").text(), "hello");
}

#[test]
fn requests_that_need_no_list_read_none() {
    let users = Users::new();
    let (ann, ben) = (&users.ann, &users.ben);
    let counters =
        || ["haul_cache_hits_total", "haul_store_gets_total"].map(|name| counter(&users, name));
    for list in ["private", "public-read"] {
        users.put(ann, "/mine/listed", list, b"listed");
        // The first GET caches the object.
        assert_eq!(users.send(ann, "GET", "/mine/key", b"").text(), "hello");
        let [hits, gets] = counters();
        for _ in 0..5 {
            assert_eq!(users.send(ann, "GET", "/mine/key", b"").text(), "hello");
            users.put(ann, "/mine/other", "private", b"x");
            users.put(ann, "/mine/other", "bucket-owner-full-control", b"x");
        }
        assert_eq!(counters(), [hits + 5, gets], "{list}: rights decide");
        for target in ["/mine/key", "/mine/missing"] {
            refused(&users.send(ben, "GET", target, b""));
            refused(&users.anonymous("GET", target));
        }
        let lookups = counters()[1] - gets;
        match list {
            "private" => assert_eq!(lookups, 0, "no object of the bucket has a list"),
            _ => assert_eq!(lookups, 4, "one for each request"),
        }
    }
    assert_eq!(users.anonymous("GET", "/mine/listed").text(), "listed");
}

/// Clients of AWS send such bodies over TLS, also without a signature.
#[test]
fn unsigned_chunks_with_a_trailer_are_decoded_without_a_signature() {
    let users = Users::new();
    let list = [("x-amz-acl", "public-read-write")];
    assert_eq!(users.with(&users.ann, "/mine?acl=", &list, b"").status, 200);
    let put = |checksum: &str| {
        let body = format!("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n");
        let headers = [
            ("content-encoding", "aws-chunked"),
            ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
            ("x-amz-decoded-content-length", "5"),
            ("x-amz-trailer", "x-amz-checksum-crc32"),
        ];
        let client = users.keyed.server.s3;
        client.send("PUT", "/mine/chunks", &headers, body.as_bytes()).status
    };
    assert_eq!(put("NhCmhw=="), 400, "a wrong checksum");
    assert_eq!(put("NhCmhg=="), 200);
    assert_eq!(users.send(&users.ann, "GET", "/mine/chunks", b"").text(), "hello");
}

#[test]
fn unsigned_requests_cannot_replace_headers_of_the_response() {
    let users = Users::new();
    users.set(&users.ann, "/mine/key", &[("x-amz-acl", "public-read")]);
    assert_eq!(users.anonymous("GET", "/mine/key").status, 200);
    let target = "/mine/key?response-content-type=text/html";
    assert_refused(&users.anonymous("GET", target), 400, "InvalidRequest");
    let signed = users.send(&users.ann, "GET", "/mine/key?response-content-type=text%2Fhtml", b"");
    assert_eq!((signed.status, signed.header("content-type")), (200, Some("text/html")));
}
