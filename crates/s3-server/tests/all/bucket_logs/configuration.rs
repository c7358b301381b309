use super::{HOUR, POLICY, delivered_after, document, logged, set};
use crate::client::{Running, assert_refused};

#[test]
fn configuration_is_returned_with_its_format_of_keys_until_it_is_removed() {
    let server = logged(delivered_after(HOUR));
    let s3 = &server.s3;
    assert_eq!(s3.get("/other?logging").xml("LoggingEnabled"), None);
    let simple = s3.get("/bucket?logging");
    assert_eq!(simple.xml("TargetBucket").as_deref(), Some("logs"));
    assert_eq!(simple.xml("TargetPrefix").as_deref(), Some("log/"));
    assert!(simple.text().contains("SimplePrefix"), "the default format: {}", simple.text());
    for source in ["EventTime", "DeliveryTime"] {
        let format = format!(
            "<TargetGrants/><TargetObjectKeyFormat><PartitionedPrefix><PartitionDateSource>{source}\
             </PartitionDateSource></PartitionedPrefix></TargetObjectKeyFormat>"
        );
        set(s3, &document("logs", "log/x/", &format));
        let found = s3.get("/bucket?logging");
        assert_eq!(found.xml("PartitionDateSource").as_deref(), Some(source));
        assert!(!found.text().contains("TargetGrants"), "grants are ignored: {}", found.text());
    }
    set(s3, "<BucketLoggingStatus/>");
    assert_eq!(s3.get("/bucket?logging").xml("TargetBucket"), None);
    set(s3, "<BucketLoggingStatus/>");
}

#[test]
fn configuration_that_cannot_be_delivered_is_refused() {
    let server = logged(delivered_after(HOUR));
    let s3 = &server.s3;
    let put = |target: &str, prefix: &str, format: &str| {
        s3.put("/other?logging", document(target, prefix, format).as_bytes())
    };
    assert_refused(&put("none", "log/", ""), 400, "InvalidTargetBucketForLogging");
    assert_refused(&put("a", "log/", ""), 400, "InvalidTargetBucketForLogging");
    assert_refused(&put("bucket", "log/", ""), 403, "AccessDenied");
    assert_refused(&put("logs", "elsewhere/", ""), 403, "AccessDenied");
    let unknown = "<TargetObjectKeyFormat><PartitionedPrefix><PartitionDateSource>Noon\
                   </PartitionDateSource></PartitionedPrefix></TargetObjectKeyFormat>";
    assert_refused(&put("logs", "log/", unknown), 400, "MalformedXML");
    let both = "<TargetObjectKeyFormat><SimplePrefix/><PartitionedPrefix/></TargetObjectKeyFormat>";
    assert_refused(&put("logs", "log/", both), 400, "MalformedXML");
    let missing = document("logs", "log/", "");
    assert_refused(&s3.put("/none?logging", missing.as_bytes()), 404, "NoSuchBucket");
    assert_eq!(s3.get("/other?logging").xml("TargetBucket"), None, "nothing was stored");
}

#[test]
fn policy_of_the_target_decides_about_source_and_prefix() {
    let server = logged(delivered_after(HOUR));
    let s3 = &server.s3;
    let deny = r#"{"Effect":"Deny","Principal":"*","Action":"s3:PutObject",
        "Resource":"arn:aws:s3:::logs/*"}"#;
    let allow = POLICY.strip_prefix(r#"{"Statement":"#).unwrap().strip_suffix('}').unwrap();
    let everyone = allow.replace(r#"{"Service":"logging.s3.amazonaws.com"}"#, "\"*\"");
    let prefix_only = allow.replace("logs/log/*", "logs/log/");
    for (statements, is_allowed) in [
        (allow.to_owned(), true),
        (prefix_only, true),
        (everyone, false),
        (format!("{allow},{deny}"), false),
        (allow.replace("logging.s3", "cloudtrail"), false),
        (allow.replace("PutObject", "GetObject"), false),
        (allow.replace("arn:aws:s3:::*", "arn:aws:s3:::bucket"), true),
        (allow.replace("arn:aws:s3:::*", "arn:aws:s3:::other"), false),
        (allow.replace(r#""haul","ann""#, r#""ann""#), false),
    ] {
        let policy = format!(r#"{{"Statement":[{statements}]}}"#);
        assert_refused(&s3.put("/logs?policy", policy.as_bytes()), 204, "");
        let reply = s3.put("/bucket?logging", document("logs", "log/", "").as_bytes());
        assert_eq!(reply.status == 200, is_allowed, "{policy}");
    }
}

#[test]
fn configuration_survives_a_restart() {
    let server = logged(delivered_after(HOUR));
    let dir = server.into_dir();
    let server = Running::on(dir, None, delivered_after(HOUR));
    assert_eq!(server.s3.get("/bucket?logging").xml("TargetBucket").as_deref(), Some("logs"));
    assert_eq!(server.s3.put("/bucket/key", b"hello").status, 200);
    let server = Running::on(server.into_dir(), None, delivered_after(HOUR));
    let lines = super::lines(&server.s3);
    assert!(lines.iter().any(|line| line.contains(" REST.PUT.OBJECT key ")), "{lines:#?}");
}
