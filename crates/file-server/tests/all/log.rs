//! The access log.

use std::sync::Arc;

use haul_file_server::{AccessLog, Address, Config, Lines, LogFormat, Server};
use haul_line_log::{Environment, LineLog, Options};
use haul_testing::{Endpoint, Transport, eventually};
use parking_lot::Mutex;

use crate::client::{Client, get};
use crate::helper::{ServedDir, noise};

#[derive(Default)]
struct RecordedLines(Mutex<Vec<String>>);

impl Lines for RecordedLines {
    fn append(&self, line: &[u8]) {
        self.0.lock().push(String::from_utf8(line.to_vec()).unwrap());
    }
}

/// Returns a line without its date.
fn undated(line: &str) -> String {
    let (before, rest) = line.split_once(" [").unwrap();
    let (date, after) = rest.split_once("] ").unwrap();
    assert_eq!(date.len(), "21/Nov/2026:07:23:14 +0000".len(), "{line}");
    format!("{before} {after}")
}

#[test]
fn each_request_has_a_line_with_its_tier() {
    let place = ServedDir::new();
    place.write("small", "12345");
    place.write_cold("cold", &noise(1, 2 << 20));
    let kept = Arc::new(RecordedLines::default());
    let lines: Arc<dyn Lines> = Arc::clone(&kept) as Arc<dyn Lines>;
    let running = place
        .serve(|config| config.access_log = Some(AccessLog { lines, format: LogFormat::Common }));
    let mut client = Client::new(running.address);
    client.get("/small", "");
    client.get("/small?q=\"", "");
    client.ask("HEAD", "/small", "");
    client.get("/cold", "");
    client.get("/cold", "Range: bytes=5-14\r\n");
    client.get("/none", "");
    client.say("nonsense\r\n\r\n");
    client.rest();
    let expected = [
        "127.0.0.1 - - \"GET /small HTTP/1.1\" 200 5 resident\n",
        "127.0.0.1 - - \"GET /small?q=\\x22 HTTP/1.1\" 200 5 memory\n",
        "127.0.0.1 - - \"HEAD /small HTTP/1.1\" 200 0 -\n",
        "127.0.0.1 - - \"GET /cold HTTP/1.1\" 200 2097152 direct\n",
        "127.0.0.1 - - \"GET /cold HTTP/1.1\" 206 10 direct\n",
        "127.0.0.1 - - \"GET /none HTTP/1.1\" 404 14 -\n",
    ];
    running.wait_until("all are counted", |stats| {
        stats.statuses.iter().map(|row| row.1).sum::<u64>() == 7
    });
    let lines: Vec<_> = kept.0.lock().iter().map(|line| undated(line)).collect();
    assert_eq!(lines[..6], expected);
    assert!(lines[6].starts_with("127.0.0.1 - - \"-\" 400 "), "{}", lines[6]);
}

#[test]
fn request_of_a_closed_connection_is_logged() {
    let place = ServedDir::new();
    place.write("a", "12345");
    let kept = Arc::new(RecordedLines::default());
    let lines: Arc<dyn Lines> = Arc::clone(&kept) as Arc<dyn Lines>;
    let mut config = Config::new(place.path("."));
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.threads = 1;
    // Requests do not wait for lookups of encoded forms.
    config.content.precompressed = false;
    config.access_log = Some(AccessLog { lines, format: LogFormat::Common });
    let server = Server::bind(config).unwrap();
    let Address::Tcp(address) = server.addresses().listen else { panic!("no port") };
    let address = Endpoint { address, transport: Transport::Plain };
    // The server listens, and does not accept yet. The first request loads the file into the cache.
    let mut stays = Client::new(address);
    stays.say("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for _ in 0..4 {
        let mut gone = Client::new(address);
        gone.say("GET /a?gone HTTP/1.1\r\nHost: localhost\r\n\r\n");
        // Closed by a reset.
        let now = Some(std::time::Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(gone.stream(), now).unwrap();
    }
    let handle = server.handle();
    let thread = std::thread::spawn(|| server.run());
    assert_eq!(stays.answer("GET").text(), "12345");
    eventually("one connection is left", || {
        let stats = handle.stats();
        stats.connections == 5 && stats.connections_open == 1
    });
    handle.stop();
    thread.join().unwrap().unwrap();
    assert_eq!((handle.stats().cut_short, handle.stats().statuses), (4, vec![(200, 5)]));
    let lines = kept.0.lock();
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("\"GET /a HTTP/1.1\" 200 5 "), 1, "{lines:?}");
    assert_eq!(count("\"GET /a?gone HTTP/1.1\" 200 0 "), 4, "{lines:?}");
}

