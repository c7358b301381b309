//! Tests of requests and responses: forwarded fields, order, and reuse of connections.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use haul_tcp_relay::proxy::{Trusted, Version};
use haul_tcp_relay::{Address, EndReason, HttpOptions};

use super::{Message, client, http, http_with, ok, responding_target, target};

fn names(message: &Message) -> Vec<String> {
    message.fields.iter().map(|field| field.0.to_ascii_lowercase()).collect()
}

#[test]
fn request_head_is_rewritten_for_the_target() {
    let (address, log) = responding_target(|_| ok("hello"));
    let relay = http([address]);
    let response = client(&relay).exchange(
        "GET /a?b HTTP/1.1\r\nhost: Example.org:80\r\nAccept: */*\r\nX-a:\t1  2\t\r\n\
         Forwarded: for=10.0.0.1\r\nX-Forwarded-For: 10.0.0.1\r\nX_Forwarded_Proto: https\r\n\
         x-real-ip: 10.0.0.1\r\nVia: 1.0 before\r\nConnection: keep-alive, X-Own , x-other\r\n\
         X-Own: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nTrailer: A\r\nProxy-Connection: close\r\n\
         Proxy-Authorization: b\r\nUpgrade: h2c\r\n\r\n",
    );
    assert_eq!((response.line.as_str(), &response.body[..]), ("HTTP/1.1 200 OK", &b"hello"[..]));
    assert_eq!(response.all("via"), ["1.1 haul"]);
    let request = &log.requests()[0];
    assert_eq!(request.line, "GET /a?b HTTP/1.1");
    let expected = [
        ("Host", "Example.org:80"),
        ("Accept", "*/*"),
        ("X-a", "1  2"),
        ("Via", "1.0 before"),
        ("Via", "1.1 haul"),
        ("Forwarded", "for=127.0.0.1;proto=http;host=\"Example.org:80\""),
        ("X-Forwarded-For", "127.0.0.1"),
        ("connection-number", "0"),
    ];
    let fields: Vec<_> = request.fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(fields, expected);
}

#[test]
fn forged_client_fields_are_dropped() {
    let (address, log) = responding_target(|_| ok(""));
    client(&http([address])).exchange(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-User: root\r\nX_Forwarded-Client_Cert: x\r\n\
         X-Client-IP: 10.0.0.1\r\nX-Real-IP: 10.0.0.1\r\nProxy: http://evil\r\nX-Forward: on\r\n\r\n",
    );
    let fields = &log.requests()[0].fields;
    let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["Host", "X-Forward", "Via", "Forwarded", "X-Forwarded-For"];
    assert_eq!(names[..5], expected);
}

