//! Kills the server repeatedly while sixteen clients upload to the same data directory. After each
//! kill, acknowledged objects must be intact, and unacknowledged objects must be complete or
//! absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use haul_testing::{Random, noise};

use crate::http::Client;
use crate::keys::{list, target};
use crate::program;
use crate::server::{SMALL_VOLUMES, Server};

const CLIENTS: usize = 16;
const ROUNDS: usize = 4;

/// The content of an object, as a random seed and a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    seed: u64,
    bytes: usize,
}

impl Content {
    /// Chooses a length of 1 to 100 KiB, or in one of 64 cases 5 MiB, which is stored in its own file.
    fn random(random: &mut Random) -> Self {
        let bytes = match random.index(64) {
            0 => 5 << 20,
            _ => (1 << 10) + random.index(99 << 10),
        };
        Self { seed: random.number(), bytes }
    }

    fn generate(self) -> Vec<u8> {
        noise(self.seed, self.bytes)
    }
}

/// A client that uploads, and the expected state of its keys.
struct Uploader {
    name: usize,
    random: Random,
    /// The last acknowledged content of each key.
    acknowledged: BTreeMap<String, Content>,
    /// The key and the content of the request that received no response. The content is `None` for
    /// a deletion.
    pending: Option<(String, Option<Content>)>,
}

impl Uploader {
    /// Puts, overwrites and deletes until the server is killed.
    fn upload(&mut self, host: &str, acknowledged: &Sender<()>) {
        let Ok(mut client) = Client::connect(host) else { return };
        loop {
            let (key, content) = self.choose();
            self.pending = Some((key.clone(), content));
            let (method, body) = match content {
                Some(content) => ("PUT", content.generate()),
                None => ("DELETE", Vec::new()),
            };
            let Ok(response) = client.request(method, &target("load", &key), &body) else { return };
            assert!(matches!(response.status, 200 | 204), "{key}: {response:?}");
            self.pending = None;
            self.settle(key, content);
            if acknowledged.send(()).is_err() {
                return;
            }
        }
    }

    /// Chooses in half of the cases a new key, otherwise an existing key. A quarter of these
    /// existing keys are deleted; the others are overwritten.
    fn choose(&mut self) -> (String, Option<Content>) {
        let content = Some(Content::random(&mut self.random));
        let existing = self.acknowledged.len();
        if existing == 0 || self.random.index(2) == 0 {
            return (format!("client {}/{:016x}", self.name, self.random.number()), content);
        }
        let at = self.random.index(existing);
        let key = self.acknowledged.keys().nth(at).expect("the index is in range").clone();
        (key, content.filter(|_| self.random.index(4) > 0))
    }

    fn settle(&mut self, key: String, content: Option<Content>) {
        match content {
            Some(content) => self.acknowledged.insert(key, content),
            None => self.acknowledged.remove(&key),
        };
    }

    /// Checks the acknowledged objects and determines the outcome of the pending request.
    fn verify(&mut self, client: &mut Client, listed: &mut BTreeSet<String>) {
        if let Some((key, content)) = self.pending.take() {
            let found = get(client, &key);
            if found == content.map(Content::generate) {
                self.settle(key, content);
            } // Otherwise the key must be unchanged, which is checked below.
        }
        for (key, content) in &self.acknowledged {
            assert!(get(client, key) == Some(content.generate()), "{key} differs from {content:?}");
            assert!(listed.remove(key), "{key} is not listed");
        }
    }
}

fn get(client: &mut Client, key: &str) -> Option<Vec<u8>> {
    let response = client.request("GET", &target("load", key), b"").unwrap();
    match response.status {
        200 => Some(response.body),
        404 => None,
        _ => panic!("{key}: {}", response.text()),
    }
}

/// Runs all uploaders and kills the server after `acknowledgements` responses.
fn load_until_killed(server: Server, uploaders: &mut [Uploader], acknowledgements: usize) {
    let (sender, receiver) = channel();
    let host = server.listen.clone();
    thread::scope(|scope| {
        for uploader in uploaders {
            let (host, sender) = (&host, sender.clone());
            scope.spawn(move || uploader.upload(host, &sender));
        }
        drop(sender);
        for count in 0..acknowledgements {
            receiver
                .recv()
                .unwrap_or_else(|_| panic!("all clients failed after {count} responses"));
        }
        server.kill();
    });
}

#[test]
fn sigkill_under_load_loses_no_acknowledged_object() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::from_environment();
    let mut uploaders: Vec<_> = (0..CLIENTS)
        .map(|name| Uploader {
            name,
            random: Random(random.number()),
            acknowledged: BTreeMap::new(),
            pending: None,
        })
        .collect();

    let mut server = Server::start_with(dir.path(), SMALL_VOLUMES);
    assert_eq!(server.client().request("PUT", "/load", b"").unwrap().status, 200);
    for round in 0..ROUNDS {
        load_until_killed(server, &mut uploaders, 1 + random.index(999));
        server = Server::start_with(dir.path(), SMALL_VOLUMES);
        let mut client = server.client();
        let mut listed: BTreeSet<_> = list(&mut client, "load").into_iter().collect();
        for uploader in &mut uploaders {
            uploader.verify(&mut client, &mut listed);
        }
        assert!(listed.is_empty(), "round {round}: unexpected objects {listed:?}");
        let objects: usize = uploaders.iter().map(|uploader| uploader.acknowledged.len()).sum();
        println!("round {round}: {objects} objects are intact");
    }
    server.kill();
    program::assert_success(&program::store("verify", dir.path(), SMALL_VOLUMES));
}
