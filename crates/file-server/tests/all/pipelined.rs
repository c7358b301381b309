//! Pipelined requests, whose responses are sent together.

use std::sync::Arc;
use std::time::Duration;

use haul_file_server::{AccessLog, Lines, LogFormat, Tier};
use haul_testing::{Random, Transport, over, until_full};
use parking_lot::Mutex;

use crate::client::{Client, get};
use crate::helper::{ServedDir, noise};

over!(Plain Inherited Tls => (
    mixed_pipelined_requests_are_answered_like_single_ones,
    full_socket_keeps_order_counts_and_log_of_pipelined_responses,
    pipelined_responses_of_a_closed_connection_are_logged_as_cut,
    client_that_never_reads_pipelined_responses_is_disconnected,
    last_pipelined_response_closes_the_connection_after_all_are_sent,
));

fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

/// The ends of log lines: request and result.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Lines for Log {
    fn append(&self, line: &[u8]) {
        let line = String::from_utf8(line.to_vec()).unwrap();
        self.0.lock().push(line.split_once("] ").unwrap().1.trim_end().to_owned());
    }
}

fn mixed_pipelined_requests_are_answered_like_single_ones(transport: Transport) {
    let place = ServedDir::over(transport);
    for (name, bytes) in [("empty", 0), ("a", 1), ("b", 4096), ("c", 60_000), ("big", 300_000)] {
        place.write(name, noise(bytes as u64, bytes));
    }
    let running = place.serve(|config| config.tiers.valid = Duration::from_secs(60));
    let kinds = [
        ("GET", "/a", ""),
        ("GET", "/b", ""),
        ("GET", "/b?query", ""),
        ("GET", "/c", ""),
        ("GET", "/empty", ""),
        ("GET", "/big", ""),
        ("GET", "/none", ""),
        ("GET", "/c", "Range: bytes=5-99\r\n"),
        ("HEAD", "/c", ""),
        ("DELETE", "/a", ""),
    ];
    let expected: Vec<_> = kinds
        .map(|(method, target, fields)| {
            let mut client = Client::new(running.address);
            client.ask(method, target, fields);
            client.ask(method, target, fields)
        })
        .into_iter()
        .collect();
    let mut random = Random::from_environment();
    let mut client = Client::new(running.address);
    for _ in 0..50 {
        let count = 1 + random.below(60);
        let chosen: Vec<_> = (0..count)
            // Hot files are more frequent than others, so that many are sent together.
            .map(|_| usize::try_from(random.below(2 * kinds.len() as u64)).unwrap())
            .map(|at| if at < kinds.len() { at } else { at % 5 })
            .collect();
        let text: String =
            chosen.iter().map(|at| request(kinds[*at].0, kinds[*at].1, kinds[*at].2)).collect();
        client.say(text);
        for at in chosen {
            let answer = client.answer(kinds[at].0);
            assert_eq!(answer.status, expected[at].status, "{:?}", kinds[at]);
            assert!(answer.body == expected[at].body, "{:?}", kinds[at]);
            assert_eq!(answer.field("etag"), expected[at].field("etag"));
        }
    }
}

