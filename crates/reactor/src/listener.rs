//! Opens listening sockets, accepts connections, and starts non-blocking connects.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::fs::{FileType, lstat};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use socket2::{Protocol, SockRef, Socket as RawSocket, TcpKeepalive, Type};

use crate::address::Address;
use crate::socket::Socket;

/// Options of TCP connections. An accepted socket inherits them from its listener without further
/// system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// The idle time before the first keepalive probe, and the interval between probes
    /// (`SO_KEEPALIVE`). `None`: no probes.
    pub keepalive: Option<Duration>,
    /// The time for which sent bytes may stay unacknowledged before the kernel aborts the
    /// connection (`TCP_USER_TIMEOUT`). `None`: the kernel's default, about fifteen minutes.
    pub user_timeout: Option<Duration>,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self { keepalive: Some(Duration::from_secs(60)), user_timeout: None }
    }
}

impl TcpOptions {
    pub(crate) fn apply(&self, socket: &RawSocket) -> io::Result<()> {
        // Disables the delays of Nagle's algorithm: callers request delays explicitly, with
        // `MSG_MORE`.
        socket.set_tcp_nodelay(true)?;
        // Without this option the kernel removes urgent bytes from the stream.
        socket.set_out_of_band_inline(true)?;
        if let Some(time) = self.keepalive {
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(time).with_interval(time))?;
        }
        socket.set_tcp_user_timeout(self.user_timeout)
    }
}

/// A listening TCP or unix socket.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: Address,
    tcp: TcpOptions,
    backlog: i32,
    /// `true` if another process passed the socket, and may accept connections from it, too.
    is_inherited: bool,
}

