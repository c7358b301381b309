//! Tests the start, the access log and the shutdown of `haul files`.

use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use crate::helper::{TestDir, noise};

/// A running server, killed on drop.
struct Files {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The stderr of the server; empty if the test holds the reading end of the pipe instead.
    stderr: BufReader<Box<dyn Read>>,
    line: String,
}

impl Files {
    fn start(place: &TestDir, options: &[&str]) -> Self {
        let arguments = [&["files", "www", "--listen", "127.0.0.1:0"], options].concat();
        Self::start_by(place.command(&arguments).stderr(Stdio::piped()))
    }

    fn start_by(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr: Box<dyn Read> = match child.stderr.take() {
            Some(stderr) => Box::new(stderr),
            None => Box::new(std::io::empty()),
        };
        let stderr = BufReader::new(stderr);
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Self { child, stdout, stderr, line }
    }

    /// Returns the address that follows `what` in the first line of stdout.
    fn address(&self, what: &str) -> &str {
        let (_, rest) = self.line.split_once(&format!("{what} on http://")).unwrap();
        rest.split([',', '\n']).next().unwrap()
    }

    fn begin(&self, what: &str, target: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address(what)).unwrap();
        write!(stream, "GET {target} HTTP/1.0\r\nUser-Agent: test\r\n\r\n").unwrap();
        stream
    }

    fn get(&self, what: &str, target: &str) -> Vec<u8> {
        let mut answer = Vec::new();
        self.begin(what, target).read_to_end(&mut answer).unwrap();
        answer
    }

    /// Reads stderr up to a line with this text. A message about a low limit on open files may
    /// precede this line.
    fn wait_for_stderr(&mut self, text: &str) {
        let mut stderr_text = String::new();
        while !stderr_text.contains(text) {
            assert_ne!(self.stderr.read_line(&mut stderr_text).unwrap(), 0, "{stderr_text}");
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the exit without reading output; returns the exit code.
    fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Waits for the exit; returns the exit code, and the rest of stdout and stderr.
    fn wait(mut self) -> (Option<i32>, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stdout, stderr)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // The process may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn first_line_has_the_addresses_and_both_signals_stop_it() {
    let place = TestDir::new();
    place.write("www/a.txt", "hello");
    for signal in [Signal::TERM, Signal::INT] {
        let files = Files::start(&place, &["--admin", "127.0.0.1:0"]);
        assert!(
            files.line.starts_with("haul is ready: files on http://127.0.0.1:"),
            "{}",
            files.line
        );
        assert!(files.get("files", "/a.txt").ends_with(b"\r\n\r\nhello"));
        assert!(files.get("admin", "/health").ends_with(b"\r\n\r\nok\n"));
        let metrics = String::from_utf8(files.get("admin", "/metrics")).unwrap();
        assert!(metrics.contains("haul_files_requests_total{code=\"200\"} 1\n"), "{metrics}");
        files.signal(signal);
        let (code, stdout, stderr) = files.wait();
        assert_eq!((code, &*stdout), (Some(0), ""), "{stderr}");
    }
}

#[test]
fn response_in_progress_is_finished_and_a_second_signal_exits() {
    let place = TestDir::on_disk();
    let big = noise(1, 40 << 20);
    place.write("www/big", &big);
    let mut files = Files::start(&place, &[]);
    let mut begun = files.begin("files", "/big");
    let mut first = [0; 100];
    begun.read_exact(&mut first).unwrap();
    files.signal(Signal::TERM);
    files.wait_for_stderr("finishing responses in progress");
    let mut answer = first.to_vec();
    begun.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&big));
    assert_eq!(files.wait().0, Some(0));

    let mut files = Files::start(&place, &[]);
    let mut stuck = files.begin("files", "/big");
    // After a part of the body, the response is in progress: the server waits for its end.
    stuck.read_exact(&mut first).unwrap();
    files.signal(Signal::TERM);
    files.wait_for_stderr("finishing responses in progress");
    files.signal(Signal::TERM);
    assert_eq!(files.wait().0, Some(143));
}

