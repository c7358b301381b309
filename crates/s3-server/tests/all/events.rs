//! Bucket notifications: which changes have which events, and how they are delivered.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::sync::Arc;
use std::time::Duration;

use haul_file_store::Options;
use haul_s3_server::{EncryptionKey, EventService, EventTarget, EventTargets};
use haul_testing::http::Peer;
use haul_testing::{WebhookReceiver, eventually};
use ring::hmac;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Reply, Running, assert_refused, small};
use crate::forms::Form;

/// A server with one event target, and the target.
pub(crate) struct Site {
    pub(crate) server: Running,
    pub(crate) receiver: WebhookReceiver,
    encryption: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(|_webhook| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut EventTarget)) -> Self {
        let (receiver, dir) = (WebhookReceiver::start(), tempfile::tempdir().unwrap());
        let encryption = EncryptionKey::generate().unwrap().to_text();
        let server = start(dir, &receiver, &encryption, change);
        assert_eq!(server.s3.put("/bucket", b"").status, 200);
        Self { server, receiver, encryption }
    }

    /// Stops the server, and starts it again.
    fn restart(self) -> Self {
        self.restart_with(|_webhook| {})
    }

    pub(crate) fn restart_with(self, change: impl FnOnce(&mut EventTarget)) -> Self {
        let Self { server, receiver, encryption } = self;
        let server = start(server.into_dir(), &receiver, &encryption, change);
        Self { server, receiver, encryption }
    }

    /// Ends the pause before the next attempt.
    pub(crate) fn retry(&self) {
        let retried =
            self.server.admin.send("POST", "/events/retry", &[("x-haul-console", "1")], b"");
        assert_eq!(retried.status, 200);
    }

    fn configure(&self, content: &str) -> Reply {
        let text = format!("<NotificationConfiguration>{content}</NotificationConfiguration>");
        self.server.s3.put("/bucket?notification", text.as_bytes())
    }

    /// Sends all events to the target.
    pub(crate) fn notify(&self) {
        let kinds = ["ObjectCreated", "ObjectRemoved", "ObjectTagging", "LifecycleExpiration"];
        let events: String = kinds.map(|kind| format!("<Event>s3:{kind}:*</Event>")).concat();
        assert_refused(
            &self.configure(&rule("all", &format!("{events}<Event>s3:ObjectAcl:Put</Event>"))),
            200,
            "",
        );
    }

    pub(crate) fn put(&self, target: &str, bytes: &[u8]) {
        assert_eq!(self.server.s3.put(target, bytes).status, 200, "{target}");
    }

    /// Waits for records of all queued events, and returns at least `count`.
    pub(crate) fn records(&self, count: usize) -> Vec<Value> {
        let mut records = Vec::new();
        eventually("the events are delivered", || {
            records
                .extend(self.receiver.take().into_iter().flat_map(|message| parse(&message.body)));
            records.len() >= count && self.status("queued_events") == 0
        });
        records
    }

    /// Returns a number about the target.
    pub(crate) fn status(&self, name: &str) -> u64 {
        let found: Value =
            serde_json::from_slice(&self.server.admin.get("/events.json").body).unwrap();
        found[0][name].as_u64().unwrap_or_else(|| panic!("{found}"))
    }
}

fn start(
    dir: TempDir,
    receiver: &WebhookReceiver,
    encryption: &str,
    change: impl FnOnce(&mut EventTarget),
) -> Running {
    let mut webhook = EventTarget::webhook("orders", receiver.url());
    change(&mut webhook);
    let targets = Arc::new(EventTargets::new(vec![webhook]).unwrap());
    let lifecycle_check_every = Duration::from_millis(20);
    let options = Options { lifecycle_check_every, ..small() };
    Running::with_events(dir, &targets, encryption, options)
}

fn rule(id: &str, content: &str) -> String {
    format!(
        "<QueueConfiguration><Id>{id}</Id><Queue>arn:haul:sqs:::orders</Queue>{content}\
         </QueueConfiguration>"
    )
}

pub(crate) fn parse(message: &[u8]) -> Vec<Value> {
    let mut message: Value = serde_json::from_slice(message).unwrap();
    message["Records"].as_array_mut().map(std::mem::take).unwrap()
}