impl Listener {
    /// Wraps a listening socket that another process opened and passed to this process. Several
    /// processes can accept connections from such a socket: one can stop and another can continue
    /// without refusing a connection. `tcp` applies to the connections that all of them accept.
    ///
    /// # Errors
    /// If the descriptor is not a listening TCP or unix stream socket.
    pub fn inherit(socket: OwnedFd, tcp: TcpOptions) -> io::Result<Self> {
        let socket = RawSocket::from(socket);
        if socket.r#type()? != Type::STREAM || !socket.is_listener()? {
            return Err(io::Error::other("the inherited socket is not a listening stream socket"));
        }
        let bound = socket.local_addr()?;
        let address = match (bound.as_socket(), bound.as_pathname()) {
            (Some(address), _) => Address::Tcp(address),
            (None, Some(path)) => Address::Unix(path.to_owned()),
            (None, None) => return Err(io::Error::other("the inherited socket has no address")),
        };
        if matches!(address, Address::Tcp(_)) {
            tcp.apply(&socket)?;
        }
        socket.set_nonblocking(true)?;
        Ok(Self { socket: socket.into(), address, tcp, backlog: 0, is_inherited: true })
    }

    /// Listens at `address`. Port 0 selects a free port; [`Self::address`] returns it. A unix
    /// socket on which no process listens any more is replaced. `backlog` is the maximum number of
    /// connections in the accept queue.
    ///
    /// # Errors
    /// If the address is in use, is not local, or is not permitted.
    pub fn bind(address: &Address, tcp: TcpOptions, backlog: i32) -> io::Result<Self> {
        match address {
            Address::Unix(path) => remove_stale(path, address)?,
            Address::Tcp(_) => check_unused(address)?,
        }
        Self::listen(address, tcp, backlog)
    }

    fn listen(address: &Address, tcp: TcpOptions, backlog: i32) -> io::Result<Self> {
        let (domain, sockaddr) = address.to_sockaddr()?;
        let is_tcp = matches!(address, Address::Tcp(_));
        let protocol = is_tcp.then_some(Protocol::TCP);
        let socket = RawSocket::new(domain, Type::STREAM.nonblocking().cloexec(), protocol)?;
        if is_tcp {
            socket.set_reuse_address(true)?;
            // Allows another listener at the same address for each thread, with a separate accept
            // queue.
            socket.set_reuse_port(true)?;
            tcp.apply(&socket)?;
        }
        if matches!(address, Address::Tcp(address) if address.is_ipv6()) {
            socket.set_only_v6(false)?;
        }
        socket.bind(&sockaddr)?;
        socket.listen(backlog)?;
        let bound = socket.local_addr()?.as_socket();
        let address = bound.map_or_else(|| address.clone(), Address::Tcp);
        Ok(Self { socket: socket.into(), address, tcp, backlog, is_inherited: false })
    }

    /// Opens another listener at the same address, for another thread. The kernel distributes TCP
    /// connections among the listeners of an address (`SO_REUSEPORT`); unix listeners and inherited
    /// ones share one queue.
    ///
    /// # Errors
    /// If no descriptors are left, or a process of another user listens at the address.
    pub fn another(&self) -> io::Result<Self> {
        match &self.address {
            Address::Tcp(_) if !self.is_inherited => {
                Self::listen(&self.address, self.tcp, self.backlog)
            }
            Address::Tcp(_) | Address::Unix(_) => Ok(Self {
                socket: self.socket.try_clone()?,
                address: self.address.clone(),
                ..*self
            }),
        }
    }

    /// Returns the address of the listener, with the port the kernel selected.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Accepts the next pending connection; returns its socket and the peer's address (`None` for
    /// unix sockets), or `None` if no connection is pending.
    pub(crate) fn accept(&self) -> rustix::io::Result<Option<(Socket, Option<SocketAddr>)>> {
        loop {
            match acceptfrom_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((fd, from)) => {
                    let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                    return Ok(Some((self.wrap(fd), from)));
                }
                Err(Errno::AGAIN) => return Ok(None),
                // A signal interrupted the call, or the peer closed the connection while it was
                // pending.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Wraps an accepted socket. A TCP socket inherits all options from its listener.
    fn wrap(&self, fd: OwnedFd) -> Socket {
        match self.address {
            Address::Tcp(_) => Socket::tcp(fd),
            Address::Unix(_) => {
                // An error is ignored: lost urgent bytes do not justify closing the connection.
                SockRef::from(&fd).set_out_of_band_inline(true).ok();
                Socket::new(fd)
            }
        }
    }
}

/// Returns an error if the address is in use. Binds a probe socket without `SO_REUSEPORT`, because
/// with this option the kernel lets two programs of the same user share an address.
fn check_unused(address: &Address) -> io::Result<()> {
    let (domain, sockaddr) = address.to_sockaddr()?;
    let probe = RawSocket::new(domain, Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    // Connections in TIME_WAIT do not count as use of the address.
    probe.set_reuse_address(true)?;
    probe.bind(&sockaddr)?;
    probe.listen(1)
}

/// Removes the unix socket at `path` if no process listens on it; leaves every other file in place.
fn remove_stale(path: &std::path::Path, address: &Address) -> io::Result<()> {
    let Ok(found) = lstat(path) else { return Ok(()) };
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Ok(()); // `bind` fails with the reason.
    }
    let (domain, sockaddr) = address.to_sockaddr()?;
    let probe = RawSocket::new(domain, Type::STREAM.nonblocking().cloexec(), None)?;
    match probe.connect(&sockaddr) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Ok(()),
    }
}

/// Creates a socket and starts a non-blocking connect to `address`.
pub(crate) fn connect(address: &Address, tcp: &TcpOptions) -> io::Result<Socket> {
    let (domain, sockaddr) = address.to_sockaddr()?;
    let is_tcp = matches!(address, Address::Tcp(_));
    let protocol = is_tcp.then_some(Protocol::TCP);
    let socket = RawSocket::new(domain, Type::STREAM.nonblocking().cloexec(), protocol)?;
    match is_tcp {
        true => tcp.apply(&socket)?,
        false => socket.set_out_of_band_inline(true)?,
    }
    match socket.connect(&sockaddr) {
        Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
        _ if is_tcp => Ok(Socket::tcp(socket.into()).connecting()),
        _ => Ok(Socket::new(socket.into()).connecting()),
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
