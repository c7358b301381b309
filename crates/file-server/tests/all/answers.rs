//! Responses to requests of each kind.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use haul_testing::eventually;

use crate::client::{Client, get};
use crate::helper::{Running, ServedDir, noise, set_age};

#[test]
fn response_has_the_fields_of_the_file() {
    let place = ServedDir::new();
    place.write_old("a b/page.html", "<p>hello");
    let running = place.serve(|_| {});
    let answer = get(running.address, "/a%20b/page.html", "");
    assert_eq!((answer.status, answer.text()), (200, "<p>hello"));
    assert_eq!(answer.field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.field("accept-ranges"), Some("bytes"));
    assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.field("vary"), None);
    assert_eq!(answer.field("connection"), None);
    for name in ["date", "last-modified"] {
        let date = answer.field(name).unwrap();
        assert!(haul_http1::parse_date(date.as_bytes()).is_some(), "{name}: {date}");
    }
    assert!(answer.field("etag").unwrap().starts_with("\"8-"));
}

#[test]
fn head_response_has_the_fields_of_get_and_no_body() {
    let place = ServedDir::new();
    place.write("small", "12345");
    place.write("big", vec![7; 3 << 20]);
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    for name in ["/small", "/big", "/none"] {
        let mut whole = client.get(name, "");
        let head = client.ask("HEAD", name, "");
        whole.body.clear();
        assert_eq!(head.status, whole.status);
        let without_date = |answer: &crate::client::Answer| -> Vec<_> {
            answer.fields.iter().filter(|field| field.0 != "date").cloned().collect()
        };
        assert_eq!(without_date(&head), without_date(&whole), "{name}");
    }
    let head = client.ask("HEAD", "/big", "Range: bytes=0-9\r\n");
    assert_eq!((head.status, head.field("content-length")), (200, Some("3145728")));
    assert_eq!(running.after(7).tiers.iter().map(|row| row.2).sum::<u64>(), 5 + (3 << 20));
}

#[test]
fn other_methods_are_refused_with_the_allowed_ones() {
    let place = ServedDir::new();
    place.write("a", "a");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    for (method, status) in [("POST", 405), ("DELETE", 405), ("get", 405), ("OPTIONS", 204)] {
        let answer = client.ask(method, "/a", "");
        assert_eq!(answer.status, status, "{method}");
        assert_eq!(answer.field("allow"), Some("GET, HEAD, OPTIONS"));
    }
    assert_eq!(client.ask("OPTIONS", "*", "").status, 204);
    assert_eq!(client.get("http://localhost/a", "").text(), "a", "a target in absolute form");
}