/// Returns the name, the key and the size of each record.
pub(crate) fn texts(records: &[Value]) -> Vec<String> {
    let text = |record: &Value| {
        let object = &record["s3"]["object"];
        let size = object["size"].as_u64().map_or_else(String::new, |size| format!(" {size}"));
        format!(
            "{} {}{size}",
            record["eventName"].as_str().unwrap(),
            object["key"].as_str().unwrap()
        )
    };
    records.iter().map(text).collect()
}

#[test]
fn each_operation_has_its_event() {
    let site = Site::new();
    site.notify();
    let s3 = &site.server.s3;
    site.put("/bucket/small", b"small");
    site.put("/bucket/big", &vec![7; 5 << 20]);
    let sealed = s3.send(
        "PUT",
        "/bucket/sealed%20key",
        &[("x-amz-server-side-encryption", "AES256")],
        b"sealed",
    );
    assert_eq!(sealed.status, 200, "{}", sealed.text());
    let copied = |to: &str, from: &str| s3.send("PUT", to, &[("x-amz-copy-source", from)], b"");
    assert_eq!(copied("/bucket/copy", "/bucket/big").status, 200);
    assert_eq!(copied("/bucket/opened", "/bucket/sealed%20key").status, 200);
    let form = Form::new(&[("key", "form")], b"a file").send(*s3);
    assert_eq!(form.status, 204, "{}", form.text());
    let upload = s3.post("/bucket/parts?uploads", "").xml("UploadId").unwrap();
    let part = s3.put(&format!("/bucket/parts?partNumber=1&uploadId={upload}"), b"part");
    let etag = part.header("etag").unwrap();
    let parts = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let completed = s3.post(&format!("/bucket/parts?uploadId={upload}"), &parts);
    assert_eq!(completed.status, 200, "{}", completed.text());
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    assert_eq!(s3.put("/bucket/small?tagging", tags.as_bytes()).status, 200);
    assert_eq!(s3.delete("/bucket/small?tagging").status, 204);
    assert_eq!(s3.put("/bucket/sealed%20key?tagging", tags.as_bytes()).status, 200);
    let listed =
        "<Delete><Object><Key>big</Key></Object><Object><Key>absent</Key></Object></Delete>";
    assert_eq!(s3.post("/bucket?delete", listed).status, 200);
    assert_eq!(s3.delete("/bucket/copy").status, 204);
    // A change that fails has no event.
    assert_eq!(s3.send("PUT", "/bucket/small", &[("if-none-match", "*")], b"").status, 412);
    let expected = [
        "ObjectCreated:Put small 5",
        "ObjectCreated:Put big 5242880",
        "ObjectCreated:Put sealed%20key 6",
        "ObjectCreated:Copy copy 5242880",
        "ObjectCreated:Copy opened 6",
        "ObjectCreated:Post form 6",
        "ObjectCreated:CompleteMultipartUpload parts 4",
        "ObjectTagging:Put small 5",
        "ObjectTagging:Delete small 5",
        "ObjectTagging:Put sealed%20key 6",
        "ObjectRemoved:Delete big",
        "ObjectRemoved:Delete copy",
    ];
    let records = site.records(expected.len());
    assert_eq!(texts(&records), expected);
    let put = &records[0];
    let s3 = &put["s3"];
    assert_eq!(put["eventVersion"], "2.1");
    assert_eq!(put["eventSource"], "aws:s3");
    assert_eq!(put["userIdentity"]["principalId"], "haul");
    assert_eq!(put["requestParameters"]["sourceIPAddress"], "127.0.0.1");
    assert_eq!(put["responseElements"]["x-amz-request-id"].as_str().unwrap().len(), 16);
    assert_eq!(put["eventTime"].as_str().unwrap().len(), "2026-01-01T00:00:00.000Z".len());
    assert_eq!((&s3["configurationId"], &s3["bucket"]["name"]), (&"all".into(), &"bucket".into()));
    assert_eq!(s3["bucket"]["arn"], "arn:aws:s3:::bucket");
    assert_eq!(s3["object"]["eTag"], "eb5c1399a871211c7e7ed732d15e3a8b");
    let sequencer =
        |record: &Value| record["s3"]["object"]["sequencer"].as_str().unwrap().to_owned();
    // Each store of a pool has its own clock, so that only numbers of one key are in order.
    let mut last = BTreeMap::new();
    for record in &records {
        let key = record["s3"]["object"]["key"].as_str().unwrap();
        let before = last.insert(key, sequencer(record));
        assert!(before.is_none_or(|before| before < sequencer(record)), "{key}");
    }
}

