//! Tests of the access log: each exchange has one line, however it ends.

use std::sync::{Arc, Mutex, mpsc};

use haul_tcp_relay::proxy::Trusted;
use haul_tcp_relay::{AccessLog, Address, Config, Error, HttpOptions, Lines, LogFormat, Server};
use haul_testing::{Transport, eventually, over};

use super::bodies::{FRAMES, LENGTHS, noise_target, request};
use super::{Http, Peer, client, client_over, http_over, ok, responding_target, target};
use crate::support::{any_address, refusing_address};

over!(Plain Inherited Tls => (
    bytes_of_a_line_are_those_of_the_body_in_every_framing,
    pipelined_requests_have_a_line_each,
));

const GET: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

#[derive(Default)]
struct RecordedLines(Mutex<Vec<String>>);

impl Lines for RecordedLines {
    fn append(&self, line: &[u8]) {
        self.0.lock().unwrap().push(String::from_utf8(line.to_vec()).unwrap());
    }
}

/// A relay and the lines of its log.
struct Logging {
    relay: Http,
    lines: Arc<RecordedLines>,
    target: String,
}

impl Logging {
    fn start(target: Address) -> Self {
        Self::with(Transport::Plain, target, LogFormat::Common, |_| {})
    }

    fn with(
        transport: Transport,
        target: Address,
        format: LogFormat,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let lines = Arc::new(RecordedLines::default());
        let name = target.to_string();
        let relay = http_over(transport, [target], HttpOptions::default(), |config| {
            let lines = Arc::clone(&lines) as Arc<dyn Lines>;
            config.access_log = Some(AccessLog { lines, format });
            change(config);
        });
        Self { relay, lines, target: name }
    }

    /// Waits for `count` lines; returns them from the request on, with `TARGET` for the target.
    fn lines(&self, count: usize) -> Vec<String> {
        let lines = || self.lines.0.lock().unwrap().clone();
        eventually("the lines are written", || lines().len() >= count);
        let lines = lines().into_iter().map(|line| {
            let (client, rest) = line.split_once(" - - [").unwrap();
            let (date, rest) = rest.split_once("] ").unwrap();
            assert_eq!((client, date.len()), ("127.0.0.1", 26), "{line}");
            rest.trim_end().replace(&self.target, "TARGET")
        });
        lines.collect()
    }

    /// Checks all lines that are written until the end of the relay.
    fn assert_lines(self, expected: &[&str]) {
        assert_eq!(self.lines(expected.len()), expected);
        drop(self.relay);
        assert_eq!(self.lines.0.lock().unwrap().len(), expected.len());
    }
}

fn bytes_of_a_line_are_those_of_the_body_in_every_framing(transport: Transport) {
    let logging = Logging::with(transport, noise_target(), LogFormat::Common, |_| {});
    let mut expected = Vec::new();
    for (number, (frame, up)) in
        FRAMES.iter().flat_map(|frame| LENGTHS.map(|bytes| (*frame, bytes))).enumerate()
    {
        let down = LENGTHS[(number * 3) % LENGTHS.len()];
        let request = request(frame, number as u64, up, down);
        let (line, rest) = request.split_at(request.iter().position(|b| *b == b'\n').unwrap() + 1);
        let mut client = client_over(&logging.relay);
        client.send([line, b"Connection: close\r\n", rest].concat());
        client.head().unwrap();
        // The framing of the chunked coding counts.
        let bytes = client.rest().unwrap().len();
        expected.push(format!("\"POST /{frame}/{number}/{down} HTTP/1.1\" 200 {bytes} TARGET"));
    }
    assert_eq!(logging.lines(expected.len()), expected);
}