#[test]
fn combined_format_has_referer_and_user_agent() {
    let place = ServedDir::new();
    place.write("www/a", "a");
    let log = LineLog::open(place.path("log"), Options::default(), Environment::default()).unwrap();
    let log = Arc::new(log);
    let lines: Arc<dyn Lines> = Arc::clone(&log) as Arc<dyn Lines>;
    let running = place.serve(|config| {
        config.dir = config.dir.join("www");
        config.access_log = Some(AccessLog { lines, format: LogFormat::Combined });
    });
    get(running.address, "/a", "User-Agent: me/1 \"x\"\r\nReferer: http://h/\r\n");
    get(running.address, "/a", "");
    drop(running);
    log.close().unwrap();
    let file = std::fs::read_dir(place.path("log")).unwrap().map(|entry| entry.unwrap().path());
    let text: String = file
        .filter(|path| path.is_file())
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .filter(|text| text.contains("GET"))
        .collect();
    let lines: Vec<_> = text.lines().map(undated).collect();
    assert_eq!(
        lines,
        [
            "127.0.0.1 - - \"GET /a HTTP/1.1\" 200 1 \"http://h/\" \"me/1 \\x22x\\x22\" resident",
            "127.0.0.1 - - \"GET /a HTTP/1.1\" 200 1 \"-\" \"-\" memory",
        ]
    );
}

#[test]
fn request_that_waits_when_the_server_stops_is_logged() {
    let place = ServedDir::new();
    for number in 0..2_000 {
        place.write(format!("www/{number}"), "");
    }
    let kept = Arc::new(RecordedLines::default());
    let lines: Arc<dyn Lines> = Arc::clone(&kept) as Arc<dyn Lines>;
    let running = place.serve(|config| {
        config.dir = config.dir.join("www");
        config.content.listings = true;
        config.tiers.disk_threads = 1;
        config.access_log = Some(AccessLog { lines, format: LogFormat::Common });
    });
    let mut clients: Vec<_> = (0..64).map(|_| Client::new(running.address)).collect();
    for client in &mut clients {
        client.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    // One thread lists the directory for each of them.
    running.wait_until("all wait", |stats| stats.disk_jobs >= 64);
    running.handle().stop();
    running.ended();
    let lines = kept.0.lock();
    assert_eq!(lines.len(), 64);
    let is_known = |line: &String| line.contains("\" 200 ") || line.ends_with("\" 499 0 -\n");
    assert!(lines.iter().all(is_known), "{lines:?}");
}

#[test]
fn json_lines_have_all_fields_of_a_request() {
    let place = ServedDir::new();
    place.write("a b", "12345");
    let kept = Arc::new(RecordedLines::default());
    let lines: Arc<dyn Lines> = Arc::clone(&kept) as Arc<dyn Lines>;
    let running = place
        .serve(|config| config.access_log = Some(AccessLog { lines, format: LogFormat::Json }));
    let mut client = Client::new(running.address);
    client.get("/a%20b?\"", "Referer: http://a/\"\\\r\nUser-Agent: test\r\n");
    client.say("nonsense\r\n\r\n");
    client.rest();
    running.after(2);
    eventually("both are logged", || kept.0.lock().len() == 2);
    let found: Vec<serde_json::Value> =
        kept.0.lock().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found[0]["target"], "/a%20b?\"");
    assert_eq!((&found[0]["method"], &found[0]["protocol"]), (&"GET".into(), &"HTTP/1.1".into()));
    assert_eq!(
        (&found[0]["referer"], &found[0]["user_agent"]),
        (&"http://a/\"\\".into(), &"test".into())
    );
    assert_eq!((&found[0]["status"], &found[0]["bytes"]), (&200.into(), &5.into()));
    assert_eq!((&found[0]["client"], &found[0]["tier"]), (&"127.0.0.1".into(), &"resident".into()));
    assert!(found[0]["duration_us"].as_u64().is_some_and(|us| us < 60_000_000), "{}", found[0]);
    assert_eq!(found[0]["time"].as_str().unwrap().len(), "2026-11-21T07:23:14Z".len());
    assert_eq!((&found[1]["status"], &found[1]["target"]), (&400.into(), &().into()));
}