#[test]
fn versions_and_markers_have_events_with_their_ids() {
    let site = Site::new();
    site.notify();
    let enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    let s3 = &site.server.s3;
    assert_eq!(s3.put("/bucket?versioning", enabled.as_bytes()).status, 200);
    let put = s3.put("/bucket/key", b"one");
    let id = put.header("x-amz-version-id").unwrap().to_owned();
    let marker = s3.delete("/bucket/key");
    let marker = marker.header("x-amz-version-id").unwrap().to_owned();
    assert_eq!(s3.delete(&format!("/bucket/key?versionId={id}")).status, 204);
    let records = site.records(3);
    let found: Vec<_> = records
        .iter()
        .map(|record| (record["eventName"].as_str().unwrap(), &record["s3"]["object"]["versionId"]))
        .collect();
    let [id, marker] = [Value::from(id), Value::from(marker)];
    let expected = [
        ("ObjectCreated:Put", &id),
        ("ObjectRemoved:DeleteMarkerCreated", &marker),
        ("ObjectRemoved:Delete", &id),
    ];
    assert_eq!(found, expected);
}

#[test]
fn rules_select_by_name_prefix_and_suffix() {
    let site = Site::new();
    let filter = "<Event>s3:ObjectCreated:Put</Event><Filter><S3Key>\
        <FilterRule><Name>prefix</Name><Value>in/</Value></FilterRule>\
        <FilterRule><Name>suffix</Name><Value>.jpg</Value></FilterRule></S3Key></Filter>";
    assert_refused(&site.configure(&rule("images", filter)), 200, "");
    let found = site.server.s3.get("/bucket?notification");
    assert_eq!(
        (found.xml("Id").as_deref(), found.all_xml("Value")),
        (Some("images"), vec!["in/".to_owned(), ".jpg".to_owned()])
    );
    for key in ["in/a.jpg", "in/a.png", "out/a.jpg", "in/b.jpg"] {
        site.put(&format!("/bucket/{key}"), b"");
    }
    assert_eq!(site.server.s3.delete("/bucket/in/a.jpg").status, 204);
    assert_eq!(
        texts(&site.records(2)),
        ["ObjectCreated:Put in/a.jpg 0", "ObjectCreated:Put in/b.jpg 0"]
    );
    // An empty configuration ends the notifications.
    assert_refused(&site.configure(""), 200, "");
    site.put("/bucket/in/c.jpg", b"");
    assert_eq!(site.status("delivered_events"), 2);
    assert!(!site.server.s3.get("/bucket?notification").text().contains("QueueConfiguration"));
}

#[test]
fn configuration_with_another_target_is_refused() {
    let site = Site::new();
    let event = "<Event>s3:ObjectCreated:*</Event>";
    for other in ["arn:haul:sqs:::other", "arn:aws:s3:::orders", "orders"] {
        let rule = rule("a", event).replace("arn:haul:sqs:::orders", other);
        assert_refused(&site.configure(&rule), 400, "InvalidArgument");
    }
    let unsupported = rule("a", "<Event>s3:ObjectAccessed:Get</Event>");
    assert_refused(&site.configure(&unsupported), 400, "InvalidArgument");
    assert_refused(&site.configure("<EventBridgeConfiguration/>"), 501, "NotImplemented");
    assert_refused(&site.configure("<Rule/>"), 400, "MalformedXML");
    for arn in ["arn:minio:sqs::orders:webhook", "arn:aws:sqs:eu-west-1:444455556666:orders"] {
        let rule = rule("a", event).replace("arn:haul:sqs:::orders", arn);
        assert_refused(&site.configure(&rule), 200, "");
        assert_eq!(site.server.s3.get("/bucket?notification").xml("Queue").as_deref(), Some(arn));
    }
    let server = Running::new();
    let text =
        format!("<NotificationConfiguration>{}</NotificationConfiguration>", rule("a", event));
    assert_refused(&server.s3.put("/bucket?notification", text.as_bytes()), 400, "InvalidArgument");
    assert_eq!(server.admin.get("/events.json").text(), "[]");
}

#[test]
fn expired_objects_have_events() {
    let site = Site::new();
    site.notify();
    site.put("/bucket/old", b"bytes");
    let rules = "<LifecycleConfiguration><Rule><Filter/><Status>Enabled</Status><Expiration>\
        <Date>2020-01-01T00:00:00Z</Date></Expiration></Rule></LifecycleConfiguration>";
    assert_eq!(site.server.s3.put("/bucket?lifecycle", rules.as_bytes()).status, 200);
    let records = site.records(2);
    assert_eq!(texts(&records), ["ObjectCreated:Put old 5", "LifecycleExpiration:Delete old"]);
    assert_eq!(records[1]["userIdentity"]["principalId"], "s3.amazonaws.com");
}

