//! The rights to lock objects, and to remove locked ones.

use haul_s3_server::Key;

use super::{Keyed, is_allowed};
use crate::client::assert_refused;
use crate::signing::hash;

const BYPASS: (&str, &str) = ("x-amz-bypass-governance-retention", "true");

/// Returns a server on which ann owns the bucket `locked`.
fn keyed() -> (Keyed, Key) {
    let mut keyed = Keyed::new();
    let ann = keyed.key_with("ann", &[], |key| key.creates_buckets = true);
    let headers = [("x-amz-bucket-object-lock-enabled", "true")];
    assert_eq!(keyed.send_with(&ann, "PUT", "/locked", &headers).status, 200);
    (keyed, ann)
}

/// Stores a version as ann, in governance mode, and returns its target.
fn put(keyed: &Keyed, ann: &Key) -> String {
    let headers = [
        ("x-amz-object-lock-mode", "GOVERNANCE"),
        ("x-amz-object-lock-retain-until-date", "2099-01-02T00:00:00Z"),
    ];
    let stored = keyed.send_with(ann, "PUT", "/locked/key", &headers);
    assert_eq!(stored.status, 200, "{}", stored.text());
    format!("/locked/key?versionId={}", stored.header("x-amz-version-id").unwrap())
}

#[test]
fn governance_mode_is_bypassed_with_the_right_admin_only() {
    let (mut keyed, ann) = keyed();
    let ben = keyed.key("ben", &[("read,write,list,delete", "locked")]);
    let eve = keyed.key("eve", &[("admin", "locked")]);
    let shorter = b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2099-01-01T00:00:00Z\
                    </RetainUntilDate></Retention>";
    let shorten = |keyed: &Keyed, key: &Key| {
        let signer = keyed.signer(key);
        let send = |_: &_| shorter.to_vec();
        let status =
            signer.send_with("PUT", "/locked/key?retention=", &hash(shorter), &[BYPASS], send);
        status.status
    };
    for (key, expected) in [(&ben, 403), (&eve, 200), (&ann, 200)] {
        let target = put(&keyed, &ann);
        assert_eq!(shorten(&keyed, key), expected);
        let kept = keyed.send(key, "DELETE", &target, b"");
        assert_refused(&kept, 403, "AccessDenied");
        let deleted = keyed.send_with(key, "DELETE", &target, &[BYPASS]);
        assert_eq!(deleted.status, if expected == 200 { 204 } else { 403 });
    }
    let target = put(&keyed, &ann);
    let allow = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow",
        "Principal":{"AWS":["ben"]},"Action":"s3:BypassGovernanceRetention",
        "Resource":"arn:aws:s3:::locked/*"}}"#;
    let set = keyed.send(&ann, "PUT", "/locked?policy=", allow.as_bytes());
    assert_eq!(set.status, 204, "{}", set.text());
    assert_eq!(keyed.send_with(&ben, "DELETE", &target, &[BYPASS]).status, 204);
    let target = put(&keyed, &ann);
    assert_eq!(keyed.root("DELETE", &target, b"").status, 403);
    let deny = allow.replace("Allow", "Deny").replace("\"ben\"", "\"eve\"");
    assert_eq!(keyed.send(&ann, "PUT", "/locked?policy=", deny.as_bytes()).status, 204);
    assert_eq!(keyed.send_with(&eve, "DELETE", &target, &[BYPASS]).status, 403);
}

#[test]
fn writers_place_legal_holds_and_only_admins_lift_them() {
    let (mut keyed, ann) = keyed();
    let writer = keyed.key("ben", &[("write", "locked")]);
    let reader = keyed.key("eve", &[("read", "locked")]);
    put(&keyed, &ann);
    let hold = |status: &str| format!("<LegalHold><Status>{status}</Status></LegalHold>");
    let set = |key: &Key, status: &str| {
        let xml = hold(status);
        is_allowed(&keyed.send(key, "PUT", "/locked/key?legal-hold=", xml.as_bytes()), "PUT")
    };
    assert!(!set(&reader, "ON") && set(&writer, "ON"));
    assert!(!set(&reader, "OFF") && !set(&writer, "OFF") && set(&ann, "OFF"));
    for (target, body) in [("/locked?object-lock=", ""), ("/locked/key?retention=", "")] {
        assert_eq!(keyed.send(&reader, "GET", target, body.as_bytes()).status, 200, "{target}");
    }
    let enabled = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>\
                   </ObjectLockConfiguration>";
    for (key, expected) in [(&writer, false), (&ann, true)] {
        let reply = keyed.send(key, "PUT", "/locked?object-lock=", enabled.as_bytes());
        assert_eq!(is_allowed(&reply, "PUT"), expected);
    }
}

