//! Events to a stream of a NATS server, which is the program in `HAUL_NATS_SERVER`.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64_simd::STANDARD as BASE64;
use haul_s3_server::{EncryptionKey, EventService, EventTarget, EventTargets, NatsLogin};
use haul_testing::{ReservedAddress, eventually, skip};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::client::{Running, assert_refused, small};

const TOKEN: &str = "a token";

/// A NATS server with JetStream, killed when dropped.
struct NatsServer(Child);

impl NatsServer {
    fn start(program: &str, dir: &Path, address: &ReservedAddress) -> Self {
        let mut command = Command::new(program);
        let config = dir.join("config");
        std::fs::write(&config, "max_payload: 16384").unwrap();
        command.args(["-a", "127.0.0.1", "--auth", TOKEN, "-js", "-sd"]).arg(dir);
        command.arg("-c").arg(config);
        command.args(["-p", address.to_string().rsplit(':').next().unwrap()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self(child)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Sends a request to the API of JetStream.
fn request(address: &ReservedAddress, what: &str, body: &Value) -> Value {
    let ask = || async {
        let options = async_nats::ConnectOptions::new().token(TOKEN.to_owned());
        let client = options.connect(format!("nats://{address}")).await.ok()?;
        let reply =
            client.request(format!("$JS.API.{what}"), body.to_string().into()).await.ok()?;
        serde_json::from_slice(&reply.payload).ok()
    };
    let mut found = None;
    let runtime = Runtime::new().unwrap();
    eventually("JetStream replies", || {
        let asked = async { timeout(Duration::from_secs(5), ask()).await.ok().flatten() };
        found = runtime.block_on(asked);
        found.is_some()
    });
    found.unwrap()
}

/// Returns the keys in the records of all messages of the stream.
fn keys(address: &ReservedAddress) -> Vec<String> {
    let info = request(address, "STREAM.INFO.EVENTS", &json!({}));
    let messages = info["state"]["messages"].as_u64().unwrap();
    let keys_of = |number: u64| {
        let reply = request(address, "STREAM.MSG.GET.EVENTS", &json!({ "seq": number }));
        let data = reply["message"]["data"].as_str().unwrap_or_else(|| panic!("{reply}"));
        let data: Value = serde_json::from_slice(&BASE64.decode_to_vec(data).unwrap()).unwrap();
        let records = data["Records"].as_array().unwrap().clone();
        records.into_iter().map(|it| it["s3"]["object"]["key"].as_str().unwrap().to_owned())
    };
    (1..=messages).flat_map(keys_of).collect()
}

fn start(dir: TempDir, address: &ReservedAddress) -> Running {
    let login = Some(NatsLogin::Token(TOKEN.to_owned()));
    let service = EventService::Nats { subject: "haul.events".to_owned(), login };
    let mut target = EventTarget::new("orders", format!("nats://{address}"), service);
    target.timeout = Duration::from_secs(2);
    let targets = Arc::new(EventTargets::new(vec![target]).unwrap());
    let encryption = EncryptionKey::generate().unwrap().to_text();
    Running::with_events(dir, &targets, &encryption, small())
}

#[test]
fn events_reach_a_stream_once_and_in_order_although_its_server_is_killed() {
    let Ok(program) = std::env::var("HAUL_NATS_SERVER") else {
        return skip("HAUL_NATS_SERVER is not set");
    };
    let (dir, nats_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let address = ReservedAddress::new();
    let nats = NatsServer::start(&program, nats_dir.path(), &address);
    let server = start(dir, &address);
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    let rule = "<NotificationConfiguration><QueueConfiguration><Queue>arn:haul:sqs:::orders</Queue>\
                <Event>s3:ObjectCreated:*</Event></QueueConfiguration></NotificationConfiguration>";
    assert_refused(&server.s3.put("/bucket?notification", rule.as_bytes()), 200, "");
    let put = |number: u32| {
        assert_eq!(server.s3.put(&format!("/bucket/{number:03}"), b"").status, 200);
    };
    let events = || -> Value {
        let found: Value = serde_json::from_slice(&server.admin.get("/events.json").body).unwrap();
        found[0].clone()
    };
    // Without a stream, nothing would keep the message.
    put(0);
    eventually("the missing stream is reported", || {
        events()["error"].as_str().is_some_and(|why| why.contains("no stream"))
    });
    let stream = json!({
        "name": "EVENTS", "subjects": ["haul.events"], "storage": "file", "retention": "limits",
        "discard": "old", "num_replicas": 1, "duplicate_window": 120_000_000_000_u64,
        // A message of 32 records exceeds the limit of the server, and one of 16 this limit.
        "max_msg_size": 8192,
    });
    let created = request(&address, "STREAM.CREATE.EVENTS", &stream);
    assert!(created["error"].is_null(), "{created}");
    let retry = || {
        let headers = [("x-haul-console", "1")];
        server.admin.send("POST", "/events/retry", &headers, b"");
        events()["queued_events"] == 0
    };
    eventually("the event is delivered", retry);

    (1..100).for_each(put);
    drop(nats);
    (100..200).for_each(put);
    eventually("the target fails", || !events()["error"].is_null());
    let _nats = NatsServer::start(&program, nats_dir.path(), &address);
    (200..300).for_each(put);
    eventually("all events are delivered", retry);
    let mut found = keys(&address);
    // The server may have been killed after it had stored a message and before it replied.
    found.dedup();
    assert_eq!(found, (0..300).map(|number| format!("{number:03}")).collect::<Vec<_>>());
}