#[test]
fn access_log_is_written_to_files_or_stdout() {
    let place = TestDir::new();
    place.write("www/a", "hello");
    let files = Files::start(&place, &["--access-log", "log", "--log-format", "combined"]);
    files.get("files", "/a");
    files.signal(Signal::TERM);
    assert_eq!(files.wait().0, Some(0));
    let line = std::fs::read_to_string(place.path("log/current")).unwrap();
    assert!(line.ends_with("\"GET /a HTTP/1.0\" 200 5 \"-\" \"test\" resident\n"), "{line}");

    let mut files = Files::start(&place, &["--access-log", "-"]);
    files.get("files", "/a");
    let mut line = String::new();
    files.stdout.read_line(&mut line).unwrap();
    assert!(line.ends_with("\"GET /a HTTP/1.0\" 200 5 resident\n"), "{line}");
    files.get("files", "/a");
    files.signal(Signal::TERM);
    let (code, stdout, _) = files.wait();
    assert_eq!((code, stdout.lines().count()), (Some(0), 1), "the last line is not lost: {stdout}");
}

#[test]
fn options_reach_the_server() {
    let place = TestDir::new();
    place.write("www/.hidden", "hidden");
    place.write("www/a", "plain");
    place.write("www/a.gz", "gzip");
    let options = ["--listing", "--dotfiles", "--no-precompressed", "--cache-control", "no-store"];
    let files = Files::start(&place, &options);
    let text = |target| String::from_utf8_lossy(&files.get("files", target)).into_owned();
    assert!(text("/").contains(".hidden"));
    assert!(text("/.hidden").ends_with("hidden"));
    let plain = text("/a");
    assert!(
        plain.contains("\r\ncache-control: no-store\r\n") && !plain.contains("vary"),
        "{plain}"
    );
}

