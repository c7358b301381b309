//! Sockets that wait for peers.

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

/// How connections are kept; those that are accepted have it from their listener, without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// Peers that say nothing for so long are asked whether they are still there; `None`: never.
    pub keepalive: Option<Duration>,
    /// How long sent bytes may stay unconfirmed before the connection is given up
    /// (`TCP_USER_TIMEOUT`); `None`: as the kernel has it, some fifteen minutes.
    pub user_timeout: Option<Duration>,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self { keepalive: Some(Duration::from_secs(60)), user_timeout: None }
    }
}

impl TcpOptions {
    pub(crate) fn apply(&self, socket: &RawSocket) -> io::Result<()> {
        // What is written is meant to be sent; who has more to say says so.
        socket.set_tcp_nodelay(true)?;
        // No byte is left out of the stream because it is urgent.
        socket.set_out_of_band_inline(true)?;
        if let Some(time) = self.keepalive {
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(time).with_interval(time))?;
        }
        socket.set_tcp_user_timeout(self.user_timeout)
    }
}

/// A socket that listens.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: Address,
    tcp: TcpOptions,
    backlog: i32,
}

impl Listener {
    /// Listens at `address`. A port of 0 becomes a free one; [`Self::address`] tells which. A
    /// socket in the file system that nobody listens at any more is taken over.
    ///
    /// # Errors
    /// When the address is taken, is not of this machine, or may not be used.
    pub fn bind(address: &Address, tcp: TcpOptions, backlog: i32) -> io::Result<Self> {
        match address {
            Address::Unix(path) => remove_unused(path, address)?,
            Address::Tcp(_) => is_free(address)?,
        }
        Self::share(address, tcp, backlog)
    }

    fn share(address: &Address, tcp: TcpOptions, backlog: i32) -> io::Result<Self> {
        let (domain, for_kernel) = address.for_kernel()?;
        let is_tcp = matches!(address, Address::Tcp(_));
        let protocol = is_tcp.then_some(Protocol::TCP);
        let socket = RawSocket::new(domain, Type::STREAM.nonblocking().cloexec(), protocol)?;
        if is_tcp {
            socket.set_reuse_address(true)?;
            // So that each thread has a queue of its own.
            socket.set_reuse_port(true)?;
            tcp.apply(&socket)?;
        }
        if matches!(address, Address::Tcp(address) if address.is_ipv6()) {
            socket.set_only_v6(false)?;
        }
        socket.bind(&for_kernel)?;
        socket.listen(backlog)?;
        let bound = socket.local_addr()?.as_socket();
        let address = bound.map_or_else(|| address.clone(), Address::Tcp);
        Ok(Self { socket: socket.into(), address, tcp, backlog })
    }

    /// Another listener at the same address, for another thread: with TCP the kernel gives each a
    /// share of the connections, with unix sockets they take from one queue.
    ///
    /// # Errors
    /// When there are no descriptors left, or another user took the address.
    pub fn another(&self) -> io::Result<Self> {
        match &self.address {
            Address::Tcp(_) => Self::share(&self.address, self.tcp, self.backlog),
            Address::Unix(_) => Ok(Self {
                socket: self.socket.try_clone()?,
                address: self.address.clone(),
                ..*self
            }),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next peer, if one waits, and where it comes from, if that has a name.
    pub(crate) fn accept(&self) -> rustix::io::Result<Option<(Socket, Option<SocketAddr>)>> {
        loop {
            match acceptfrom_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((fd, from)) => {
                    let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                    return Ok(Some((self.accepted(fd), from)));
                }
                Err(Errno::AGAIN) => return Ok(None),
                // The peer went while it waited.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// TCP has all options from its listener.
    fn accepted(&self, fd: OwnedFd) -> Socket {
        match self.address {
            Address::Tcp(_) => Socket::tcp(fd),
            Address::Unix(_) => {
                // Without it an urgent byte is left out; nobody is to be sent away for that.
                SockRef::from(&fd).set_out_of_band_inline(true).ok();
                Socket::new(fd)
            }
        }
    }
}

/// Threads share a port by a flag that would share it with another program, too: this asks without.
fn is_free(address: &Address) -> io::Result<()> {
    let (domain, for_kernel) = address.for_kernel()?;
    let probe = RawSocket::new(domain, Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    // Connections that ended lately do not count.
    probe.set_reuse_address(true)?;
    probe.bind(&for_kernel)?;
    probe.listen(1)
}

/// Removes a socket that a process which is gone has left behind, and nothing else.
fn remove_unused(path: &std::path::Path, address: &Address) -> io::Result<()> {
    let Ok(found) = lstat(path) else { return Ok(()) };
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Ok(()); // Binding fails, and says why.
    }
    let (domain, for_kernel) = address.for_kernel()?;
    let probe = RawSocket::new(domain, Type::STREAM.nonblocking().cloexec(), None)?;
    match probe.connect(&for_kernel) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Ok(()),
    }
}

/// Begins to connect.
pub(crate) fn connect(address: &Address, tcp: &TcpOptions) -> io::Result<Socket> {
    let (domain, for_kernel) = address.for_kernel()?;
    let is_tcp = matches!(address, Address::Tcp(_));
    let protocol = is_tcp.then_some(Protocol::TCP);
    let socket = RawSocket::new(domain, Type::STREAM.nonblocking().cloexec(), protocol)?;
    match is_tcp {
        true => tcp.apply(&socket)?,
        false => socket.set_out_of_band_inline(true)?,
    }
    match socket.connect(&for_kernel) {
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
