//! Lifecycle configurations, and their effect on objects and uploads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haul_file_store::{Options, TimeSource};
use haul_testing::eventually;

use crate::client::{Reply, Running, assert_refused, small};

const DAY_MS: u64 = 24 * 3_600_000;

/// 2026-01-01, noon UTC.
const NOON_MS: u64 = 20_454 * DAY_MS + DAY_MS / 2;

const RULES: &str = "<LifecycleConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
    <Rule><ID>old logs</ID><Filter><Prefix>logs/</Prefix></Filter><Status>Enabled</Status>\
    <Expiration><Days>2</Days></Expiration></Rule>\
    <Rule><ID>uploads</ID><Filter></Filter><Status>Enabled</Status>\
    <AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation>\
    </AbortIncompleteMultipartUpload></Rule></LifecycleConfiguration>";

/// Starts a server with a bucket, a clock that the test controls, and frequent sweeps.
fn server() -> (Running, Arc<AtomicU64>) {
    let time = Arc::new(AtomicU64::new(NOON_MS));
    let server = Running::with_options(Options {
        time: TimeSource::Manual(Arc::clone(&time)),
        lifecycle_check_every: Duration::from_millis(20),
        ..small()
    });
    (server, time)
}

fn put_rules(server: &Running, rules: &str) -> Reply {
    server.s3.put("/bucket?lifecycle", rules.as_bytes())
}

#[test]
fn configuration_is_stored_returned_and_deleted() {
    let server = Running::new();
    let get = || server.s3.get("/bucket?lifecycle");
    assert_refused(&get(), 404, "NoSuchLifecycleConfiguration");
    assert_refused(&put_rules(&server, RULES), 200, "");
    let found = get();
    assert_eq!(found.all_xml("ID"), ["old logs", "uploads"]);
    assert_eq!(found.all_xml("Days"), ["2"]);
    assert_eq!(found.all_xml("DaysAfterInitiation"), ["1"]);
    assert!(found.text().contains("<LifecycleConfiguration"), "{}", found.text());
    let one = RULES.replace("old logs", "other");
    assert_refused(&put_rules(&server, &one), 200, "");
    assert_eq!(get().all_xml("ID"), ["other", "uploads"]);
    assert_refused(&server.s3.delete("/bucket?lifecycle"), 204, "");
    assert_refused(&get(), 404, "NoSuchLifecycleConfiguration");
    assert_refused(&server.s3.delete("/bucket?lifecycle"), 204, "");
    for reply in [
        server.s3.get("/absent?lifecycle"),
        server.s3.delete("/absent?lifecycle"),
        server.s3.put("/absent?lifecycle", RULES.as_bytes()),
    ] {
        assert_refused(&reply, 404, "NoSuchBucket");
    }
}

#[test]
fn refused_configuration_leaves_the_previous_one() {
    let server = Running::new();
    assert_refused(&put_rules(&server, RULES), 200, "");
    for (rules, status, code) in [
        (RULES.replace("uploads", "old logs"), 400, "InvalidArgument"),
        (RULES.replace("<Days>2<", "<Days>0<"), 400, "InvalidArgument"),
        (RULES.replace("Enabled", "On"), 400, "MalformedXML"),
        (RULES.replace("<Days>2</Days>", "<Days>x</Days>"), 400, "MalformedXML"),
        (RULES.replace("<Expiration><Days>2</Days></Expiration>", ""), 400, "InvalidRequest"),
        (
            RULES.replace(
                "<Filter></Filter>",
                "<Filter><Tag><Key>a</Key><Value></Value></Tag></Filter>",
            ),
            400,
            "InvalidRequest",
        ),
        (String::new(), 400, "MalformedXML"),
    ] {
        assert_refused(&put_rules(&server, &rules), status, code);
    }
    assert_eq!(server.s3.get("/bucket?lifecycle").all_xml("ID"), ["old logs", "uploads"]);
}

