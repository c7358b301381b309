//! Who is at the ends of a socket.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname};

use crate::proxy::Ends;

/// Both ends of an accepted connection, as far as they can be told.
pub(crate) fn ends_of(socket: impl AsFd) -> Ends {
    let (peer, own) = (getpeername(&socket).ok().flatten(), getsockname(&socket).ok());
    let tcp = |address: &Option<SocketAddrAny>| SocketAddr::try_from(address.clone()?).ok();
    match (tcp(&peer), tcp(&own)) {
        (Some(from), Some(to)) => Ends::Tcp { from, to },
        // The client of a unix socket mostly has no name.
        _ => match unix_name(own) {
            Some(to) => Ends::Unix { from: unix_name(peer).unwrap_or_default(), to },
            None => Ends::Unknown,
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
    fn ends_are_those_the_kernel_knows() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let client = TcpStream::connect(to).unwrap();
        let from = client.local_addr().unwrap();
        assert_eq!(ends_of(&listener.accept().unwrap().0), Ends::Tcp { from, to });

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let to = path.to_str().unwrap().as_bytes().to_vec();
        let ends = Ends::Unix { from: Vec::new(), to };
        assert_eq!(ends_of(&listener.accept().unwrap().0), ends);
    }
}
