//! `haul relay` between programs that know nothing of it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::process::{Command, Stdio};
use std::thread;

use haul_test_image::skip;

use crate::program;
use crate::random::Random;
use crate::running::Running;

fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("-V").output();
    version.is_ok_and(|output| output.status.success())
}

/// Sends back what it gets, for so many connections.
fn echo(connections: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for peer in listener.incoming().take(connections) {
            thread::spawn(move || {
                let mut from = peer.unwrap();
                let mut to = from.try_clone().unwrap();
                std::io::copy(&mut from, &mut to).unwrap();
                to.shutdown(Shutdown::Write).unwrap();
            });
        }
    });
    address
}

/// A program that gets `bytes` on stdin gives them back on stdout.
fn assert_echoed(command: &mut Command, bytes: &[u8]) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut echoed = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(bytes).unwrap());
        stdout.read_to_end(&mut echoed).unwrap();
    });
    assert!(child.wait().unwrap().success());
    assert!(echoed == bytes, "{} bytes of {} came back", echoed.len(), bytes.len());
}

#[test]
fn socat_gets_back_what_it_sent_over_tcp_and_unix_sockets() {
    if !is_there("socat") {
        return skip("there is no socat");
    }
    let mut random = Random::from_environment();
    let dir = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", dir.path().join("relay").display());
    let target = echo(6);
    // One relay behind the other: TCP to a unix socket to TCP.
    let inner = Running::relay(&socket, &target, &[]);
    let outer = Running::relay("127.0.0.1:0", &socket, &[]);
    assert!(inner.line.contains(" to 127.0.0.1:"));
    let by_tcp = format!("TCP:{}", outer.address());
    let by_unix = format!("UNIX-CONNECT:{}", &socket["unix:".len()..]);
    for bytes in [1, 100_000, 20_000_000] {
        let bytes = random.bytes(bytes);
        for by in [&by_tcp, &by_unix] {
            assert_echoed(Command::new("socat").args(["-t", "60", "-", by]), &bytes);
        }
    }
}

/// Both ends in Python: bytes each way at once, and the SHA-256 of what was sent and of what came.
const BOTH_ENDS: &str = r#"
import hashlib, os, socket, sys, threading
to, listener = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
sums = {}
def end(name, connection, total):
    def send():
        sum = hashlib.sha256()
        for at in range(0, total, 50000):
            piece = os.urandom(min(50000, total - at))
            sum.update(piece)
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        sums[name, "sent"] = sum.hexdigest()
    sender = threading.Thread(target=send)
    sender.start()
    sum = hashlib.sha256()
    while piece := connection.recv(70000):
        sum.update(piece)
    sums[name, "got"] = sum.hexdigest()
    sender.join()
host, port = to.split(":")
near = socket.create_connection((host, int(port)))
far = listener.accept()[0]
ends = [threading.Thread(target=end, args=args) for args in [("near", near, 9000001), ("far", far, 7000003)]]
for one in ends: one.start()
for one in ends: one.join()
assert sums["near", "sent"] == sums["far", "got"], sums
assert sums["far", "sent"] == sums["near", "got"], sums
"#;

#[test]
fn python_sees_the_same_sums_at_both_ends() {
    if !is_there("python3") {
        return skip("there is no python3");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Running::relay("127.0.0.1:0", &listener.local_addr().unwrap().to_string(), &[]);
    // The script has the listener as its stdin.
    let stdin = std::os::fd::OwnedFd::from(listener);
    let mut python = Command::new("python3");
    python.args(["-c", BOTH_ENDS, relay.address(), "0"]).stdin(stdin);
    program::assert_success(&python.output().unwrap());
}