#[test]
fn messages_carry_the_token_and_a_signature() {
    let site = Site::with(|webhook| {
        let (authorization, secret) = (Some("Bearer token".into()), Some("secret".into()));
        webhook.service = EventService::Webhook { authorization, secret };
        webhook.batch_max = 2;
    });
    site.receiver.answer_with(500);
    site.notify();
    (0..5).for_each(|number| site.put(&format!("/bucket/{number}"), b""));
    eventually("an attempt has failed", || site.status("failures") > 0);
    site.receiver.answer_with(200);
    let mut messages = Vec::new();
    eventually("the events are delivered", || {
        messages.extend(site.receiver.take());
        messages.iter().map(|message| parse(&message.body).len()).sum::<usize>() == 5
    });
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
    for message in &messages {
        assert!(parse(&message.body).len() <= 2);
        assert_eq!(message.field("authorization"), Some("Bearer token"));
        assert_eq!(message.field("content-type"), Some("application/json"));
        let signature = hmac::sign(&key, &message.body);
        let hex: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(message.field("x-haul-signature-256"), Some(&*format!("sha256={hex}")));
    }
}

#[test]
fn messages_that_are_too_long_for_the_target_are_divided() {
    let site = Site::new();
    site.receiver.answer_with(503);
    site.notify();
    (0..40).for_each(|number| site.put(&format!("/bucket/{number:02}"), b""));
    eventually("an attempt has failed", || site.status("failures") > 0);
    // A few records fit.
    site.receiver.accept_up_to(3000);
    site.receiver.answer_with(200);
    site.retry();
    let expected: Vec<_> =
        (0..40).map(|number| format!("ObjectCreated:Put {number:02} 0")).collect();
    let mut found = texts(&site.records(40));
    found.sort();
    assert_eq!(found, expected, "each once");
    // One that does not fit by itself waits.
    site.receiver.accept_up_to(100);
    site.put("/bucket/40", b"");
    let why = || site.server.admin.get("/health").text();
    eventually("the event waits", || why().contains("the response is 413 Payload Too Large"));
    site.receiver.accept_up_to(usize::MAX);
    site.retry();
    assert_eq!(texts(&site.records(1)), ["ObjectCreated:Put 40 0"]);
}

#[test]
fn events_wait_for_a_target_that_is_down_also_over_a_restart() {
    let site = Site::new();
    site.notify();
    site.receiver.answer_with(503);
    (0..20).for_each(|number| site.put(&format!("/bucket/{}", number % 3), &vec![0; number]));
    eventually("an attempt has failed", || site.status("failures") > 0);
    let health = site.server.admin.get("/health");
    assert_eq!(health.status, 200);
    let expected = "degraded: the event target orders accepts no events, 20 are queued: the response \
                    is 503 Service Unavailable: done\n";
    assert_eq!(health.text(), expected);
    let site = site.restart();
    (20..30).for_each(|number| site.put(&format!("/bucket/{}", number % 3), &vec![0; number]));
    assert_eq!(site.status("queued_events"), 30);
    site.receiver.answer_with(200);
    site.retry();
    let records = site.records(30);
    let mut sizes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in &records {
        let object = &record["s3"]["object"];
        let key = object["key"].as_str().unwrap().to_owned();
        sizes.entry(key).or_default().push(object["size"].as_u64().unwrap());
    }
    for (key, sizes) in sizes {
        let first: u64 = key.parse().unwrap();
        let expected: Vec<u64> = (0..10).map(|number| first + 3 * number).collect();
        assert_eq!(sizes, expected, "the events of {key} are complete and in order");
    }
    assert_eq!(site.server.admin.get("/health").text(), "ok\n");
    let metrics = site.server.admin.get("/metrics").text();
    assert!(metrics.contains("haul_events_delivered_total{target=\"orders\"} 30\n"), "{metrics}");
}

