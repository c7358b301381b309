//! Tests that a listening socket is handed over from one server process to the next while clients
//! connect, and none of their connections is refused or broken.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use haul_testing::http::Peer;
use rustix::process::Signal;

use crate::helper::{Serving, TestDir};

const HANDOVERS: usize = 20;

/// Starts the program with a listening socket as descriptor 3, as systemd does.
fn start(place: &TestDir, arguments: &[&str], socket: &TcpListener) -> Serving {
    let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\"";
    let program = place.command(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program.get_program()).args(program.get_args());
    shell
        .current_dir(place.path(""))
        .stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
    TestDir::start(&mut shell)
}

/// Sends requests until `is_over`, each on a new connection or all on one as long as the server
/// keeps it open. Panics if a request gets no complete response.
fn send_requests(address: SocketAddr, keep_alive: bool, is_over: &AtomicBool, count: &AtomicUsize) {
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let request = format!("GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n");
    let mut peer = None;
    while !is_over.load(Relaxed) {
        let mut open = peer.take().unwrap_or_else(|| Peer::connect(address).unwrap());
        open.try_send(&request).unwrap();
        let response = open.response().unwrap();
        assert_eq!((response.status, response.text()), (200, "content"));
        count.fetch_add(1, Relaxed);
        peer = (response.field("connection") != Some("close")).then_some(open);
    }
}

/// Replaces the server process repeatedly, each time by one that is ready before the other drains.
fn hand_over(place: &TestDir, arguments: &[&str]) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (is_over, counts) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    // The last process ends after the clients.
    let mut serving = start(place, arguments, &socket);
    thread::scope(|scope| {
        for keep_alive in [false, true, true] {
            let (is_over, count) = (&is_over, &counts[usize::from(keep_alive)]);
            scope.spawn(move || send_requests(address, keep_alive, is_over, count));
        }
        let mut draining = Vec::new();
        for _ in 0..HANDOVERS {
            let next = start(place, arguments, &socket);
            let served = counts.each_ref().map(|count| count.load(Relaxed));
            serving.signal(Signal::TERM);
            draining.push(std::mem::replace(&mut serving, next));
            // Both kinds of clients are served again before the next hand-over.
            while counts.iter().zip(served).any(|(count, before)| count.load(Relaxed) < before + 20)
            {
                thread::yield_now();
            }
        }
        is_over.store(true, Relaxed);
        for ended in draining {
            let (code, _, stderr) = ended.wait();
            assert_eq!(code, Some(0), "{stderr}");
        }
    });
}

#[test]
fn files_are_served_without_a_gap_while_processes_hand_over() {
    let place = TestDir::on_disk();
    place.write("www/a", "content");
    hand_over(&place, &["files", "www", "--threads", "2"]);
}

#[test]
fn requests_are_relayed_without_a_gap_while_processes_hand_over() {
    let place = TestDir::on_disk();
    place.write("www/a", "content");
    let target = TestDir::start(&mut place.command(&["files", "www", "--listen", "127.0.0.1:0"]));
    let to = target.address("files").to_owned();
    hand_over(&place, &["relay", "--http", "--to", &to, "--threads", "2"]);
}

#[test]
fn inherited_descriptor_that_is_no_listener_is_refused() {
    let place = TestDir::new();
    let script = "exec 3</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" files .";
    let program = place.command(&["files"]);
    let output = Command::new("sh").args(["-c", script]).arg(program.get_program()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("inherited descriptor 3"), "{stderr}");
}
