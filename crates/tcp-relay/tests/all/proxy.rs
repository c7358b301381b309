//! Who the client is, told and believed.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use haul_tcp_relay::proxy::{self, Ends, Trusted, Version};
use haul_tcp_relay::{Address, Balance, Config, Ended, Limits};

use crate::world::{Relay, config, listener};

/// Reads a header, and the rest of what comes.
fn header_and_rest(mut far: impl Read) -> (Ends, Vec<u8>) {
    let mut bytes = Vec::new();
    far.read_to_end(&mut bytes).unwrap();
    let Ok(proxy::Read::Whole { ends, header_bytes }) = proxy::read(&bytes) else {
        panic!("no header: {bytes:?}")
    };
    (ends, bytes.split_off(header_bytes))
}

#[test]
fn targets_hear_who_the_client_is() {
    for version in [Version::V1, Version::V2] {
        let (target, address) = listener();
        let relay = Relay::start(Config { proxy_out: Some(version), ..config([address]) });
        let mut near = relay.connect();
        let from = near.local_addr().unwrap();
        near.write_all(b"hello").unwrap();
        near.shutdown(std::net::Shutdown::Write).unwrap();
        let told = header_and_rest(target.accept().unwrap().0);
        assert_eq!(told, (Ends::Tcp { from, to: relay.tcp() }, b"hello".to_vec()), "{version:?}");
    }
}

#[test]
fn the_client_of_a_unix_socket_is_told_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("relay");
    let (target, address) = listener();
    let mut config = Config { proxy_out: Some(Version::V2), ..config([address]) };
    config.listen = vec![Address::Unix(path.clone())];
    let _relay = Relay::start(config);
    drop(UnixStream::connect(&path).unwrap());
    let to = path.to_str().unwrap().as_bytes().to_vec();
    let (ends, rest) = header_and_rest(target.accept().unwrap().0);
    assert_eq!((ends, rest), (Ends::Unix { from: Vec::new(), to }, Vec::new()));
}

#[test]
fn a_header_is_passed_on_in_either_version_however_it_is_cut() {
    let ends = Ends::Tcp {
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
        let bytes = [proxy::write(version_in, &ends), b"and the first words".to_vec()].concat();
        for cut in 0..bytes.len() {
            let mut near = relay.connect();
            near.set_nodelay(true).unwrap();
            near.write_all(&bytes[..cut]).unwrap();
            near.write_all(&bytes[cut..]).unwrap();
            drop(near);
            let (told, rest) = header_and_rest(target.accept().unwrap().0);
            assert_eq!((&told, rest.as_slice()), (&ends, b"and the first words".as_slice()));
        }
        let stats = relay.drain();
        assert_eq!(stats.ended(Ended::BadProxy), 0);
        // Words that came with the header count as those behind it do.
        let words_bytes = bytes.len() * b"and the first words".len();
        assert_eq!(stats.up.bytes_copied, words_bytes as u64);
    }
}

#[test]
fn without_a_good_header_nothing_reaches_a_target() {
    let (target, address) = listener();
    target.set_nonblocking(true).unwrap();
    let limits = Limits { proxy_time_max: Duration::from_millis(1), ..Limits::default() };
    let proxy_in = Some(Trusted::All);
    let relay = Relay::start(Config { proxy_in, limits, ..config([address]) });
    let cases: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\xff\0\0",
        // Late: the rest never comes.
        b"PROXY TCP4 1.2.3.4",
        b"",
    ];
    for bytes in cases {
        let mut near = relay.connect();
        // The time may be over before this is written.
        let told = near.write_all(bytes).and_then(|()| near.read_exact(&mut [0]));
        assert_eq!(told.unwrap_err().kind(), ErrorKind::ConnectionReset, "{bytes:?}");
    }
    // And one who goes before the header is whole.
    drop(relay.connect());
    assert_eq!(relay.until(|stats| stats.accepted == 6 && stats.active == 0).accepted, 6);
    let stats = relay.drain();
    assert_eq!((stats.ended(Ended::BadProxy), stats.targets[0].connected), (6, 0));
    assert!(target.accept().is_err());
}

#[test]
fn only_who_is_trusted_may_speak_for_others() {
    for (network, is_trusted) in [("127.0.0.0/8", true), ("192.0.2.0/24", false)] {
        let (target, address) = listener();
        let trusted = Trusted::Only(vec![network.parse().unwrap()]);
        let relay = Relay::start(Config { proxy_in: Some(trusted), ..config([address]) });
        let mut near = relay.connect();
        if is_trusted {
            near.write_all(b"PROXY UNKNOWN\r\nhello").unwrap();
            let mut far = target.accept().unwrap().0;
            let mut greeting = [0; 5];
            far.read_exact(&mut greeting).unwrap();
            assert_eq!(&greeting, b"hello");
        } else {
            assert_eq!(near.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
            let stats = relay.until(|stats| stats.ended(Ended::BadProxy) == 1);
            assert_eq!(stats.targets[0].connected, 0);
        }
    }
}

#[test]
fn the_client_of_the_header_decides_the_target() {
    let targets: Vec<_> = (0..4).map(|_| listener()).collect();
    let relay = Relay::start(Config {
        proxy_in: Some(Trusted::All),
        balance: Balance::Source,
        ..config(targets.iter().map(|(_, address)| address.clone()))
    });
    let send = |client: u8| {
        let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, client)), 1);
        let header = proxy::write(Version::V2, &Ends::Tcp { from, to: relay.tcp() });
        let mut near: TcpStream = relay.connect();
        near.write_all(&header).unwrap();
        near
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
    // Each client is always with the same target: all counts are multiples of its visits.
    assert!(connected.iter().all(|count| count % 3 == 0), "{connected:?} {stats:?}");
    assert!(connected.iter().filter(|count| **count > 0).count() > 1, "{connected:?}");
}
