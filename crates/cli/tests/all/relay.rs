//! Tests the start, the descriptors, the access log and the shutdown of `haul relay`.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;

use haul_testing::http::Peer;
use haul_testing::{Endpoint, Transport, eventually, over, server_certificate};
use rustix::process::Signal;
use serde_json::Value;

use crate::helper::{Serving, TestDir, noise};

over!(Plain Tls => (access_log_has_all_requests_after_a_stop,));

/// A running relay and its target. The target is a listener of the test, so the test has both ends
/// of each relayed connection.
struct Relay {
    serving: Serving,
    target: TcpListener,
}

impl Relay {
    fn start(place: &TestDir, more: &[&str]) -> Self {
        Self::started_by(place, more, |command| command)
    }

    fn started_by(place: &TestDir, more: &[&str], by: impl Fn(Command) -> Command) -> Self {
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = target.local_addr().unwrap().to_string();
        let mut arguments = vec!["relay", "--listen", "127.0.0.1:0", "--to", &to];
        arguments.extend(more);
        let serving = TestDir::start(&mut by(place.command(&arguments)));
        Self { serving, target }
    }

    fn address(&self) -> String {
        let line = &self.serving.line;
        if let Some(text) = line.strip_prefix("haul is ready: ") {
            return text.split(' ').next().unwrap().to_owned();
        }
        let ready: Value = serde_json::from_str(line).unwrap();
        assert_eq!(ready["kind"], "ready");
        ready["listen"][0].as_str().unwrap().to_owned()
    }

    fn pair(&self) -> (TcpStream, TcpStream) {
        (TcpStream::connect(self.address()).unwrap(), self.target.accept().unwrap().0)
    }

    /// Returns the number of open descriptors, and how many of them are pipes.
    fn open(&self) -> (usize, usize) {
        let folder = format!("/proc/{}/fd", self.serving.id());
        let links: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
            .collect();
        let is_pipe = |link: &&std::path::PathBuf| link.to_string_lossy().starts_with("pipe:");
        (links.len(), links.iter().filter(is_pipe).count())
    }

