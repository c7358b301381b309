//! Kills the server repeatedly while clients change objects and the target of their events is down
//! half of the time. Each acknowledged change must have its event, in the order of the key's changes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use haul_testing::{Random, WebhookReceiver};
use serde_json::Value;

use crate::http::Client;
use crate::server::Server;

const CLIENTS: usize = 16;
const KEYS: u64 = 8;

/// The variables with the number of changes and of kills, for longer runs.
const CHANGES: &str = "HAUL_EVENT_CHANGES";
const KILLS: &str = "HAUL_EVENT_KILLS";

/// The time for which the target is up, and then down.
const TOGGLE_TIME: Duration = Duration::from_millis(150);

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// A client that overwrites its keys, each time with one more byte.
struct Writer {
    name: usize,
    random: Random,
    /// The length of each key's next object.
    next: BTreeMap<String, u64>,
    /// The acknowledged lengths of each key.
    acknowledged: BTreeMap<String, BTreeSet<u64>>,
}

impl Writer {
    fn write(&mut self, host: &str, acknowledged: &Sender<()>) {
        let Ok(mut client) = Client::connect(host) else { return };
        loop {
            let key = format!("{}-{}", self.name, self.random.below(KEYS));
            let length = self.next.entry(key.clone()).or_default();
            let body = vec![b'a'; usize::try_from(*length).unwrap()];
            *length += 1;
            let target = format!("/load/{key}");
            let Ok(response) = client.request("PUT", &target, &body) else { return };
            assert_eq!(response.status, 200, "{response:?}");
            self.acknowledged.entry(key).or_default().insert(body.len() as u64);
            if acknowledged.send(()).is_err() {
                return;
            }
        }
    }
}

/// Writes until `changes` changes were acknowledged, and kills the server.
fn write_until_killed(server: Server, writers: &mut [Writer], changes: usize) {
    let (sender, receiver) = channel();
    let host = server.listen.clone();
    thread::scope(|scope| {
        for writer in writers {
            let (host, sender) = (&host, sender.clone());
            scope.spawn(move || writer.write(host, &sender));
        }
        drop(sender);
        (0..changes).for_each(|_| receiver.recv().expect("some clients are connected"));
        server.kill();
    });
}

/// Returns the lengths of each key's objects in the order of the messages.
fn delivered(receiver: &WebhookReceiver) -> BTreeMap<String, Vec<u64>> {
    let mut lengths: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for message in receiver.take() {
        let message: Value = serde_json::from_slice(&message.body).unwrap();
        for record in message["Records"].as_array().unwrap() {
            let object = &record["s3"]["object"];
            let key = object["key"].as_str().unwrap().to_owned();
            lengths.entry(key).or_default().push(object["size"].as_u64().unwrap());
        }
    }
    lengths
}

fn queued_events(server: &Server) -> u64 {
    let mut admin = Client::connect(&server.admin).unwrap();
    let response = admin.request("GET", "/events.json", b"").unwrap();
    let found: Value = serde_json::from_slice(&response.body).unwrap();
    found[0]["queued_events"].as_u64().unwrap_or_else(|| panic!("{found}"))
}

fn start(dir: &Path, file: &Path) -> Server {
    Server::start_with(dir, &["--event-targets", file.to_str().unwrap()])
}

#[test]
fn sigkill_loses_no_event_and_keeps_the_order_of_a_key() {
    let (changes, kills) = (number(CHANGES, 4000), number(KILLS, 4));
    let (dir, receiver) = (tempfile::tempdir().unwrap(), WebhookReceiver::start());
    let file = dir.path().join("events.toml");
    std::fs::write(&file, format!("[webhook.orders]\nurl = \"{}\"\n", receiver.url())).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let mut random = Random::from_environment();
    let mut writers: Vec<_> = (0..CLIENTS)
        .map(|name| Writer {
            name,
            random: Random(random.number()),
            next: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
        })
        .collect();
    let data = dir.path().join("data");
    let server = start(&data, &file);
    let mut client = server.client();
    assert_eq!(client.request("PUT", "/load", b"").unwrap().status, 200);
    let rules = "<NotificationConfiguration><QueueConfiguration><Queue>arn:haul:sqs:::orders</Queue>\
        <Event>s3:ObjectCreated:*</Event></QueueConfiguration></NotificationConfiguration>";
    let configured = client.request("PUT", "/load?notification", rules.as_bytes()).unwrap();
    assert_eq!(configured.status, 200, "{}", configured.text());

    let is_running = AtomicBool::new(true);
    let server = thread::scope(|scope| {
        let mut server = server;
        scope.spawn(|| {
            for status in [503, 200].into_iter().cycle() {
                thread::sleep(TOGGLE_TIME);
                receiver.answer_with(status);
                if !is_running.load(Ordering::SeqCst) {
                    break;
                }
            }
            receiver.answer_with(200);
        });
        for _ in 0..kills {
            write_until_killed(server, &mut writers, changes / kills);
            server = start(&data, &file);
        }
        is_running.store(false, Ordering::SeqCst);
        server
    });
    haul_testing::eventually("all events are delivered", || queued_events(&server) == 0);
    let mut found = delivered(&receiver);
    let (mut events, mut duplicates) = (0, 0);
    for (key, acknowledged) in writers.iter().flat_map(|writer| &writer.acknowledged) {
        let lengths = found.remove(key).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for length in &lengths {
            let is_next = seen.last().is_none_or(|last| last < length);
            assert!(is_next || seen.contains(length), "{key}: {length} is late in {lengths:?}");
            seen.insert(*length);
        }
        let lost: Vec<_> = acknowledged.difference(&seen).collect();
        assert!(lost.is_empty(), "{key}: no event of {lost:?}, but of {lengths:?}");
        events += seen.len();
        duplicates += lengths.len() - seen.len();
    }
    assert!(found.is_empty(), "events of changes that no client made: {found:?}");
    println!("{events} events, {duplicates} delivered again after {kills} kills");
    server.stop();
}
