//! Tests the start and the shutdown of `haul serve`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use haul_testing::eventually;
use rustix::process::Signal;

use crate::helper::{TestDir, noise};

#[test]
fn first_line_has_both_addresses() {
    let place = TestDir::new();
    let serving = place.serve();
    assert!(serving.line.starts_with("haul is ready: S3 on http://127.0.0.1:"), "{}", serving.line);
    assert_ne!(serving.address("S3"), serving.address("admin"));
    assert_eq!(serving.request("PUT", "/b-1", b"").0, 200);
    assert_eq!(serving.request("PUT", "/b-1/k", b"hello").0, 200);
    let (status, answer) = serving.request("GET", "/b-1/k", b"");
    assert_eq!(status, 200);
    assert!(answer.ends_with(b"\r\n\r\nhello"));
}

#[test]
fn websites_have_an_address_of_their_own() {
    let place = TestDir::new();
    let listen = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let website = ["--bucket", "site", "--website", "127.0.0.1:0", "--website-domain", "a.test"];
    let serving = TestDir::start(&mut place.command(&[&listen[..], &website].concat()));
    let index = b"<WebsiteConfiguration><IndexDocument><Suffix>i.html</Suffix></IndexDocument>\
        </WebsiteConfiguration>";
    assert_eq!(serving.request("PUT", "/site?website", index).0, 200);
    assert_eq!(serving.request("PUT", "/site/i.html", b"hello").0, 200);
    let mut client = TcpStream::connect(serving.address("websites")).unwrap();
    client
        .write_all(b"GET /?acl HTTP/1.1\r\nHost: site.a.test\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhello"), "{answer}");
}

#[test]
fn both_signals_stop_it_gracefully() {
    let place = TestDir::new();
    for (signal, key) in [(Signal::TERM, "k1"), (Signal::INT, "k2")] {
        let serving = place.serve();
        serving.request("PUT", "/b-1", b"");
        assert_eq!(serving.request("PUT", &format!("/b-1/{key}"), b"x").0, 200);
        serving.signal(signal);
        let (code, stdout, stderr) = serving.wait();
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(stdout, "", "one line only");
        let listed = place.run(&["store", "ls", "b-1"]).code(0);
        assert!(listed.lines().contains(&key));
        assert_eq!(listed.stderr(), "", "clean shutdown");
    }
}

#[test]
fn requests_in_flight_are_finished() {
    let place = TestDir::new();
    let mut serving = place.serve();
    serving.request("PUT", "/b-1", b"");
    let mut put = serving.begin_put("/b-1/k", 5);
    serving.signal(Signal::TERM);
    assert!(serving.stderr_line().contains("finishing requests in flight"));
    put.write_all(b"hello").unwrap();
    let mut answer = String::new();
    put.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(serving.wait().0, Some(0));
    assert_eq!(place.run(&["store", "get", "b-1/k"]).code(0).text(), "hello");
}

#[test]
fn second_signal_exits_immediately() {
    let place = TestDir::new();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut serving = place.serve();
        serving.request("PUT", "/b-1", b"");
        let _unfinished = serving.begin_put("/b-1/k", 5);
        serving.signal(Signal::TERM);
        while !serving.stderr_line().contains("finishing requests in flight") {}
        serving.signal(signal);
        assert_eq!(serving.wait().0, Some(code));
    }
    place.run(&["store", "ls", "b-1"]).code(0).stderr_contains(&["unclean shutdown"]);
}

#[test]
fn acknowledged_writes_survive_a_kill() {
    let place = TestDir::new();
    let serving = place.serve();
    serving.request("PUT", "/b-1", b"");
    for number in 0..50 {
        let content = noise(number, 3000);
        assert_eq!(serving.request("PUT", &format!("/b-1/{number}"), &content).0, 200);
    }
    let big = noise(99, (4 << 20) + 1);
    assert_eq!(serving.request("PUT", "/b-1/big", &big).0, 200);
    serving.signal(Signal::KILL);
    assert_eq!(serving.wait().0, None);

    let listed = place.run(&["store", "ls", "b-1"]).code(0).stderr_contains(&["unclean shutdown"]);
    assert_eq!(listed.lines().len(), 51);
    place.run(&["store", "verify"]).code(0);
    assert!(place.run(&["store", "get", "b-1/big"]).code(0).stdout() == big);
    let got = place.run(&["store", "get", "b-1/7"]).code(0);
    assert_eq!(got.stdout(), noise(7, 3000));
    assert_eq!(got.stderr(), "", "shut down cleanly by the listing");
}

#[test]
fn imported_object_is_served_with_its_mtime() {
    let place = TestDir::new();
    place.write("tree/page.html", "<p>");
    place.run(&["store", "import", "b-1", "tree"]).code(0);
    let serving = place.serve();
    let (status, answer) = serving.request("GET", "/b-1/page.html", b"");
    assert_eq!(status, 200);
    let head = String::from_utf8_lossy(&answer).to_lowercase();
    assert!(head.contains("x-amz-meta-mtime: ") && head.contains("text/html"), "{head}");
}

