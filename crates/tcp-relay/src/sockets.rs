//! What is asked of sockets besides bytes.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Result;
use rustix::net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname, sockopt};

use crate::config::Limits;
use crate::proxy::Ends;

/// Small writes go out at once, and a peer that is gone is noticed: for sockets of TCP.
///
/// # Errors
/// When the connection is gone already.
pub fn prepare(socket: impl AsFd, limits: &Limits) -> Result<()> {
    let socket = socket.as_fd();
    sockopt::set_tcp_nodelay(socket, true)?;
    if let Some(time) = limits.keepalive {
        let second = Duration::from_secs(1);
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, time.max(second))?;
        sockopt::set_tcp_keepintvl(socket, (time / 6).max(second))?;
        sockopt::set_tcp_keepcnt(socket, 3)?;
    }
    if let Some(time) = limits.unacknowledged_time_max {
        let ms = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(socket, ms)?;
    }
    Ok(())
}

/// Lets the peer see a reset instead of an end, when the socket is closed now. (A unix socket
/// knows no reset; its peer sees one only when bytes of it were not read.)
pub fn abort(socket: impl AsFd) {
    // One that is gone already needs none.
    sockopt::set_socket_linger(socket, Some(Duration::ZERO)).ok();
}

/// Both ends of an accepted connection, as far as they can be told.
pub fn ends_of(socket: impl AsFd) -> Ends {
    let socket = socket.as_fd();
    let (Ok(from), Ok(to)) = (peer(socket), getsockname(socket)) else { return Ends::Unknown };
    let unix = |address: &SocketAddrAny| {
        let unix = SocketAddrUnix::try_from(address.clone()).ok();
        unix.and_then(|unix| unix.path_bytes().map(<[u8]>::to_vec)).unwrap_or_default()
    };
    match (SocketAddr::try_from(from.clone()), SocketAddr::try_from(to.clone())) {
        (Ok(from), Ok(to)) => Ends::Tcp { from, to },
        _ => Ends::Unix { from: unix(&from), to: unix(&to) },
    }
}

/// A client of a unix socket has an empty address, mostly.
fn peer(socket: impl AsFd) -> Result<SocketAddrAny> {
    getpeername(socket).map(|peer| peer.unwrap_or_default())
}
