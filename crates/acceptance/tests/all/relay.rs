//! Tests `haul relay` between unmodified programs.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::process::{Command, Stdio};
use std::thread;

use haul_testing::{Random, skip};

use crate::program;
use crate::running::Running;

fn is_installed(program: &str) -> bool {
    let version = Command::new(program).arg("-V").output();
    version.is_ok_and(|output| output.status.success())
}

/// Starts an echo server for this number of connections; returns its address.
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

/// Asserts that a program prints on stdout the bytes it receives on stdin.
fn assert_echoed(command: &mut Command, bytes: &[u8]) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut echoed = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(bytes).unwrap());
        stdout.read_to_end(&mut echoed).unwrap();
    });
    assert!(child.wait().unwrap().success());
    assert!(echoed == bytes, "{} of {} bytes were echoed", echoed.len(), bytes.len());
}

#[test]
fn socat_is_echoed_over_tcp_and_unix_sockets() {
    if !is_installed("socat") {
        return skip("socat is not installed");
    }
    let mut random = Random::from_environment();
    let dir = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", dir.path().join("relay").display());
    let target = echo(6);
    // Two relays in a row: TCP to a unix socket to TCP.
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

/// A client and a server in Python, which send in both directions at once and compare the SHA-256 of
/// sent and received bytes.
const BOTH_ENDS: &str = r#"
import hashlib, os, socket, sys, threading
to, listener = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
sums = {}
def end(name, connection, total):
    def send():
        digest = hashlib.sha256()
        for at in range(0, total, 50000):
            piece = os.urandom(min(50000, total - at))
            digest.update(piece)
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        sums[name, "sent"] = digest.hexdigest()
    sender = threading.Thread(target=send)
    sender.start()
    digest = hashlib.sha256()
    while piece := connection.recv(70000):
        digest.update(piece)
    sums[name, "received"] = digest.hexdigest()
    sender.join()
host, port = to.split(":")
client = socket.create_connection((host, int(port)))
server = listener.accept()[0]
ends = [threading.Thread(target=end, args=args) for args in [("client", client, 9000001), ("server", server, 7000003)]]
for thread in ends: thread.start()
for thread in ends: thread.join()
assert sums["client", "sent"] == sums["server", "received"], sums
assert sums["server", "sent"] == sums["client", "received"], sums
"#;

#[test]
fn checksums_match_at_both_ends() {
    if !is_installed("python3") {
        return skip("python3 is not installed");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Running::relay("127.0.0.1:0", &listener.local_addr().unwrap().to_string(), &[]);
    // The script receives the listening socket as its stdin.
    let stdin = std::os::fd::OwnedFd::from(listener);
    let mut python = Command::new("python3");
    python.args(["-c", BOTH_ENDS, relay.address(), "0"]).stdin(stdin);
    program::assert_success(&python.output().unwrap());
}
