//! A socket that is its own peer.

use std::net::{SocketAddr, TcpListener};

use haul_reactor::is_to_itself;
use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, socket};

use crate::*;

#[test]
fn who_is_connected_to_itself_is_connected_to_nobody() {
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&stream, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    let own = SocketAddr::try_from(getsockname(&stream).unwrap()).unwrap();
    assert!(!is_to_itself(&stream));
    connect(&stream, &own).unwrap();
    assert!(is_to_itself(&stream));
    let refused = Socket::new(stream).connected().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert!(!is_to_itself(&stream));
    assert!(Socket::new(stream.into()).connected().is_ok());
    let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(!is_to_itself(&near));
}
