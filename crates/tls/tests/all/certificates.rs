//! Selection, errors and reload of certificates.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, SystemTime};

use haul_testing::eventually;
use haul_testing::tls::{Authority, Issued};
use haul_tls::{CertificateFiles, Error, Identities};
use rustls::StreamOwned;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::echo::Server;

/// Returns the certificate that the server presents to a client that requests `name`.
fn presented(server: &Server, name: &str) -> CertificateDer<'static> {
    let socket = TcpStream::connect(server.address).unwrap();
    let mut client = StreamOwned::new(server.authority.client(name), socket);
    client.write_all(b"hello").unwrap();
    client.read_exact(&mut [0; 5]).unwrap();
    client.conn.peer_certificates().unwrap()[0].clone().into_owned()
}

fn certificate(path: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path).unwrap()
}

fn files(dir: &Path, name: &str) -> CertificateFiles {
    let path = |extension: &str| dir.join(format!("{name}.{extension}"));
    CertificateFiles { chain: path("crt"), key: path("key") }
}

#[test]
fn certificate_is_selected_by_server_name() {
    let server = Server::start(&[
        &["localhost", "127.0.0.1"],
        &["a.example.com", "Upper.example.com"],
        &["*.example.com"],
    ]);
    for (name, expected) in [
        ("localhost", "0"),
        ("127.0.0.1", "0"),
        ("a.example.com", "1"),
        ("upper.example.com", "1"),
        ("b.example.com", "2"),
    ] {
        let expected = certificate(&files(server.dir.path(), expected).chain);
        assert!(presented(&server, name) == expected, "{name}");
    }
    // The default certificate, which the client does not accept for this name.
    let socket = TcpStream::connect(server.address).unwrap();
    let session = server.authority.client("a.b.example.com");
    let error = StreamOwned::new(session, socket).read(&mut [0]).unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[test]
fn reload_changes_new_connections_only() {
    let server = Server::start(&[&["localhost"]]);
    let before = presented(&server, "localhost");
    let mut open = server.authority.connect(server.address);
    open.write_all(b"1").unwrap();
    let issued = server.authority.issue(&["localhost"]);
    issued.write(server.dir.path(), "0");
    assert!(presented(&server, "localhost") == before);
    server.identities.reload().unwrap();
    assert!(presented(&server, "localhost") == certificate(&files(server.dir.path(), "0").chain));
    open.write_all(b"2").unwrap();
    let mut answer = [0; 2];
    open.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"12");
}

#[test]
fn changed_files_are_noticed_and_a_failed_reload_changes_nothing() {
    let server = Server::start(&[&["localhost"]]);
    let before = presented(&server, "localhost");
    assert!(!server.identities.reload_if_changed().unwrap(), "nothing changed");
    let issued = server.authority.issue(&["localhost"]);
    let files = files(server.dir.path(), "0");
    std::fs::write(&files.chain, &issued.certificate).unwrap();
    let mut error = None;
    eventually("the change is noticed", || {
        error = server.identities.reload_if_changed().err();
        error.is_some()
    });
    assert!(matches!(error, Some(Error::Mismatch { .. })), "{error:?}");
    assert!(presented(&server, "localhost") == before);
    assert!(!server.identities.reload_if_changed().unwrap(), "an error is returned once");

    std::fs::write(&files.key, &issued.key).unwrap();
    eventually("the second change is noticed", || server.identities.reload_if_changed().unwrap());
    assert!(presented(&server, "localhost") == certificate(&files.chain));
}

#[test]
fn errors_name_the_file_and_the_remedy() {
    let (authority, dir) = (Authority::new(), tempfile::tempdir().unwrap());
    let good = authority.issue(&["localhost"]);
    let other = authority.issue(&["localhost"]);
    let with = |certificate: &str, key: &str| {
        let issued = Issued { certificate: certificate.to_owned(), key: key.to_owned() };
        issued.write(dir.path(), "x");
        Identities::load(vec![files(dir.path(), "x")]).err().map(|error| error.to_string())
    };
    assert_eq!(with(&good.certificate, &good.key), None);
    let both = [&*good.key, &*good.certificate].concat();
    assert_eq!(with(&both, &both), None, "one file for both");
    for (certificate, key, expected) in [
        (&*good.certificate, &*other.key, "does not match the first certificate of"),
        (&good.key, &good.key, "x.crt contains no certificate"),
        ("", &good.key, "x.crt contains no certificate"),
        (&good.certificate, &good.certificate, "x.key contains no private key"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n", &good.key, "cannot parse"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            &good.key,
            "cannot parse the first certificate of",
        ),
        (
            &good.certificate,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "cannot use the private key of",
        ),
    ] {
        let error = with(certificate, key).unwrap();
        assert!(error.contains(expected) && error.contains("x."), "{error}");
    }
    let missing = Identities::load(vec![files(dir.path(), "missing")]).unwrap_err();
    assert!(matches!(missing, Error::Read { .. }), "{missing}");
    assert!(matches!(Identities::load(Vec::new()), Err(Error::NoIdentity)));
}

#[test]
fn expired_certificate_is_only_a_warning() {
    let (authority, dir) = (Authority::new(), tempfile::tempdir().unwrap());
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();
    for (end, expected) in [
        (now - 50 * hour, "expired 50 hours ago"),
        (now + 5 * hour + hour / 2, "expires in 5 hours"),
        (now + 50 * hour, ""),
    ] {
        authority.issue_until(&["localhost"], end).write(dir.path(), "x");
        let identities = Identities::load(vec![files(dir.path(), "x")]).unwrap();
        let warnings = identities.warnings().join("\n");
        assert!(warnings.contains(expected), "{warnings}");
        assert_eq!(warnings.is_empty(), expected.is_empty(), "{warnings}");
    }
}