fn full_socket_keeps_order_counts_and_log_of_pipelined_responses(transport: Transport) {
    const ROUNDS: usize = 400;
    let place = ServedDir::over(transport);
    place.write("long", noise(1, 64 << 10));
    place.write("short", noise(2, 1000));
    let log = Arc::new(Log::default());
    let lines: Arc<dyn Lines> = Arc::clone(&log) as Arc<dyn Lines>;
    let running = place.serve(|config| {
        config.tiers.valid = Duration::from_secs(60);
        config.access_log = Some(AccessLog { lines, format: LogFormat::Common });
    });
    for name in ["/long", "/short"] {
        get(running.address, name, "");
    }
    let before = running.after(2);
    // More than all buffers hold: the server has to wait for the client, in the middle of responses.
    let mut client = Client::new(running.address);
    client.say((request("GET", "/short?1", "") + &request("GET", "/long?2", "")).repeat(ROUNDS));
    until_full(client.stream());
    for _ in 0..ROUNDS {
        assert!(client.answer("GET").body == noise(2, 1000));
        assert!(client.answer("GET").body == noise(1, 64 << 10));
    }
    let stats = running.after(2 + 2 * ROUNDS as u64);
    let memory = |stats: &haul_file_server::Stats| {
        let row = stats.tiers.iter().find(|row| row.0 == Tier::Memory).unwrap();
        (row.1, row.2)
    };
    let (requests, bytes) = (memory(&stats).0 - memory(&before).0, memory(&stats).1);
    assert_eq!((requests, stats.cut_short), (2 * ROUNDS as u64, 0));
    assert_eq!(bytes - memory(&before).1, ((64 << 10) + 1000) * ROUNDS as u64);
    let lines = log.0.lock();
    for pair in lines[2..].chunks(2) {
        assert_eq!(pair[0], "\"GET /short?1 HTTP/1.1\" 200 1000 memory");
        assert_eq!(pair[1], "\"GET /long?2 HTTP/1.1\" 200 65536 memory");
    }
}

fn pipelined_responses_of_a_closed_connection_are_logged_as_cut(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("long", noise(1, 64 << 10));
    let log = Arc::new(Log::default());
    let lines: Arc<dyn Lines> = Arc::clone(&log) as Arc<dyn Lines>;
    let running = place.serve(|config| {
        config.tiers.valid = Duration::from_secs(60);
        config.access_log = Some(AccessLog { lines, format: LogFormat::Common });
    });
    get(running.address, "/long", "");
    let mut client = Client::new(running.address);
    client.say(request("GET", "/long", "").repeat(200));
    // The first response arrives, and then the buffers are full.
    assert_eq!(client.answer("GET").body.len(), 64 << 10);
    until_full(client.stream());
    rustix::net::sockopt::set_socket_linger(client.stream(), Some(Duration::ZERO)).unwrap();
    drop(client);
    running.wait_until("the connection is closed", |stats| stats.connections_open == 0);
    let stats = running.stats();
    let responses: u64 = stats.statuses.iter().map(|row| row.1).sum();
    assert_eq!(responses, log.0.lock().len() as u64);
    assert!((1..=32).contains(&stats.cut_short), "{stats:?}");
    let bytes: u64 = log.0.lock().iter().map(|line| field(line, 4)).sum();
    assert_eq!(bytes, stats.tiers.iter().map(|row| row.2).sum::<u64>());
}

fn field(line: &str, at: usize) -> u64 {
    line.split(' ').nth(at).unwrap().parse().unwrap()
}

fn client_that_never_reads_pipelined_responses_is_disconnected(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("long", noise(1, 64 << 10));
    let running = place.serve(|config| {
        config.tiers.valid = Duration::from_secs(60);
        config.limits.send_time = Duration::from_millis(200);
    });
    get(running.address, "/long", "");
    let mut client = Client::new(running.address);
    client.say(request("GET", "/long", "").repeat(200));
    running.wait_until("the connection is closed", |stats| {
        stats.too_slow == 1 && stats.connections_open == 0
    });
}

fn last_pipelined_response_closes_the_connection_after_all_are_sent(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("long", noise(1, 64 << 10));
    let running = place.serve(|config| config.tiers.valid = Duration::from_secs(60));
    get(running.address, "/long", "");
    let mut client = Client::new(running.address);
    let text =
        request("GET", "/long", "").repeat(99) + &request("GET", "/long", "Connection: close\r\n");
    client.say(text + &request("GET", "/long", ""));
    until_full(client.stream());
    for number in 0..100 {
        let answer = client.answer("GET");
        assert!(answer.body == noise(1, 64 << 10));
        assert_eq!(answer.field("connection"), (number == 99).then_some("close"));
    }
    assert_eq!(client.rest(), (Vec::new(), true));
}
