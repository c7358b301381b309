//! Sends random requests while the server process is replaced, and compares every byte of every
//! response, over plain TCP and over TLS.

use std::io::BufRead;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::mpsc::channel;
use std::thread;

use haul_testing::http::{Message, Peer};
use haul_testing::{ClientStream, Endpoint, Random, Transport, noise, over, server_certificate};
use rustix::process::Signal;

use crate::handover::start;
use crate::helper::{Serving, TestDir};

over!(Plain Tls => (
    random_requests_for_files_get_exact_bytes,
    random_requests_through_the_relay_get_exact_bytes,
    random_requests_for_objects_get_exact_bytes,
));

/// The lengths of the files that all clients read. They cover each method of sending a body: with
/// the head, from a cache, as windows of the page cache, and by direct reads.
const LENGTHS: [usize; 10] =
    [0, 1, 1000, 4096, 16_385, 65_537, 300_000, 1_200_000, 2_500_000, 9_000_000];

/// The objects that each client overwrites.
const OWN_OBJECTS: usize = 4;
const CLIENTS: usize = 4;
const HANDOVERS: usize = 3;
const PIPELINED_MAX: usize = 8;

/// Returns the number of requests of each client.
fn requests() -> usize {
    150 * usize::try_from(haul_testing::depth()).unwrap()
}

/// A client that knows the content of everything it reads.
struct Client {
    server: Endpoint,
    /// The path of the directory or bucket.
    base: &'static str,
    /// Its number, which is part of the names of its objects.
    number: usize,
    random: Random,
    open: Option<Peer<ClientStream>>,
    /// The version of each object of its own; 0 before the first PUT. `None`: it only reads.
    versions: Option<[u64; OWN_OBJECTS]>,
}

impl Client {
    /// Sends one random request, or several in a pipeline.
    fn step(&mut self) {
        match self.random.below(12) {
            0..=3 => self.get(),
            4..=5 => self.get_range(),
            6 => self.head(),
            7..=8 => self.pipeline(),
            9 => self.abandon(),
            _ => self.put(),
        }
    }

    /// Selects a path to read, short ones more often, and returns its content.
    fn select(&mut self) -> (String, Vec<u8>) {
        if let Some(versions) = self.versions
            && self.random.below(3) == 0
        {
            let index = self.random.index(OWN_OBJECTS);
            if versions[index] > 0 {
                return (self.own_path(index), self.own_content(index, versions[index]));
            }
        }
        let index = self.random.index(LENGTHS.len()).min(self.random.index(LENGTHS.len()));
        (format!("{}/shared-{index}", self.base), shared_content(index))
    }

    fn own_path(&self, index: usize) -> String {
        format!("{}/own-{}-{index}", self.base, self.number)
    }

    /// Returns the content of a version. Its length differs from that of other versions.
    fn own_content(&self, index: usize, version: u64) -> Vec<u8> {
        let mut random = Random(((self.number as u64) << 32) ^ ((index as u64) << 24) ^ version);
        let length = *random.pick(&LENGTHS) / 2 + usize::try_from(version).unwrap();
        random.bytes(length)
    }

    fn get(&mut self) {
        let (path, content) = self.select();
        let response = self.exchange("GET", head("GET", &path, ""));
        check(&path, &response, 200, &content);
    }

    fn head(&mut self) {
        let (path, content) = self.select();
        let response = self.exchange("HEAD", head("HEAD", &path, ""));
        assert_eq!(response.field("content-length"), Some(&*content.len().to_string()), "{path}");
    }

    fn get_range(&mut self) {
        let (path, content) = self.select();
        if content.is_empty() {
            return;
        }
        let range = range(&mut self.random, content.len());
        let field = format!("Range: bytes={}-{}\r\n", range.start, range.end - 1);
        let response = self.exchange("GET", head("GET", &path, &field));
        check(&path, &response, 206, &content[range]);
    }

    /// Sends several requests before it reads the first response. A server that closes the
    /// connection has not answered the rest of them.
    fn pipeline(&mut self) {
        let count = 2 + self.random.index(PIPELINED_MAX - 1);
        let selected: Vec<_> = (0..count).map(|_| self.select()).collect();
        let requests: String = selected.iter().map(|(path, _)| head("GET", path, "")).collect();
        let first = self.exchange("GET", &requests);
        check(&selected[0].0, &first, 200, &selected[0].1);
        for (path, content) in &selected[1..] {
            let Some(mut peer) = self.open.take() else { return };
            let response = peer.response_to("GET").unwrap();
            check(path, &response, 200, content);
            self.keep(peer, &response);
        }
    }

    /// Closes the connection in the middle of a response.
    fn abandon(&mut self) {
        let (path, content) = self.select();
        let server = self.server;
        let mut peer = self.open.take().unwrap_or_else(|| connect(server));
        let bytes = self.random.index(content.len() + 1);
        if peer.try_send(head("GET", &path, "")).is_err() || peer.head().is_err() {
            return;
        }
        let begin = peer.body(bytes).unwrap_or_default();
        assert!(content.starts_with(&begin), "{path}: the first {bytes} bytes differ");
        if self.random.below(2) == 0 {
            peer.reset();
        }
    }

