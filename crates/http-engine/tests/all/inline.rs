//! Responses without a request of the crate `http`.

use std::io::Write;

use haul_testing::{Transport, eventually, over};

use crate::server::{Server, read_until, rest};

over!(Plain Tls => (
    bodies_and_prepared_responses_keep_the_order_of_pipelined_requests,
    short_body_of_a_request_is_discarded_and_a_longer_one_closes,
    last_permitted_response_announces_the_close,
    each_response_is_reported_when_it_has_ended,
));

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")
}

fn bodies_and_prepared_responses_keep_the_order_of_pipelined_requests(transport: Transport) {
    let server = Server::over(transport);
    let kinds = [("/inline/", "i", 200), ("/body/", "b", 200), ("/later/", "l", 203)];
    let requests: Vec<_> = (0..90).map(|n| (kinds[n % 3], n * 1000)).collect();
    let mut all: String =
        requests.iter().map(|((path, ..), n)| get(&format!("{path}{n}"))).collect();
    all += "GET /last HTTP/1.0\r\n\r\n";
    let received = server.exchange(all.as_bytes());
    let mut left = received.as_str();
    for ((path, letter, status), n) in requests {
        let (head, body) = left.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}{n}: {head}");
        assert!(head.ends_with(&format!("content-length: {n}")), "{path}{n}: {head}");
        left = body.strip_prefix(&letter.repeat(n)).unwrap_or_else(|| panic!("{path}{n}"));
    }
    assert!(left.ends_with("GET /last"), "{left}");
}

fn short_body_of_a_request_is_discarded_and_a_longer_one_closes(transport: Transport) {
    let server = Server::over(transport);
    let mut stream = server.client();
    let head = |bytes: usize, more: &str| {
        format!("GET /inline/1 HTTP/1.1\r\nhost: a\r\n{more}content-length: {bytes}\r\n\r\n")
    };
    stream.write_all(head(16, "").as_bytes()).unwrap();
    assert!(!read_until(&mut stream, "\r\n\r\ni").contains("connection"));
    // The body arrives after the response, and in two parts.
    stream.write_all(b"GET / HT").unwrap();
    stream.write_all(format!("TP/1.1\r\n{}", get("/inline/2")).as_bytes()).unwrap();
    read_until(&mut stream, "\r\n\r\nii");
    for request in [head(17, ""), head(1, "expect: 100-continue\r\n")] {
        let received = server.exchange(request.as_bytes());
        assert!(received.contains("\r\nconnection: close\r\n"), "{received}");
        assert!(received.ends_with("\r\n\r\ni"), "{received}");
    }
}

fn last_permitted_response_announces_the_close(transport: Transport) {
    let server = Server::over(transport);
    let received = server.exchange(get("/inline/0").repeat(1_010).as_bytes());
    assert_eq!(received.matches("HTTP/1.1 200 OK\r\n").count(), 1_000);
    let (_, last) = received.rsplit_once("HTTP/1.1 ").unwrap();
    assert_eq!(received.matches("connection: close").count(), 1);
    assert!(last.contains("connection: close"), "{last}");
}

fn each_response_is_reported_when_it_has_ended(transport: Transport) {
    let server = Server::over(transport);
    let paths = ["/inline/5", "/body/6", "/later/7", "/chunked", "/window"];
    let requests: String = paths.into_iter().map(get).collect();
    server.exchange(format!("{requests}nonsense\r\n\r\n").as_bytes());
    let window = 4_999_001 + 11;
    let complete = [(200, 5), (200, 6), (203, 7), (200, 11), (200, window), (400, 0)];
    let expected = complete.map(|(status, bytes)| (status, bytes, true));
    eventually("all have ended", || server.ended.lock().len() == expected.len());
    assert_eq!(*server.ended.lock(), expected);
    server.ended.lock().clear();
    let mut stream = server.client();
    stream.write_all(get("/short").as_bytes()).unwrap();
    rest(&mut stream);
    eventually("it is cut", || *server.ended.lock() == [(200, 3, false)]);
}
