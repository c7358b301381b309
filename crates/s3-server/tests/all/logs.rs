//! The access log and the audit log.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use haul_file_store::{
    Attributes, Expiry, Lifecycle, LifecycleRule, NoncurrentExpiry, Options, Precondition,
    TimeSource, Versioning,
};
use haul_s3_server::{AccessLog, AuditLog, Credentials, Limits, Lines, LogFormat, Logs};
use haul_testing::eventually;
use parking_lot::Mutex;
use serde_json::Value;

use crate::client::{Running, noise, open_in_memory, small};
use crate::signing::{Signer, hash};

#[derive(Default)]
pub(crate) struct RecordedLines(Mutex<Vec<Value>>);

impl Lines for RecordedLines {
    fn append(&self, line: &[u8]) {
        self.0.lock().push(serde_json::from_slice(line).unwrap());
    }
}

impl RecordedLines {
    pub(crate) fn lines(self: &Arc<Self>) -> Arc<dyn Lines> {
        Arc::clone(self) as Arc<dyn Lines>
    }

    /// Waits for `count` lines and removes them, in the order of the requests: a client may receive
    /// a response, and send the next request, before the line is written.
    pub(crate) fn take(&self, count: usize) -> Vec<Value> {
        eventually("the lines are there", || self.0.lock().len() >= count);
        let mut lines = std::mem::take(&mut *self.0.lock());
        lines.sort_by_key(|line| line["request_id"].to_string());
        lines
    }
}

struct LoggedServer {
    server: Running,
    access: Arc<RecordedLines>,
    audit: Arc<RecordedLines>,
}

fn server(credentials: Option<Credentials>) -> LoggedServer {
    let (access, audit) = (Arc::new(RecordedLines::default()), Arc::new(RecordedLines::default()));
    let logs = Logs {
        access: Some(AccessLog { lines: access.lines(), format: LogFormat::Json }),
        audit: Some(AuditLog::new(audit.lines())),
    };
    LoggedServer { server: Running::with_logs(credentials, logs), access, audit }
}

fn keys() -> Option<Credentials> {
    Some(Credentials { access_key: "key".into(), secret_key: "secret".into() })
}