#[test]
fn forwarding_fields_of_trusted_clients_are_extended() {
    let (address, log) = responding_target(|_| ok(""));
    let trusting =
        HttpOptions { trust_forwarded: true, via: "edge".to_owned(), ..HttpOptions::default() };
    let relay = http_with([address], trusting, |_| {});
    client(&relay).exchange(
        "GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=10.0.0.1\r\nX-Forwarded-For: 10.0.0.1\r\n\
         X-Forwarded-Proto: https\r\n\r\n",
    );
    let request = &log.requests()[0];
    assert_eq!(request.all("forwarded"), ["for=10.0.0.1", "for=127.0.0.1;proto=http;host=\"a\""]);
    assert_eq!(request.all("x-forwarded-for"), ["10.0.0.1", "127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    assert_eq!(request.all("via"), ["1.1 edge"]);
}

#[test]
fn absolute_form_becomes_origin_form() {
    let (address, log) = responding_target(|_| ok(""));
    let relay = http([address]);
    let mut client = client(&relay);
    for (line, host) in [
        ("GET http://b:81/c?d HTTP/1.1", "Host: a"),
        ("GET http://b?d HTTP/1.1", "Host: a"),
        ("GET http://b HTTP/1.1", "Host: a"),
        ("OPTIONS http://b HTTP/1.1", "Host: a"),
        ("OPTIONS * HTTP/1.1", "Host: a"),
        ("GET /c HTTP/1.0", "Connection: keep-alive"),
    ] {
        assert_eq!(client.exchange(format!("{line}\r\n{host}\r\n\r\n")).status, 200);
    }
    let log = log.requests();
    let lines: Vec<_> = log.iter().map(|one| (one.line.as_str(), one.all("host")[0])).collect();
    let expected = [
        ("GET /c?d HTTP/1.1", "b:81"),
        ("GET /?d HTTP/1.1", "b"),
        ("GET / HTTP/1.1", "b"),
        ("OPTIONS * HTTP/1.1", "b"),
        ("OPTIONS * HTTP/1.1", "a"),
        ("GET /c HTTP/1.1", "localhost"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn options_is_answered_by_the_relay_after_its_last_forward() {
    let (address, log) = responding_target(|_| ok("target"));
    let relay = http([address]);
    let ask = |forwards: &str| {
        let head = format!("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: {forwards}\r\n\r\n");
        client(&relay).exchange(head)
    };
    let own = ask("0");
    assert_eq!((own.status, log.requests().len()), (200, 0), "{}", own.text());
    assert!(own.text().contains("Max-Forwards"));
    assert_eq!(ask("x").status, 400);
    assert_eq!(ask("1").text(), "target");
    assert_eq!(log.requests()[0].all("max-forwards"), ["0"]);
}

#[test]
fn hop_by_hop_fields_of_responses_are_dropped() {
    let (address, _) = responding_target(|_| {
        b"HTTP/1.1 200 All right\r\nConnection: close, X-Own\r\nX-Own: 1\r\nKeep-Alive: 1\r\n\
          Content-Length: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nUpgrade: h2c\r\n\r\nhi"
            .to_vec()
    });
    let relay = http([address]);
    let mut client = client(&relay);
    let response = client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(response.line, "HTTP/1.1 200 All right");
    assert_eq!(names(&response), ["set-cookie", "set-cookie", "date", "via", "content-length"]);
    assert_eq!(
        client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").body,
        b"hi",
        "the client connection persists"
    );
}

#[test]
fn client_and_upstream_connections_are_reused() {
    let (address, log) = responding_target(|request| ok(&request.line));
    let relay = http([address]);
    let mut client = client(&relay);
    for number in 0..100 {
        let response = client.exchange(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(response.body, format!("GET /{number} HTTP/1.1").as_bytes());
    }
    let requests = log.requests();
    assert!(requests.iter().all(|one| one.all("connection-number") == ["0"]));
    drop(client);
    let stats = relay.drain();
    assert_eq!((stats.accepted, stats.ended(EndReason::Clean)), (1, 1));
    assert_eq!((stats.http.requests, stats.http.reused, stats.http.responses[1]), (100, 99, 100));
    let sent: usize =
        (0..100).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n").len()).sum();
    assert_eq!((stats.up.bytes_copied, stats.up.bytes_spliced), (sent as u64, 0));
    assert_eq!(stats.targets[0].connected, 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (address, log) =
        responding_target(|request| ok([request.line.as_bytes(), &request.body].concat()));
    let relay = http([address]);
    let mut client = client(&relay);
    client.send(
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\
         POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
         \r\nPOST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n\
         GET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\
         GET /5 HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    for expected in
        ["GET /1 HTTP/1.1", "POST /2 HTTP/1.1hello", "POST /3 HTTP/1.1hi", "GET /4 HTTP/1.1"]
    {
        assert_eq!(client.response().unwrap().body, expected.as_bytes());
    }
    assert_eq!(client.rest().unwrap(), b"", "nothing follows a close");
    assert_eq!(log.requests().len(), 4);
}

#[test]
fn messages_split_at_any_byte_arrive_intact() {
    let request = "POST /split HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3;x\r\nabc\r\n1\r\nd\r\n0\r\nT: u\r\n\r\n";
    let response = b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\
                     Transfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\n1\r\n.\r\n0\r\n\r\n";
    for cut in 1..request.len().max(response.len()) {
        let address = target(move |_, mut peer| {
            let log = peer.request().unwrap().unwrap();
            assert_eq!(log.body, b"abcd");
            let (first, second) = response.split_at(cut.min(response.len()));
            peer.send(first);
            thread::yield_now();
            peer.send(second);
            peer.rest().ok();
        });
        let relay = http([address]);
        let mut client = client(&relay);
        let (first, second) = request.split_at(cut.min(request.len()));
        client.send(first);
        thread::yield_now();
        client.send(second);
        assert_eq!(client.response().unwrap().status, 103, "cut at {cut}");
        assert_eq!(client.response().unwrap().body, b"wxyz.", "cut at {cut}");
    }
}

#[test]
fn messages_sent_byte_by_byte_arrive_intact() {
    let address = target(|_, mut peer| {
        let log = peer.request().unwrap().unwrap();
        for byte in ok([&log.body[..], b"!"].concat()) {
            peer.send([byte]);
        }
        peer.rest().ok();
    });
    let relay = http([address]);
    let mut client = client(&relay);
    for byte in b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd" {
        client.send([*byte]);
    }
    assert_eq!(client.response().unwrap().body, b"abcd!");
}

#[test]
fn bodiless_responses_ignore_their_declared_length() {
    let (address, log) = responding_target(|request| match request.line.as_str() {
        "HEAD /length HTTP/1.1" => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec(),
        "HEAD /chunked HTTP/1.1" => {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()
        }
        "GET /204 HTTP/1.1" => b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n".to_vec(),
        "GET /304 HTTP/1.1" => b"HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n".to_vec(),
        _ => ok("next"),
    });
    let relay = http([address]);
    let mut client = client(&relay);
    for (request, status, lengths) in [
        ("HEAD /length", 200, &["5"][..]),
        ("HEAD /chunked", 200, &[]),
        ("GET /204", 204, &[]),
        ("GET /304", 304, &["5"]),
    ] {
        client.send(format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let response = client.head().unwrap();
        assert_eq!((response.status, response.all("content-length")), (status, lengths.to_vec()));
        assert_eq!(
            client.exchange("GET /next HTTP/1.1\r\nHost: a\r\n\r\n").body,
            b"next",
            "{request}"
        );
    }
    assert!(log.requests().iter().all(|one| one.all("connection-number") == ["0"]));
}

#[test]
fn expect_100_continue_is_answered_by_the_target() {
    let address = target(|_, mut peer| {
        let head = peer.head().unwrap();
        assert_eq!(
            (head.all("expect"), head.all("content-length")),
            (vec!["100-continue"], vec!["5"])
        );
        peer.send("HTTP/1.1 100 Continue\r\n\r\n");
        let body = peer.body(5).unwrap();
        peer.send(ok(body));
        peer.rest().ok();
    });
    let relay = http([address]);
    let mut client = client(&relay);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.response().unwrap().line, "HTTP/1.1 100 Continue");
    client.send("hello");
    assert_eq!(client.response().unwrap().body, b"hello");
}

#[test]
fn body_after_a_final_response_is_not_awaited() {
    let address = target(|_, mut peer| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno");
        assert!(peer.rest().is_err(), "a missing body must be reset");
    });
    let relay = http([address]);
    let mut client = client(&relay);
    let response = client
        .exchange("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!((response.status, response.all("connection")), (417, vec!["close"]));
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn http_1_0_client_receives_no_chunks_and_no_interim_responses() {
    let (address, _) = responding_target(|_| {
        b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
          3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            .to_vec()
    });
    let relay = http([address]);
    let mut client = client(&relay);
    let response = client.exchange("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!((response.status, &response.body[..]), (200, &b"abcde"[..]));
    assert_eq!(response.all("connection"), ["close"], "the close delimits the body");
}

#[test]
fn http_1_0_keep_alive_is_honoured() {
    let (address, _) = responding_target(|_| ok("abc"));
    let relay = http([address]);
    let mut client = client(&relay);
    for _ in 0..3 {
        let response = client.exchange("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
        assert_eq!(
            (response.all("connection"), &response.body[..]),
            (vec!["keep-alive"], &b"abc"[..])
        );
    }
    let last = client.exchange("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(last.all("connection"), ["close"]);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn address_of_a_proxy_header_is_forwarded_to_targets() {
    let line = "PROXY TCP4 192.0.2.7 198.51.100.1 40000 80\r\n";
    let address = target(move |_, mut peer| {
        assert_eq!(
            peer.body(line.len()).unwrap(),
            line.as_bytes(),
            "sent once, before all requests"
        );
        while let Ok(Some(request)) = peer.request() {
            peer.send(ok(request.all("x-forwarded-for").join(",")));
        }
    });
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.proxy_in = Some(Trusted::All);
        config.proxy_out = Some(Version::V1);
    });
    let mut client = client(&relay);
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(client.exchange([line, request].concat()).body, b"192.0.2.7");
    for _ in 0..2 {
        assert_eq!(client.exchange(request).body, b"192.0.2.7");
    }
    // The request received together with the header counts as copied; the header does not.
    assert_eq!(relay.stats().up.bytes_copied, 3 * request.len() as u64);
}

#[test]
fn unix_socket_clients_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("client");
    let (address, log) = responding_target(|_| ok("hello"));
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.listen = vec![Address::Unix(path.clone())];
    });
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("\r\n\r\nhello"), "{response}");
    assert_eq!(log.requests()[0].all("forwarded"), ["for=unknown;proto=http;host=\"a\""]);
    assert_eq!(relay.drain().ended(EndReason::Clean), 1);
}
