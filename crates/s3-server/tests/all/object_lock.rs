//! Buckets with object lock.

use crate::client::{Reply, Running, assert_refused};

const UNTIL: &str = "2099-01-01T00:00:00.000Z";
const LATER: &str = "2099-01-02T00:00:00.000Z";
const BYPASS: (&str, &str) = ("x-amz-bypass-governance-retention", "true");

/// Returns a server whose bucket `locked` has object lock.
fn locked() -> Running {
    let server = Running::new();
    let headers = [("x-amz-bucket-object-lock-enabled", "true")];
    assert_eq!(server.s3.send("PUT", "/locked", &headers, b"").status, 200);
    server
}

/// Stores an object with these headers and returns its version ID.
fn put(server: &Running, target: &str, headers: &[(&str, &str)]) -> String {
    let reply = server.s3.send("PUT", target, headers, b"hello");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.header("x-amz-version-id").unwrap().to_owned()
}

fn retention(mode: &str, until: &str) -> String {
    format!("<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>")
}

fn configuration(rule: &str) -> String {
    format!(
        "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>{rule}\
         </ObjectLockConfiguration>"
    )
}

fn rule(content: &str) -> String {
    configuration(&format!("<Rule><DefaultRetention>{content}</DefaultRetention></Rule>"))
}

fn put_xml(server: &Running, target: &str, xml: &str) -> Reply {
    server.s3.put(target, xml.as_bytes())
}

#[test]
fn object_lock_is_enabled_for_a_bucket() {
    let server = locked();
    let none = server.s3.get("/bucket?object-lock");
    assert_refused(&none, 404, "ObjectLockConfigurationNotFoundError");
    let found = server.s3.get("/locked?object-lock");
    assert_eq!(found.xml("ObjectLockEnabled").as_deref(), Some("Enabled"));
    assert_eq!(found.xml("Rule"), None);
    assert_eq!(server.s3.get("/locked?versioning").xml("Status").as_deref(), Some("Enabled"));
    let suspended = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    assert_refused(&put_xml(&server, "/locked?versioning", suspended), 409, "InvalidBucketState");
    let enabled = configuration("");
    assert_refused(&put_xml(&server, "/bucket?object-lock", &enabled), 409, "InvalidBucketState");
    put_xml(&server, "/bucket?versioning", &suspended.replace("Suspended", "Enabled"));
    assert_eq!(put_xml(&server, "/bucket?object-lock", &enabled).status, 200);
    assert_eq!(server.s3.get("/bucket?object-lock").status, 200);
    // The creation can be repeated, but not to enable locks.
    let headers = [("x-amz-bucket-object-lock-enabled", "true")];
    assert_eq!(server.s3.send("PUT", "/locked", &headers, b"").status, 200);
    assert_eq!(server.s3.put("/other", b"").status, 200);
    let again = server.s3.send("PUT", "/other", &headers, b"");
    assert_refused(&again, 409, "BucketAlreadyOwnedByYou");
    assert_refused(&server.s3.get("/absent?object-lock"), 404, "NoSuchBucket");
}

#[test]
fn default_retention_is_stored_and_applied() {
    let server = locked();
    for (content, status, code) in [
        ("<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>", 400, "MalformedXML"),
        ("<Mode>GOVERNANCE</Mode>", 400, "MalformedXML"),
        ("<Mode>governance</Mode><Days>1</Days>", 400, "MalformedXML"),
        ("<Days>1</Days>", 400, "MalformedXML"),
        ("<Mode>GOVERNANCE</Mode><Days>0</Days>", 400, "InvalidRetentionPeriod"),
        ("<Mode>GOVERNANCE</Mode><Years>-1</Years>", 400, "InvalidRetentionPeriod"),
        ("<Mode>GOVERNANCE</Mode><Years>101</Years>", 400, "InvalidRetentionPeriod"),
    ] {
        assert_refused(&put_xml(&server, "/locked?object-lock", &rule(content)), status, code);
    }
    let disabled = configuration("").replace("Enabled<", "Disabled<");
    assert_refused(&put_xml(&server, "/locked?object-lock", &disabled), 400, "MalformedXML");
    let years = rule("<Mode>COMPLIANCE</Mode><Years>2</Years>");
    assert_eq!(put_xml(&server, "/locked?object-lock", &years).status, 200);
    let found = server.s3.get("/locked?object-lock");
    let parts = ["Mode", "Years", "Days"].map(|name| found.xml(name));
    assert_eq!(parts, [Some("COMPLIANCE".to_owned()), Some("2".to_owned()), None]);
    let version = put(&server, "/locked/key", &[]);
    assert_eq!(server.s3.head("/locked/key").header("x-amz-object-lock-mode"), Some("COMPLIANCE"));
    let target = format!("/locked/key?versionId={version}");
    assert_refused(&server.s3.send("DELETE", &target, &[BYPASS], b""), 403, "AccessDenied");
    assert_eq!(put_xml(&server, "/locked?object-lock", &configuration("")).status, 200);
    put(&server, "/locked/key", &[]);
    assert_eq!(server.s3.head("/locked/key").header("x-amz-object-lock-mode"), None);
}