#[test]
fn target_that_the_server_lost_is_reported_with_its_queue_and_the_lost_events() {
    let site = Site::new();
    site.notify();
    site.receiver.answer_with(503);
    (0..3).for_each(|number| site.put(&format!("/bucket/{number}"), b""));
    eventually("an attempt has failed", || site.status("failures") > 0);
    let Site { server, receiver, encryption } = site;
    let renamed = |webhook: &mut EventTarget| webhook.name = "other".to_owned();
    let server = start(server.into_dir(), &receiver, &encryption, renamed);
    let page = |path: &str| server.admin.get(path).text();
    let lost = |count: u64| format!("haul_events_dropped_total{{target=\"orders\"}} {count}\n");
    assert!(page("/metrics").contains(&lost(0)), "the first lost event is an increase");
    assert_eq!(page("/health"), "ok\n", "no event was lost");
    assert_eq!(server.s3.put("/bucket/lost", b"").status, 200);
    assert_eq!(server.s3.put("/bucket/lost%20too", b"").status, 200);
    let expected = "degraded: the notification of the bucket bucket names the event target orders, \
                    which the server does not have; events lost since the start: 2\n";
    assert_eq!(page("/health"), expected);
    assert!(page("/metrics").contains(&lost(2)), "{}", page("/metrics"));
    let targets = || serde_json::from_str::<Value>(&page("/events.json")).unwrap();
    let found = targets();
    assert_eq!(
        (&found[0]["name"], &found[0]["configured"]),
        (&Value::from("other"), &Value::from(true))
    );
    let orders = &found[1];
    assert_eq!((&orders["name"], &orders["configured"]), (&"orders".into(), &false.into()));
    assert_eq!((&orders["queued_events"], &orders["dropped_events"]), (&3.into(), &2.into()));
    assert_eq!(orders["error"], "the server has no such target");
    assert_eq!(orders["buckets"], serde_json::json!(["bucket"]));
    // Without the configuration no more events are lost; the queue stays, and the count.
    let none = b"<NotificationConfiguration/>";
    assert_eq!(server.s3.put("/bucket?notification", none).status, 200);
    assert_eq!(page("/health"), "ok\n");
    assert!(page("/metrics").contains(&lost(2)));
    assert_eq!(targets()[1]["buckets"], serde_json::json!([]));
    // A server with the target again delivers what was queued.
    receiver.answer_with(200);
    let server = start(server.into_dir(), &receiver, &encryption, |_webhook| {});
    let site = Site { server, receiver, encryption };
    assert_eq!(site.records(3).len(), 3);
}

#[test]
fn damaged_event_is_dropped_and_does_not_hold_up_the_others() {
    if crate::client::needs_one_directory() {
        return;
    }
    let site = Site::new();
    site.notify();
    site.receiver.answer_with(503);
    for key in ["first", "damaged", "last"] {
        site.put(&format!("/bucket/{key}"), b"");
    }
    eventually("an attempt has failed", || site.status("failures") > 0);
    let Site { server, receiver, encryption } = site;
    let dir = server.into_dir();
    let volume = dir.path().join("volumes/0000000001.segment");
    let mut bytes = std::fs::read(&volume).unwrap();
    let key = bytes.windows(11).position(|it| it == b"\x07\0\0\0damaged").unwrap();
    bytes[key + 5] ^= 1;
    std::fs::write(&volume, bytes).unwrap();
    receiver.answer_with(200);
    let server = start(dir, &receiver, &encryption, |_webhook| {});
    let site = Site { server, receiver, encryption };
    let expected = ["ObjectCreated:Put first 0", "ObjectCreated:Put last 0"];
    assert_eq!(texts(&site.records(2)), expected);
    assert_eq!(site.status("dropped_events"), 1);
    eventually("the queue is empty", || site.status("queued_events") == 0);
}

#[test]
fn oldest_events_are_dropped_and_counted_when_the_queue_is_full_or_they_are_old() {
    let site = Site::with(|webhook| webhook.queue_events_max = 10);
    site.receiver.answer_with(500);
    site.notify();
    (0..50).for_each(|number| site.put(&format!("/bucket/{number}"), b""));
    eventually("the queue is short", || {
        site.retry();
        site.status("queued_events") <= 10
    });
    site.receiver.answer_with(200);
    let records = site.records(1);
    assert_eq!(texts(&records).last().unwrap(), "ObjectCreated:Put 49 0", "the newest are kept");
    assert_eq!(site.status("dropped_events") + records.len() as u64, 50);

    let site = Site::with(|webhook| webhook.queue_age_max = Some(Duration::from_millis(1)));
    site.receiver.answer_with(500);
    site.notify();
    site.put("/bucket/old", b"");
    eventually("the event is dropped", || site.status("dropped_events") == 1);
    eventually("it is removed", || site.status("queued_events") == 0);
    assert!(site.receiver.take().is_empty());
}

