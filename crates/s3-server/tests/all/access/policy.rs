//! Bucket policies, beside the rights of keys.

use super::Keyed;
use crate::client::{Reply, assert_refused};
use crate::signing::hash;

/// Replaces the policy of `bucket` with these statements.
pub(super) fn set(keyed: &Keyed, statements: &str) {
    let policy = format!(r#"{{"Version":"2012-10-17","Statement":[{statements}]}}"#);
    assert_refused(&keyed.root("PUT", "/bucket?policy=", policy.as_bytes()), 204, "");
}

/// Returns a statement about objects of `bucket`.
pub(super) fn statement(
    effect: &str,
    principal: &str,
    action: &str,
    resource: &str,
    condition: &str,
) -> String {
    format!(
        r#"{{"Effect":"{effect}","Principal":{principal},"Action":"s3:{action}",
        "Resource":"arn:aws:s3:::bucket{resource}","Condition":{{{condition}}}}}"#
    )
}

pub(super) fn anonymous(keyed: &Keyed, method: &str, target: &str) -> Reply {
    keyed.server.s3.send(method, target, &[], b"")
}

#[test]
fn policy_is_stored_returned_and_deleted() {
    let keyed = Keyed::new();
    assert_refused(&keyed.root("GET", "/bucket?policy=", b""), 404, "NoSuchBucketPolicy");
    let text = r#"{ "Statement": { "Effect": "Allow", "Principal": "*",
        "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*" } }"#;
    assert_refused(&keyed.root("PUT", "/bucket?policy=", text.as_bytes()), 204, "");
    assert_eq!(keyed.root("GET", "/bucket?policy=", b"").text(), text);
    let status = keyed.root("GET", "/bucket?policyStatus=", b"");
    assert_eq!(status.xml("IsPublic").as_deref(), Some("true"));
    let unsupported = text.replace("s3:GetObject", "ec2:Run");
    let refused = keyed.root("PUT", "/bucket?policy=", unsupported.as_bytes());
    assert_refused(&refused, 400, "MalformedPolicy");
    assert!(refused.xml("Message").unwrap().contains("statement 1"), "{}", refused.text());
    assert_eq!(keyed.root("GET", "/bucket?policy=", b"").text(), text);
    assert_refused(&keyed.root("DELETE", "/bucket?policy=", b""), 204, "");
    assert_refused(&keyed.root("GET", "/bucket?policy=", b""), 404, "NoSuchBucketPolicy");
    let status = keyed.root("GET", "/bucket?policyStatus=", b"");
    assert_eq!(status.xml("IsPublic").as_deref(), Some("false"));
    let text = text.replace("bucket/", "absent/");
    assert_refused(&keyed.root("PUT", "/absent?policy=", text.as_bytes()), 404, "NoSuchBucket");
}

#[test]
fn policy_allows_what_no_key_allows() {
    let mut keyed = Keyed::new();
    let (ann, ben) = (keyed.key("ann", &[]), keyed.key("ben", &[]));
    let allow = |principal: &str, action: &str, resource: &str| {
        statement("Allow", principal, action, resource, "")
    };
    let user = r#"{"AWS":"arn:aws:iam:::user/ann"}"#;
    set(&keyed, &[allow("\"*\"", "GetObject", "/dir/*"), allow(user, "ListBucket", "")].join(","));
    for _ in 0..2 {
        // The second time the object is in memory.
        assert_eq!(anonymous(&keyed, "GET", "/bucket/dir/key").text(), "hello");
        assert_eq!(keyed.send(&ben, "GET", "/bucket/dir/key", b"").text(), "hello");
        assert_refused(&anonymous(&keyed, "GET", "/bucket/key"), 403, "AccessDenied");
        assert_refused(&anonymous(&keyed, "GET", "/other/key"), 403, "AccessDenied");
    }
    assert_refused(&anonymous(&keyed, "GET", "/bucket"), 403, "AccessDenied");
    assert_refused(&keyed.send(&ben, "GET", "/bucket", b""), 403, "AccessDenied");
    assert_eq!(keyed.send(&ann, "GET", "/bucket", b"").all_xml("Key").len(), 2);
    assert_refused(&keyed.send(&ann, "PUT", "/bucket/dir/key", b"x"), 403, "AccessDenied");
    // Only a client that may list the bucket learns that an object is missing.
    assert_refused(&anonymous(&keyed, "GET", "/bucket/dir/missing"), 403, "AccessDenied");
    assert_refused(&keyed.send(&ann, "GET", "/bucket/dir/missing", b""), 404, "NoSuchKey");
    assert_refused(&keyed.root("DELETE", "/bucket?policy=", b""), 204, "");
    assert_refused(&anonymous(&keyed, "GET", "/bucket/dir/key"), 403, "AccessDenied");
}

