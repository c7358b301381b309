//! Handshakes, transfers and ends of sessions.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use haul_testing::tls::TlsClient;
use haul_testing::until_full;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind, StreamOwned};

use crate::echo::{DOWNLOAD, Server, download};

/// A socket that sends one byte per call.
struct OneByteWriter(TcpStream);

impl Read for OneByteWriter {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for OneByteWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(1)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn echo(client: &mut (impl Read + Write), bytes: &[u8]) {
    client.write_all(bytes).unwrap();
    let mut answer = vec![0; bytes.len()];
    client.read_exact(&mut answer).unwrap();
    assert!(answer == bytes, "{} bytes differ", bytes.len());
}

fn request_download(client: &mut TlsClient, bytes: u64) {
    client.write_all(&[&[DOWNLOAD][..], &bytes.to_le_bytes()].concat()).unwrap();
    client.flush().unwrap();
}

fn close_cleanly(client: &mut TlsClient) {
    client.conn.send_close_notify();
    client.flush().unwrap();
    client.sock.shutdown(Shutdown::Write).unwrap();
}

#[test]
fn handshake_and_data_may_arrive_byte_by_byte() {
    let server = Server::start(&[&["localhost"]]);
    let socket = TcpStream::connect(server.address).unwrap();
    socket.set_nodelay(true).unwrap();
    let session = server.authority.client("localhost");
    let mut client = StreamOwned::new(session, OneByteWriter(socket));
    echo(&mut client, b"hello");
    echo(&mut client, &[7; 3000]);
}

#[test]
fn large_transfers_are_complete() {
    let server = Server::start(&[&["localhost"]]);
    let mut client = server.authority.connect(server.address);
    for bytes in [1, 16 << 10, (16 << 10) + 1, 100_000, 1_000_000] {
        // No read of the server begins with the byte of a download.
        let content: Vec<_> = download(bytes).iter().map(|byte| byte + 1).collect();
        echo(&mut client, &content);
    }
}

#[test]
fn full_send_buffer_delays_a_download_without_loss() {
    let server = Server::start(&[&["localhost"]]);
    let mut client = server.authority.connect(server.address);
    let bytes = 30 << 20;
    request_download(&mut client, bytes);
    until_full(&client.sock);
    close_cleanly(&mut client);
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert!(received == download(bytes), "{} bytes", received.len());
    server.end().unwrap();
}

#[test]
fn half_close_is_forwarded_after_the_last_byte() {
    let server = Server::start(&[&["localhost"]]);
    let mut client = server.authority.connect(server.address);
    client.write_all(b"last words").unwrap();
    close_cleanly(&mut client);
    let mut answer = String::new();
    // The client of rustls returns an error unless the server sends close_notify.
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "last words");
    server.end().unwrap();
}

#[test]
fn end_without_close_notify_is_an_error() {
    let server = Server::start(&[&["localhost"]]);
    let mut client = server.authority.connect(server.address);
    echo(&mut client, b"begin");
    client.sock.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.end().unwrap_err().kind(), ErrorKind::UnexpectedEof);

    let client = TcpStream::connect(server.address).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.end().unwrap_err().kind(), ErrorKind::UnexpectedEof, "no handshake");
}

#[test]
fn client_without_tls_receives_an_alert() {
    let server = Server::start(&[&["localhost"]]);
    let mut client = TcpStream::connect(server.address).unwrap();
    client.write_all(b"ehlo example.org\r\n").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.first(), Some(&0x15), "an alert record: {answer:?}");
    assert_eq!(server.end().unwrap_err().kind(), ErrorKind::InvalidData);
}

#[test]
fn altered_record_ends_the_session() {
    let server = Server::start(&[&["localhost"]]);
    let mut client = server.authority.connect(server.address);
    echo(&mut client, b"begin");
    client.sock.write_all(&[&[0x17, 3, 3, 0, 32][..], &[9; 32]].concat()).unwrap();
    assert_eq!(server.end().unwrap_err().kind(), ErrorKind::InvalidData);
}

#[test]
fn both_versions_resume_sessions_by_tickets() {
    let server = Server::start(&[&["localhost"]]);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut config = server.authority.client_config_with(&[version]);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let name = ServerName::try_from("localhost").unwrap();
            let session = ClientConnection::new(Arc::clone(&config), name).unwrap();
            let socket = TcpStream::connect(server.address).unwrap();
            let mut client = StreamOwned::new(session, socket);
            echo(&mut client, b"hello");
            assert_eq!(client.conn.protocol_version(), Some(version.version));
            assert_eq!(client.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
            kinds.extend(client.conn.handshake_kind());
        }
        assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed], "{version:?}");
    }
}

#[test]
fn client_of_another_protocol_is_refused() {
    let server = Server::start(&[&["localhost"]]);
    let mut config = server.authority.client_config();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut client = StreamOwned::new(session, TcpStream::connect(server.address).unwrap());
    let error = client.read(&mut [0]).unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
}

#[test]
fn request_without_tls_is_answered_in_words() {
    let server = Server::start(&[&["localhost"]]);
    for head in ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "PUT /b/k HTTP/1.1\r\n"] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.contains("https://"), "{body}");
        assert!(server.end().is_err());
    }
    // Other bytes get the alert of TLS.
    for bytes in [&b"GE"[..], b"SSH-2.0-x\r\n", b"get / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut response = Vec::new();
        // The server may reset the connection.
        stream.read_to_end(&mut response).unwrap_or_default();
        assert!(!response.starts_with(b"HTTP"), "{response:?}");
        assert!(server.end().is_err());
    }
}
