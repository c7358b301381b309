//! Reads the addresses of both ends of a connection from its socket.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname};

use crate::proxy::Endpoints;

/// Returns the addresses of both ends of an accepted connection, as far as the kernel knows them.
pub(crate) fn endpoints_of(socket: impl AsFd) -> Endpoints {
    let (peer, own) = (getpeername(&socket).ok().flatten(), getsockname(&socket).ok());
    let tcp = |address: &Option<SocketAddrAny>| SocketAddr::try_from(address.clone()?).ok();
    match (tcp(&peer), tcp(&own)) {
        (Some(from), Some(to)) => Endpoints::Tcp { from, to },
        // The client end of a unix socket is usually unnamed.
        _ => match unix_name(own) {
            Some(to) => Endpoints::Unix { from: unix_name(peer).unwrap_or_default(), to },
            None => Endpoints::Unknown,
        },
    }
}

fn unix_name(address: Option<SocketAddrAny>) -> Option<Vec<u8>> {
    let unix = SocketAddrUnix::try_from(address?).ok()?;
    Some(unix.path_bytes().map(<[u8]>::to_vec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn endpoints_are_those_of_getpeername_and_getsockname() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let client = TcpStream::connect(to).unwrap();
        let from = client.local_addr().unwrap();
        assert_eq!(endpoints_of(&listener.accept().unwrap().0), Endpoints::Tcp { from, to });

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let to = path.to_str().unwrap().as_bytes().to_vec();
        let endpoints = Endpoints::Unix { from: Vec::new(), to };
        assert_eq!(endpoints_of(&listener.accept().unwrap().0), endpoints);
    }
}
