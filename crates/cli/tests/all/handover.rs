//! Tests that a listening socket is handed over from one server process to the next while clients
//! connect, and none of their connections is refused or broken.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use haul_testing::http::Peer;
use haul_testing::{Endpoint, ReservedAddress, Transport, eventually, over, server_certificate};
use rustix::process::Signal;

use crate::helper::{Serving, TestDir};

over!(Plain Tls => (
    files_are_served_without_a_gap_while_processes_hand_over,
    requests_are_relayed_without_a_gap_while_processes_hand_over,
    store_is_served_without_a_gap_while_processes_restart,
));

const HANDOVERS: usize = 20;

/// Returns the number of requests to send while one process serves: so many in all, or a few.
fn requests_per_process() -> usize {
    let all = std::env::var("HAUL_HANDOVER_REQUESTS").ok().map(|text| text.parse().unwrap());
    all.map_or(0, |all: usize| all.div_ceil(HANDOVERS))
}

/// Starts the program with a listening socket as descriptor 3, as systemd does.
pub(crate) fn start(place: &TestDir, arguments: &[&str], socket: &TcpListener) -> Serving {
    let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\"";
    let program = place.command(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program.get_program()).args(program.get_args());
    shell
        .current_dir(place.path(""))
        .stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
    let serving = TestDir::start(&mut shell);
    assert!(serving.line.starts_with("haul is ready"), "{}", serving.line);
    serving
}

/// A request line, and the body of the response.
type Exchange<'a> = (&'a str, &'a str);

/// A server that drains closes a connection after a second without a request. A client that the
/// machine paused for longer than this may find its connection closed, and must connect again.
const REUSED_WITHIN: Duration = Duration::from_millis(500);

/// Sets the flag when it is dropped, also by a panic: the threads that wait for each other end.
struct EndsOthers<'a>(&'a AtomicBool);

impl Drop for EndsOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Sends requests until `is_over`, each on a new connection or all on one as long as the server
/// keeps it open. Panics if a request gets no complete response.
fn send_requests(
    server: Endpoint,
    (line, expected): Exchange<'_>,
    keep_alive: bool,
    is_over: &AtomicBool,
    count: &AtomicUsize,
) {
    let _others = EndsOthers(is_over);
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let request = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: {connection}\r\n\r\n"
    );
    let mut reusable = None;
    while !is_over.load(Relaxed) {
        let sent_at = Instant::now();
        let (mut open, used_at) =
            reusable.take().unwrap_or_else(|| (Peer::over(server.connect().unwrap()), sent_at));
        let exchange = open.try_send(&request).and_then(|()| open.response());
        if exchange.is_err() && used_at < sent_at && used_at.elapsed() > REUSED_WITHIN {
            continue;
        }
        let response = exchange.unwrap();
        assert_eq!((response.status, response.text()), (200, expected));
        count.fetch_add(1, Relaxed);
        reusable = (response.field("connection") != Some("close")).then_some((open, sent_at));
    }
}

/// Returns a page of an admin address; `None` if it is not served.
fn admin_page(admin: &str, path: &str) -> Option<String> {
    let mut peer = Peer::connect(admin).ok()?;
    peer.try_send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).ok()?;
    peer.response().ok().map(|response| response.text().to_owned())
}

