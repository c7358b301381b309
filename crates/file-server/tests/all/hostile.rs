//! Malformed and hostile requests.

use haul_testing::{Random, Transport, over};

use crate::client::{Client, get};
use crate::helper::ServedDir;

#[path = "../../../http1/tests/all/corpus.rs"]
mod corpus;

over!(Plain Inherited Tls => (
    hostile_heads_are_refused_with_all_bytes_after_them,
    garbage_is_refused_and_affects_no_other_client,
));

fn hostile_heads_are_refused_with_all_bytes_after_them(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|_| {});
    let smuggled = b"6\r\nGET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let fields =
        corpus::HOSTILE_FIELDS.iter().map(|(why, fields)| (why, corpus::post(fields), 400));
    let hosts = corpus::HOSTILE_HOSTS.iter().map(|(why, host)| {
        let head = [b"GET /a HTTP/1.1\r\nHost: ", *host, b"\r\n\r\n"].concat();
        (why, head, 400)
    });
    let lines = corpus::HOSTILE_LINES
        .iter()
        .map(|(why, line, status)| (why, corpus::with_line(line), *status));
    for (why, head, status) in fields.chain(hosts).chain(lines) {
        let mut client = Client::new(running.address);
        client.say([&head[..], smuggled].concat());
        let answer = client.answer("GET");
        assert_eq!((answer.status, answer.field("connection")), (status, Some("close")), "{why}");
        assert_eq!(client.rest(), (Vec::new(), true), "{why}");
    }
    // The request is answered before its body is discarded, and nothing behind the body is.
    for (why, body) in corpus::HOSTILE_BODIES {
        let mut client = Client::new(running.address);
        let head = corpus::post(b"Transfer-Encoding: chunked\r\n");
        client.say([&head[..], body, smuggled].concat());
        assert_eq!(client.answer("POST").status, 421, "{why}");
        let error = client.answer("POST");
        assert!((400..500).contains(&error.status), "{why}: {}", error.line);
        assert_eq!(error.field("connection"), Some("close"), "{why}");
        assert_eq!(client.rest(), (Vec::new(), true), "{why}");
    }
    running.wait_until("all connections are closed", |stats| stats.connections_open == 0);
    assert!(running.stats().statuses.iter().all(|(status, _)| *status != 200));
}

fn garbage_is_refused_and_affects_no_other_client(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|_| {});
    let mut other = Client::new(running.address);
    let mut random = Random::from_environment();
    for round in 0..300 {
        let bytes = usize::try_from(1 + random.below(20_000)).unwrap();
        let mut client = Client::new(running.address);
        let mut garbage = random.bytes(bytes);
        if round % 2 == 0 {
            garbage.splice(..0, *b"GET /a HTTP/1.1\r\nHost: localhost\r\nX: ");
        }
        // Without a control byte, a few random bytes can be a valid field.
        garbage.extend(b"\0\r\n\r\n");
        // The server may close before it has received everything.
        client.try_say(garbage);
        let (answer, _is_clean) = client.rest();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{round}: {answer:?}");
        assert_eq!(other.get("/a", "").text(), "a", "{round}");
    }
    running.wait_until("all connections are closed", |stats| stats.connections_open == 1);
    assert_eq!(get(running.address, "/a", "").text(), "a");
}