fn pipelined_requests_have_a_line_each(transport: Transport) {
    let (address, _) = responding_target(|request| match request.line.as_str() {
        "HEAD /b HTTP/1.1" => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec(),
        "GET /c HTTP/1.1" => b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(),
        _ => ok("five!"),
    });
    let logging = Logging::with(transport, address, LogFormat::Common, |_| {});
    let mut client = client_over(&logging.relay);
    client.send(
        ["GET /a", "HEAD /b", "GET /c", "GET /d?\"x"]
            .map(|line| format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"))
            .concat(),
    );
    for method in ["GET", "HEAD", "GET", "GET"] {
        client.response_to(method).unwrap();
    }
    let expected = [
        "\"GET /a HTTP/1.1\" 200 5 TARGET",
        "\"HEAD /b HTTP/1.1\" 200 0 TARGET",
        "\"GET /c HTTP/1.1\" 304 0 TARGET",
        "\"GET /d?\\x22x HTTP/1.1\" 200 5 TARGET",
    ];
    logging.assert_lines(&expected);
}

#[test]
fn other_formats_have_referer_and_user_agent() {
    let (address, _) = responding_target(|_| ok("five!"));
    let request = "GET /a HTTP/1.0\r\nUser-Agent: test\r\nReferer: /from\r\n\r\n";
    for (format, line) in [
        (LogFormat::Combined, "\"GET /a HTTP/1.0\" 200 5 \"/from\" \"test\" TARGET\n"),
        (
            LogFormat::Json,
            "\"client\":\"127.0.0.1\",\"user\":null,\"method\":\"GET\",\"target\":\"/a\",\
             \"protocol\":\"HTTP/1.0\",\"referer\":\"/from\",\"user_agent\":\"test\",\
             \"status\":200,\"bytes\":5,\"duration_us\":TIME,\"upstream\":\"TARGET\"}\n",
        ),
    ] {
        let logging = Logging::with(Transport::Plain, address.clone(), format, |_| {});
        client(&logging.relay).exchange(request);
        let lines = || logging.lines.0.lock().unwrap().clone();
        eventually("the line is written", || lines().len() == 1);
        let mut found = lines()[0].replace(&logging.target, "TARGET");
        if let Some((before, rest)) = found.clone().split_once("\"duration_us\":") {
            let (time, after) = rest.split_once(',').unwrap();
            assert!(time.parse::<u64>().unwrap() < 60_000_000, "{found}");
            found = format!("{before}\"duration_us\":TIME,{after}");
        }
        assert!(found.ends_with(line), "{found}");
    }
}

#[test]
fn responses_of_the_relay_are_logged() {
    let silent = Logging::start(target(|_, mut peer| drop(peer.request())));
    assert_eq!(client(&silent.relay).exchange(GET).status, 502);
    let body = "the upstream server closed the connection without a response\n".len();
    silent.assert_lines(&[&format!("\"GET /a HTTP/1.1\" 502 {body} TARGET")]);

    let refusing = Logging::start(refusing_address());
    assert_eq!(client(&refusing.relay).exchange(GET).status, 503);
    assert_eq!(client(&refusing.relay).exchange("nonsense\r\n\r\n").status, 400);
    let mut head = client(&refusing.relay);
    head.send("HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(head.response_to("HEAD").unwrap().status, 503);
    assert_eq!(client(&refusing.relay).exchange("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n").status, 501);
    let lines = refusing.lines(4);
    assert_eq!(lines[0], "\"GET /a HTTP/1.1\" 503 32 -");
    assert!(lines[1].starts_with("\"-\" 400 ") && lines[1].ends_with(" -"), "{}", lines[1]);
    assert_eq!(lines[2], "\"HEAD /b HTTP/1.1\" 503 0 -");
    assert_eq!(lines[3], "\"TRACE / HTTP/1.1\" 501 23 -");
}

#[test]
fn refused_connection_is_logged() {
    let (address, _) = responding_target(|_| ok("five!"));
    let logging = Logging::with(Transport::Plain, address, LogFormat::Common, |config| {
        config.limits.peer_connections_max = Some(1);
    });
    let mut first = client(&logging.relay);
    first.exchange(GET);
    assert_eq!(client(&logging.relay).response().unwrap().status, 503);
    logging.assert_lines(&["\"GET /a HTTP/1.1\" 200 5 TARGET", "\"-\" 503 40 -"]);
}

/// Returns a relay, and a receiver of its target's connections, each after its first request.
fn held() -> (Logging, mpsc::Receiver<Peer>) {
    let (sender, requests) = mpsc::channel();
    let sender = Mutex::new(sender);
    let address = target(move |_, mut peer| {
        peer.request().unwrap();
        sender.lock().unwrap().send(peer).unwrap();
    });
    (Logging::start(address), requests)
}

#[test]
fn client_reset_before_the_response_is_logged_with_499() {
    let (logging, requests) = held();
    let mut client = client(&logging.relay);
    client.send(GET);
    let _server = requests.recv().unwrap();
    client.reset();
    logging.assert_lines(&["\"GET /a HTTP/1.1\" 499 0 TARGET"]);
}

#[test]
fn incomplete_head_is_logged_with_499() {
    let (address, _) = responding_target(|_| ok("five!"));
    let logging = Logging::start(address);
    let mut one = client(&logging.relay);
    one.exchange(GET);
    one.send("GET /b HT");
    one.shut();
    one.rest().unwrap();
    // A connection without a request has no line.
    drop(client(&logging.relay));
    logging.assert_lines(&["\"GET /a HTTP/1.1\" 200 5 TARGET", "\"-\" 499 0 -"]);
}

#[test]
fn response_that_is_cut_is_logged_with_its_status_and_the_bytes_sent() {
    let cases = [
        (200, 4, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"),
        (206, 9, "HTTP/1.1 206 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n"),
    ];
    for (status, bytes, response) in cases {
        for is_client_cut in [true, false] {
            let (logging, requests) = held();
            let mut client = client(&logging.relay);
            client.send(GET);
            let mut server = requests.recv().unwrap();
            server.send(response);
            client.head().unwrap();
            client.body(bytes).unwrap();
            if is_client_cut {
                client.reset();
            } else {
                drop(server);
                client.rest().unwrap_err();
            }
            logging.assert_lines(&[&format!("\"GET /a HTTP/1.1\" {status} {bytes} TARGET")]);
        }
    }
}

#[test]
fn exchange_that_the_stop_of_the_relay_cuts_is_logged() {
    let (logging, requests) = held();
    let mut client = client(&logging.relay);
    client.send(GET);
    let _server = requests.recv().unwrap();
    let Logging { relay, lines, .. } = logging;
    drop(relay);
    let lines = lines.0.lock().unwrap();
    assert!(lines.len() == 1 && lines[0].contains("\" 499 0 "), "{lines:?}");
}

#[test]
fn request_that_is_sent_again_has_one_line() {
    let address = target(|number, mut peer| {
        peer.request().unwrap();
        peer.send(ok("first"));
        // The second request over the first connection gets no response.
        if number == 0 {
            peer.request().unwrap();
        }
    });
    let logging = Logging::start(address);
    let mut client = client(&logging.relay);
    assert_eq!(client.exchange(GET).status, 200);
    assert_eq!(client.exchange(GET).status, 200);
    assert_eq!(logging.relay.stats().http.retried, 1);
    logging.assert_lines(&["\"GET /a HTTP/1.1\" 200 5 TARGET"; 2]);
}

#[test]
fn tunnel_is_logged_at_its_end_with_the_bytes_sent_to_the_client() {
    let address = target(|_, mut peer| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nHTTP");
        assert_eq!(peer.body(5).unwrap(), b"hello");
        peer.send("last");
    });
    let logging = Logging::start(address);
    let mut client = client(&logging.relay);
    client.send("GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    client.head().unwrap();
    client.send("hello");
    assert_eq!(client.body(8).unwrap(), b"HTTPlast");
    drop(client);
    logging.assert_lines(&["\"GET /a HTTP/1.1\" 101 8 TARGET"]);
}

#[test]
fn client_of_a_line_is_that_of_the_proxy_header() {
    let (address, _) = responding_target(|_| ok("five!"));
    let logging = Logging::with(Transport::Plain, address, LogFormat::Common, |config| {
        config.proxy_in = Some(Trusted::All);
    });
    let mut client = client(&logging.relay);
    client.send("PROXY TCP4 192.0.2.7 192.0.2.8 1000 80\r\n");
    client.exchange(GET);
    let lines = || logging.lines.0.lock().unwrap().clone();
    eventually("the line is written", || lines().len() == 1);
    assert!(lines()[0].starts_with("192.0.2.7 - - ["), "{:?}", lines());
}

#[test]
fn access_log_without_http_is_refused() {
    let lines = Arc::new(RecordedLines::default());
    let mut config = Config::new(vec![any_address()], vec![refusing_address()]);
    config.access_log = Some(AccessLog { lines, format: LogFormat::Common });
    assert!(matches!(Server::bind(config), Err(Error::Invalid(_))));
}