/// The holder of a presigned URL cannot add the header that bypasses a lock, or that sets one.
#[test]
fn headers_of_locks_must_be_signed() {
    let (keyed, ann) = keyed();
    let target = put(&keyed, &ann);
    let (path, query) = target.split_once('?').unwrap();
    let url = keyed.signer(&ann).presign("DELETE", path, 0, 60);
    // A version ID that is not signed is no part of the URL.
    assert_eq!(keyed.server.s3.send("DELETE", &format!("{url}&{query}"), &[], b"").status, 403);
    let lock = [
        ("x-amz-object-lock-mode", "COMPLIANCE"),
        ("x-amz-object-lock-retain-until-date", "2099-01-01T00:00:00Z"),
    ];
    let url = keyed.signer(&ann).presign("PUT", "/locked/other", 0, 60);
    for headers in [&[BYPASS][..], &lock, &[("x-amz-tagging", "a=b")]] {
        let reply = keyed.server.s3.send("PUT", &url, headers, b"x");
        assert_refused(&reply, 403, "AccessDenied");
    }
    assert_eq!(keyed.server.s3.send("PUT", &url, &[], b"x").status, 200);
}

/// A policy or a list that allows to store objects does not allow to lock or tag them.
#[test]
fn stored_objects_are_locked_and_tagged_by_those_who_may() {
    let (mut keyed, ann) = keyed();
    let ben = keyed.key("ben", &[("read", "other")]);
    let tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    assert_eq!(keyed.root("PUT", "/other/tagged", b"").status, 200);
    assert_eq!(keyed.root("PUT", "/other/tagged?tagging=", tags).status, 200);
    let lock = [
        ("x-amz-object-lock-mode", "COMPLIANCE"),
        ("x-amz-object-lock-retain-until-date", "2099-01-01T00:00:00Z"),
    ];
    let headers =
        [&lock[..], &[("x-amz-object-lock-legal-hold", "ON")], &[("x-amz-tagging", "a=b")]];
    let allow = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"ben"},
        "Action":"s3:PutObject","Resource":"arn:aws:s3:::locked/*"}]}"#;
    assert_eq!(keyed.send(&ann, "PUT", "/locked?policy=", allow.as_bytes()).status, 204);
    for headers in headers {
        let reply = keyed.send_with(&ben, "PUT", "/locked/key", headers);
        assert_refused(&reply, 403, "AccessDenied");
    }
    assert_eq!(keyed.send(&ben, "PUT", "/locked/key", b"").status, 200);
    // A copy has the tags of its source.
    assert_refused(&keyed.copy(&ben, "/other/tagged", "/locked/key"), 403, "AccessDenied");
    assert_eq!(keyed.copy(&ben, "/other/key", "/locked/key").status, 200);
    assert_eq!(keyed.send(&ann, "DELETE", "/locked?policy=", b"").status, 204);
    let list = [("x-amz-grant-write", "id=ben")];
    assert_eq!(keyed.send_with(&ann, "PUT", "/locked?acl=", &list).status, 200);
    for headers in headers {
        let reply = keyed.send_with(&ben, "PUT", "/locked/key", headers);
        assert_refused(&reply, 403, "AccessDenied");
    }
    assert_eq!(keyed.send(&ben, "PUT", "/locked/key", b"").status, 200);
    // A copy has the tags of its source.
    assert_refused(&keyed.copy(&ben, "/other/tagged", "/locked/key"), 403, "AccessDenied");
    assert_eq!(keyed.copy(&ben, "/other/key", "/locked/key").status, 200);
    for headers in headers {
        assert_eq!(keyed.send_with(&ann, "PUT", "/locked/key", headers).status, 200);
    }
}

