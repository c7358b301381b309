//! Test that a TCP socket connected to itself is detected.

use std::net::{SocketAddr, TcpListener};

use haul_reactor::is_self_connected;
use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, socket};

use crate::*;

#[test]
fn self_connected_socket_counts_as_refused() {
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&stream, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    let own = SocketAddr::try_from(getsockname(&stream).unwrap()).unwrap();
    assert!(!is_self_connected(&stream));
    connect(&stream, &own).unwrap();
    assert!(is_self_connected(&stream));
    let refused = Socket::new(stream).connect_result().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert!(!is_self_connected(&stream));
    assert!(Socket::new(stream.into()).connect_result().is_ok());
    let (stream, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(!is_self_connected(&stream));
}