#[test]
fn responses_state_when_an_object_expires() {
    let (server, _time) = server();
    assert_refused(&put_rules(&server, RULES), 200, "");
    // Two days after noon of January 1, rounded up to midnight.
    let expires = Some("expiry-date=\"Sun, 04 Jan 2026 00:00:00 GMT\", rule-id=\"old+logs\"");
    for reply in [
        server.s3.put("/bucket/logs/a", b"bytes"),
        server.s3.get("/bucket/logs/a"),
        server.s3.head("/bucket/logs/a"),
        server.s3.send("PUT", "/bucket/logs/b", &[("x-amz-copy-source", "/bucket/logs/a")], b""),
    ] {
        assert_eq!((reply.status, reply.header("x-amz-expiration")), (200, expires));
    }
    let other = server.s3.put("/bucket/other", b"bytes");
    assert_eq!((other.status, other.header("x-amz-expiration")), (200, None));
    assert_eq!(server.s3.get("/bucket/other").header("x-amz-expiration"), None);
}

#[test]
fn objects_may_expire_after_the_last_year() {
    let (server, _time) = server();
    let date = |date: &str| {
        RULES.replace("<Expiration><Days>2</Days>", &format!("<Expiration><Date>{date}</Date>"))
    };
    let beyond = date("9999-12-31T23:59:59-23:59");
    assert_refused(&put_rules(&server, &beyond), 400, "InvalidArgument");
    assert_refused(&put_rules(&server, &date("9999-12-31T00:00:00Z")), 200, "");
    assert_refused(&put_rules(&server, &RULES.replace("<Days>2<", "<Days>2147483647<")), 200, "");
    assert_refused(&server.s3.put("/bucket/logs/a", b"bytes"), 200, "");
    let expires = "expiry-date=\"Fri, 31 Dec 9999 23:59:59 GMT\", rule-id=\"old+logs\"";
    assert_eq!(server.s3.get("/bucket/logs/a").header("x-amz-expiration"), Some(expires));
}

#[test]
fn size_from_which_transitions_apply_is_kept() {
    let server = Running::new();
    let header = "x-amz-transition-default-minimum-object-size";
    let put = |size: &str| {
        server.s3.send("PUT", "/bucket?lifecycle", &[(header, size)], RULES.as_bytes())
    };
    let get = || server.s3.get("/bucket?lifecycle").header(header).map(str::to_owned);
    let all = Some("all_storage_classes_128K");
    assert_eq!(put_rules(&server, RULES).header(header), all);
    assert_eq!(get().as_deref(), all);
    let varies = "varies_by_storage_class";
    assert_eq!(put(varies).header(header), Some(varies));
    assert_eq!(get().as_deref(), Some(varies));
    assert_refused(&put("some"), 400, "InvalidArgument");
    assert_eq!(get().as_deref(), Some(varies));
    assert_eq!(put_rules(&server, RULES).header(header), all);
    assert_eq!(get().as_deref(), all);
    put(varies);
    assert_refused(&server.s3.delete("/bucket?lifecycle"), 204, "");
    assert_refused(&put_rules(&server, RULES), 200, "");
    assert_eq!(get().as_deref(), all);
}

#[test]
fn upload_names_the_rule_that_aborts_it() {
    let (server, _time) = server();
    let start = || server.s3.post("/bucket/key?uploads", "");
    assert_eq!(start().header("x-amz-abort-date"), None);
    assert_refused(&put_rules(&server, RULES), 200, "");
    let started = start();
    let id = started.xml("UploadId").unwrap();
    let parts = server.s3.get(&format!("/bucket/key?uploadId={id}"));
    assert_eq!(parts.header("x-amz-abort-date"), Some("Sat, 03 Jan 2026 00:00:00 GMT"));
    for reply in [started, parts] {
        assert!(reply.header("x-amz-abort-date").is_some());
        assert_eq!(reply.header("x-amz-abort-rule-id"), Some("uploads"));
    }
}

