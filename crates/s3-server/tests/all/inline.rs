//! The short path of cached objects, whose responses equal those of the S3 service.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use haul_s3_server::Limits;
use haul_testing::{Transport, eventually};

use crate::client::{Header, Reply, Running, noise};

/// Returns the headers of a response, sorted, without those that differ in each response.
pub(crate) fn headers(reply: &Reply) -> Vec<(String, String)> {
    let differs = |name: &str| matches!(name, "date" | "x-amz-request-id");
    let mut headers: Vec<_> =
        reply.headers().iter().filter(|(name, _)| !differs(name)).cloned().collect();
    headers.sort();
    headers
}

#[test]
fn inline_response_equals_that_of_the_operation() {
    let server = Running::new();
    let rules = "<LifecycleConfiguration><Rule><ID>old one</ID><Status>Enabled</Status><Filter>\
                 <Prefix>expiring</Prefix></Filter><Expiration><Days>3</Days></Expiration></Rule>\
                 </LifecycleConfiguration>";
    assert_eq!(server.s3.put("/bucket?lifecycle", rules.as_bytes()).status, 200);
    let many = [
        ("content-type", "text/x-test"),
        ("cache-control", "max-age=3"),
        ("content-disposition", "attachment; filename=\"a b\""),
        ("content-encoding", "gzip"),
        ("content-language", "de, en"),
        ("expires", "Wed, 21 Oct 2065 07:28:00 GMT"),
        ("x-amz-meta-one", "1"),
        ("x-amz-meta-two", "a b  c"),
        ("x-amz-tagging", "a=b&c=d"),
        ("x-amz-website-redirect-location", "/other"),
        ("x-amz-checksum-crc32c", "yZRlqg=="),
    ];
    let objects: [(&str, &[Header], Vec<u8>); 8] = [
        ("/bucket/plain.html", &[], b"hello".to_vec()),
        ("/bucket/all", &many, b"hello world".to_vec()),
        ("/bucket/empty", &[], Vec::new()),
        ("/bucket/a%20b/%C3%A4+%2F.css", &[], noise(5000)),
        ("/bucket/expiring", &[("x-amz-meta-latin", "caf\u{e9}")], noise(50_000)),
        ("/bucket/long", &[], noise(100_000)),
        ("/bucket/longer", &[("x-amz-tagging", "a=b")], noise(1_000_001)),
        ("/bucket/longest", &[("x-amz-meta-a", "b")], noise(3_000_001)),
    ];
    // The request of a page is not responded to inline.
    let origin = format!("http://{}", server.s3.0.address);
    let page = [("origin", &*origin)];
    for (target, attributes, body) in objects {
        assert_eq!(server.s3.send("PUT", target, attributes, &body).status, 200, "{target}");
        for method in ["HEAD", "GET", "GET", "GET", "HEAD"] {
            let inline = server.s3.send(method, target, &[], b"");
            let served = server.s3.send(method, target, &page, b"");
            assert_eq!((inline.status, served.status), (200, 200), "{method} {target}");
            assert_eq!(headers(&inline), headers(&served), "{method} {target}");
            assert_eq!(inline.body() == body, method == "GET" || body.is_empty(), "{target}");
            assert!(inline.header("x-amz-request-id").is_some());
        }
        for range in ["bytes=0-0", "bytes=2-", "bytes=-3", "bytes=1-999999", "bytes=0-1,3-4", "x"] {
            for method in ["GET", "HEAD"] {
                let inline = server.s3.send(method, target, &[("range", range)], b"");
                let both = [("range", range), page[0]];
                let served = server.s3.send(method, target, &both, b"");
                assert_eq!(inline.status, served.status, "{method} {target} {range}");
                assert_eq!(headers(&inline), headers(&served), "{method} {target} {range}");
                let is_same = inline.body() == served.body() || inline.status >= 400;
                assert!(is_same, "{method} {target} {range}");
            }
        }
    }
}