#[test]
fn locks_are_set_by_headers_of_writes() {
    let server = locked();
    let headers = [
        ("x-amz-object-lock-mode", "GOVERNANCE"),
        ("x-amz-object-lock-retain-until-date", UNTIL),
        ("x-amz-object-lock-legal-hold", "ON"),
    ];
    put(&server, "/locked/put", &headers);
    let copy = [&headers[..], &[("x-amz-copy-source", "/locked/put")]].concat();
    assert_eq!(server.s3.send("PUT", "/locked/copy", &copy, b"").status, 200);
    let created = server.s3.send("POST", "/locked/parts?uploads", &headers, b"");
    let upload = created.xml("UploadId").unwrap();
    let part = server.s3.put(&format!("/locked/parts?partNumber=1&uploadId={upload}"), b"hello");
    let list = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>\
         </CompleteMultipartUpload>",
        part.header("etag").unwrap()
    );
    assert_eq!(server.s3.post(&format!("/locked/parts?uploadId={upload}"), &list).status, 200);
    for key in ["put", "copy", "parts"] {
        for method in ["GET", "HEAD"] {
            let reply = server.s3.send(method, &format!("/locked/{key}"), &[], b"");
            for (name, value) in headers {
                assert_eq!(reply.header(name), Some(value), "{method} {key}");
            }
            let version = reply.header("x-amz-version-id").unwrap();
            let target = format!("/locked/{key}?versionId={version}");
            let refused = server.s3.send("DELETE", &target, &[BYPASS], b"");
            assert_refused(&refused, 403, "AccessDenied");
        }
        assert_eq!(server.s3.delete(&format!("/locked/{key}")).status, 204, "gets a marker");
    }
    let from = [("x-amz-copy-source", "/locked/put")];
    put(&server, "/locked/put", &headers);
    assert_eq!(server.s3.send("PUT", "/locked/free", &from, b"").status, 200);
    let free = server.s3.head("/locked/free");
    assert!(headers.iter().all(|(name, _)| free.header(name).is_none()), "{:?}", free.headers());
    assert_eq!(server.s3.send("PUT", "/bucket/free", &from, b"").status, 200);
    for (bad, status, code) in [
        (&headers[..1], 400, "InvalidArgument"),
        (&headers[1..2], 400, "InvalidArgument"),
        (&[("x-amz-object-lock-mode", "x"), headers[1]], 400, "InvalidArgument"),
        (
            &[headers[0], ("x-amz-object-lock-retain-until-date", "2020-01-01T00:00:00Z")],
            400,
            "InvalidArgument",
        ),
        (&[("x-amz-object-lock-legal-hold", "on")], 400, "InvalidArgument"),
    ] {
        assert_refused(&server.s3.send("PUT", "/locked/key", bad, b"x"), status, code);
    }
    for target in ["/bucket/key", "/bucket/key?uploads"] {
        let method = if target.contains('?') { "POST" } else { "PUT" };
        assert_refused(&server.s3.send(method, target, &headers, b""), 400, "InvalidRequest");
    }
}

