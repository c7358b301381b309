//! Sends random requests to `haul serve`, and compares every response with a simple model of S3's
//! rules for versions, locks, tags, copies and uploads. In between, the process is killed, often
//! while it executes a request.

mod act;
mod client;
mod model;
mod upload;

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use haul_testing::{PrintOnPanic, Random, depth, replay_command, seed};
use rustix::process::Signal;

use self::client::{Client, check_bucket, check_object, element, target, text};
use self::model::{Bucket, Content, Lock, Mode, NULL, Retention, Versioning};
use self::upload::Upload;
use crate::helper::{Serving, TestDir};

/// The keys. Some are the beginning of another one, or are escaped in URLs and XML.
const KEYS: [&str; 6] = ["a", "a b", "a/", "dir/1", "dir/2", "z&<ä>"];

/// The number of requests between two kills.
const REQUESTS: usize = 60;

/// The number of kills.
const KILLS: u64 = 6;

/// The server, the model of its buckets, and the uploads that are not completed.
struct Run {
    place: TestDir,
    /// `None` while no server runs.
    serving: Option<Serving>,
    client: Client,
    random: Random,
    /// A bucket with object lock, and one without.
    buckets: [Bucket; 2],
    uploads: Vec<Upload>,
    /// The numbers of requests in progress during a kill that were executed, and that were not.
    in_progress: [u64; 2],
}

/// A request whose response was not received.
enum InFlight {
    Put(Content),
    Delete,
    Hold(bool),
}

impl Run {
    fn new(seed: u64) -> Self {
        let place = TestDir::on_disk();
        let serving = place.serve();
        let client = Client(serving.address("S3").to_owned());
        let bucket = |name, versioning, has_lock: bool| {
            let fields = [("x-amz-bucket-object-lock-enabled", has_lock.to_string())];
            let created = client.send(("PUT", &format!("/{name}")), &fields, b"");
            assert_eq!(created.status, 200, "{}", text(&created));
            Bucket { name, versioning, has_lock, keys: BTreeMap::new() }
        };
        let locked = bucket("locked", Versioning::Enabled, true);
        let plain = bucket("plain", Versioning::Off, false);
        let (random, buckets) = (Random(seed), [locked, plain]);
        let (serving, uploads) = (Some(serving), Vec::new());
        Self { place, serving, client, random, buckets, uploads, in_progress: [0; 2] }
    }

    /// Returns the index of a bucket and a key.
    fn choose(&mut self) -> (usize, &'static str) {
        (self.random.index(self.buckets.len()), *self.random.pick(&KEYS))
    }

    /// Returns the ID of a version of a key, that of none, or `None` for the current object.
    fn choose_version(&mut self, bucket: usize, key: &str) -> Option<String> {
        let versions = self.buckets[bucket].versions(key);
        let ids: Vec<_> = versions.iter().map(|version| version.id.clone()).collect();
        match self.random.below(8) {
            0 => Some("0000000000000007".to_owned()),
            1 => Some(NULL.to_owned()),
            2 | 3 => None,
            _ if ids.is_empty() => None,
            _ => Some(self.random.pick(&ids).clone()),
        }
    }

    /// Returns a new object with a lock, if the bucket permits locks.
    fn content(&mut self, bucket: usize) -> Content {
        let length = match self.random.below(8) {
            0 => 0,
            1 => 100_000 + self.random.index(1_000_000),
            2 => 10_000 + self.random.index(20_000),
            _ => self.random.index(3000),
        };
        let has_lock = self.buckets[bucket].has_lock;
        Content {
            bytes: self.random.bytes(length).into(),
            etag: String::new(),
            meta: self.random.number().to_string(),
            tag: (self.random.below(3) == 0).then(|| self.random.below(100).to_string()),
            lock: Lock {
                retention: (has_lock && self.random.below(4) == 0).then(|| self.retention()),
                hold: (has_lock && self.random.below(6) == 0).then(|| self.random.below(2) == 0),
            },
        }
    }

    fn retention(&mut self) -> Retention {
        let mode = *self.random.pick(&[Mode::Governance, Mode::Governance, Mode::Compliance]);
        Retention { mode, day: 1 + self.random.below(28) }
    }

    /// Executes one random request, and compares its response.
    fn step(&mut self) {
        let (bucket, key) = self.choose();
        match self.random.below(32) {
            0..7 => self.put(bucket, key),
            7..10 => self.read(bucket, key),
            10..13 => self.delete(bucket, key),
            13..16 => self.delete_version(bucket, key),
            16 | 17 => self.delete_many(bucket),
            18..21 => self.copy(bucket, key),
            21 | 22 => self.tag(bucket, key),
            23 | 24 => self.retain(bucket, key),
            25 | 26 => self.hold(bucket, key),
            27 => self.start_upload(bucket, key),
            28 => self.end_upload(),
            29 => self.set_versioning(bucket),
            _ => {
                let page = 1 + self.random.index(7);
                check_bucket(&self.client, &self.buckets[bucket], page);
            }
        }
    }

    fn read(&mut self, bucket: usize, key: &str) {
        let id = self.choose_version(bucket, key);
        let method = *self.random.pick(&["GET", "HEAD"]);
        check_object(&self.client, &self.buckets[bucket], (key, id.as_deref()), method);
        self.read_range(bucket, key);
    }