#[test]
fn requests_for_more_than_the_object_get_their_answers() {
    let server = Running::new();
    server.s3.send("PUT", "/bucket/key", &[("content-type", "a/b")], b"hello");
    let get = |target: &str, headers: &[Header]| server.s3.send("GET", target, headers, b"");
    assert_eq!(get("/bucket/key", &[("range", "bytes=1-2")]).text(), "el");
    assert_eq!(get("/bucket/key", &[("If-None-Match", "*")]).status, 304);
    assert_eq!(get("/bucket/key", &[("host", "evil.example")]).status, 403);
    assert_eq!(get("/bucket/key", &[("origin", "http://evil.example")]).status, 403);
    assert_eq!(get("/bucket/key", &[("x-amz-server-side-encryption", "x")]).status, 400);
    let with_type = get("/bucket/key?response-content-type=c/d", &[]);
    assert_eq!(with_type.header("content-type"), Some("c/d"));
    assert_eq!(get("/bucket/key?versionId=7", &[]).status, 400);
    assert!(get("/bucket/key?tagging", &[]).text().contains("<Tagging"));
    assert_eq!(get("/bucket/key?x-id=GetObject", &[]).text(), "hello");
    assert_eq!(get("/bucket/nothing", &[]).status, 404);
    assert_eq!(get("/bucket/", &[]).status, 200);
    // A request ends after its client has received the response.
    eventually("no request is in flight", || {
        server.admin.get("/metrics").text().contains("haul_requests_in_flight 0\n")
    });
}