#[test]
fn loopback_server_refuses_other_hosts() {
    let place = ServedDir::new();
    place.write("a", "a");
    let ask = |running: &Running, host: &str| {
        let mut client = Client::new(running.address);
        client.say(format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.answer("GET").status
    };
    let running = place.serve(|config| config.hosts = vec!["files.example".to_owned()]);
    for (host, status) in
        [("localhost:1", 200), ("127.0.0.1", 200), ("files.example", 200), ("evil.example", 421)]
    {
        assert_eq!(ask(&running, host), status, "{host}");
    }
    let running = place.serve(|config| config.is_public = true);
    assert_eq!(ask(&running, "evil.example"), 200);
}

#[test]
fn directory_is_served_as_its_index_below_a_final_slash() {
    let place = ServedDir::new();
    place.write("index.html", "root");
    place.write("d\u{e4}/sub/index.html", "sub");
    place.write("empty/file", "");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    assert_eq!(client.get("/", "").text(), "root");
    assert_eq!(client.get("/d%C3%A4/sub/", "").text(), "sub");
    let answer = client.get("/d%c3%a4/sub?a=/b", "");
    assert_eq!((answer.status, answer.field("location")), (301, Some("/d%C3%A4/sub/?a=/b")));
    assert_eq!(client.get("/empty/", "").status, 404);
    assert_eq!(client.get("/index.html/", "").status, 404);
    assert_eq!(client.get("/empty/file", "").status, 200);
}

#[test]
fn files_outside_of_the_root_and_hidden_files_are_not_served() {
    let place = ServedDir::new();
    place.write("www/a", "a");
    place.write("www/.git/config", "secret");
    place.write("www/.well-known/b", "b");
    place.write("secret", "secret");
    std::os::unix::fs::symlink("../secret", place.path("www/link")).unwrap();
    std::os::unix::fs::symlink("a", place.path("www/inside")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(place.path("www/pipe")).status();
    assert!(status.unwrap().success());
    let running = place.serve(|config| config.dir = config.dir.join("www"));
    for (target, status) in [
        ("/inside", 200),
        ("/.well-known/b", 200),
        ("/link", 404),
        ("/pipe", 404),
        ("/.git/config", 404),
        ("/%2egit/config", 404),
        ("//.well-known//b", 200),
        ("/./inside", 200),
        ("//.git/config", 404),
        ("/./../secret", 400),
        ("/../secret", 400),
        ("/%2e%2e/secret", 400),
        ("/..%2fsecret", 400),
        ("/a%00", 400),
        ("/%2", 400),
    ] {
        assert_eq!(get(running.address, target, "").status, status, "{target}");
    }
    let running = place.serve(|config| config.content.dotfiles = true);
    assert_eq!(get(running.address, "/www/.git/config", "").text(), "secret");
}

#[test]
fn unreadable_file_is_forbidden() {
    use std::os::unix::fs::PermissionsExt;
    let place = ServedDir::new();
    let path = place.write("a", "a");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let running = place.serve(|_| {});
    if std::fs::File::open(&path).is_ok() {
        // Root may read all files.
        assert_eq!(get(running.address, "/a", "").status, 200);
    } else {
        assert_eq!(get(running.address, "/a", "").status, 403);
    }
}

#[test]
fn conditional_requests_are_answered_without_a_body() {
    let place = ServedDir::new();
    place.write_old("small", "12345");
    place.write_old("big", vec![7; 300_000]);
    let running = place.serve(|config| config.content.cache_control = Some("no-cache".to_owned()));
    let mut client = Client::new(running.address);
    for name in ["/small", "/big"] {
        let first = client.get(name, "");
        let (tag, date) =
            (first.field("etag").unwrap(), first.field("last-modified").unwrap().to_owned());
        for (fields, status) in [
            (format!("If-None-Match: {tag}\r\n"), 304),
            (format!("If-None-Match: \"x\", W/{tag}\r\n"), 304),
            (format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {date}\r\n"), 200),
            (format!("If-Modified-Since: {date}\r\n"), 304),
            ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(), 200),
            ("If-Modified-Since: yesterday\r\n".to_owned(), 200),
            (format!("If-Match: {tag}\r\n"), 200),
            ("If-Match: \"x\"\r\n".to_owned(), 412),
            ("If-Match: *\r\n".to_owned(), 200),
            (format!("If-Unmodified-Since: {date}\r\n"), 200),
            ("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(), 412),
            ("Range: bytes=900000-\r\n".to_owned(), 416),
        ] {
            let answer = client.get(name, &fields);
            assert_eq!(answer.status, status, "{name} {fields}");
            assert_eq!(answer.field("etag"), Some(tag));
            // The validity of the file does not apply to errors.
            let expected = (status < 400).then_some("no-cache");
            assert_eq!(answer.field("cache-control"), expected, "{fields}");
            if status == 304 {
                assert_eq!((answer.field("content-length"), &*answer.body), (None, &[][..]));
            }
        }
        assert_eq!(client.ask("HEAD", name, &format!("If-None-Match: {tag}\r\n")).status, 304);
    }
}

#[test]
fn each_encoded_form_has_its_own_entity_tag_and_ranges() {
    let place = ServedDir::new();
    place.write("a.css", "the plain one");
    place.write("a.css.gz", "gzip'd");
    place.write("a.css.br", "brotli");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    let mut tags = Vec::new();
    for (accept, coding, body) in [
        ("", None, "the plain one"),
        ("gzip", Some("gzip"), "gzip'd"),
        ("gzip, deflate, br, zstd", Some("br"), "brotli"),
        ("br;q=0.1, gzip;q=0.2", Some("gzip"), "gzip'd"),
        ("br;q=0", None, "the plain one"),
    ] {
        let answer = client.get("/a.css", &format!("Accept-Encoding: {accept}\r\n"));
        assert_eq!((answer.field("content-encoding"), answer.text()), (coding, body), "{accept}");
        assert_eq!(answer.field("vary"), Some("Accept-Encoding"));
        assert_eq!(answer.field("content-type"), Some("text/css; charset=utf-8"));
        tags.push((coding, answer.field("etag").unwrap().to_owned()));
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
    let tag = &tags.iter().find(|row| row.0 == Some("gzip")).unwrap().1;
    let ask = |accept: &str, field: &str| {
        get(running.address, "/a.css", &format!("Accept-Encoding: {accept}\r\n{field}\r\n"))
    };
    assert_eq!(ask("gzip", &format!("If-None-Match: {tag}")).status, 304);
    assert_eq!(ask("br", &format!("If-None-Match: {tag}")).status, 200, "the tag of another form");
    let part = ask("gzip", "Range: bytes=1-3");
    assert_eq!(
        (part.status, part.text(), part.field("content-range")),
        (206, "zip", Some("bytes 1-3/6"))
    );
    let running = place.serve(|config| config.content.precompressed = false);
    let plain = get(running.address, "/a.css", "Accept-Encoding: gzip\r\n");
    assert_eq!((plain.field("vary"), plain.text()), (None, "the plain one"));
}

#[test]
fn admin_address_serves_metrics_and_health_only() {
    let place = ServedDir::new();
    place.write("metrics", "a file of this name");
    let running = place.serve(|config| config.admin = Some("127.0.0.1:0".parse().unwrap()));
    assert_eq!(get(running.address, "/metrics", "").text(), "a file of this name");
    assert_eq!(get(running.address, "/none", "").status, 404);
    running.after(2);
    let admin = running.admin.unwrap();
    assert_eq!(get(admin, "/health", "").text(), "ok\n");
    assert_eq!(get(admin, "/ready", "").text(), "ok\n");
    let metrics = get(admin, "/metrics?x", "");
    assert!(metrics.field("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for line in [
        "haul_files_requests_total{code=\"200\"} 1",
        "haul_files_requests_total{code=\"404\"} 1",
        "haul_files_connections_total 2",
        "haul_files_cached_files 1",
        "haul_files_request_duration_seconds_bucket{le=\"67.108864\"} 2",
        "haul_files_request_duration_seconds_count 2",
        "# TYPE process_cpu_seconds_total counter",
    ] {
        assert!(metrics.text().lines().any(|found| found == line), "{line}\n{}", metrics.text());
    }
    assert_eq!(get(admin, "/a", "").status, 404);
    assert_eq!(Client::new(admin).ask("POST", "/metrics", "").status, 405);
}

#[test]
fn admin_address_lists_errors_and_slow_requests() {
    let place = ServedDir::new();
    place.write("a", "hello");
    let admin = Some("127.0.0.1:0".parse().unwrap());
    let running = place.serve(|config| config.admin.clone_from(&admin));
    let mut client = Client::new(running.address);
    assert_eq!(client.get("/a", "").status, 200);
    assert_eq!(client.get("/no%20file?query", "").status, 404);
    assert_eq!(client.ask("PUT", "/a", "").status, 405);
    let requests = |running: &Running| -> Value {
        serde_json::from_str(get(running.admin.unwrap(), "/requests.json", "").text()).unwrap()
    };
    let listed = requests(&running);
    let refused = listed["refused"].as_array().unwrap();
    let line = |one: &Value| json!([one["kind"], one["path"], one["status"], one["client"]]);
    let lines: Vec<_> = refused.iter().map(line).collect();
    let client = "127.0.0.1";
    let expected = [json!(["PUT", "/a", 405, client]), json!(["GET", "/no%20file", 404, client])];
    assert_eq!((lines.as_slice(), &listed["slow_request_ms"]), (&expected[..], &json!(1000.0)));
    assert_eq!((&listed["failed"], &listed["slow"]), (&json!([]), &json!([])));

    let running = place.serve(|config| {
        (config.admin, config.slow_request_time) = (admin, Some(Duration::ZERO));
    });
    // The first request waits for a disk thread, and the second one is answered from memory.
    let mut client = Client::new(running.address);
    assert_eq!([client.get("/a", "").status, client.get("/a", "").status], [200; 2]);
    assert_eq!(requests(&running)["slow"].as_array().unwrap().len(), 2);
}

#[test]
fn draining_server_is_alive_and_not_ready() {
    let place = ServedDir::new();
    place.write("a", noise(1, 32 << 20));
    let running = place.serve(|config| config.admin = Some("127.0.0.1:0".parse().unwrap()));
    let mut admin = Client::new(running.admin.unwrap());
    assert_eq!(admin.get("/ready", "").status, 200);
    let mut stays = Client::new(running.address);
    stays.say("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(stays.head().status, 200);
    running.handle().drain();
    let ready = admin.get("/ready", "");
    assert_eq!((ready.status, ready.text()), (503, "The server is draining\n"));
    assert_eq!(admin.get("/health", "").status, 200, "a draining server is alive");
    assert!(admin.get("/metrics", "").text().contains("haul_files_connections 1\n"));
    assert!(stays.rest().0 == noise(1, 32 << 20), "the response is completed");
    running.ended();
}

#[test]
fn admin_address_refuses_other_hosts() {
    let place = ServedDir::new();
    for is_public in [false, true] {
        let running = place.serve(|config| {
            (config.is_public, config.hosts) = (is_public, vec!["files.example".to_owned()]);
            config.admin = Some("127.0.0.1:0".parse().unwrap());
        });
        for (host, status) in [("evil.example", 421), ("files.example", 200), ("[::1]:1", 200)] {
            let mut admin = Client::new(running.admin.unwrap());
            admin.say(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(admin.answer("GET").status, status, "{host}");
        }
    }
}

#[test]
fn health_reports_a_removed_directory() {
    let place = ServedDir::new();
    place.write("www/a", "a");
    let running = place.serve(|config| {
        config.dir = config.dir.join("www");
        config.admin = Some("127.0.0.1:0".parse().unwrap());
    });
    let admin = running.admin.unwrap();
    assert_eq!(get(admin, "/health", "").status, 200);
    std::fs::remove_dir_all(place.path("www")).unwrap();
    let health = get(admin, "/health", "");
    assert_eq!((health.status, get(admin, "/ready", "").status), (503, 503));
    assert!(health.text().contains("was removed"), "{}", health.text());
}

#[test]
fn date_is_sent_once_its_second_is_over_and_never_from_the_future() {
    let place = ServedDir::new();
    for (name, age) in [("future", -3600), ("past", 3600)] {
        set_age(&place.write(name, "12345"), age);
    }
    for (name, seconds) in [("epoch", 0), ("store", 1)] {
        let file = std::fs::File::options().write(true).open(place.write(name, "12345")).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
    let running = place.serve(|_| {});
    let modified = |name: &str| {
        let answer = get(running.address, &format!("/{name}"), "");
        answer.field("last-modified").map(str::to_owned)
    };
    for name in ["future", "epoch", "store"] {
        assert_eq!(modified(name), None, "{name}");
        // A condition on a date is ignored then.
        let since = "If-Modified-Since: Sat, 31 Dec 2099 23:59:59 GMT\r\n";
        assert_eq!(get(running.address, &format!("/{name}"), since).status, 200, "{name}");
    }
    assert!(modified("past").is_some());
    place.write("new", "12345");
    eventually("the date is sent", || modified("new").is_some());
}

#[test]
fn tag_changes_with_the_bytes_even_if_the_times_are_set_back() {
    let place = ServedDir::new();
    let path = place.write("a", "AAAA");
    set_age(&path, 3600);
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let running = place.serve(|_| {});
    // HEAD leaves the file open in the cache, without its bytes.
    let first = Client::new(running.address).ask("HEAD", "/a", "");
    let (tag, date) = (first.field("etag").unwrap(), first.field("last-modified").unwrap());
    std::thread::sleep(Duration::from_millis(20));
    std::fs::write(&path, "BBBB").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    eventually("the new bytes are served", || get(running.address, "/a", "").text() == "BBBB");
    let known = get(running.address, "/a", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((known.status, known.text()), (200, "BBBB"));
    for value in [tag, date] {
        let fields = format!("Range: bytes=2-\r\nIf-Range: {value}\r\n");
        let resumed = get(running.address, "/a", &fields);
        assert_eq!((resumed.status, resumed.text()), (200, "BBBB"), "{value}");
    }
}

#[test]
fn date_does_not_resume_a_download_of_another_file_or_coding() {
    let place = ServedDir::new();
    for (name, text) in [("r1/f", "AAAA"), ("r2/f", "BBBB"), ("g", "CCCC"), ("g.gz", "DDDD")] {
        let file = std::fs::File::options().write(true).open(place.write(name, text)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(784_111_777)).unwrap();
    }
    let current = place.path("current");
    std::os::unix::fs::symlink("r1", &current).unwrap();
    let running = place.serve(|_| {});
    let resumed = |path: &str, date: &str| {
        let fields = format!("Range: bytes=2-\r\nIf-Range: {date}\r\n");
        let answer = get(running.address, path, &fields);
        (answer.status, answer.text().to_owned())
    };
    let date = |path: &str, fields: &str| {
        get(running.address, path, fields).field("last-modified").unwrap().to_owned()
    };
    let before = date("/current/f", "");
    std::fs::remove_file(&current).unwrap();
    std::os::unix::fs::symlink("r2", &current).unwrap();
    eventually("the link is followed", || get(running.address, "/current/f", "").text() == "BBBB");
    assert_eq!(resumed("/current/f", &before), (200, "BBBB".to_owned()));

    let before = date("/r2/f", "");
    std::fs::rename(place.path("r2"), place.path("r0")).unwrap();
    std::fs::rename(place.path("r1"), place.path("r2")).unwrap();
    eventually("the directory is replaced", || get(running.address, "/r2/f", "").text() == "AAAA");
    assert_eq!(resumed("/r2/f", &before), (200, "AAAA".to_owned()));

    let coded = date("/g", "Accept-Encoding: gzip\r\n");
    assert_eq!(resumed("/g", &coded), (200, "CCCC".to_owned()));
}

#[test]
fn small_body_of_any_framing_is_discarded() {
    let place = ServedDir::new();
    place.write("a", "12345");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (method, status) in [("GET", 200), ("HEAD", 200), ("OPTIONS", 204), ("POST", 405)] {
        for body in ["0\r\n\r\n", "5;x\r\nhello\r\n0\r\nt: v\r\n\r\n"] {
            client.say(format!("{method} /a HTTP/1.1\r\nHost: localhost\r\n{chunked}\r\n{body}"));
            assert_eq!(client.answer(method).status, status, "{method} {body:?}");
        }
    }
    assert_eq!(client.get("/a", "").status, 200, "the connection stays open");
}

#[test]
fn host_may_have_an_empty_port() {
    let place = ServedDir::new();
    place.write("a", "12345");
    let running = place.serve(|_| {});
    for host in ["localhost:", "127.0.0.1:", "[::1]:", "localhost:80"] {
        let mut client = Client::new(running.address);
        client.say(format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.answer("GET").status, 200, "{host}");
    }
}
