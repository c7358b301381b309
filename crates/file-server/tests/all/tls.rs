//! Files over TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use haul_file_server::{Acceptor, Cold};
use haul_testing::http::{Message, Peer};
use haul_testing::tls::{Authority, TlsClient};
use haul_tls::{Alpn, CertificateFiles, Identities};

use crate::helper::{Place, Running, noise};

/// A server with TLS, and the authority of its certificate.
struct Secured {
    running: Running,
    authority: Authority,
}

impl Secured {
    fn start(place: &Place, change: impl FnOnce(&mut haul_file_server::Config)) -> Self {
        let authority = Authority::new();
        let [chain, key] = authority.issue(&["localhost"]).write(&place.path(""), ".server");
        let identities = Identities::load(vec![CertificateFiles { chain, key }]).unwrap();
        let acceptor = Acceptor::new(identities, Alpn::Http1).unwrap();
        let running = place.serve(|config| {
            config.tls = Some(acceptor);
            change(config);
        });
        Self { running, authority }
    }

    fn connect(&self) -> Peer<TlsClient> {
        Peer::over(self.authority.connect(self.running.address))
    }
}

fn get(client: &mut Peer<TlsClient>, target: &str, fields: &str) -> Message {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    client.response().unwrap()
}

#[test]
fn files_of_every_tier_are_sent_over_one_connection() {
    let place = Place::new();
    let (small, medium, large) = (noise(1, 4 << 10), noise(2, 300 << 10), noise(3, 50 << 20));
    place.write("small", &small);
    place.write("resident", &medium);
    place.write_cold("cold", &medium);
    place.write_cold("direct", &large);
    place.write("large", &large);
    for cold in [Cold::Copy, Cold::Splice] {
        let secured = Secured::start(&place, |config| config.tiers.cold = cold);
        let mut client = secured.connect();
        let all = [("small", &small), ("resident", &medium), ("cold", &medium), ("direct", &large)];
        for (name, content) in all.into_iter().chain([("large", &large), ("small", &small)]) {
            let response = get(&mut client, &format!("/{name}"), "");
            assert_eq!(response.status, 200);
            assert!(response.body == *content, "{name}, {cold:?}");
        }
        let response = get(&mut client, "/direct", "Range: bytes=1000000-1999999\r\n");
        assert_eq!(response.status, 206);
        assert!(response.body == large[1_000_000..2_000_000]);
        let parts = get(&mut client, "/small", "Range: bytes=0-9, 100-109\r\n");
        assert_eq!(parts.status, 206);
        assert_eq!(get(&mut client, "/missing", "").status, 404);
    }
}

#[test]
fn slow_client_receives_every_byte() {
    let place = Place::new();
    let content = noise(4, 20 << 20);
    place.write("a", &content);
    let secured = Secured::start(&place, |_| {});
    let mut client = secured.connect();
    client.send("GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    std::thread::sleep(Duration::from_millis(300));
    assert!(client.response().unwrap().body == content);
    let mut rest = Vec::new();
    // An error unless the server has sent close_notify.
    client.reader().read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    secured.running.wait_until("the connection is closed", |stats| stats.connections_open == 0);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let place = Place::new();
    for index in 0..100 {
        place.write(index.to_string(), format!("{index}").repeat(500));
    }
    let secured = Secured::start(&place, |_| {});
    let mut client = secured.connect();
    let request = |index| format!("GET /{index} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.send((0..100).map(request).collect::<String>());
    for index in 0..100 {
        assert_eq!(client.response().unwrap().text(), format!("{index}").repeat(500));
    }
}

#[test]
fn incomplete_handshake_ends_at_the_time_limit_of_a_head() {
    let place = Place::new();
    let soon = Duration::from_millis(200);
    let secured = Secured::start(&place, |config| config.limits.head_time = soon);
    let mut client = TcpStream::connect(secured.running.address).unwrap();
    // The beginning of a record with a ClientHello.
    client.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    secured.running.wait_until("the connection is closed", |stats| stats.connections_open == 0);
}

#[test]
fn request_without_tls_is_answered_by_an_alert() {
    let place = Place::new();
    let secured = Secured::start(&place, |_| {});
    let mut client = TcpStream::connect(secured.running.address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.first(), Some(&0x15), "{answer:?}");
}

#[test]
fn file_that_is_truncated_ends_without_close_notify() {
    let place = Place::new();
    let path = place.write("a", noise(5, 64 << 20));
    let secured = Secured::start(&place, |_| {});
    let mut client = secured.connect();
    client.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.head().unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_len(1 << 20).unwrap();
    let error = client.reader().read_to_end(&mut Vec::new()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset));
}