#[test]
fn many_events_that_do_not_fit_into_memory_are_delivered_once() {
    let site = Site::new();
    site.notify();
    site.receiver.answer_with(500);
    let listed: String =
        (0..1000).map(|number| format!("<Object><Key>{number}</Key></Object>")).collect();
    let delete = format!("<Delete><Quiet>true</Quiet>{listed}</Delete>");
    let puts = 9000;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let site = &site;
            scope.spawn(move || {
                (0..puts / 8)
                    .for_each(|number| site.put(&format!("/bucket/{thread}/{number}"), b""));
            });
        }
    });
    (0..1000).for_each(|number| site.put(&format!("/bucket/{number}"), b""));
    assert_eq!(site.server.s3.post("/bucket?delete", &delete).status, 200);
    site.receiver.answer_with(200);
    site.retry();
    let records = site.records(puts + 2000);
    assert_eq!(records.len(), puts + 2000);
    let mut seen = texts(&records);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), puts + 2000, "each once");
}

/// Returns the next record that a listening client receives.
fn next_record(stream: &mut impl BufRead) -> Value {
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the response has ended");
        if line.trim_start().starts_with('{') {
            return parse(line.as_bytes()).remove(0);
        }
    }
}

#[test]
fn listening_client_receives_the_events_that_it_selects() {
    let mut site = Site::new();
    let listen = |target: &str| {
        let mut peer = Peer::over(site.server.s3.connect());
        peer.send(site.server.s3.head_bytes("GET", target, &[]));
        let head = peer.head().unwrap();
        assert!(head.line.contains(" 200 "), "{}", head.line);
        peer
    };
    assert_eq!(site.server.s3.put("/other", b"").status, 200);
    let created = "events=s3%3AObjectCreated%3A%2A&events=s3%3AObjectAccessed%3A%2A";
    let mut images = listen(&format!("/bucket?{created}&prefix=in/&suffix=.jpg&ping=10"));
    let mut all = listen("/?events=s3:ObjectRemoved:*");
    site.put("/bucket/in/a.png", b"");
    site.put("/other/in/a.jpg", b"");
    site.put("/bucket/in/a.jpg", b"bytes");
    assert_eq!(site.server.s3.delete("/other/in/a.jpg").status, 204);
    let record = next_record(images.reader());
    assert_eq!(texts(std::slice::from_ref(&record)), ["s3:ObjectCreated:Put in/a.jpg 5"]);
    assert_eq!(record["s3"]["bucket"]["name"], "bucket");
    assert_eq!(texts(&[next_record(all.reader())]), ["s3:ObjectRemoved:Delete in/a.jpg"]);
    let refused = site.server.s3.get("/bucket?events=ObjectCreated");
    assert_refused(&refused, 400, "InvalidArgument");
    assert_refused(&site.server.s3.get("/absent?events=s3:ObjectCreated:*"), 404, "NoSuchBucket");
    // A server that stops does not wait for its listeners.
    let begun = std::time::Instant::now();
    site.server.join();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let mut rest = String::new();
    images.reader().read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "the response is complete: {rest:?}");
}

#[test]
fn listening_clients_are_limited() {
    let site = Site::new();
    let s3 = &site.server.s3;
    let long = "p".repeat(1025);
    for part in ["prefix", "suffix"] {
        let refused = s3.get(&format!("/bucket?events=s3:ObjectCreated:*&{part}={long}"));
        assert_refused(&refused, 400, "InvalidArgument");
    }
    let listen = || {
        let mut peer = Peer::over(s3.connect());
        let many = "events=s3:ObjectCreated:*&".repeat(1000);
        peer.send(s3.head_bytes("GET", &format!("/bucket?{many}"), &[]));
        let head = peer.head().unwrap();
        (peer, head.line.split(' ').nth(1).unwrap().to_owned())
    };
    let mut peers: Vec<_> = (0..20).map(|_| listen()).collect();
    assert!(peers.iter().all(|(_, status)| status == "200"));
    assert_refused(&s3.get("/bucket?events=s3:ObjectCreated:*"), 503, "SlowDown");
    site.put("/bucket/key", b"");
    for (peer, _) in &mut peers {
        assert_eq!(texts(&[next_record(peer.reader())]), ["s3:ObjectCreated:Put key 0"]);
    }
    drop(peers.pop());
    eventually("another client can listen", || listen().1 == "200");
}
