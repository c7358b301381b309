//! Tests of TLS in `haul files`, `haul serve` and `haul relay`: certificates, errors and reload.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use haul_testing::tls::{Authority, TlsClient};
use rustix::process::Signal;

use crate::helper::{Serving, TestDir};

/// Returns the certificate that a server presents.
fn presented(client: &TlsClient) -> Vec<u8> {
    client.conn.peer_certificates().unwrap()[0].to_vec()
}

fn get(client: &mut TlsClient) {
    client.write_all(b"GET /www/a HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = vec![0; 4096];
    let mut bytes = 0;
    while !answer[..bytes].ends_with(b"content") {
        let read = client.read(&mut answer[bytes..]).unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&answer[..bytes]));
        bytes += read;
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
}

fn address(serving: &Serving, before: &str) -> SocketAddr {
    let (_, rest) = serving.line.split_once(before).unwrap();
    rest.split([' ', ',', '\n']).next().unwrap().parse().unwrap()
}

/// Reads stderr up to a line with this text.
fn wait_for_stderr(serving: &mut Serving, text: &str) {
    while !serving.stderr_line().contains(text) {}
}

/// Changes the certificate of a server, which then presents it to new clients.
fn reload(place: &TestDir, authority: &Authority, serving: &mut Serving, address: SocketAddr) {
    let mut open = authority.connect(address);
    get(&mut open);
    let before = presented(&open);

    place.write("server.crt", "not a certificate");
    serving.signal(Signal::HUP);
    wait_for_stderr(serving, "cannot reload the certificates");
    let mut client = authority.connect(address);
    get(&mut client);
    assert!(presented(&client) == before, "a failed reload changes nothing");

    authority.issue(&["localhost"]).write(&place.path(""), "server");
    serving.signal(Signal::HUP);
    wait_for_stderr(serving, "certificates reloaded");
    let mut client = authority.connect(address);
    get(&mut client);
    assert!(presented(&client) != before);
    get(&mut open);

    // Without a signal, the change is noticed within seconds.
    authority.issue(&["localhost"]).write(&place.path(""), "server");
    wait_for_stderr(serving, "certificates reloaded");
    get(&mut open);
}

const OPTIONS: [&str; 4] = ["--tls-cert", "server.crt", "--tls-key", "server.key"];

fn place(authority: &Authority) -> TestDir {
    let place = TestDir::new();
    place.write("www/a", "content");
    authority.issue(&["localhost"]).write(&place.path(""), "server");
    place
}

#[test]
fn file_server_reloads_certificates_without_closing_connections() {
    let authority = Authority::new();
    let place = place(&authority);
    let arguments = [&["files", ".", "--listen", "127.0.0.1:0"][..], &OPTIONS].concat();
    let mut serving = TestDir::start(&mut place.command(&arguments));
    let address = address(&serving, "files on https://");
    reload(&place, &authority, &mut serving, address);
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().0, Some(0));
}

#[test]
fn store_server_reloads_certificates_without_closing_connections() {
    let authority = Authority::new();
    let place = place(&authority);
    place.run(&["store", "mb", "www"]).code(0);
    place.run_with(&["store", "put", "www/a"], b"content").code(0);
    let start = ["serve", "--listen", "localhost:0", "--admin", "127.0.0.1:0"];
    let mut serving = TestDir::start(&mut place.command(&[&start[..], &OPTIONS].concat()));
    assert!(serving.line.contains(", admin on http://127.0.0.1:"), "{}", serving.line);
    let address = address(&serving, "S3 on https://");
    reload(&place, &authority, &mut serving, address);
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().0, Some(0));
}

#[test]
fn health_is_asked_by_tls() {
    let authority = Authority::new();
    let place = place(&authority);
    let start = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let serving = TestDir::start(&mut place.command(&[&start[..], &OPTIONS].concat()));
    let port = address(&serving, "S3 on https://").port();
    let ask = |url: &str, more: &[&str]| {
        place.run(&[&["health", &format!("{url}:{port}/health")], more].concat())
    };
    assert_eq!(ask("https://127.0.0.1", &[]).code(0).text(), "ok\n");
    assert_eq!(ask("127.0.0.1", &[]).code(0).text(), "ok\n");
    ask("http://127.0.0.1", &[]).code(1).stderr_contains(&["is not healthy: 400"]);
    // An address of this machine that does not look like one.
    ask("https://0.0.0.0", &[]).code(1).stderr_contains(&["certificate"]);
    assert_eq!(ask("https://0.0.0.0", &["--insecure"]).code(0).text(), "ok\n");
}

#[test]
fn relay_reloads_certificates_without_closing_connections() {
    let authority = Authority::new();
    for http in [&["--http"][..], &[]] {
        let place = place(&authority);
        let arguments = ["files", ".", "--listen", "127.0.0.1:0"];
        let files = TestDir::start(&mut place.command(&arguments));
        let to = address(&files, "files on http://").to_string();
        let arguments = [&["relay", "--listen", "127.0.0.1:0", "--to", &to], http, &OPTIONS];
        let mut serving = TestDir::start(&mut place.command(&arguments.concat()));
        let address = address(&serving, "haul is ready: ");
        reload(&place, &authority, &mut serving, address);
        drop(files);
    }
}

#[test]
fn unusable_certificates_are_refused_with_the_reason() {
    let authority = Authority::new();
    let place = place(&authority);
    authority.issue(&["localhost"]).write(&place.path(""), "other");
    for (options, code, expected) in [
        (["--tls-cert", "server.crt", "--tls-key", "other.key"], 3, "does not match"),
        (["--tls-cert", "missing", "--tls-key", "other.key"], 3, "cannot read the certificate"),
        (["--tls-cert", "server.key", "--tls-key", "server.key"], 3, "contains no certificate"),
        (["--tls-cert", "server.crt", "--listen", "127.0.0.1:0"], 2, "--tls-key"),
    ] {
        let finished = place.run(&[&["files", "www"][..], &options].concat());
        let stderr = String::from_utf8_lossy(&finished.0.stderr).into_owned();
        assert_eq!(finished.0.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn websites_use_tls_except_at_loopback_addresses() {
    let authority = Authority::new();
    let place = place(&authority);
    for (website, scheme) in [("0.0.0.0:0", "https"), ("127.0.0.1:0", "http")] {
        let listen = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let arguments = [&listen[..], &["--website", website], &OPTIONS].concat();
        let mut command = place.command(&arguments);
        command.env("HAUL_ACCESS_KEY", "key").env("HAUL_SECRET_KEY", "a-secret-of-tests");
        let serving = TestDir::start(&mut command);
        let mut address = address(&serving, &format!("websites on {scheme}://"));
        address.set_ip([127, 0, 0, 1].into());
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut answer = [0; 12];
        match scheme {
            "https" => {
                let mut client = authority.connect(address);
                client.write_all(request).unwrap();
                client.read_exact(&mut answer).unwrap();
            }
            _ => {
                let mut client = TcpStream::connect(address).unwrap();
                client.write_all(request).unwrap();
                client.read_exact(&mut answer).unwrap();
            }
        }
        assert_eq!(&answer, b"HTTP/1.1 404", "there is no website");
    }
}
