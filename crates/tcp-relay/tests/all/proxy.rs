//! Tests of received and sent PROXY headers.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use haul_tcp_relay::proxy::{self, Endpoints, Trusted, Version};
use haul_tcp_relay::{Address, Balance, Config, EndReason, Limits};

use crate::support::{Relay, config, listener};

/// Reads to EOF; returns the addresses of the header and the bytes behind it.
fn header_and_rest(mut server: impl Read) -> (Endpoints, Vec<u8>) {
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).unwrap();
    let Ok(proxy::Parsed::Complete { endpoints, header_bytes }) = proxy::parse(&bytes) else {
        panic!("no header: {bytes:?}")
    };
    (endpoints, bytes.split_off(header_bytes))
}

#[test]
fn proxy_out_sends_the_client_address() {
    for version in [Version::V1, Version::V2] {
        let (target, address) = listener();
        let relay = Relay::start(Config { proxy_out: Some(version), ..config([address]) });
        let mut client = relay.connect();
        let from = client.local_addr().unwrap();
        client.write_all(b"hello").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let received = header_and_rest(target.accept().unwrap().0);
        assert_eq!(
            received,
            (Endpoints::Tcp { from, to: relay.tcp() }, b"hello".to_vec()),
            "{version:?}"
        );
    }
}

#[test]
fn proxy_out_supports_unix_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("relay");
    let (target, address) = listener();
    let mut config = Config { proxy_out: Some(Version::V2), ..config([address]) };
    config.listen = vec![Address::Unix(path.clone())];
    let _relay = Relay::start(config);
    drop(UnixStream::connect(&path).unwrap());
    let to = path.to_str().unwrap().as_bytes().to_vec();
    let (endpoints, rest) = header_and_rest(target.accept().unwrap().0);
    assert_eq!((endpoints, rest), (Endpoints::Unix { from: Vec::new(), to }, Vec::new()));
}

#[test]
fn split_header_is_parsed_and_forwarded_in_either_version() {
    let endpoints = Endpoints::Tcp {
        from: "192.0.2.7:40000".parse().unwrap(),
        to: "198.51.100.1:443".parse().unwrap(),
    };
    let (target, address) = listener();
    for (version_in, version_out) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        let relay = Relay::start(Config {
            proxy_in: Some(Trusted::All),
            proxy_out: Some(version_out),
            ..config([address.clone()])
        });
        let bytes = [proxy::encode(version_in, &endpoints), b"and early bytes".to_vec()].concat();
        for cut in 0..bytes.len() {
            let mut client = relay.connect();
            client.set_nodelay(true).unwrap();
            client.write_all(&bytes[..cut]).unwrap();
            client.write_all(&bytes[cut..]).unwrap();
            drop(client);
            let (received, rest) = header_and_rest(target.accept().unwrap().0);
            assert_eq!((&received, rest.as_slice()), (&endpoints, b"and early bytes".as_slice()));
        }
        let stats = relay.drain();
        assert_eq!(stats.ended(EndReason::BadProxy), 0);
        // The bytes received together with the header, but not the header, count as copied.
        let early_bytes = bytes.len() * b"and early bytes".len();
        assert_eq!(stats.up.bytes_copied, early_bytes as u64);
    }
}

#[test]
fn invalid_header_resets_the_client_before_connecting() {
    let (target, address) = listener();
    target.set_nonblocking(true).unwrap();
    let limits = Limits { head_time_max: Duration::from_millis(1), ..Limits::default() };
    let proxy_in = Some(Trusted::All);
    let relay = Relay::start(Config { proxy_in, limits, ..config([address]) });
    let cases: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\xff\0\0",
        // These headers are incomplete until the timeout.
        b"PROXY TCP4 1.2.3.4",
        b"",
    ];
    for bytes in cases {
        let mut client = relay.connect();
        // The timeout may pass before the bytes are written.
        let received = client.write_all(bytes).and_then(|()| client.read_exact(&mut [0]));
        assert_eq!(received.unwrap_err().kind(), ErrorKind::ConnectionReset, "{bytes:?}");
    }
    // This client closes before its header is complete.
    drop(relay.connect());
    assert_eq!(relay.until(|stats| stats.accepted == 6 && stats.active == 0).accepted, 6);
    let stats = relay.drain();
    assert_eq!((stats.ended(EndReason::BadProxy), stats.targets[0].connected), (6, 0));
    assert!(target.accept().is_err());
}

#[test]
fn untrusted_peer_is_reset() {
    for (network, is_trusted) in [("127.0.0.0/8", true), ("192.0.2.0/24", false)] {
        let (target, address) = listener();
        let trusted = Trusted::Only(vec![network.parse().unwrap()]);
        let relay = Relay::start(Config { proxy_in: Some(trusted), ..config([address]) });
        let mut client = relay.connect();
        if is_trusted {
            client.write_all(b"PROXY UNKNOWN\r\nhello").unwrap();
            let mut server = target.accept().unwrap().0;
            let mut greeting = [0; 5];
            server.read_exact(&mut greeting).unwrap();
            assert_eq!(&greeting, b"hello");
        } else {
            assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
            let stats = relay.until(|stats| stats.ended(EndReason::BadProxy) == 1);
            assert_eq!(stats.targets[0].connected, 0);
        }
    }
}

#[test]
fn source_balance_uses_the_address_of_the_header() {
    let targets: Vec<_> = (0..4).map(|_| listener()).collect();
    let relay = Relay::start(Config {
        proxy_in: Some(Trusted::All),
        balance: Balance::Source,
        ..config(targets.iter().map(|(_, address)| address.clone()))
    });
    let send = |client: u8| {
        let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, client)), 1);
        let header = proxy::encode(Version::V2, &Endpoints::Tcp { from, to: relay.tcp() });
        let mut client: TcpStream = relay.connect();
        client.write_all(&header).unwrap();
        client
    };
    for _ in 0..3 {
        for client in 0..16 {
            drop(send(client));
        }
    }
    let stats = relay.until(|stats| stats.accepted == 48);
    let connected: Vec<_> = relay
        .until(|stats| stats.targets.iter().map(|target| target.connected).sum::<u64>() == 48)
        .targets
        .iter()
        .map(|target| target.connected)
        .collect();
    // Each client gets the same target 3 times, so all counts are multiples of 3.
    assert!(connected.iter().all(|count| count % 3 == 0), "{connected:?} {stats:?}");
    assert!(connected.iter().filter(|count| **count > 0).count() > 1, "{connected:?}");
}
