//! Requests and responses: what of a head is passed on, in which order, over which connection.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use haul_tcp_relay::proxy::{Trusted, Version};
use haul_tcp_relay::{Address, Ended, HttpOptions};

use super::{Message, answering, client, http, http_with, ok, target};

fn names(message: &Message) -> Vec<String> {
    message.fields.iter().map(|field| field.0.to_ascii_lowercase()).collect()
}

#[test]
fn a_request_goes_on_with_what_the_relay_knows_of_it() {
    let (address, seen) = answering(|_| ok("hello"));
    let relay = http([address]);
    let response = client(&relay).ask(
        "GET /a?b HTTP/1.1\r\nhost: Example.org:80\r\nAccept: */*\r\nX-a:\t1  2\t\r\n\
         Forwarded: for=10.0.0.1\r\nX-Forwarded-For: 10.0.0.1\r\nX_Forwarded_Proto: https\r\n\
         x-real-ip: 10.0.0.1\r\nVia: 1.0 before\r\nConnection: keep-alive, X-Own , x-other\r\n\
         X-Own: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nTrailer: A\r\nProxy-Connection: close\r\n\
         Proxy-Authorization: b\r\nUpgrade: h2c\r\n\r\n",
    );
    assert_eq!((response.line.as_str(), &response.body[..]), ("HTTP/1.1 200 OK", &b"hello"[..]));
    assert_eq!(response.all("via"), ["1.1 haul"]);
    let request = &seen.requests()[0];
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
fn who_a_client_says_it_is_reaches_no_target() {
    let (address, seen) = answering(|_| ok(""));
    client(&http([address])).ask(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-User: root\r\nX_Forwarded-Client_Cert: x\r\n\
         X-Client-IP: 10.0.0.1\r\nX-Real-IP: 10.0.0.1\r\nProxy: http://evil\r\nX-Forward: on\r\n\r\n",
    );
    let fields = &seen.requests()[0].fields;
    let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["Host", "X-Forward", "Via", "Forwarded", "X-Forwarded-For"];
    assert_eq!(names[..5], expected);
}

#[test]
fn what_trusted_clients_forward_is_passed_on_and_added_to() {
    let (address, seen) = answering(|_| ok(""));
    let trusting =
        HttpOptions { trust_forwarded: true, via: "edge".to_owned(), ..HttpOptions::default() };
    let relay = http_with([address], trusting, |_| {});
    client(&relay).ask(
        "GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=10.0.0.1\r\nX-Forwarded-For: 10.0.0.1\r\n\
         X-Forwarded-Proto: https\r\n\r\n",
    );
    let request = &seen.requests()[0];
    assert_eq!(request.all("forwarded"), ["for=10.0.0.1", "for=127.0.0.1;proto=http;host=\"a\""]);
    assert_eq!(request.all("x-forwarded-for"), ["10.0.0.1", "127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    assert_eq!(request.all("via"), ["1.1 edge"]);
}

#[test]
fn an_absolute_target_becomes_a_path_and_its_host_the_host() {
    let (address, seen) = answering(|_| ok(""));
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
        assert_eq!(client.ask(format!("{line}\r\n{host}\r\n\r\n")).status(), 200);
    }
    let seen = seen.requests();
    let lines: Vec<_> = seen.iter().map(|one| (one.line.as_str(), one.all("host")[0])).collect();
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
fn what_concerns_the_targets_connection_stays_there() {
    let (address, _) = answering(|_| {
        b"HTTP/1.1 200 All right\r\nConnection: close, X-Own\r\nX-Own: 1\r\nKeep-Alive: 1\r\n\
          Content-Length: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nUpgrade: h2c\r\n\r\nhi"
            .to_vec()
    });
    let relay = http([address]);
    let mut client = client(&relay);
    let response = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(response.line, "HTTP/1.1 200 All right");
    assert_eq!(names(&response), ["set-cookie", "set-cookie", "via", "content-length"]);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").body, b"hi", "it was kept");
}

#[test]
fn both_connections_are_kept_for_the_next_request() {
    let (address, seen) = answering(|request| ok(&request.line));
    let relay = http([address]);
    let mut client = client(&relay);
    for number in 0..100 {
        let response = client.ask(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(response.body, format!("GET /{number} HTTP/1.1").as_bytes());
    }
    let requests = seen.requests();
    assert!(requests.iter().all(|one| one.all("connection-number") == ["0"]));
    drop(client);
    let stats = relay.drain();
    assert_eq!((stats.accepted, stats.ended(Ended::Clean)), (1, 1));
    assert_eq!((stats.http.requests, stats.http.reused, stats.http.responses[1]), (100, 99, 100));
    let sent: usize =
        (0..100).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n").len()).sum();
    assert_eq!((stats.up.bytes_copied, stats.up.bytes_spliced), (sent as u64, 0));
    assert_eq!(stats.targets[0].connected, 1);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let (address, seen) =
        answering(|request| ok([request.line.as_bytes(), &request.body].concat()));
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
    assert_eq!(seen.requests().len(), 4);
}

#[test]
fn messages_arrive_whole_however_they_are_split() {
    let request = "POST /split HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3;x\r\nabc\r\n1\r\nd\r\n0\r\nT: u\r\n\r\n";
    let response = b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\
                     Transfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\n1\r\n.\r\n0\r\n\r\n";
    for cut in 1..request.len().max(response.len()) {
        let address = target(move |_, mut peer| {
            let seen = peer.request().unwrap().unwrap();
            assert_eq!(seen.body, b"abcd");
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
        assert_eq!(client.response().unwrap().status(), 103, "cut at {cut}");
        assert_eq!(client.response().unwrap().body, b"wxyz.", "cut at {cut}");
    }
}

#[test]
fn messages_arrive_whole_byte_by_byte() {
    let address = target(|_, mut peer| {
        let seen = peer.request().unwrap().unwrap();
        for byte in ok([&seen.body[..], b"!"].concat()) {
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
fn responses_without_a_body_have_none_whatever_they_say() {
    let (address, seen) = answering(|request| match request.line.as_str() {
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
        assert_eq!((response.status(), response.all("content-length")), (status, lengths.to_vec()));
        assert_eq!(client.ask("GET /next HTTP/1.1\r\nHost: a\r\n\r\n").body, b"next", "{request}");
    }
    assert!(seen.requests().iter().all(|one| one.all("connection-number") == ["0"]));
}

#[test]
fn who_waits_for_100_continue_gets_it_from_the_target() {
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
fn a_body_that_nobody_wants_is_not_awaited() {
    let address = target(|_, mut peer| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno");
        assert!(peer.rest().is_err(), "the body that did not come is no clean end");
    });
    let relay = http([address]);
    let mut client = client(&relay);
    let response = client
        .ask("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!((response.status(), response.all("connection")), (417, vec!["close"]));
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn an_old_client_gets_no_chunks_and_no_interim_responses() {
    let (address, _) = answering(|_| {
        b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
          3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            .to_vec()
    });
    let relay = http([address]);
    let mut client = client(&relay);
    let response = client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!((response.status(), &response.body[..]), (200, &b"abcde"[..]));
    assert_eq!(response.all("connection"), ["close"], "its end is the end of the body");
}

#[test]
fn an_old_client_that_wants_to_is_kept() {
    let (address, _) = answering(|_| ok("abc"));
    let relay = http([address]);
    let mut client = client(&relay);
    for _ in 0..3 {
        let response = client.ask("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
        assert_eq!(
            (response.all("connection"), &response.body[..]),
            (vec!["keep-alive"], &b"abc"[..])
        );
    }
    let last = client.ask("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(last.all("connection"), ["close"]);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn websockets_become_tunnels_with_what_came_early() {
    let address = target(|_, mut peer| {
        let head = peer.head().unwrap();
        assert_eq!(
            (head.all("connection"), head.all("upgrade")),
            (vec!["upgrade"], vec!["websocket"])
        );
        assert_eq!(head.all("sec-websocket-key"), ["k"]);
        peer.send(
            "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: l\r\n\r\nHTTP",
        );
        assert_eq!(peer.body(9).unwrap(), b"early\0\r\n\xff");
        peer.send("last");
        peer.shut();
        assert_eq!(peer.rest().unwrap(), b"words");
    });
    let relay = http([address]);
    let mut client = client(&relay);
    let asked = "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
                 Upgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n";
    client.send([asked, "early"].concat());
    let response = client.head().unwrap();
    assert_eq!(response.line, "HTTP/1.1 101 Go");
    assert_eq!(
        (response.all("upgrade"), response.all("connection")),
        (vec!["websocket"], vec!["upgrade"])
    );
    assert_eq!(response.all("sec-websocket-accept"), ["l"]);
    client.send(b"\0\r\n\xff");
    assert_eq!(client.rest().unwrap(), b"HTTPlast");
    client.send("words");
    client.shut();
    relay.until(|stats| stats.ended(Ended::Clean) == 1);
}

#[test]
fn other_protocols_are_not_left_for() {
    let (address, seen) = answering(|request| match request.line.as_str() {
        "GET /switch HTTP/1.1" => {
            b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n".to_vec()
        }
        _ => ok("plain"),
    });
    let relay = http([address.clone()]);
    let upgrade = |path, protocol| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: {protocol}\r\n\r\n"
        )
    };
    for protocol in ["h2c", "websocket, h2c", "websocket/13"] {
        assert_eq!(client(&relay).ask(upgrade("/", protocol)).body, b"plain", "{protocol}");
    }
    assert_eq!(client(&relay).ask(upgrade("/switch", "h2c")).status(), 502, "nobody asked for it");
    let without = HttpOptions { upgrade: false, ..HttpOptions::default() };
    let relay = http_with([address], without, |_| {});
    assert_eq!(client(&relay).ask(upgrade("/", "websocket")).body, b"plain");
    assert!(seen.requests().iter().all(|one| one.all("upgrade").is_empty()));
}

#[test]
fn a_client_that_a_proxy_names_is_told_to_targets_in_both_ways() {
    let line = "PROXY TCP4 192.0.2.7 198.51.100.1 40000 80\r\n";
    let address = target(move |_, mut peer| {
        assert_eq!(peer.body(line.len()).unwrap(), line.as_bytes(), "once, before all requests");
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
    assert_eq!(client.ask([line, request].concat()).body, b"192.0.2.7");
    for _ in 0..2 {
        assert_eq!(client.ask(request).body, b"192.0.2.7");
    }
    // Also what came with the header is counted.
    assert_eq!(relay.stats().up.bytes_copied, 3 * request.len() as u64);
}

#[test]
fn requests_and_answers_pass_through_unix_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("near");
    let (address, seen) = answering(|_| ok("hello"));
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.listen = vec![Address::Unix(path.clone())];
    });
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert_eq!(seen.requests()[0].all("forwarded"), ["for=unknown;proto=http;host=\"a\""]);
    assert_eq!(relay.drain().ended(Ended::Clean), 1);
}