#[test]
fn policy_denies_what_a_key_allows_but_not_to_the_administrator() {
    let mut keyed = Keyed::new();
    let writer = keyed.key("ann", &[("read,write,delete", "bucket")]);
    let all = r#""*""#;
    let deny = [
        statement("Deny", all, "PutObject", "/dir/*", ""),
        statement("Deny", all, "DeleteObject", "/dir/*", ""),
    ];
    set(&keyed, &deny.join(","));
    assert_eq!(keyed.send(&writer, "PUT", "/bucket/key", b"new").status, 200);
    assert_refused(&keyed.send(&writer, "PUT", "/bucket/dir/key", b"new"), 403, "AccessDenied");
    assert_refused(&keyed.copy(&writer, "/bucket/key", "/bucket/dir/key"), 403, "AccessDenied");
    // A version ID, which these operations do not accept, gives no way round.
    let put = keyed.send(&writer, "PUT", "/bucket/dir/key?versionId=null", b"new");
    assert_refused(&put, 400, "InvalidArgument");
    let copy = keyed.copy(&writer, "/bucket/key", "/bucket/dir/key?versionId=null");
    assert_refused(&copy, 400, "InvalidArgument");
    let start = keyed.send(&writer, "POST", "/bucket/dir/key?uploads=", b"");
    assert_refused(&start, 403, "AccessDenied");
    assert_refused(&keyed.send(&writer, "DELETE", "/bucket/dir/key", b""), 403, "AccessDenied");
    let names =
        b"<Delete><Object><Key>dir/key</Key></Object><Object><Key>key</Key></Object></Delete>";
    let one = b"<Delete><Object><Key>dir/key</Key></Object></Delete>";
    let deleted = keyed.send(&writer, "POST", "/bucket?delete=&versionId=null", one);
    assert_eq!(deleted.all_xml("Code"), ["AccessDenied"]);
    let deleted = keyed.send(&writer, "POST", "/bucket?delete=", names);
    assert_eq!(
        (deleted.all_xml("Deleted").len(), deleted.all_xml("Code")),
        (1, vec!["AccessDenied".to_owned()])
    );
    assert_eq!(keyed.root("GET", "/bucket/dir/key", b"").text(), "hello");
    assert_eq!(keyed.root("PUT", "/bucket/dir/key", b"new").status, 200);
}