#[test]
fn failures_to_start_are_reported_with_advice() {
    let place = TestDir::new();
    place.write("www/a", "a");
    place.write("file", "a");
    for public in [["--listen", "0.0.0.0:0"], ["--admin", "[::]:0"]] {
        let run = place.run(&[&["files", "www"], &public[..]].concat()).code(3);
        run.stderr_contains(&["other machines can reach it", "--plain-http"]);
    }
    // The earlier name of the option.
    place
        .run(&["files", "nowhere", "--listen", "0.0.0.0:0", "--public"])
        .stderr_contains(&["nowhere"]);
    place
        .run(&["files", "nowhere", "--listen", "127.0.0.1:0"])
        .code(3)
        .stderr_contains(&["nowhere"]);
    place
        .run(&["files", "file", "--listen", "127.0.0.1:0"])
        .code(3)
        .stderr_contains(&["Not a directory"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place
        .run(&["files", "www", "--listen", &address])
        .code(3)
        .stderr_contains(&[&address, "in use"]);
    place
        .run(&["files", "www", "--disk-threads", "0"])
        .code(2)
        .stderr_contains(&["--disk-threads"]);
    place.run(&["files", "www", "--listen", "8080"]).code(2).stderr_contains(&["127.0.0.1:8080"]);
    place
        .run(&["files", "www", "--cache-control", "a\nb"])
        .code(2)
        .stderr_contains(&["Cache-Control"]);
}

/// Limits the descriptors of a running server.
fn limit(files: &Files, descriptors: u64) {
    let limit = Rlimit { current: Some(descriptors), maximum: Some(descriptors) };
    prlimit(Some(Pid::from_child(&files.child)), Resource::Nofile, limit).unwrap();
}

#[test]
fn hot_files_are_served_without_free_descriptors() {
    let place = TestDir::new();
    place.write("www/hot", "hello");
    place.write("www/long", noise(1, 100_000));
    let files = Files::start(&place, &["--valid", "0s", "--disk-threads", "1"]);
    // Reading without a buffer could take 10 s on a busy machine, after which an idle file is closed.
    let mut client = BufReader::new(TcpStream::connect(files.address("files")).unwrap());
    let mut get = |target: &str, end: &[u8]| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.get_mut().write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(end) {
            client.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        String::from_utf8_lossy(&answer[..12]).into_owned()
    };
    let long_end = noise(1, 100_000)[99_900..].to_vec();
    let all = |get: &mut dyn FnMut(&str, &[u8]) -> String| {
        [get("/hot", b"\r\n\r\nhello"), get("/long", &long_end)]
    };
    assert_eq!(all(&mut get), ["HTTP/1.1 200", "HTTP/1.1 200"]);
    limit(&files, 3);
    assert_eq!(get("/other", b"503 Service Unavailable\n"), "HTTP/1.1 503");
    for _ in 0..10 {
        assert_eq!(all(&mut get), ["HTTP/1.1 200", "HTTP/1.1 200"]);
    }
}

#[test]
fn connections_are_limited_by_descriptors() {
    let place = TestDir::new();
    place.write("www/a", "a");
    let program = place.command(&["files"]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 200; exec \"$0\" \"$@\""]).arg(program);
    shell.args(["files", "www", "--listen", "127.0.0.1:0", "--threads", "1"]);
    shell.args(["--connections-per-client", "0"]);
    shell.current_dir(place.path(".")).stderr(Stdio::piped());
    let mut files = Files::start_by(&mut shell);
    let mut stderr_text = String::new();
    files.stderr.read_line(&mut stderr_text).unwrap();
    // Of 200 descriptors, 2 * 25 are for files, and 64 + 8 + 4 * 4 are the reserve. The remaining
    // 62 allow 20 connections with three descriptors each.
    let expected =
        "limit of 200 open files (ulimit -Hn): accepting at most 20 connections, keeping 25";
    assert!(stderr_text.contains(expected), "{stderr_text}");
    let all: Vec<_> = (0..150).map(|_| files.begin("files", "/a")).collect();
    for mut stream in all {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
}

/// Makes the server log more lines than fit into a pipe.
fn log_much(files: &Files) {
    let mut client = TcpStream::connect(files.address("files")).unwrap();
    for _ in 0..100 {
        let target = format!("/a?{}", "x".repeat(1000));
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\na") {
            client.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
    }
}

#[test]
fn unread_stdout_does_not_prevent_shutdown() {
    let place = TestDir::new();
    place.write("www/a", "a");
    let mut files = Files::start(&place, &["--access-log", "-", "--valid", "1h"]);
    log_much(&files);
    files.signal(Signal::TERM);
    let mut stderr_text = String::new();
    files.stderr.read_to_string(&mut stderr_text).unwrap();
    // The test reads the log only after the server has exited.
    let (code, stdout, _) = files.wait();
    assert_eq!(code, Some(0), "{stderr_text}");
    let whole = stdout.lines().filter(|line| line.ends_with(" 1 memory")).count();
    let (before, _) = stderr_text.split_once(" lines of the access log were dropped").unwrap();
    let dropped: usize = before.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((1..=100).contains(&dropped) && whole + dropped >= 99, "{whole} {dropped}");
}

/// Starts a server whose stderr is a full pipe that is not read.
fn without_room_on_stderr(place: &TestDir, options: &[&str]) -> (Files, PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let bytes = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'x'; bytes]).unwrap();
    // A limit of 10 connections needs few descriptors, so the server prints no message about the
    // limit on open files, which would block.
    let few = ["files", "www", "--listen", "127.0.0.1:0", "--connections", "10"];
    let mut command = place.command(&[&few[..], options].concat());
    (Files::start_by(command.stderr(writer)), reader)
}

#[test]
fn unread_stderr_does_not_block_signals() {
    let place = TestDir::on_disk();
    place.write("www/a", "a");
    place.write("www/big", noise(1, 40 << 20));
    let (files, _unread) = without_room_on_stderr(&place, &["--access-log", "-", "--valid", "1h"]);
    log_much(&files);
    files.signal(Signal::TERM);
    assert_eq!(files.end(), Some(0), "dropped lines cannot be reported");

    let (files, _unread) = without_room_on_stderr(&place, &["--admin", "127.0.0.1:0"]);
    let mut stuck = files.begin("files", "/big");
    stuck.read_exact(&mut [0; 100]).unwrap();
    files.signal(Signal::TERM);
    while !files.get("admin", "/ready").starts_with(b"HTTP/1.1 503") {}
    files.signal(Signal::TERM);
    assert_eq!(files.end(), Some(143));
}