#[test]
fn pipelined_requests_of_both_kinds_are_answered_in_order() {
    let server = Running::new();
    let mut stream = server.s3.connect();
    let mut requests = Vec::new();
    for n in 0..100 {
        let body = noise(n * 100);
        let length = body.len();
        let put =
            format!("PUT /bucket/{n} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}");
        requests.extend([put.as_bytes(), b"\r\n\r\n", &body].concat());
        requests
            .extend(format!("GET /bucket/{n} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes());
    }
    requests.extend(b"GET /bucket/0 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut writer = stream.tcp().try_clone().unwrap();
    let sending = std::thread::spawn(move || writer.write_all(&requests).unwrap());
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    sending.join().unwrap();
    let ends: Vec<_> =
        (0..received.len()).filter(|at| received[*at..].starts_with(b"\r\n\r\n")).collect();
    let mut at = 0;
    for n in 0..100 {
        for expected in [Vec::new(), noise(n * 100)] {
            let end = *ends.iter().find(|end| **end > at).unwrap() + 4;
            assert!(received[at..].starts_with(b"HTTP/1.1 200 OK\r\n"), "{n}");
            assert!(received[end..].starts_with(&expected), "{n}");
            at = end + expected.len();
        }
    }
    let last = String::from_utf8_lossy(&received[at..]);
    assert!(last.contains("content-length: 0\r\n") && last.ends_with("\r\n\r\n"), "{last}");
}

fn hits(server: &Running) -> u64 {
    let text = server.admin.get("/metrics").text();
    let hits = text.lines().find_map(|line| line.strip_prefix("haul_cache_hits_total "));
    hits.unwrap().parse().unwrap()
}

/// Returns a gauge of the server.
fn gauge(server: &Running, name: &str) -> u64 {
    let text = server.admin.get("/metrics").text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

#[test]
fn object_is_cached_at_its_first_request_while_there_is_room() {
    for transport in [Transport::Plain, Transport::Tls] {
        let server = Running::over(transport);
        let never = usize::MAX;
        for (length, first_hit) in [
            // Short ones at their puts.
            (60_000, 0),
            (70_000, 0),
            (256 << 10, 0),
            ((256 << 10) + 1, 1),
            (1 << 20, 1),
            ((1 << 20) + 1, 1),
            (3_999_999, 1),
            (5_000_000, never),
        ] {
            let (before, body) = (hits(&server), noise(length));
            let target = format!("/bucket/{length}");
            assert_eq!(server.s3.put(&target, &body).status, 200);
            for number in 0..4 {
                assert!(server.s3.get(&target).body() == body, "{length}");
                let expected = (number + 1_usize).saturating_sub(first_hit);
                assert_eq!(hits(&server) - before, expected as u64, "{length}: {number}");
            }
            let memory_bytes = gauge(&server, "haul_cache_bytes");
            assert!(first_hit == never || memory_bytes >= length as u64, "{length}");
        }
        assert_eq!(gauge(&server, "haul_locked_bytes"), 0, "the store does not permit it");
    }
}

/// Each object is stored while the others of its key are, and is cached with its location only.
#[test]
fn objects_cached_by_concurrent_puts_are_whole() {
    let server = Running::new();
    let before = hits(&server);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let s3 = &server.s3;
            scope.spawn(move || {
                for number in 0..60_usize {
                    // Puts of both kinds: without a thread, and on a thread that may block.
                    let body = noise(1 + writer + number % 5 * 4000);
                    let put = s3.put("/bucket/key", &body);
                    assert_eq!(put.status, 200);
                    let got = s3.get("/bucket/key");
                    let sent = got.header("etag").unwrap();
                    let own = put.header("etag").unwrap();
                    assert!(sent != own || got.body() == body, "{writer} {number}");
                    let again = s3.put("/bucket/again", got.body());
                    assert_eq!(again.header("etag"), Some(sent), "{writer} {number}");
                }
            });
        }
    });
    assert!(hits(&server) > before + 100);
}

#[test]
fn long_object_that_would_evict_others_is_cached_at_its_second_request() {
    let limits = Limits { cache_bytes_max: 4 << 20, ..Limits::default() };
    let server = Running::over_with(Transport::Plain, limits);
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    let body = noise(200_000);
    let targets: Vec<_> = (0..200).map(|number| format!("/bucket/{number}")).collect();
    for target in &targets {
        assert_eq!(server.s3.put(target, &body).status, 200);
        assert!(server.s3.get(target).body() == body);
    }
    assert!(gauge(&server, "haul_cache_bytes") <= 4 << 20);
    let get = |target: &String| {
        let before = hits(&server);
        assert!(server.s3.get(target).body() == body);
        hits(&server) - before
    };
    let there: u64 = targets[..100].iter().map(get).sum();
    assert!((10..=25).contains(&there), "the first ones fill the cache, and stay: {there}");
    let last = targets.last().unwrap();
    assert_eq!([(); 3].map(|()| get(last)), [0, 1, 1]);
}

/// The pages of an object can be referenced by sockets after the object has changed.
#[test]
fn slow_reader_of_a_hot_object_receives_the_bytes_of_its_request() {
    let server = Running::new();
    let body = noise(3_900_000);
    assert_eq!(server.s3.put("/bucket/key", &body).status, 200);
    (0..2).for_each(|_| assert!(server.s3.get("/bucket/key").body() == body));
    let before = hits(&server);
    let request = b"GET /bucket/key HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut slow: Vec<_> = (0..8).map(|_| server.s3.connect()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(request).unwrap());
    eventually("all responses have begun", || hits(&server) - before == 8);
    for round in 0..5 {
        let other = vec![round; 3_900_000];
        assert_eq!(server.s3.put("/bucket/key", &other).status, 200);
        (0..3).for_each(|_| assert!(server.s3.get("/bucket/key").body() == other));
    }
    for stream in &mut slow {
        let reply = Reply::read(stream);
        assert!(reply.is_whole() && reply.body() == body);
    }
}

#[test]
fn overwritten_and_deleted_objects_leave_the_cache() {
    let server = Running::new();
    let mut last = Vec::new();
    for round in 0..50 {
        last = noise(round * 997);
        assert_eq!(server.s3.put("/bucket/key", &last).status, 200);
        for _ in 0..3 {
            assert!(server.s3.get("/bucket/key").body() == last, "{round}");
        }
    }
    assert!(hits(&server) >= 50, "{}", hits(&server));
    assert_eq!(server.s3.put("/bucket/copy", &last).status, 200);
    assert_eq!(server.s3.delete("/bucket/key").status, 204);
    assert_eq!(server.s3.get("/bucket/key").status, 404);
    assert_eq!(server.s3.put("/bucket/key", b"again").status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "again");
    let tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    assert_eq!(server.s3.put("/bucket/key?tagging", tags).status, 200);
    assert_eq!(server.s3.get("/bucket/key").header("x-amz-tagging-count"), Some("1"));
    for range in [("x-a", "b"), ("range", "bytes=0-1"), ("x-amz-request-payer", "requester")] {
        let head = server.s3.send("HEAD", "/bucket/key", &[range], b"");
        assert_eq!(head.header("x-amz-tagging-count"), Some("1"), "{range:?}");
    }
}

#[test]
fn readers_of_a_changing_object_see_no_older_state() {
    let server = Running::new();
    assert_eq!(server.s3.put("/bucket/key", b"0").status, 200);
    let (acknowledged, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::SeqCst) {
                    let least = acknowledged.load(Ordering::SeqCst);
                    let seen: u64 = server.s3.get("/bucket/key").text().parse().unwrap();
                    assert!(seen >= least, "{seen} after {least}");
                }
            });
        }
        for number in 1..300_u64 {
            assert_eq!(server.s3.put("/bucket/key", number.to_string().as_bytes()).status, 200);
            acknowledged.store(number, Ordering::SeqCst);
        }
        ended.store(true, Ordering::SeqCst);
    });
}
