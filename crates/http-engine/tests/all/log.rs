//! The access log of the engine.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use haul_http_engine::{AccessLog, Lines, LogFormat};
use haul_testing::eventually;
use parking_lot::Mutex;

use crate::server::{HEAD_TIME, Server, read_until, rest};

#[derive(Default)]
struct RecordedLines(Mutex<Vec<String>>);

impl Lines for RecordedLines {
    fn append(&self, line: &[u8]) {
        self.0.lock().push(String::from_utf8(line.to_vec()).unwrap());
    }
}

fn logging(format: LogFormat) -> (Server, Arc<RecordedLines>) {
    let kept = Arc::new(RecordedLines::default());
    let lines: Arc<dyn Lines> = Arc::clone(&kept) as Arc<dyn Lines>;
    (Server::with_log(AccessLog { lines, format }), kept)
}

/// Waits for `count` lines; returns them without their dates.
fn lines(kept: &RecordedLines, count: usize) -> Vec<String> {
    eventually("the requests are logged", || kept.0.lock().len() >= count);
    let undated = |line: &String| {
        let (before, rest) = line.split_once('[').unwrap();
        format!("{before}{}", rest.split_once("] ").unwrap().1.trim_end())
    };
    kept.0.lock().iter().map(undated).collect()
}

#[test]
fn each_response_has_one_line_with_the_bytes_of_its_body() {
    let (server, kept) = logging(LogFormat::Combined);
    let mut requests = "GET /inline/5 HTTP/1.1\r\nhost: a\r\nreferer: r\r\n\r\n".to_owned();
    requests += "POST /echo HTTP/1.1\r\nhost: a\r\nuser-agent: \"\r\ncontent-length: 4\r\n\r\nbody";
    requests += "HEAD /refuse HTTP/1.1\r\nhost: a\r\n\r\n";
    requests += "GET /refuse HTTP/1.1\r\nhost: a\r\n\r\nGET /frames HTTP/1.0\r\n\r\n";
    server.exchange(requests.as_bytes());
    server.exchange(b"nonsense\r\n\r\n");
    let expected = [
        "127.0.0.1 - - \"GET /inline/5 HTTP/1.1\" 200 5 \"r\" \"-\" 0123456789ABCDEF",
        "127.0.0.1 - - \"POST /echo HTTP/1.1\" 200 4 \"-\" \"\\x22\" -",
        "127.0.0.1 - key \"HEAD /refuse HTTP/1.1\" 403 0 \"-\" \"-\" FEDCBA9876543210",
        "127.0.0.1 - key \"GET /refuse HTTP/1.1\" 403 2 \"-\" \"-\" FEDCBA9876543210",
        "127.0.0.1 - - \"GET /frames HTTP/1.0\" 200 10000000 \"-\" \"-\" -",
        "127.0.0.1 - - \"-\" 400 0 -",
    ];
    assert_eq!(lines(&kept, expected.len()), expected);
}

#[test]
fn interim_response_is_not_counted_as_body() {
    let (server, kept) = logging(LogFormat::Common);
    let mut stream = server.connect();
    let head =
        "POST /echo HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    read_until(&mut stream, "100 Continue\r\n\r\n");
    stream.write_all(b"body").unwrap();
    read_until(&mut stream, "body");
    assert_eq!(lines(&kept, 1), ["127.0.0.1 - - \"POST /echo HTTP/1.1\" 200 4 -"]);
}

/// Sends requests for bodies that no socket buffer holds, and reads only the beginning.
fn cut(server: &Server, path: &str) {
    let mut stream = server.connect();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
}

#[test]
fn response_that_the_client_cuts_has_a_line_with_fewer_bytes() {
    let (server, kept) = logging(LogFormat::Common);
    for (path, bytes) in [("/inline/100000000", 100_000_000), ("/frames", 10_000_000)] {
        cut(&server, path);
        let line = lines(&kept, 1).remove(0);
        let (request, rest) = line.split_once("\" 200 ").unwrap();
        assert!(request.ends_with(&format!("\"GET {path} HTTP/1.1")), "{line}");
        let sent: u64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!((1..bytes).contains(&sent), "{line}");
        kept.0.lock().clear();
    }
}

#[test]
fn request_without_a_response_has_a_line() {
    let (mut server, kept) = logging(LogFormat::Common);
    for (path, status) in [("/error", 500), ("/panic", 500)] {
        server.exchange(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes());
        let expected = format!("127.0.0.1 - - \"GET {path} HTTP/1.1\" {status} 0 -");
        assert_eq!(lines(&kept, 1), [expected]);
        kept.0.lock().clear();
    }
    let mut stream = server.connect();
    stream.write_all(b"POST /slow HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n").unwrap();
    eventually("the request is being answered", || server.handle.stats().accepted == 3);
    // The head is read before the server stops: it arrived before the connection was accepted.
    stream.write_all(b"1").unwrap();
    server.settle();
    server.handle.stop();
    server.join();
    assert_eq!(lines(&kept, 1), ["127.0.0.1 - - \"POST /slow HTTP/1.1\" 499 0 -"]);
}

#[test]
fn incomplete_head_has_a_line_and_a_connection_without_a_request_has_none() {
    let (server, kept) = logging(LogFormat::Common);
    for (bytes, expected) in [("", ""), ("GET /a HTTP/1.1\r\nhost", "HTTP/1.1 408 ")] {
        let mut late = server.connect();
        late.write_all(bytes.as_bytes()).unwrap();
        server.until_open(1);
        server.clock.advance(HEAD_TIME);
        let received = rest(&mut late);
        assert!(received.starts_with(expected) && received.is_empty() == expected.is_empty());
        drop(late);
        server.until_open(0);
    }
    let mut cut = server.connect();
    cut.write_all(b"GET /a HTTP/1.1\r\nhost").unwrap();
    drop(cut);
    let expected = ["127.0.0.1 - - \"-\" 408 0 -", "127.0.0.1 - - \"-\" 499 0 -"];
    assert_eq!(lines(&kept, 2), expected);
}

#[test]
fn refused_connection_has_a_line() {
    let (server, kept) = logging(LogFormat::Common);
    let mut first = server.connect();
    first.write_all(b"GET /").unwrap();
    server.until_open(1);
    let mut second = TcpStream::connect(server.address).unwrap();
    second.shutdown(Shutdown::Write).unwrap();
    second.read_to_end(&mut Vec::new()).ok();
    assert_eq!(lines(&kept, 1), ["127.0.0.1 - - \"-\" 503 0 -"]);
}

#[test]
fn json_line_has_the_identity_and_the_duration() {
    let (server, kept) = logging(LogFormat::Json);
    let begun = Instant::now();
    server.exchange(b"GET /pause HTTP/1.0\r\n\r\n");
    server.exchange(b"GET /refuse HTTP/1.0\r\n\r\n");
    eventually("both are logged", || kept.0.lock().len() == 2);
    let parsed = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let found: Vec<_> = kept.0.lock().iter().map(parsed).collect();
    assert_eq!((&found[0]["user"], &found[0]["request_id"]), (&().into(), &().into()));
    // The path waits for another thread.
    let longest_us = u64::try_from(begun.elapsed().as_micros()).unwrap();
    let duration_us = found[0]["duration_us"].as_u64().unwrap();
    assert!((1..=longest_us).contains(&duration_us), "{}", found[0]);
    assert_eq!(found[1]["user"], "key");
    assert_eq!(found[1]["request_id"], "FEDCBA9876543210");
    assert_eq!((&found[1]["status"], &found[1]["bytes"]), (&403.into(), &2.into()));
}