#[test]
fn retention_is_extended_and_in_governance_mode_bypassed() {
    let server = locked();
    let version = put(&server, "/locked/key", &[]);
    let none = server.s3.get("/locked/key?retention");
    assert_refused(&none, 404, "NoSuchObjectLockConfiguration");
    let set = |mode, until, headers: &[(&str, &str)]| {
        let xml = retention(mode, until);
        server.s3.send("PUT", "/locked/key?retention", headers, xml.as_bytes())
    };
    assert_eq!(set("GOVERNANCE", LATER, &[]).status, 200);
    assert_refused(&set("GOVERNANCE", UNTIL, &[]), 403, "AccessDenied");
    assert_refused(&set("COMPLIANCE", LATER, &[]), 403, "AccessDenied");
    assert_eq!(set("GOVERNANCE", UNTIL, &[BYPASS]).status, 200);
    let found = server.s3.get(&format!("/locked/key?retention&versionId={version}"));
    assert_eq!(found.xml("Mode").as_deref(), Some("GOVERNANCE"));
    assert_eq!(found.xml("RetainUntilDate").as_deref(), Some(UNTIL));
    for (mode, until, code) in [
        ("governance", UNTIL, "MalformedXML"),
        ("GOVERNANCE", "2020-01-01T00:00:00Z", "InvalidArgument"),
    ] {
        assert_refused(&set(mode, until, &[]), 400, code);
    }
    let target = format!("/locked/key?versionId={version}");
    assert_refused(&server.s3.delete(&target), 403, "AccessDenied");
    let list =
        format!("<Delete><Object><Key>key</Key><VersionId>{version}</VersionId></Object></Delete>");
    let many = server.s3.post("/locked?delete", &list);
    assert_eq!((many.xml("Code").as_deref(), many.xml("Deleted")), (Some("AccessDenied"), None));
    assert_eq!(set("COMPLIANCE", UNTIL, &[BYPASS]).status, 200);
    assert_refused(&set("COMPLIANCE", "2098-01-01T00:00:00Z", &[BYPASS]), 403, "AccessDenied");
    let removed = server.s3.send("PUT", "/locked/key?retention", &[BYPASS], b"<Retention/>");
    assert_refused(&removed, 403, "AccessDenied");
    assert_eq!(set("COMPLIANCE", LATER, &[]).status, 200);
    assert_refused(&server.s3.send("DELETE", &target, &[BYPASS], b""), 403, "AccessDenied");
    // In governance mode, it is deleted, and its retention is removed.
    let version = put(&server, "/locked/key", &[]);
    assert_eq!(set("GOVERNANCE", UNTIL, &[]).status, 200);
    let removed = server.s3.send("PUT", "/locked/key?retention", &[BYPASS], b"<Retention/>");
    assert_eq!(removed.status, 200, "{}", removed.text());
    assert_eq!(set("GOVERNANCE", UNTIL, &[]).status, 200);
    let target = format!("/locked/key?versionId={version}");
    assert_eq!(server.s3.send("DELETE", &target, &[BYPASS], b"").status, 204);
}

#[test]
fn legal_hold_protects_a_version_until_it_is_lifted() {
    let server = locked();
    let version = put(&server, "/locked/key", &[]);
    let none = server.s3.get("/locked/key?legal-hold");
    assert_refused(&none, 404, "NoSuchObjectLockConfiguration");
    let set = |status: &str| {
        let xml = format!("<LegalHold><Status>{status}</Status></LegalHold>");
        put_xml(&server, "/locked/key?legal-hold", &xml)
    };
    assert_refused(&set("on"), 400, "MalformedXML");
    let target = format!("/locked/key?versionId={version}");
    for (status, code) in [("ON", 403), ("OFF", 204)] {
        assert_eq!(set(status).status, 200);
        let shown = server.s3.get("/locked/key?legal-hold").xml("Status");
        assert_eq!(shown.as_deref(), Some(status));
        // Tags are changed without the lock.
        let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
        assert_eq!(put_xml(&server, "/locked/key?tagging", tags).status, 200);
        let head = server.s3.head("/locked/key");
        assert_eq!(head.header("x-amz-object-lock-legal-hold"), Some(status));
        assert_eq!(server.s3.send("DELETE", &target, &[BYPASS], b"").status, code);
    }
    assert_eq!(server.s3.put("/bucket/key", b"x").status, 200);
    for target in ["/bucket/key?legal-hold", "/bucket/key?retention"] {
        assert_refused(&server.s3.get(target), 400, "InvalidRequest");
    }
    let hold = "<LegalHold><Status>ON</Status></LegalHold>";
    assert_refused(&put_xml(&server, "/bucket/key?legal-hold", hold), 400, "InvalidRequest");
    let xml = retention("GOVERNANCE", UNTIL);
    assert_refused(&put_xml(&server, "/bucket/key?retention", &xml), 400, "InvalidRequest");
    assert_refused(&put_xml(&server, "/locked/none?retention", &xml), 404, "NoSuchKey");
    let marker = server.s3.delete("/locked/none");
    let marker = marker.header("x-amz-version-id").unwrap();
    let target = format!("/locked/none?retention&versionId={marker}");
    assert_refused(&put_xml(&server, &target, &xml), 405, "MethodNotAllowed");
}

#[test]
fn retention_beyond_the_last_year_is_refused() {
    let server = locked();
    put(&server, "/locked/key", &[]);
    let beyond = "9999-12-31T23:59:59-01:00";
    let xml = retention("GOVERNANCE", beyond);
    assert_refused(&put_xml(&server, "/locked/key?retention", &xml), 400, "InvalidArgument");
    let headers =
        [("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", beyond)];
    let put = server.s3.send("PUT", "/locked/other", &headers, b"hello");
    assert_refused(&put, 400, "InvalidArgument");
    let last = retention("GOVERNANCE", "9999-12-31T23:59:59Z");
    assert_refused(&put_xml(&server, "/locked/key?retention", &last), 200, "");
    assert_eq!(server.s3.get("/locked/key").text(), "hello");
}