    /// Stops the relay, and returns its statistics.
    fn end(self) -> Value {
        self.serving.signal(Signal::TERM);
        let (code, stdout, stderr) = self.serving.wait();
        assert_eq!(code, Some(0), "{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }
}

/// Sends `bytes` through the relay, and checks them at the other end.
fn send((near, far): &mut (TcpStream, TcpStream), bytes: usize) {
    let sent = noise(bytes as u64, bytes);
    let mut got = vec![0; bytes];
    std::thread::scope(|scope| {
        scope.spawn(|| near.write_all(&sent).unwrap());
        far.read_exact(&mut got).unwrap();
    });
    assert!(sent == got);
}

#[test]
fn health_is_served_on_tcp_and_unix_addresses() {
    let place = TestDir::new();
    let path = place.path("admin");
    let unix = format!("unix:{}", path.display());
    let ask = "GET /health HTTP/1.0\r\n\r\n";
    for admin in ["127.0.0.1:0", &unix] {
        let relay = Relay::start(&place, &["--admin", admin]);
        let (_, admin) = relay.serving.line.trim_end().split_once(", admin on ").unwrap();
        let mut answer = String::new();
        if let Some(address) = admin.strip_prefix("http://") {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(ask.as_bytes()).unwrap();
            client.read_to_string(&mut answer).unwrap();
        } else {
            assert_eq!(admin, unix);
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(ask.as_bytes()).unwrap();
            client.read_to_string(&mut answer).unwrap();
        }
        assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
    }
}

#[test]
fn open_connections_finish_and_statistics_are_printed() {
    let place = TestDir::new();
    let mut relay = Relay::start(&place, &["--json", "--threads", "1"]);
    let mut pair = relay.pair();
    send(&mut pair, 5);
    relay.serving.signal(Signal::USR1);
    assert!(relay.serving.stderr_line().contains("1 connection in"));
    relay.serving.signal(Signal::TERM);
    while !relay.serving.stderr_line().contains("finishing open connections") {}
    send(&mut pair, 1_000_000);
    drop(pair);
    let (code, stdout, stderr) = relay.serving.wait();
    assert_eq!(code, Some(0), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    let up = &stats["up"];
    let total = up["bytes_copied"].as_u64().unwrap() + up["bytes_spliced"].as_u64().unwrap();
    assert_eq!(
        (total, &stats["accepted"], &stats["ended"]["clean"]),
        (1_000_005, &1.into(), &1.into())
    );
    assert_eq!(stats["kind"], "closed");
}

#[test]
fn idle_connection_has_two_descriptors_and_no_pipe() {
    let place = TestDir::new();
    let relay = Relay::start(&place, &["--json", "--threads", "1", "--move", "splice"]);
    let mut pairs = vec![relay.pair()];
    send(&mut pairs[0], 200_000);
    // The first connection created the pipe and all other descriptors that stay open.
    let before = relay.open();
    for _ in 0..100 {
        let mut pair = relay.pair();
        send(&mut pair, 200_000);
        pairs.push(pair);
    }
    let after = relay.open();
    assert_eq!(after.0 - before.0, 200, "two sockets each");
    assert_eq!(after.1, before.1, "pipes");
    drop(pairs);
    let stats = relay.end();
    assert_eq!((&stats["ended"]["clean"], &stats["pipes"]["created"]), (&101.into(), &1.into()));
}

/// A Python script that forbids `splice` to its process with seccomp, as a sandbox does, and then
/// executes the program.
const SANDBOX: &str = r#"
import ctypes, os, platform, struct, sys
nr = {"x86_64": 275, "aarch64": 76}[platform.machine()]
rules = b"".join(struct.pack("HBBI", *rule) for rule in [
    (0x20, 0, 0, 0),                # the number of the call
    (0x15, 0, 1, nr),               # is it splice?
    (0x06, 0, 0, 0x00050000 | 1),   # then EPERM
    (0x06, 0, 0, 0x7fff0000),       # else go on
])
memory = ctypes.create_string_buffer(rules)
program = struct.pack("HxxxxxxP", len(rules) // 8, ctypes.addressof(memory))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(program)) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn bytes_are_copied_if_splice_is_forbidden() {
    let place = TestDir::new();
    if Command::new("python3").arg("--version").output().is_err() {
        return haul_testing::skip("requires python3");
    }
    let in_sandbox = |command: Command| {
        let mut python = Command::new("python3");
        python.args(["-c", SANDBOX]).arg(command.get_program()).args(command.get_args());
        python
    };
    for moving in ["splice", "auto"] {
        let relay = Relay::started_by(&place, &["--json", "--move", moving], in_sandbox);
        let mut pair = relay.pair();
        send(&mut pair, 3_000_000);
        drop(pair);
        let stats = relay.end();
        assert_eq!(stats["up"]["bytes_copied"], 3_000_000, "{moving}: {stats}");
        assert_eq!(stats["up"]["bytes_spliced"], 0, "{moving}: {stats}");
        let refused = stats["splice_refused"].as_u64().unwrap();
        assert!((1..=2).contains(&refused), "once a direction, {moving}: {stats}");
    }
}

#[test]
fn address_in_use_is_reported() {
    let place = TestDir::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let arguments = ["relay", "--listen", &address, "--to", "127.0.0.1:9"];
    place.run(&arguments.map(OsStr::new)).code(3).stderr_contains(&["cannot listen on", &address]);
}

fn access_log_has_all_requests_after_a_stop(transport: Transport) {
    let place = TestDir::new();
    server_certificate().write(&place.path(""), "server");
    let tls: &[&str] = match transport {
        Transport::Tls => &["--tls-cert", "server.crt", "--tls-key", "server.key"],
        Transport::Plain | Transport::Inherited => &[],
    };
    let log = ["--http", "--access-log", "log", "--log-format", "combined"];
    let relay = Relay::start(&place, &[&log, tls].concat());
    let address = relay.address().parse().unwrap();
    let connect = || Peer::over(Endpoint { address, transport }.connect().unwrap());
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\n\r\n");
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfive!";

    let mut client = connect();
    client.send([get("/a"), get("/b"), get("/c")].concat());
    let mut server = Peer::new(relay.target.accept().unwrap().0);
    for _ in 0..3 {
        server.request().unwrap().unwrap();
        server.send(response);
        assert_eq!(client.response().unwrap().text(), "five!");
    }
    relay.serving.signal(Signal::HUP);
    let closed = || {
        let names = fs::read_dir(place.path("log")).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|end| end == "log")).collect::<Vec<_>>()
    };
    eventually("the file is closed", || !closed().is_empty());

    // The target closes without a response.
    drop((server, client));
    let mut client = connect();
    client.send(get("/d"));
    drop(Peer::new(relay.target.accept().unwrap().0).request().unwrap());
    assert_eq!(client.response().unwrap().status, 502);
    // The client closes before the response, and the relay is stopped before it logs a request.
    let mut client = connect();
    client.send(get("/e"));
    let mut server = Peer::new(relay.target.accept().unwrap().0);
    server.request().unwrap();
    client.reset();
    assert!(server.rest().is_err(), "the connection is reset");
    let mut client = connect();
    client.send(get("/f"));
    let mut server = Peer::new(relay.target.accept().unwrap().0);
    server.request().unwrap();
    relay.serving.signal(Signal::TERM);
    server.send(response);
    assert_eq!(client.response().unwrap().status, 200);
    let (code, _, stderr) = relay.serving.wait();
    assert_eq!(code, Some(0), "{stderr}");

    let target = relay.target.local_addr().unwrap();
    let paths = [&closed()[..], &[place.path("log/current")]].concat();
    let text: String = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    // Each thread writes its own lines: those of two connections are in any order.
    let mut lines: Vec<_> = text.lines().map(|line| line.split_once("] ").unwrap().1).collect();
    lines.sort_unstable();
    let expected =
        ["/a\" 200 5", "/b\" 200 5", "/c\" 200 5", "/d\" 502 61", "/e\" 499 0", "/f\" 200 5"].map(
            |part| {
                let (path, rest) = part.split_once('"').unwrap();
                format!("\"GET {path} HTTP/1.1\"{rest} \"-\" \"test\" {target}")
            },
        );
    assert_eq!(lines, expected);
}

#[test]
fn access_log_on_stdout_ends_before_the_statistics() {
    let place = TestDir::new();
    let relay = Relay::start(&place, &["--http", "--json", "--access-log", "-"]);
    let mut client = Peer::connect(relay.address()).unwrap();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = Peer::new(relay.target.accept().unwrap().0);
    server.request().unwrap();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfive!");
    assert_eq!(client.response().unwrap().text(), "five!");
    relay.serving.signal(Signal::TERM);
    let (code, stdout, stderr) = relay.serving.wait();
    assert_eq!(code, Some(0), "{stderr}");
    let (line, stats) = stdout.split_once('\n').unwrap();
    assert!(line.contains("\"GET /a HTTP/1.1\" 200 5 "), "{stdout}");
    let stats: Value = serde_json::from_str(stats).unwrap();
    assert_eq!(stats["http"]["requests"], 1);
}