/// Returns the fields of an audit line, separated by spaces.
fn fields(line: &Value) -> String {
    let names = ["operation", "bucket", "key", "status", "error", "bytes", "etag"];
    let text = |name: &&str| line[name].to_string().replace('"', "");
    names.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_request_is_logged_once_with_the_id_of_its_response() {
    let LoggedServer { server, access, .. } = server(None);
    server.s3.put("/bucket", b"");
    server.s3.put("/bucket/key", b"hello");
    // The first response comes from the store, the others from the cache.
    let replies = [(); 3].map(|()| server.s3.get("/bucket/key"));
    let missing = server.s3.get("/bucket/none");
    server.admin.get("/metrics");
    let lines = access.take(6);
    assert_eq!(lines.len(), 6, "the admin page is not logged");
    for (line, reply) in lines[2..].iter().zip(replies.iter().chain([&missing])) {
        assert_eq!(line["request_id"].as_str(), reply.header("x-amz-request-id"), "{line}");
        assert_eq!(line["status"], reply.status);
        assert_eq!(line["bytes"], reply.body.len());
        assert_eq!(line["client"], "127.0.0.1");
        assert_eq!(line["user"], Value::Null);
        assert!(line["duration_us"].as_u64().is_some(), "{line}");
    }
}

#[test]
fn lines_have_the_access_key_of_signed_requests() {
    let LoggedServer { server, access, audit } = server(keys());
    let right = Signer { client: server.s3, access_key: "key", secret_key: "secret" };
    right.send("PUT", "/bucket", &hash(b""), b"");
    right.send("PUT", "/bucket/key", &hash(b"hello"), b"hello");
    (0..2).for_each(|_| drop(right.send("GET", "/bucket/key", &hash(b""), b"")));
    server.s3.put("/bucket/key", b"x");
    let other = Signer { client: server.s3, access_key: "other", secret_key: "secret" };
    other.send("DELETE", "/bucket/key", &hash(b""), b"");
    let users = |lines: &[Value], name: &str| -> Vec<Value> {
        lines.iter().map(|line| line[name].clone()).collect()
    };
    let (key, other) = (Value::from("key"), Value::from("other"));
    let expected = [&key, &key, &key, &key, &Value::Null, &other].map(Value::clone);
    assert_eq!(users(&access.take(6), "user"), expected);
    let changes = audit.take(4);
    assert_eq!(users(&changes, "access_key"), [&key, &key, &Value::Null, &other].map(Value::clone));
    assert_eq!(fields(&changes[2]), "PutObject bucket key 403 AccessDenied null null");
    assert_eq!(fields(&changes[3]), "DeleteObject bucket key 403 InvalidAccessKeyId null null");
}

#[test]
fn each_change_has_a_line_with_its_outcome() {
    let LoggedServer { server, audit, access } = server(None);
    let s3 = &server.s3;
    s3.put("/bucket", b"");
    s3.put("/bucket/a%20b", b"hello");
    s3.send("PUT", "/bucket/copy", &[("x-amz-copy-source", "/bucket/a%20b")], b"");
    s3.put("/none/key", b"hello");
    s3.put("/bucket/a%20b?tagging", b"<Tagging><TagSet></TagSet></Tagging>");
    s3.delete("/bucket/a%20b?tagging");
    s3.get("/bucket/copy");
    s3.post(
        "/bucket?delete",
        "<Delete><Object><Key>copy</Key></Object><Object><Key>a b</Key><VersionId>7</VersionId>\
         </Object><Quiet>true</Quiet></Delete>",
    );
    s3.delete("/bucket");
    s3.delete("/bucket/a%20b");
    s3.delete("/bucket");
    let lines = audit.take(11);
    let hello = "5d41402abc4b2a76b9719d911017c592";
    let expected = [
        "CreateBucket bucket null 200 null null null".to_owned(),
        format!("PutObject bucket a b 200 null 5 {hello}"),
        format!("CopyObject bucket copy 200 null 5 {hello}"),
        "PutObject none key 404 NoSuchBucket null null".to_owned(),
        "PutObjectTagging bucket a b 200 null null null".to_owned(),
        "DeleteObjectTagging bucket a b 204 null null null".to_owned(),
        "DeleteObjects bucket copy 200 null null null".to_owned(),
        "DeleteObjects bucket a b 200 InvalidArgument null null".to_owned(),
        "DeleteBucket bucket null 409 BucketNotEmpty null null".to_owned(),
        "DeleteObject bucket a b 204 null null null".to_owned(),
        "DeleteBucket bucket null 204 null null null".to_owned(),
    ];
    assert_eq!(lines.iter().map(fields).collect::<Vec<_>>(), expected);
    let ids: Vec<_> = access.take(11).iter().map(|line| line["request_id"].clone()).collect();
    assert!(lines.iter().all(|line| ids.contains(&line["request_id"])), "{ids:?}");
}

#[test]
fn operations_of_a_multipart_upload_are_audited() {
    let LoggedServer { server, audit, .. } = server(None);
    let s3 = &server.s3;
    s3.put("/bucket", b"");
    let started = s3.post("/bucket/key?uploads", "").xml("UploadId").unwrap();
    let part = s3.put(&format!("/bucket/key?partNumber=1&uploadId={started}"), &noise(100));
    let etag = part.header("etag").unwrap();
    let body = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let done = s3.post(&format!("/bucket/key?uploadId={started}"), &body);
    let whole = done.xml("ETag").unwrap().replace("&quot;", "").replace('"', "");
    s3.delete(&format!("/bucket/key?uploadId={started}"));
    let etag = etag.trim_matches('"');
    let expected = [
        "CreateBucket bucket null 200 null null null".to_owned(),
        "CreateMultipartUpload bucket key 200 null null null".to_owned(),
        format!("UploadPart bucket key 200 null 100 {etag}"),
        format!("CompleteMultipartUpload bucket key 200 null 100 {whole}"),
        "AbortMultipartUpload bucket key 404 NoSuchUpload null null".to_owned(),
    ];
    assert_eq!(audit.take(5).iter().map(fields).collect::<Vec<_>>(), expected);
}

#[test]
fn change_of_disconnected_client_is_audited() {
    let LoggedServer { mut server, audit, access } = server(None);
    server.s3.put("/bucket", b"");
    let mut stream = server.s3.connect();
    let headers = [("content-length", "5000000")];
    stream.write_all(&server.s3.head_bytes("PUT", "/bucket/key", &headers)).unwrap();
    stream.write_all(&[1; 100_000]).unwrap();
    eventually("a request is in flight", || {
        server.admin.get("/metrics").text().contains("haul_requests_in_flight 1")
    });
    drop(stream);
    server.join();
    let lines = audit.take(2);
    assert_eq!((lines.len(), access.take(2).len()), (2, 2));
    assert_eq!((&lines[1]["operation"], &lines[1]["key"]), (&"PutObject".into(), &"key".into()));
    assert!(["400", "499"].contains(&lines[1]["status"].to_string().as_str()), "{}", lines[1]);
}

#[test]
fn changes_by_lifecycle_rules_have_audit_lines() {
    let lines = Arc::new(RecordedLines::default());
    let lifecycle_observer = AuditLog::new(lines.lines()).lifecycle_observer();
    let clock = Arc::new(AtomicU64::new(0));
    let time = TimeSource::Manual(Arc::clone(&clock));
    let options = Options { lifecycle_observer, time, ..small() };
    let store = open_in_memory(options);
    store.create_bucket("bucket").unwrap();
    let put = |key| store.put("bucket", key, b"x", &Attributes::new(), &Precondition::None);
    put("a/1").unwrap();
    put("b/1").unwrap();
    store.start_upload("bucket", "a/2", &Attributes::new()).unwrap();
    clock.store(10_000, Ordering::Relaxed);
    let rule = LifecycleRule {
        enabled: true,
        prefix: "a/".to_owned(),
        expire: Some(Expiry::At(UNIX_EPOCH)),
        abort_uploads_after: Some(Duration::from_secs(1)),
        ..LifecycleRule::default()
    };
    store.set_lifecycle("bucket", &Lifecycle { rules: vec![rule] }).unwrap();
    store.expire_now("bucket").unwrap();
    let lines: Vec<_> = lines.take(2).iter().map(fields).collect();
    assert_eq!(
        lines,
        [
            "S3.EXPIRE.OBJECT bucket a/1 null null null null",
            "S3.DELETE.UPLOAD bucket a/2 null null null null",
        ]
    );
}

#[test]
fn expired_versions_have_audit_lines_with_their_ids() {
    let lines = Arc::new(RecordedLines::default());
    let lifecycle_observer = AuditLog::new(lines.lines()).lifecycle_observer();
    let clock = Arc::new(AtomicU64::new(0));
    let time = TimeSource::Manual(Arc::clone(&clock));
    let options = Options { lifecycle_observer, time, ..small() };
    let store = open_in_memory(options);
    store.create_bucket("bucket").unwrap();
    store.set_versioning("bucket", Versioning::Enabled).unwrap();
    let put = || store.put("bucket", "key", b"x", &Attributes::new(), &Precondition::None);
    let (first, _) = (put().unwrap(), put().unwrap());
    clock.store(10_000, Ordering::Relaxed);
    let after = Duration::from_secs(1);
    let rule = LifecycleRule {
        enabled: true,
        expire: Some(Expiry::At(UNIX_EPOCH)),
        expire_noncurrent: Some(NoncurrentExpiry { after, newer_versions: 0 }),
        ..LifecycleRule::default()
    };
    store.set_lifecycle("bucket", &Lifecycle { rules: vec![rule] }).unwrap();
    store.expire_now("bucket").unwrap();
    let lines = lines.take(2);
    let expected = "S3.CREATE.DELETEMARKER bucket key null null null null";
    assert_eq!((fields(&lines[0]), &lines[0]["version_id"]), (expected.to_owned(), &Value::Null));
    assert_eq!(fields(&lines[1]), "S3.EXPIRE.OBJECT bucket key null null null null");
    assert_eq!(lines[1]["version_id"], first.version_id.to_string());
}

#[test]
fn slow_requests_are_counted() {
    let limits = |slow_request_time| Limits { slow_request_time, ..Limits::default() };
    let slow = |server: &Running| {
        let metrics = server.admin.get("/metrics");
        let text = String::from_utf8(metrics.body).unwrap();
        let mut counts = text.lines().filter_map(|l| l.strip_prefix("haul_requests_slow_total "));
        counts.next().unwrap().parse::<u64>().unwrap()
    };
    let each = Running::with(None, limits(Some(Duration::from_nanos(1))));
    each.s3.put("/bucket", b"");
    each.s3.put("/bucket/key", b"hello");
    each.s3.get("/bucket/none");
    assert_eq!(slow(&each), 3);

    let long = Running::with(None, limits(Some(Duration::from_secs(20))));
    long.s3.put("/bucket", b"");
    assert_eq!(slow(&long), 0);
    let never = Running::with(None, limits(None));
    never.s3.put("/bucket", b"");
    assert_eq!(slow(&never), 0);
}