#[test]
fn rule_with_tags_applies_to_objects_that_have_them_now() {
    let (server, time) = server();
    let tag = "<Tag><Key>class</Key><Value>temp x</Value></Tag>";
    let filter = format!("<And><Prefix>logs/</Prefix>{tag}</And>");
    let rules = RULES.replace("<Prefix>logs/</Prefix>", &filter);
    assert_refused(&put_rules(&server, &rules), 200, "");
    let tagged = [("x-amz-tagging", "class=temp%20x&team=a")];
    let put = |key: &str| server.s3.send("PUT", &format!("/bucket/logs/{key}"), &tagged, b"bytes");
    let expires = |reply: &Reply| reply.header("x-amz-expiration").is_some();
    assert!(expires(&put("a")));
    assert!(!expires(&server.s3.put("/bucket/logs/b", b"bytes")));
    let get = |key: &str| {
        // The first GET caches the object, and the second one uses it.
        server.s3.get(&format!("/bucket/logs/{key}"));
        expires(&server.s3.get(&format!("/bucket/logs/{key}")))
    };
    assert!(get("a") && !get("b"));
    put("c");
    let other = format!("<Tagging><TagSet>{}</TagSet></Tagging>", tag.replace("temp x", "kept"));
    assert!(get("c"));
    assert_refused(&server.s3.put("/bucket/logs/c?tagging", other.as_bytes()), 200, "");
    assert!(!get("c") && !expires(&server.s3.head("/bucket/logs/c")));
    time.store(NOON_MS + 9 * DAY_MS, Ordering::Relaxed);
    eventually("a sweep", || server.s3.get("/bucket/logs/a").status == 404);
    assert_eq!(server.s3.get("/bucket/logs/c").status, 200);
    let metrics = || server.admin.get("/metrics").text();
    // A sweep reads the tags of all three objects once.
    eventually("the counter", || metrics().contains("haul_lifecycle_tag_reads_total 3"));
}

#[test]
fn objects_expire_and_uploads_are_aborted_at_midnight() {
    let (server, time) = server();
    assert_refused(&put_rules(&server, RULES), 200, "");
    let stats = || -> serde_json::Value {
        serde_json::from_slice(&server.admin.get("/stats.json").body).unwrap()
    };
    let lifecycle = |name: &str| stats()["store"]["lifecycle"][name].as_u64().unwrap();
    eventually("the first sweep by these rules", || {
        lifecycle("sweeps") == crate::client::members() as u64
    });
    server.s3.put("/bucket/logs/a", b"bytes");
    server.s3.put("/bucket/other", b"bytes");
    let upload = server.s3.post("/bucket/logs/upload?uploads", "");
    assert!(upload.xml("UploadId").is_some());
    let swept = |time_ms: u64| {
        let before = lifecycle("sweeps");
        time.store(time_ms, Ordering::Relaxed);
        // Each directory is swept by itself.
        let each = before + crate::client::members() as u64;
        eventually("a sweep", || lifecycle("sweeps") >= each);
    };
    let midnight = NOON_MS + DAY_MS / 2;
    swept(midnight);
    assert_eq!(stats()["store"]["uploads"], 1, "the upload is half a day old");
    swept(midnight + DAY_MS);
    assert_eq!(stats()["store"]["uploads"], 0);
    assert_eq!(server.s3.get("/bucket/logs/a").status, 200, "two days end at noon");
    swept(midnight + 2 * DAY_MS);
    assert_eq!(server.s3.get("/bucket/logs/a").status, 404);
    assert_eq!(server.s3.get("/bucket/other").status, 200);
    let counted = ["expired_objects", "expired_bytes", "aborted_uploads", "errors"].map(lifecycle);
    assert_eq!(counted, [1, 5, 1, 0]);
    let metrics = server.admin.get("/metrics").text();
    for line in [
        "haul_lifecycle_expired_objects_total 1",
        "haul_lifecycle_expired_bytes_total 5",
        "haul_lifecycle_aborted_uploads_total 1",
        "haul_lifecycle_errors_total 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
    assert!(metrics.contains("haul_lifecycle_last_sweep_timestamp_seconds "));
}
