//! The access log.

use std::sync::Arc;

use haul_file_server::{AccessLog, Lines, LogFormat};
use haul_line_log::{LineLog, Options, Outside};
use parking_lot::Mutex;

use crate::client::{Client, get};
use crate::helper::{Place, noise};

#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

impl Lines for Kept {
    fn append(&self, line: &[u8]) {
        self.0.lock().push(String::from_utf8(line.to_vec()).unwrap());
    }
}

/// A line without its date.
fn undated(line: &str) -> String {
    let (before, rest) = line.split_once(" [").unwrap();
    let (date, after) = rest.split_once("] ").unwrap();
    assert_eq!(date.len(), "21/Nov/2026:07:23:14 +0000".len(), "{line}");
    format!("{before} {after}")
}

#[test]
fn each_request_is_a_line_with_its_tier() {
    let place = Place::new();
    place.write("small", "12345");
    place.write_cold("cold", &noise(1, 2 << 20));
    let kept = Arc::new(Kept::default());
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
    let told: Vec<_> = kept.0.lock().iter().map(|line| undated(line)).collect();
    assert_eq!(told[..6], expected);
    assert!(told[6].starts_with("127.0.0.1 - - \"-\" 400 "), "{}", told[6]);
}

#[test]
fn the_combined_format_tells_who_and_from_where_and_goes_to_files() {
    let place = Place::new();
    place.write("www/a", "a");
    let log = LineLog::open(place.path("log"), Options::default(), Outside::default()).unwrap();
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
    let told: Vec<_> = text.lines().map(undated).collect();
    assert_eq!(
        told,
        [
            "127.0.0.1 - - \"GET /a HTTP/1.1\" 200 1 \"http://h/\" \"me/1 \\x22x\\x22\" resident",
            "127.0.0.1 - - \"GET /a HTTP/1.1\" 200 1 \"-\" \"-\" memory",
        ]
    );
}