    fn put(&mut self) {
        let index = self.random.index(OWN_OBJECTS);
        let Some(versions) = &mut self.versions else { return self.get() };
        versions[index] += 1;
        let version = versions[index];
        let (path, content) = (self.own_path(index), self.own_content(index, version));
        let field = format!("Content-Length: {}\r\n", content.len());
        let request = [head("PUT", &path, &field).as_bytes(), &content].concat();
        let response = self.exchange("PUT", &request);
        assert_eq!(response.status, 200, "PUT {path}: {}", response.text());
    }

    /// Sends a request, and reads the response. A server may close a connection that was idle: then
    /// the request is sent again on a new one. A response that has begun must be complete.
    fn exchange(&mut self, method: &str, request: impl AsRef<[u8]>) -> Message {
        loop {
            let is_reused = self.open.is_some();
            let server = self.server;
            let mut peer = self.open.take().unwrap_or_else(|| connect(server));
            let sent = peer.try_send(&request);
            let has_response = peer.reader().fill_buf().is_ok_and(|bytes| !bytes.is_empty());
            if has_response {
                let response = peer.response_to(method).unwrap();
                self.keep(peer, &response);
                return response;
            }
            assert!(is_reused, "no response on a new connection: {sent:?}");
        }
    }

    fn keep(&mut self, peer: Peer<ClientStream>, response: &Message) {
        self.open = (response.field("connection") != Some("close")).then_some(peer);
    }
}

fn connect(server: Endpoint) -> Peer<ClientStream> {
    Peer::over(server.connect().unwrap())
}

fn head(method: &str, path: &str, field: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n")
}

fn range(random: &mut Random, length: usize) -> Range<usize> {
    let start = random.index(length);
    start..start + 1 + random.index(length - start)
}

fn shared_content(index: usize) -> Vec<u8> {
    noise(index as u64, LENGTHS[index])
}

/// Compares a response without printing megabytes.
fn check(path: &str, response: &Message, status: u16, content: &[u8]) {
    assert_eq!(response.status, status, "{path}: {:?}", response.fields);
    assert_eq!(response.body.len(), content.len(), "{path}: {:?}", response.fields);
    let differs = response.body.iter().zip(content).position(|(left, right)| left != right);
    assert_eq!(differs, None, "{path}: the first byte that differs: {:?}", response.fields);
}

/// Replaces the server process while clients send requests: with `overlap`, the next process is
/// ready before the last one drains.
fn soak(
    transport: Transport,
    place: &TestDir,
    (arguments, base): (&[&str], &'static str),
    overlap: bool,
) {
    server_certificate().write(&place.path(""), "server");
    let tls: &[&str] = match transport {
        Transport::Tls => &["--tls-cert", "server.crt", "--tls-key", "server.key"],
        Transport::Plain | Transport::Inherited => &[],
    };
    let arguments = &[arguments, tls].concat();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Endpoint { address: socket.local_addr().unwrap(), transport };
    let (seed, requests_per_client) = (Random::from_environment().number(), requests());
    let mut serving = start(place, arguments, &socket);
    thread::scope(|scope| {
        let (sender, steps) = channel();
        for number in 0..CLIENTS {
            let versions = (base == "/bucket").then_some([0; OWN_OBJECTS]);
            let random = Random(seed ^ number as u64);
            let mut client = Client { server, base, number, random, open: None, versions };
            let sender = sender.clone();
            scope.spawn(move || {
                for _ in 0..requests_per_client {
                    client.step();
                    sender.send(()).unwrap();
                }
            });
        }
        drop(sender);
        for _ in 0..HANDOVERS {
            // The iterator ends early if clients have failed.
            steps.iter().take(requests_per_client * CLIENTS / (HANDOVERS + 1)).for_each(drop);
            replace(&mut serving, || start(place, arguments, &socket), overlap);
        }
        steps.iter().for_each(drop);
    });
    serving.signal(Signal::TERM);
    let (code, _, stderr) = serving.wait();
    assert_eq!(code, Some(0), "{stderr}");
}

/// Replaces the server process by one that `start` starts, and waits for the end of the old one.
fn replace(serving: &mut Serving, start: impl Fn() -> Serving, overlap: bool) {
    if !overlap {
        serving.signal(Signal::TERM);
    }
    let old = std::mem::replace(serving, start());
    if overlap {
        old.signal(Signal::TERM);
    }
    let (code, _, stderr) = old.wait();
    assert_eq!(code, Some(0), "{stderr}");
}

/// Writes the files that all clients read.
fn write_shared(place: &TestDir) {
    for index in 0..LENGTHS.len() {
        place.write(format!("tree/shared-{index}"), shared_content(index));
    }
}

fn random_requests_for_files_get_exact_bytes(transport: Transport) {
    let place = TestDir::on_disk();
    write_shared(&place);
    soak(transport, &place, (&["files", "tree", "--threads", "2"], ""), true);
}

fn random_requests_through_the_relay_get_exact_bytes(transport: Transport) {
    let place = TestDir::on_disk();
    write_shared(&place);
    let target = TestDir::start(&mut place.command(&["files", "tree", "--listen", "127.0.0.1:0"]));
    let to = target.address("files").to_owned();
    soak(transport, &place, (&["relay", "--http", "--to", &to, "--threads", "2"], ""), true);
}

fn random_requests_for_objects_get_exact_bytes(transport: Transport) {
    let place = TestDir::on_disk();
    write_shared(&place);
    place.run(&["store", "import", "bucket", "tree"]).code(0);
    let arguments = ["serve", "--admin", "127.0.0.1:0"];
    soak(transport, &place, (&arguments, "/bucket"), false);
    place.run(&["store", "verify"]).code(0);
}