#[test]
fn refused_start_leaves_no_store() {
    let place = TestDir::new();
    place.write("file", "");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for options in [
        ["--access-log", "file", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
        ["--audit-log", "file", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
        ["--drain-time", "1s", "--listen", &taken, "--admin", "127.0.0.1:0"],
        ["--drain-time", "1s", "--listen", "127.0.0.1:0", "--admin", &taken],
        ["--drain-time", "1s", "--listen", "0.0.0.0:0", "--admin", "127.0.0.1:0"],
    ] {
        place.run(&[&["serve"][..], &options].concat()).code(3);
        assert!(!place.path("haul-data").exists(), "{options:?}");
    }
}

#[test]
fn domain_of_websites_without_their_address_is_refused() {
    let place = TestDir::new();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let domain = ["--website-domain", "sites.example.com"];
    let refused = place.run(&[&arguments[..], &domain].concat()).code(2);
    refused.stderr_contains(&["--website-domain has no effect without --website"]);
    assert!(!place.path("haul-data").exists());
}

#[test]
fn logs_on_stdout_are_complete_after_sigterm() {
    let place = TestDir::new();
    let options = ["--access-log", "-", "--log-format", "json", "--audit-log", "-"];
    let start = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let serving = TestDir::start(&mut place.command(&[&start[..], &options].concat()));
    serving.request("PUT", "/b-1", b"");
    serving.request("PUT", "/b-1/k", b"hello");
    serving.request("GET", "/b-1/k", b"");
    serving.signal(Signal::TERM);
    let (code, stdout, stderr) = serving.wait();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout.lines().count(), 5, "{stdout}");
    assert!(stdout.contains("\"target\":\"/b-1/k\""), "{stdout}");
    assert!(stdout.contains("\"operation\":\"CreateBucket\",\"bucket\":\"b-1\""), "{stdout}");
}

/// The option that is given with `-` has nothing to reload either.
#[test]
fn sighup_ends_no_server() {
    let place = TestDir::new();
    let (listen, log) = (["--listen", "localhost:0"], ["--access-log", "-"]);
    for arguments in [
        &[&["serve", "--admin", "127.0.0.1:0"][..], &listen].concat()[..],
        &[&["serve", "--admin", "127.0.0.1:0"][..], &listen, &log].concat(),
        &[&["files", "."][..], &listen].concat(),
        &[&["files", "."][..], &listen, &log].concat(),
        &[&["relay", "--to", "127.0.0.1:9"][..], &listen].concat(),
    ] {
        let serving = TestDir::start(&mut place.command(arguments));
        serving.signal(Signal::HUP);
        serving.signal(Signal::TERM);
        let (code, _, stderr) = serving.wait();
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    }
}

#[test]
fn sighup_begins_new_log_files() {
    let place = TestDir::new();
    let options = ["--access-log", "access", "--audit-log", "audit"];
    let start = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let serving = TestDir::start(&mut place.command(&[&start[..], &options].concat()));
    serving.request("PUT", "/b-1", b"");
    serving.signal(Signal::HUP);
    for log in ["access", "audit"] {
        eventually("the file is closed", || {
            let names = std::fs::read_dir(place.path(log)).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.any(|name| name.ends_with(".log"))
        });
    }
    serving.request("PUT", "/b-1/k", b"hello");
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().0, Some(0));
    for log in ["access", "audit"] {
        let text = std::fs::read_to_string(place.path(log).join("current")).unwrap();
        assert!(text.contains("/k") || text.contains("\"k\""), "{text}");
    }
}

#[test]
fn buckets_of_the_command_line_are_created_once() {
    let place = TestDir::new();
    for _ in 0..2 {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let buckets = ["--bucket", "photos", "--bucket", "notes"];
        let serving = TestDir::start(&mut place.command(&[&arguments[..], &buckets].concat()));
        assert_eq!(serving.request("PUT", "/photos/k", b"x").0, 200);
        assert_eq!(serving.request("GET", "/notes", b"").0, 200);
        serving.signal(Signal::TERM);
        assert_eq!(serving.wait().0, Some(0));
    }
    let refused = place.run(&["serve", "--listen", "127.0.0.1:0", "--bucket", "No"]).code(3);
    refused.stderr_contains(&["cannot create the bucket \"No\""]);
}

#[test]
fn health_of_a_server_is_an_exit_code() {
    let place = TestDir::new();
    let serving = place.serve();
    let [s3, admin] = ["S3", "admin"].map(|name| serving.address(name).to_owned());
    for url in [format!("http://{admin}"), format!("{admin}/ready"), format!("http://{s3}/health")]
    {
        assert_eq!(place.run(&["health", &url]).code(0).text(), "ok\n", "{url}");
    }
    let json = place.run(&["health", "--json", &admin]).code(0);
    let json: serde_json::Value = serde_json::from_str(json.text()).unwrap();
    assert_eq!(json, serde_json::json!({ "healthy": true, "status": 200, "lines": ["ok"] }));
    let wrong = place.run(&["health", &format!("{admin}/none")]).code(1);
    wrong.stderr_contains(&["is not healthy: 404"]);
    serving.signal(Signal::TERM);
    serving.wait();
    place.run(&["health", &admin]).code(1).stderr_contains(&["is not healthy", "refused"]);
    // A server that accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    place.run(&["health", "--timeout", "100ms", &address]).code(1);
    place.run(&["health", "ftp://localhost"]).code(2).stderr_contains(&["use http://"]);
}