/// Replaces the server process repeatedly: with `overlap`, each time by one that is ready before the
/// other drains, otherwise by one that starts while the other drains. Returns the number of requests.
#[expect(clippy::print_stdout, reason = "the number of requests, for the documentation")]
fn hand_over(
    transport: Transport,
    place: &TestDir,
    arguments: &[&str],
    exchanges: [Exchange<'_>; 3],
    overlap: bool,
) -> usize {
    let admin = arguments.iter().skip_while(|argument| **argument != "--admin").nth(1);
    server_certificate().write(&place.path(""), "server");
    let tls: &[&str] = match transport {
        Transport::Tls => &["--tls-cert", "server.crt", "--tls-key", "server.key"],
        Transport::Plain | Transport::Inherited => &[],
    };
    let arguments = &[arguments, tls].concat();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Endpoint { address: socket.local_addr().unwrap(), transport };
    let (is_over, counts) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    // The last process ends after the clients.
    let mut serving = start(place, arguments, &socket);
    thread::scope(|scope| {
        let clients = EndsOthers(&is_over);
        for (keep_alive, exchange) in [false, true, true].into_iter().zip(exchanges) {
            let (is_over, count) = (&is_over, &counts[usize::from(keep_alive)]);
            scope.spawn(move || send_requests(server, exchange, keep_alive, is_over, count));
        }
        let mut draining = Vec::new();
        let sum = || counts.iter().map(|count| count.load(Relaxed)).sum::<usize>();
        for number in 1..=HANDOVERS {
            if !overlap {
                serving.signal(Signal::TERM);
            }
            let next = start(place, arguments, &socket);
            let served = counts.each_ref().map(|count| count.load(Relaxed));
            if overlap {
                serving.signal(Signal::TERM);
            }
            draining.push(std::mem::replace(&mut serving, next));
            // Both kinds of clients are served again before the next hand-over.
            while counts.iter().zip(served).any(|(count, before)| count.load(Relaxed) < before + 20)
                || sum() < number * requests_per_process()
            {
                assert!(!is_over.load(Relaxed), "a client has failed");
                thread::yield_now();
            }
        }
        drop(clients);
        for ended in draining {
            let (code, _, stderr) = ended.wait();
            assert_eq!(code, Some(0), "{stderr}");
        }
    });
    // The last process has taken the admin address.
    if let Some(admin) = admin.filter(|admin| !admin.ends_with(":0")) {
        eventually("it is ready", || {
            admin_page(admin, "/ready").is_some_and(|page| page == "ok\n")
        });
        assert!(admin_page(admin, "/metrics").unwrap().contains("process_open_fds"));
    }
    serving.signal(Signal::TERM);
    let (code, _, stderr) = serving.wait();
    assert_eq!(code, Some(0), "{stderr}");
    let requests = counts.iter().map(|count| count.load(Relaxed)).sum();
    println!("{requests} requests over {HANDOVERS} hand-overs, {transport:?}: all answered");
    requests
}

fn files_are_served_without_a_gap_while_processes_hand_over(transport: Transport) {
    let place = TestDir::on_disk();
    place.write("www/a", "content");
    let reserved = ReservedAddress::new();
    let admin = reserved.to_string();
    let arguments = ["files", "www", "--threads", "2", "--access-log", "access", "--admin", &admin];
    let requests = hand_over(transport, &place, &arguments, [("GET /a", "content"); 3], true);
    // A process keeps its lines until the process before it has written its last line.
    assert_eq!(lines(&place, "access", &["\"GET /a "]), requests);
}

fn requests_are_relayed_without_a_gap_while_processes_hand_over(transport: Transport) {
    let place = TestDir::on_disk();
    place.write("www/a", "content");
    let target = TestDir::start(&mut place.command(&["files", "www", "--listen", "127.0.0.1:0"]));
    let to = target.address("files").to_owned();
    let reserved = ReservedAddress::new();
    let admin = reserved.to_string();
    let arguments = ["relay", "--http", "--to", &to, "--threads", "2", "--access-log", "access"];
    let arguments = [&arguments[..], &["--admin", &admin]].concat();
    let requests = hand_over(transport, &place, &arguments, [("GET /a", "content"); 3], true);
    assert_eq!(lines(&place, "access", &["\"GET /a "]), requests);
}

/// Counts the lines of a log that contain one of these texts.
fn lines(place: &TestDir, log: &str, texts: &[&str]) -> usize {
    let mut text = String::new();
    let mut paths = vec![place.path(log)];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            text += &std::fs::read_to_string(&path).unwrap();
        }
    }
    text.lines().filter(|line| texts.iter().any(|text| line.contains(text))).count()
}

fn store_is_served_without_a_gap_while_processes_restart(transport: Transport) {
    let place = TestDir::on_disk();
    place.write("tree/a", "content");
    place.run(&["store", "import", "bucket", "tree"]).code(0);
    let arguments =
        ["serve", "--admin", "127.0.0.1:0", "--access-log", "access", "--audit-log", "audit"];
    let (get, put) = (("GET /bucket/a", "content"), ("PUT /bucket/b", ""));
    let requests = hand_over(transport, &place, &arguments, [get, get, put], false);
    // Each process continues the logs of the last one.
    assert_eq!(lines(&place, "access", &["/bucket"]), requests);
    assert!((HANDOVERS..requests).contains(&lines(&place, "audit", &["PutObject"])));
    place.run(&["store", "get", "bucket/b"]).code(0);
}

