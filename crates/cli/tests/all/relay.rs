//! `haul relay`: how it starts, what it has open, and how it ends.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::helper::{Place, Serving, noise};

/// A relay to a target, and both ends of connections through it.
struct Relay {
    serving: Serving,
    target: TcpListener,
}

impl Relay {
    fn start(place: &Place, more: &[&str]) -> Self {
        Self::started_by(place, more, |command| command)
    }

    fn started_by(place: &Place, more: &[&str], by: impl Fn(Command) -> Command) -> Self {
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = target.local_addr().unwrap().to_string();
        let mut arguments = vec!["relay", "--listen", "127.0.0.1:0", "--to", &to];
        arguments.extend(more);
        let serving = Place::start(&mut by(place.command(&arguments)));
        Self { serving, target }
    }

    fn address(&self) -> &str {
        let line = self.serving.line.strip_prefix("haul is ready: ").unwrap();
        line.split(' ').next().unwrap()
    }

    fn pair(&self) -> (TcpStream, TcpStream) {
        (TcpStream::connect(self.address()).unwrap(), self.target.accept().unwrap().0)
    }

    /// What the process has open: all of it, and how much of that are pipes' ends.
    fn open(&self) -> (usize, usize) {
        let folder = format!("/proc/{}/fd", self.serving.id());
        let links: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
            .collect();
        let is_pipe = |link: &&std::path::PathBuf| link.to_string_lossy().starts_with("pipe:");
        (links.len(), links.iter().filter(is_pipe).count())
    }

    /// Asks it to end, and gives what it did.
    fn end(self) -> Value {
        self.serving.signal(Signal::TERM);
        let (code, stdout, stderr) = self.serving.wait();
        assert_eq!(code, Some(0), "{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }
}

/// Sends so many bytes through, and checks that they are the same there.
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
fn its_counts_and_its_health_are_told_on_either_kind_of_address() {
    let place = Place::new();
    let path = place.path("admin");
    let unix = format!("unix:{}", path.display());
    let ask = "GET /health HTTP/1.0\r\n\r\n";
    for admin in ["127.0.0.1:0", &unix] {
        let relay = Relay::start(&place, &["--admin", admin]);
        let (_, told) = relay.serving.line.trim_end().split_once(", admin on ").unwrap();
        let mut answer = String::new();
        if let Some(address) = told.strip_prefix("http://") {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(ask.as_bytes()).unwrap();
            client.read_to_string(&mut answer).unwrap();
        } else {
            assert_eq!(told, unix);
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(ask.as_bytes()).unwrap();
            client.read_to_string(&mut answer).unwrap();
        }
        assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
    }
}

#[test]
fn connections_end_before_it_does_and_what_it_did_is_told() {
    let place = Place::new();
    let mut relay = Relay::start(&place, &["--json", "--threads", "1"]);
    let mut pair = relay.pair();
    send(&mut pair, 5);
    relay.serving.signal(Signal::USR1);
    assert!(relay.serving.said().contains("1 connection in"));
    relay.serving.signal(Signal::TERM);
    while !relay.serving.said().contains("finishing the connections there are") {}
    send(&mut pair, 1_000_000);
    drop(pair);
    let (code, stdout, stderr) = relay.serving.wait();
    assert_eq!(code, Some(0), "{stderr}");
    let told: Value = serde_json::from_str(&stdout).unwrap();
    let up = &told["up"];
    let total = up["bytes_copied"].as_u64().unwrap() + up["bytes_spliced"].as_u64().unwrap();
    assert_eq!(
        (total, &told["accepted"], &told["ended"]["clean"]),
        (1_000_005, &1.into(), &1.into())
    );
}

#[test]
fn an_idle_connection_has_two_descriptors_and_no_pipe() {
    let place = Place::new();
    let relay = Relay::start(&place, &["--json", "--threads", "1", "--move", "splice"]);
    let mut pairs = vec![relay.pair()];
    send(&mut pairs[0], 200_000);
    // The pipes there will be, and everything else.
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
    let told = relay.end();
    assert_eq!((&told["ended"]["clean"], &told["pipes"]["made"]), (&101.into(), &1.into()));
}

/// Forbids `splice` to itself, as a sandbox does, and becomes the program.
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
fn where_splice_is_forbidden_bytes_are_copied_and_that_is_told() {
    let place = Place::new();
    if Command::new("python3").arg("--version").output().is_err() {
        return haul_test_image::skip("there is no python3");
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
        let told = relay.end();
        assert_eq!(told["up"]["bytes_copied"], 3_000_000, "{moving}: {told}");
        assert_eq!(told["up"]["bytes_spliced"], 0, "{moving}: {told}");
        let refused = told["splice_refused"].as_u64().unwrap();
        assert!((1..=2).contains(&refused), "once a direction, {moving}: {told}");
    }
}

#[test]
fn an_address_that_is_taken_is_told() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let holder = TcpListener::bind(taken).unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let arguments = ["relay", "--listen", &address, "--to", "127.0.0.1:9"];
    place.run(&arguments.map(OsStr::new)).code(3).tells(&["cannot listen on", &address]);
}