/// The client has the right, so that the message must not say that it lacks it.
#[test]
fn refusal_names_the_policy_only_if_it_denies() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("read,write", "bucket")]);
    let deny = statement("Deny", r#""*""#, "GetObject", "/dir/*", "");
    set(&keyed, &[deny, statement("Deny", r#""*""#, "PutObject", "/dir/*", "")].join(","));
    let message = |reply: &Reply| {
        assert_refused(reply, 403, "AccessDenied");
        reply.xml("Message").unwrap()
    };
    let denied = ": the policy of the bucket denies it";
    let got = message(&keyed.send(&ann, "GET", "/bucket/dir/key", b""));
    assert!(got.ends_with(&format!("GetObject on bucket/dir/key{denied}")), "{got}");
    let put = message(&keyed.send(&ann, "PUT", "/bucket/dir/key", b"x"));
    assert!(put.ends_with(denied), "{put}");
    let source = message(&keyed.copy(&ann, "/bucket/dir/key", "/bucket/copy"));
    assert!(source.ends_with(denied), "{source}");
    let lacks = message(&keyed.send(&ann, "DELETE", "/bucket/dir/key", b""));
    assert!(lacks.ends_with(": it needs the right delete"), "{lacks}");
    let lacks = message(&anonymous(&keyed, "GET", "/bucket/key"));
    assert!(lacks.ends_with(": it needs the right read"), "{lacks}");
}

#[test]
fn source_of_a_copy_must_be_readable_by_its_policy() {
    let mut keyed = Keyed::new();
    let user = keyed.key("ann", &[("read,write", "other"), ("read", "bucket/key")]);
    let read = statement("Allow", r#""*""#, "GetObject", "/dir/*", "");
    set(&keyed, &[read, statement("Deny", r#""*""#, "GetObject", "/key", "")].join(","));
    assert_eq!(keyed.copy(&user, "/bucket/dir/key", "/other/copy").status, 200);
    assert_refused(&keyed.copy(&user, "/bucket/key", "/other/copy"), 403, "AccessDenied");
}

#[test]
fn conditions_see_the_request_and_the_tags_of_the_object() {
    let mut keyed = Keyed::new();
    let user = keyed.key("ann", &[]);
    let all = r#""*""#;
    let tagged = r#""StringEquals":{"s3:ExistingObjectTag/level":"public"}"#;
    let protected = r#""StringEquals":{"s3:ExistingObjectTag/level":"final"}"#;
    let referer = r#""StringLike":{"aws:Referer":"http://example.org/*"}"#;
    let near =
        r#""IpAddress":{"aws:SourceIp":"127.0.0.0/8"},"Bool":{"aws:SecureTransport":"false"}"#;
    let far = r#""IpAddress":{"aws:SourceIp":"192.0.2.0/24"}"#;
    let prefix = r#""StringEquals":{"s3:prefix":"dir/"}"#;
    set(
        &keyed,
        &[
            statement("Allow", all, "GetObject", "/tagged/*", tagged),
            statement("Allow", all, "GetObject", "/page/*", referer),
            statement("Allow", all, "GetObject", "/near/*", near),
            statement("Allow", all, "GetObject", "/far/*", far),
            statement("Allow", all, "ListBucket", "", prefix),
            statement("Allow", r#"{"AWS":"ann"}"#, "DeleteObject", "/*", ""),
            statement("Deny", all, "DeleteObject", "/*", protected),
        ]
        .join(","),
    );
    for name in ["tagged/a", "tagged/b", "page/a", "near/a", "far/a"] {
        assert_eq!(keyed.root("PUT", &format!("/bucket/{name}"), b"hello").status, 200);
    }
    let tag = |name: &str, level: &str| {
        let tags = format!(
            "<Tagging><TagSet><Tag><Key>level</Key><Value>{level}</Value></Tag></TagSet></Tagging>"
        );
        assert_eq!(
            keyed.root("PUT", &format!("/bucket/{name}?tagging="), tags.as_bytes()).status,
            200
        );
    };
    tag("tagged/a", "public");
    tag("tagged/b", "final");
    assert_eq!(anonymous(&keyed, "GET", "/bucket/tagged/a").status, 200);
    assert_refused(&anonymous(&keyed, "GET", "/bucket/tagged/b"), 403, "AccessDenied");
    let page = |url: &str| keyed.server.s3.send("GET", "/bucket/page/a", &[("referer", url)], b"");
    assert_eq!(page("http://example.org/x").status, 200);
    assert_refused(&page("http://example.com/"), 403, "AccessDenied");
    assert_eq!(anonymous(&keyed, "GET", "/bucket/near/a").status, 200);
    assert_refused(&anonymous(&keyed, "GET", "/bucket/far/a"), 403, "AccessDenied");
    assert_eq!(anonymous(&keyed, "GET", "/bucket?prefix=dir%2F").all_xml("Key"), ["dir/key"]);
    assert_refused(&anonymous(&keyed, "GET", "/bucket?prefix=tagged%2F"), 403, "AccessDenied");
    // Neither request deletes an object with the tag.
    assert_refused(&keyed.send(&user, "DELETE", "/bucket/tagged/b", b""), 403, "AccessDenied");
    let names = b"<Delete><Object><Key>tagged/a</Key></Object><Object><Key>tagged/b</Key></Object></Delete>";
    let deleted = keyed.send(&user, "POST", "/bucket?delete=", names);
    assert_eq!(deleted.all_xml("Deleted").len(), 1, "{}", deleted.text());
    assert_eq!(keyed.root("GET", "/bucket/tagged/b", b"").status, 200);
}

#[test]
fn public_access_block_refuses_and_restricts_public_policies() {
    let mut keyed = Keyed::new();
    let user = keyed.key("ann", &[]);
    let block = |setting: &str| {
        let text = format!(
            "<PublicAccessBlockConfiguration><{setting}>true</{setting}></PublicAccessBlockConfiguration>"
        );
        assert_refused(&keyed.root("PUT", "/bucket?publicAccessBlock=", text.as_bytes()), 200, "");
    };
    let public = statement("Allow", r#""*""#, "GetObject", "/*", "");
    set(&keyed, &public);
    assert_eq!(anonymous(&keyed, "GET", "/bucket/key").status, 200);
    block("RestrictPublicBuckets");
    assert_refused(&anonymous(&keyed, "GET", "/bucket/key"), 403, "AccessDenied");
    assert_refused(&keyed.send(&user, "GET", "/bucket/key", b""), 403, "AccessDenied");
    block("BlockPublicPolicy");
    assert_eq!(anonymous(&keyed, "GET", "/bucket/key").status, 200);
    let policy = format!(r#"{{"Statement":{public}}}"#);
    let refused = keyed.root("PUT", "/bucket?policy=", policy.as_bytes());
    assert_refused(&refused, 403, "AccessDenied");
    set(&keyed, &statement("Allow", r#"{"AWS":"ann"}"#, "GetObject", "/*", ""));
    assert_eq!(keyed.send(&user, "GET", "/bucket/key", b"").status, 200);
    assert_refused(&anonymous(&keyed, "GET", "/bucket/key"), 403, "AccessDenied");
}

/// A version ID in the query of a copy or of DeleteObjects is not that of the object that is used.
#[test]
fn versions_in_the_query_of_other_operations_change_no_decision() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("read", "bucket"), ("write", "other")]);
    set(&keyed, &statement("Deny", "\"*\"", "GetObject", "/*", ""));
    assert_refused(&keyed.copy(&ann, "/bucket/key", "/other/copy"), 403, "AccessDenied");
    let with_version = keyed.copy(&ann, "/bucket/key", "/other/copy?versionId=null");
    assert_refused(&with_version, 400, "InvalidArgument");
    let (ben, user) = (keyed.key("ben", &[]), r#"{"AWS":"ben"}"#);
    let version_condition = r#""StringEquals":{"s3:versionid":"0000000000000007"}"#;
    set(&keyed, &statement("Allow", user, "DeleteObjectVersion", "/*", version_condition));
    let listed = "<Delete><Object><Key>key</Key><VersionId>null</VersionId></Object></Delete>";
    for query in ["delete=", "delete=&versionId=0000000000000007"] {
        let reply = keyed.send(&ben, "POST", &format!("/bucket?{query}"), listed.as_bytes());
        assert_eq!(reply.xml("Code").as_deref(), Some("AccessDenied"), "{}", reply.text());
    }
}

#[test]
fn conditions_see_the_tags_that_are_stored() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("read", "other")]);
    let (user, tag_condition) =
        (r#"{"AWS":"ann"}"#, r#""StringEquals":{"s3:RequestObjectTag/a":"1"}"#);
    let allow = |action| statement("Allow", user, action, "/*", tag_condition);
    set(&keyed, &[allow("PutObject"), allow("PutObjectTagging")].join(","));
    let tags = |value| {
        format!("<Tagging><TagSet><Tag><Key>a</Key><Value>{value}</Value></Tag></TagSet></Tagging>")
    };
    let header = [("x-amz-tagging", "a=1")];
    let tag = |value, headers: &[(&str, &str)]| {
        let body = tags(value).into_bytes();
        let signer = keyed.signer(&ann);
        let hash = hash(&body);
        signer.send_with("PUT", "/bucket/key?tagging=", &hash, headers, |_| body).status
    };
    assert_eq!([tag(1, &[]), tag(2, &[]), tag(2, &header)], [200, 403, 403]);
    assert_eq!(keyed.send_with(&ann, "PUT", "/bucket/new", &header).status, 200);
    assert_eq!(keyed.send_with(&ann, "PUT", "/bucket/new", &[]).status, 403);
    // A copy has the tags of its source, unless it replaces them.
    for (directive, expected) in [("COPY", 403), ("REPLACE", 200)] {
        let directive = ("x-amz-tagging-directive", directive);
        let headers = [header[0], directive, ("x-amz-copy-source", "/other/key")];
        let status = keyed.send_with(&ann, "PUT", "/bucket/copy", &headers).status;
        assert_eq!(status, expected, "{directive:?}");
    }
}

#[test]
fn attributes_need_the_right_to_the_object() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("read", "bucket")]);
    let send = |keyed: &Keyed| {
        let headers = [("x-amz-object-attributes", "ETag")];
        keyed.send_with(&ann, "GET", "/bucket/key?attributes=", &headers).status
    };
    assert_eq!(send(&keyed), 200);
    set(&keyed, &statement("Deny", "\"*\"", "GetObject", "/*", ""));
    assert_eq!(send(&keyed), 403);
}

#[test]
fn client_that_may_list_a_prefix_learns_which_objects_are_missing_there() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[]);
    let condition = r#""StringLike":{"s3:prefix":"public/*"}"#;
    set(&keyed, &statement("Allow", r#"{"AWS":"ann"}"#, "ListBucket", "", condition));
    assert_eq!(keyed.root("PUT", "/bucket/public/key", b"hello").status, 200);
    for method in ["HEAD", "GET"] {
        let status = |target: &str| keyed.send(&ann, method, target, b"").status;
        assert_eq!(status("/bucket/public/missing"), 404, "{method}");
        assert_eq!(status("/bucket/public/key"), 403, "{method}");
        assert_eq!(status("/bucket/private/missing"), 403, "{method}");
        assert_eq!(anonymous(&keyed, method, "/bucket/public/missing").status, 403, "{method}");
    }
    let deny = statement("Deny", "\"*\"", "GetObject", "/public/*", "");
    let allow = statement("Allow", r#"{"AWS":"ann"}"#, "ListBucket", "", condition);
    set(&keyed, &[allow, deny].join(","));
    assert_eq!(keyed.send(&ann, "GET", "/bucket/public/missing", b"").status, 403);
}

#[test]
fn status_counts_public_lists_as_public() {
    let keyed = Keyed::new();
    let is_public = || keyed.root("GET", "/bucket?policyStatus=", b"").xml("IsPublic").unwrap();
    assert_eq!(is_public(), "false");
    let administrator = super::administrator();
    let signer = crate::signing::Signer {
        client: keyed.server.s3,
        access_key: &administrator.access_key,
        secret_key: &administrator.secret_key,
    };
    let empty = hash(b"");
    for (list, expected) in
        [("public-read", "true"), ("private", "false"), ("authenticated-read", "true")]
    {
        let set =
            signer.send_with("PUT", "/bucket?acl=", &empty, &[("x-amz-acl", list)], |_| Vec::new());
        assert_refused(&set, 200, "");
        assert_eq!(is_public(), expected, "{list}");
    }
    let ignore = "<PublicAccessBlockConfiguration><IgnorePublicAcls>true</IgnorePublicAcls>\
                  </PublicAccessBlockConfiguration>";
    let set = keyed.root("PUT", "/bucket?publicAccessBlock=", ignore.as_bytes());
    assert_refused(&set, 200, "");
    assert_eq!(is_public(), "false");
}