#[test]
fn tags_of_a_copy_need_the_rights_of_tags_in_a_request() {
    let mut keyed = Keyed::new();
    let ben = keyed.key("ben", &[("read,write", "bucket")]);
    let tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    assert_eq!(keyed.root("PUT", "/bucket/key?tagging=", tags).status, 200);
    let copied = |directive: &str, tags: &str| {
        let headers = [
            ("x-amz-copy-source", "/bucket/key"),
            ("x-amz-tagging-directive", directive),
            ("x-amz-tagging", tags),
        ];
        let count = if tags.is_empty() { 2 } else { 3 };
        keyed.send_with(&ben, "PUT", "/bucket/copy", &headers[..count])
    };
    for (action, condition) in [
        ("PutObjectTagging", ""),
        ("PutObjectTagging", r#","Condition":{"StringEquals":{"s3:RequestObjectTag/a":"b"}}"#),
        ("PutObject", r#","Condition":{"StringEquals":{"s3:RequestObjectTag/a":"b"}}"#),
    ] {
        assert_refused(&copied("COPY", ""), 200, "");
        let read = keyed.root("GET", "/bucket/copy?tagging=", b"");
        assert_eq!(read.xml("Value").as_deref(), Some("b"));
        let policy = format!(
            r#"{{"Statement":{{"Effect":"Deny","Principal":{{"AWS":"ben"}},"Action":"s3:{action}",
            "Resource":"arn:aws:s3:::bucket/*"{condition}}}}}"#
        );
        assert_refused(&keyed.root("PUT", "/bucket?policy=", policy.as_bytes()), 204, "");
        assert_refused(&copied("COPY", ""), 403, "AccessDenied");
        assert_refused(&copied("REPLACE", "a=b"), 403, "AccessDenied");
        assert_refused(&copied("REPLACE", ""), 200, "");
        assert_refused(&keyed.root("DELETE", "/bucket?policy=", b""), 204, "");
    }
}

#[test]
fn policies_compare_the_lock_in_headers_and_bodies() {
    let (mut keyed, ann) = keyed();
    let ben = keyed.key("ben", &[("read,write", "locked")]);
    let deny = |action: &str, operator: &str, key: &str, value: &str| {
        format!(
            r#"{{"Effect":"Deny","Principal":{{"AWS":["ben"]}},"Action":"s3:{action}",
            "Resource":"arn:aws:s3:::locked/*","Condition":{{"{operator}":{{"{key}":"{value}"}}}}}}"#
        )
    };
    let days = "s3:object-lock-remaining-retention-days";
    let until = "s3:object-lock-retain-until-date";
    let statements = [
        deny("*", "StringEquals", "s3:object-lock-mode", "COMPLIANCE"),
        deny("PutObjectRetention", "NumericGreaterThan", days, "10000"),
        deny("PutObject", "DateGreaterThan", until, "2050-01-01T00:00:00Z"),
        deny("PutObjectLegalHold", "StringEquals", "s3:object-lock-legal-hold", "ON"),
    ];
    let policy = format!(r#"{{"Version":"2012-10-17","Statement":[{}]}}"#, statements.join(","));
    let set = keyed.send(&ann, "PUT", "/locked?policy=", policy.as_bytes());
    assert_refused(&set, 204, "");
    let put = |mode: &str, year: u16| {
        let until = format!("{year}-01-01T00:00:00Z");
        let headers =
            [("x-amz-object-lock-mode", mode), ("x-amz-object-lock-retain-until-date", &*until)];
        keyed.send_with(&ben, "PUT", "/locked/key", &headers)
    };
    assert_refused(&put("COMPLIANCE", 2040), 403, "AccessDenied");
    assert_refused(&put("GOVERNANCE", 2060), 403, "AccessDenied");
    assert_refused(&put("GOVERNANCE", 2040), 200, "");
    let retain = |mode: &str, year: u16| {
        let xml = format!(
            "<Retention><Mode>{mode}</Mode><RetainUntilDate>{year}-01-01T00:00:00Z\
             </RetainUntilDate></Retention>"
        );
        keyed.send(&ben, "PUT", "/locked/key?retention=", xml.as_bytes())
    };
    assert_refused(&retain("COMPLIANCE", 2041), 403, "AccessDenied");
    assert_refused(&retain("GOVERNANCE", 2090), 403, "AccessDenied");
    assert_refused(&retain("GOVERNANCE", 2041), 200, "");
    let hold = b"<LegalHold><Status>ON</Status></LegalHold>";
    let held = keyed.send(&ben, "PUT", "/locked/key?legal-hold=", hold);
    assert_refused(&held, 403, "AccessDenied");
    assert_refused(&keyed.send(&ann, "PUT", "/locked/key?legal-hold=", hold), 200, "");
}
