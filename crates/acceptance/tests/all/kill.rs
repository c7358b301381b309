//! The server is killed in the middle of sixteen uploading clients, again and again, over the
//! same data. What it had acknowledged must be there, byte for byte; what it had not must be there
//! whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::http::Client;
use crate::keys::{list, target};
use crate::program;
use crate::random::Random;
use crate::server::{SMALL_VOLUMES, Server};

const CLIENTS: usize = 16;
const ROUNDS: usize = 4;

/// Content, as the seed and the length it is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    seed: u64,
    bytes: usize,
}

impl Content {
    /// Mostly 1 to 100 KiB, now and then 5 MiB, which goes into a file of its own.
    fn random(random: &mut Random) -> Self {
        let bytes = match random.between(0, 64) {
            0 => 5 << 20,
            _ => random.between(1 << 10, 100 << 10),
        };
        Self { seed: random.next(), bytes }
    }

    fn make(self) -> Vec<u8> {
        Random::new(self.seed).bytes(self.bytes)
    }
}

/// One uploader: what the server told it of its keys, and what it was not told any more.
struct Uploader {
    name: usize,
    random: Random,
    /// The last acknowledged content of each key.
    acknowledged: BTreeMap<String, Content>,
    /// The request the server did not answer: a content or, for a deletion, none.
    pending: Option<(String, Option<Content>)>,
}

impl Uploader {
    /// Puts, overwrites and deletes until the server is gone.
    fn upload(&mut self, host: &str, acknowledged: &Sender<()>) {
        let Ok(mut client) = Client::connect(host) else { return };
        loop {
            let (key, content) = self.choose();
            self.pending = Some((key.clone(), content));
            let (method, body) = match content {
                Some(content) => ("PUT", content.make()),
                None => ("DELETE", Vec::new()),
            };
            let Ok(answer) = client.request(method, &target("load", &key), &body) else { return };
            assert!(matches!(answer.status, 200 | 204), "{key}: {answer:?}");
            self.pending = None;
            self.settle(key, content);
            if acknowledged.send(()).is_err() {
                return;
            }
        }
    }

    /// Half new keys, half keys it has: three of four of these are overwritten, one is deleted.
    fn choose(&mut self) -> (String, Option<Content>) {
        let content = Some(Content::random(&mut self.random));
        let have = self.acknowledged.len();
        if have == 0 || self.random.between(0, 2) == 0 {
            return (format!("client {}/{:016x}", self.name, self.random.next()), content);
        }
        let at = self.random.between(0, have);
        let key = self.acknowledged.keys().nth(at).expect("it is one of those").clone();
        (key, content.filter(|_| self.random.between(0, 4) > 0))
    }

    fn settle(&mut self, key: String, content: Option<Content>) {
        match content {
            Some(content) => self.acknowledged.insert(key, content),
            None => self.acknowledged.remove(&key),
        };
    }

    /// Compares with the server what it acknowledged, and learns what became of the rest.
    fn compare(&mut self, client: &mut Client, listed: &mut BTreeSet<String>) {
        if let Some((key, content)) = self.pending.take() {
            let found = get(client, &key);
            if found == content.map(Content::make) {
                self.settle(key, content);
            } // Else it must be as it was before, which is looked at now.
        }
        for (key, content) in &self.acknowledged {
            assert!(get(client, key) == Some(content.make()), "{key} is not {content:?}");
            assert!(listed.remove(key), "{key} is not listed");
        }
    }
}

fn get(client: &mut Client, key: &str) -> Option<Vec<u8>> {
    let answer = client.request("GET", &target("load", key), b"").unwrap();
    match answer.status {
        200 => Some(answer.body),
        404 => None,
        _ => panic!("{key}: {}", answer.text()),
    }
}

/// Lets all uploaders work until `acknowledgements` came, and kills the server at that moment.
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
            receiver.recv().unwrap_or_else(|_| panic!("all clients gave up after {count}"));
        }
        server.kill();
    });
}

#[test]
fn a_kill_under_load_loses_nothing_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::from_environment();
    let mut uploaders: Vec<_> = (0..CLIENTS)
        .map(|name| Uploader {
            name,
            random: Random::new(random.next()),
            acknowledged: BTreeMap::new(),
            pending: None,
        })
        .collect();

    let mut server = Server::start_with(dir.path(), SMALL_VOLUMES);
    assert_eq!(server.client().request("PUT", "/load", b"").unwrap().status, 200);
    for round in 0..ROUNDS {
        load_until_killed(server, &mut uploaders, random.between(1, 1000));
        server = Server::start_with(dir.path(), SMALL_VOLUMES);
        let mut client = server.client();
        let mut listed: BTreeSet<_> = list(&mut client, "load").into_iter().collect();
        for uploader in &mut uploaders {
            uploader.compare(&mut client, &mut listed);
        }
        assert!(listed.is_empty(), "round {round}: nobody uploaded {listed:?}");
        let kept: usize = uploaders.iter().map(|uploader| uploader.acknowledged.len()).sum();
        println!("round {round}: {kept} objects are what they should be");
    }
    server.kill();
    program::assert_success(&program::store("verify", dir.path(), SMALL_VOLUMES));
}