#[test]
fn server_waits_for_the_store_of_the_process_that_it_replaces() {
    let place = TestDir::on_disk();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let arguments = ["serve", "--admin", "127.0.0.1:0"];
    let old = start(&place, &arguments, &socket);
    let refused = [&arguments[..], &["--listen", "127.0.0.1:0", "--takeover-time", "100ms"]];
    let refused = place.run(&refused.concat()).code(3);
    refused.stderr_contains(&["waiting for another process to end", "in use"]);
    thread::scope(|scope| {
        let next = scope.spawn(|| start(&place, &arguments, &socket));
        old.signal(Signal::TERM);
        assert_eq!(old.wait().0, Some(0));
        assert!(next.join().unwrap().line.starts_with("haul is ready"));
    });
}

#[test]
fn log_that_stays_in_use_delays_no_request_and_its_lines_are_not_lost() {
    let place = TestDir::on_disk();
    place.write("www/a", "content");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let arguments = ["files", "www", "--access-log", "access"];
    let old = start(&place, &arguments, &socket);
    place
        .run(&[&arguments[..], &["--listen", "127.0.0.1:0"]].concat())
        .code(3)
        .stderr_contains(&["in use"]);
    let next = start(&place, &arguments, &socket);
    old.stop();
    let request = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut peer = Peer::connect(socket.local_addr().unwrap()).unwrap();
    for _ in 0..100 {
        peer.try_send(request).unwrap();
        assert_eq!(peer.response().unwrap().text(), "content");
    }
    drop(peer);
    // It ends when the other process has released the log.
    next.signal(Signal::TERM);
    old.signal(Signal::CONT);
    old.signal(Signal::TERM);
    for (process, name) in [(old, "old"), (next, "next")] {
        let (code, _, stderr) = process.wait();
        assert_eq!(code, Some(0), "{name}: {stderr}");
    }
    assert_eq!(lines(&place, "access", &["\"GET /a "]), 100);
}

#[test]
fn inherited_admin_socket_is_used() {
    let place = TestDir::new();
    let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let script = "exec 3<&0 4<&1 >&2 </dev/null; LISTEN_FDS=2 LISTEN_PID=$$ exec \"$0\" \"$@\"";
    let program = place.command(&["serve", "--admin", "127.0.0.1:0"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program.get_program()).args(program.get_args());
    let [s3, admin] = sockets.each_ref().map(|socket| OwnedFd::from(socket.try_clone().unwrap()));
    shell.current_dir(place.path("")).stdin(Stdio::from(s3)).stdout(Stdio::from(admin));
    let mut server = shell.spawn().unwrap();
    let mut peer = Peer::connect(sockets[1].local_addr().unwrap()).unwrap();
    peer.try_send("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let response = peer.response();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(response.unwrap().text(), "ok\n");
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

/// The new process serves while the other one still has the admin address, and takes it afterwards.
#[test]
fn admin_address_is_taken_when_the_other_process_ends() {
    let place = TestDir::new();
    place.write("www/a", "content");
    for server in ["files", "relay"] {
        let (socket, reserved) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), ReservedAddress::new());
        let admin = reserved.to_string();
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = target.local_addr().unwrap().to_string();
        let arguments: &[&str] = match server {
            "files" => &["files", "www", "--admin", &admin],
            _ => &["relay", "--to", &to, "--admin", &admin],
        };
        let old = start(&place, arguments, &socket);
        assert!(old.line.contains(", admin on http://"), "{}", old.line);
        // Without an inherited socket, the address in use is an error.
        let refused = [arguments, &["--listen", "127.0.0.1:0"]].concat();
        place.run(&refused).code(3).stderr_contains(&["cannot listen on", &admin]);
        let mut next = start(&place, arguments, &socket);
        assert!(!next.line.contains("admin"), "{}", next.line);
        let in_use = format!("the admin address {admin} is in use");
        while !next.stderr_line().contains(&in_use) {}
        assert_eq!(admin_page(&admin, "/ready").unwrap(), "ok\n");
        old.signal(Signal::TERM);
        assert_eq!(old.wait().0, Some(0));
        let taken = format!("admin on http://{admin}");
        while !next.stderr_line().contains(&taken) {}
        assert_eq!(admin_page(&admin, "/ready").unwrap(), "ok\n");
        next.signal(Signal::TERM);
        assert_eq!(next.wait().0, Some(0));
        assert_eq!(admin_page(&admin, "/ready"), None, "{server} has closed it");
    }
}

/// A process that never gets the admin address ends without a delay.
#[test]
fn process_that_waits_for_the_admin_address_ends_at_a_signal() {
    let place = TestDir::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = holder.local_addr().unwrap().to_string();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let next = start(&place, &["files", ".", "--admin", &admin], &socket);
    next.signal(Signal::TERM);
    let (code, _, stderr) = next.wait();
    assert_eq!(code, Some(0), "{stderr}");
}
