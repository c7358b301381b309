//! Tests of the metrics and the health page of the admin address.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use haul_tcp_relay::{CheckOptions, Config, HttpOptions};
use haul_testing::eventually;
use haul_testing::http::Peer;

use crate::http::{http_with, ok, responding_target};
use crate::support::{Relay, any_address, config, listener, refusing_address};

fn get(relay: &Relay, path: &str) -> String {
    get_from_host(relay, path, "localhost")
}

fn get_from_host(relay: &Relay, path: &str, host: &str) -> String {
    let mut client = TcpStream::connect(relay.admin()).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn metrics_count_traffic_and_readiness_follows_targets() {
    let (target, address) = listener();
    let admin = || Some("127.0.0.1:0".parse().unwrap());
    let checks = CheckOptions { eject_after: 1, ..CheckOptions::default() };
    let relay = Relay::start(Config { admin: admin(), checks, ..config([address]) });
    let mut client = relay.connect();
    client.write_all(b"hello").unwrap();
    let mut server = target.accept().unwrap().0;
    server.read_exact(&mut [0; 5]).unwrap();
    let metrics = get(&relay, "/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    for line in
        ["haul_relay_bytes_total{direction=\"up\",method=\"copy\"} 5", "haul_relay_connections 1"]
    {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
    assert!(metrics.contains("\nhaul_build_info{version=\""), "{metrics}");
    for page in ["/health", "/ready"] {
        assert!(get(&relay, page).ends_with("\r\n\r\nok\n"), "{page}");
    }

    // A draining relay is alive, but not ready.
    let (other, address) = listener();
    let ending = Relay::start(Config { admin: admin(), ..config([address]) });
    let stays = (ending.connect(), other.accept().unwrap());
    ending.handle.drain();
    assert!(get(&ending, "/ready").starts_with("HTTP/1.1 503 "));
    assert!(get(&ending, "/health").starts_with("HTTP/1.1 200 "));
    drop((stays, ending));

    drop((client, server, target));
    // The first failed connection ejects the target.
    drop(relay.connect());
    relay.until(|stats| stats.targets[0].failed == 1);
    assert!(get(&relay, "/ready").starts_with("HTTP/1.1 503 "));
    assert!(get(&relay, "/health").starts_with("HTTP/1.1 200 "));
}

#[test]
fn admin_address_lists_http_errors_and_slow_requests() {
    let not_found = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let (target, _) = responding_target(|request| match request.line.starts_with("GET /none?") {
        true => not_found.to_vec(),
        false => ok("hello"),
    });
    let name = target.to_string();
    let with_admin = |config: &mut Config| config.admin = Some("127.0.0.1:0".parse().unwrap());
    let relay = http_with([target.clone()], HttpOptions::default(), with_admin);
    let mut client = Peer::new(relay.connect());
    for (path, status) in [("/a", 200), ("/none?query", 404)] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(client.response().unwrap().status, status);
    }
    let line = "\"client\":\"127.0.0.1\",\"duration_ms\":";
    eventually("the request is listed", || get(&relay, "/requests.json").contains(line));
    let listed = get(&relay, "/requests.json");
    let upstream = format!("\"upstream\":\"{name}\"");
    let path = "\"path\":\"/none\",\"status\":404";
    for part in ["\"failed\":[],", "\"slow\":[],", path, &upstream] {
        assert!(listed.contains(part), "{part} is not in\n{listed}");
    }
    assert_eq!(listed.matches("\"path\"").count(), 1, "{listed}");
    let missing = get(&relay, "/none");
    assert!(missing.contains(" /history.json, /requests.json, /metrics, "), "{missing}");
    drop(relay);

    let options = HttpOptions { slow_request_time: Some(Duration::ZERO), ..HttpOptions::default() };
    let relay = http_with([refusing_address()], options, with_admin);
    let mut client = Peer::new(relay.connect());
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().unwrap().status, 503);
    eventually("the request is listed as failed and slow", || {
        get(&relay, "/requests.json").matches("\"path\":\"/a\",\"status\":503").count() == 2
    });

    // A relay that does not parse HTTP knows no requests.
    let mut config = config([target]);
    with_admin(&mut config);
    let relay = Relay::start(config);
    let missing = get(&relay, "/requests.json");
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
    let known = "only /, /history.json, /metrics, /health and /ready\n";
    assert!(missing.ends_with(known), "{missing}");
}

#[test]
fn loopback_admin_address_refuses_other_hosts() {
    let with_admin = |address: &str| {
        let mut config = Config { is_plain_http_allowed: true, ..config([any_address()]) };
        config.admin = Some(address.parse().unwrap());
        Relay::start(config)
    };
    let relay = with_admin("127.0.0.1:0");
    for (host, status) in
        [("evil.example", 421), ("localhost:1", 200), ("127.0.0.1:1", 200), ("[::1]", 200)]
    {
        for path in ["/metrics", "/"] {
            let response = get_from_host(&relay, path, host);
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {response}");
        }
    }
    // A public address has names of its own.
    let relay = with_admin("0.0.0.0:0");
    assert!(get_from_host(&relay, "/metrics", "relay.example").starts_with("HTTP/1.1 200 "));
}

#[test]
fn invalid_configuration_is_refused_with_a_reason() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config([any_address()]);
        change(&mut config);
        haul_tcp_relay::Server::bind(config).map(drop).unwrap_err().to_string()
    };
    assert_eq!(refused(|config| config.listen.clear()), "no address to listen on is given");
    assert_eq!(refused(|config| config.targets.clear()), "no target is given");
    for change in
        [(|config| config.pool.pipe_bytes = (64 << 10) - 1) as fn(&mut Config), |config| {
            config.pool.pipe_bytes = (1 << 30) + 1
        }]
    {
        assert_eq!(refused(change), "the pipe size must be 64 KiB to 1 GiB");
    }
    assert_eq!(refused(|config| config.threads = 0), "the number of threads must be 1 to 1,024");
    assert_eq!(
        refused(|config| config.listen = vec!["192.0.2.1:1".parse().unwrap()]),
        "cannot listen on 192.0.2.1:1"
    );
}
