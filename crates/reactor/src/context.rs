//! Gives a service access to the event loop: the time, connects, registration of sockets, and
//! messages from other threads.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use crate::address::Address;
use crate::key::Key;
use crate::listener::{self, TcpOptions};
use crate::messages::{MessageQueue, MessageSender};
use crate::socket::{Socket, SocketKind};

/// The functions of the event loop that a service may call while the reactor drives one of its
/// connections.
pub struct Context<'a, M> {
    pub(crate) now: Instant,
    pub(crate) key: Key,
    pub(crate) is_draining: bool,
    pub(crate) registry: &'a Registry,
    pub(crate) queue: &'a MessageQueue<M>,
}

/// Registers a socket for events of the connection with this key.
pub(crate) fn register(
    registry: &Registry,
    key: Key,
    socket: &mut Socket,
    kind: SocketKind,
) -> io::Result<()> {
    let (fd, token) = (socket.as_raw_fd(), Token(key.token(kind)));
    let all = Interest::READABLE | Interest::WRITABLE | Interest::PRIORITY;
    if socket.is_registered {
        return registry.reregister(&mut SourceFd(&fd), token, all);
    }
    registry.register(&mut SourceFd(&fd), token, all)?;
    socket.is_registered = true;
    Ok(())
}

impl<M> Context<'_, M> {
    /// Returns the time at which this iteration of the loop began; the clock is read once per
    /// iteration.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns `true` if the reactor is draining: it accepts no connections, and ends when its open
    /// connections have ended.
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Registers a socket for events of the driven connection. If the socket is registered for
    /// another connection of the thread, this registration replaces the earlier one.
    ///
    /// # Errors
    /// If the kernel has no memory left, or too many descriptors are watched.
    pub fn register(&self, socket: &mut Socket, kind: SocketKind) -> io::Result<()> {
        register(self.registry, self.key, socket, kind)
    }

    /// Deregisters a socket, so that it can be stored and registered for another connection later.
    ///
    /// # Errors
    /// If the socket is not registered.
    pub fn deregister(&self, socket: &mut Socket) -> io::Result<()> {
        self.registry.deregister(&mut SourceFd(&socket.as_raw_fd()))?;
        socket.is_registered = false;
        Ok(())
    }

    /// Starts a non-blocking connect and returns its socket, which the caller must register. The
    /// socket becomes writable when the connect has succeeded or failed; [`Socket::connect_result`]
    /// returns the outcome.
    ///
    /// # Errors
    /// If the connect fails without waiting: for example, no process listens at a unix socket, or
    /// no descriptors are left.
    pub fn connect(&self, to: &Address, tcp: &TcpOptions) -> io::Result<Socket> {
        listener::connect(to, tcp)
    }

    /// Returns a sender of messages to the driven connection, for other threads.
    pub fn message_sender(&self) -> MessageSender<M> {
        MessageSender { key: self.key, queue: self.queue.clone() }
    }
}