    fn set_versioning(&mut self, bucket: usize) {
        let state = *self.random.pick(&[Versioning::Enabled, Versioning::Suspended]);
        let status = if state == Versioning::Enabled { "Enabled" } else { "Suspended" };
        let body =
            format!("<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>");
        let bucket = &mut self.buckets[bucket];
        let target = format!("/{}?versioning", bucket.name);
        let set = self.client.send(("PUT", &target), &[], body.as_bytes());
        if bucket.has_lock && state == Versioning::Suspended {
            client::assert_error(&set, 409, "InvalidBucketState", &target);
        } else {
            assert_eq!(set.status, 200, "{target}: {}", text(&set));
            bucket.versioning = state;
        }
        let shown = self.client.send(("GET", &target), &[], b"");
        let expected = match bucket.versioning {
            Versioning::Off => None,
            Versioning::Enabled => Some("Enabled"),
            Versioning::Suspended => Some("Suspended"),
        };
        assert_eq!(element(text(&shown), "Status").as_deref(), expected, "{target}");
    }

    /// Kills the server, in half of the cases while it executes a request, and starts it again. All
    /// acknowledged changes must be in effect, and the last one completely or not at all.
    fn kill(&mut self) {
        let (bucket, key) = self.choose();
        let in_flight = (self.random.below(4) > 0).then(|| self.start_request(bucket, key));
        let started = in_flight.map(|(request, peer)| {
            thread::sleep(Duration::from_micros(self.random.below(4000)));
            (request, peer)
        });
        let killed = self.serving.take().unwrap();
        killed.signal(Signal::KILL);
        let request = started.map(|(request, _peer)| request);
        assert_eq!(killed.wait().0, None, "it was killed");
        let serving = self.place.serve();
        self.client = Client(serving.address("S3").to_owned());
        self.serving = Some(serving);
        if let Some(request) = request {
            let is_executed = self.resolve(bucket, key, request);
            self.in_progress[usize::from(!is_executed)] += 1;
        }
        for bucket in &self.buckets {
            check_bucket(&self.client, bucket, 1000);
        }
    }

    /// Sends a request without waiting for the response.
    fn start_request(&mut self, bucket: usize, key: &str) -> (InFlight, haul_testing::http::Peer) {
        let plain = target(self.buckets[bucket].name, key, None, "");
        match self.random.below(4) {
            0 => (InFlight::Delete, self.client.start(("DELETE", &plain), &[], b"")),
            1 => {
                let is_on = self.random.below(2) == 0;
                let target = target(self.buckets[bucket].name, key, None, "legal-hold");
                let body = act::hold_document(is_on);
                let peer = self.client.start(("PUT", &target), &[], body.as_bytes());
                (InFlight::Hold(is_on), peer)
            }
            _ => {
                let content = self.content(bucket);
                let fields = act::fields_of(&content);
                let peer = self.client.start(("PUT", &plain), &fields, &content.bytes);
                (InFlight::Put(content), peer)
            }
        }
    }

    /// Applies a request to the model if the server has executed it before it was killed. Returns
    /// `true` if so.
    fn resolve(&mut self, bucket: usize, key: &str, request: InFlight) -> bool {
        let bucket = &mut self.buckets[bucket];
        let target = target(bucket.name, key, None, "");
        let found = self.client.send(("GET", &target), &[], b"");
        let id = found.field("x-amz-version-id").unwrap_or(NULL).to_owned();
        let is_executed = match &request {
            // No other object has the same metadata.
            InFlight::Put(content) => found.field("x-amz-meta-m") == Some(&*content.meta),
            InFlight::Delete if bucket.versioning == Versioning::Off => {
                found.status == 404 && bucket.current(key).is_some()
            }
            InFlight::Delete => {
                let is_newest = bucket.versions(key).first().is_some_and(|it| it.id == id);
                let is_marker = found.field("x-amz-delete-marker").is_some();
                is_marker && (!is_newest || bucket.current(key).is_some())
            }
            InFlight::Hold(is_on) => {
                let shown = found.field("x-amz-object-lock-legal-hold");
                found.status == 200 && shown == Some(if *is_on { "ON" } else { "OFF" })
            }
        };
        if !is_executed {
            return false;
        }
        match request {
            InFlight::Put(content) => {
                let etag = found.field("etag").unwrap().to_owned();
                bucket.add(key, &id, Some(Content { etag, ..content }));
            }
            InFlight::Delete if bucket.versioning == Versioning::Off => bucket.remove(key),
            InFlight::Delete => bucket.add(key, &id, None),
            InFlight::Hold(is_on) => bucket.content_mut(key, None).lock.hold = Some(is_on),
        }
        true
    }
}

#[test]
fn responses_are_those_of_the_model_while_the_server_is_killed() {
    let seed = seed();
    let _context = PrintOnPanic(replay_command(seed));
    let mut run = Run::new(seed);
    for _ in 0..KILLS * depth() {
        (0..REQUESTS).for_each(|_| run.step());
        run.kill();
    }
    let versions = |bucket: &Bucket| bucket.keys.values().map(Vec::len).sum::<usize>();
    let [locked, plain] = run.buckets.each_ref().map(versions);
    assert!(locked > 10 && plain > 0, "{locked} {plain}");
    let [executed, others] = run.in_progress;
    println!("of the requests in progress, {executed} were executed and {others} were not");
    let serving = run.serving.take().unwrap();
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().0, Some(0));
    run.place.run(&["store", "verify"]).code(0);
}
