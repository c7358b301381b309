//! Streams with and without TLS, used by the same code of a server.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::echo::{CLOSE, DOWNLOAD, RESET, Server, download};

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Starts a server, and connects a client to it.
fn connected(has_tls: bool) -> (Server, Box<dyn Stream>) {
    if has_tls {
        let server = Server::start(&[&["localhost"]]);
        let client = server.authority.connect(server.address);
        return (server, Box::new(client));
    }
    let server = Server::start_plain();
    let client = TcpStream::connect(server.address).unwrap();
    (server, Box::new(client))
}

#[test]
fn stream_without_tls_carries_plain_bytes_in_both_directions() {
    let server = Server::start_plain();
    let mut client = TcpStream::connect(server.address).unwrap();
    client.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
    let bytes = 3 << 20;
    client.write_all(&[&[DOWNLOAD][..], &u64::to_le_bytes(bytes)].concat()).unwrap();
    let mut content = vec![0; usize::try_from(bytes).unwrap()];
    client.read_exact(&mut content).unwrap();
    assert!(content == download(bytes));
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "the end is returned");
    server.end().unwrap();
}

#[test]
fn closed_stream_ends_cleanly() {
    for has_tls in [false, true] {
        let (server, mut client) = connected(has_tls);
        client.write_all(CLOSE).unwrap();
        client.flush().unwrap();
        // A client of TLS returns an error if `close_notify` is missing.
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "TLS: {has_tls}");
        server.end().unwrap();
    }
}

#[test]
fn reset_stream_is_an_error_of_the_client() {
    for has_tls in [false, true] {
        let (server, mut client) = connected(has_tls);
        client.write_all(RESET).unwrap();
        client.flush().unwrap();
        let error = client.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "TLS: {has_tls}");
        server.end().unwrap();
    }
}
