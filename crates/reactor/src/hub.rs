//! What a service may ask of its thread while it drives a connection.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token, Waker};

use crate::address::Address;
use crate::key::Key;
use crate::listener::{self, TcpOptions};
use crate::service::Side;
use crate::socket::Socket;

/// The thread, as the connection that is being driven sees it.
pub struct Hub<'a, M> {
    pub(crate) now: Instant,
    pub(crate) key: Key,
    pub(crate) is_draining: bool,
    pub(crate) registry: &'a Registry,
    pub(crate) mail: &'a Mail<M>,
}

/// The way into a thread for others.
pub(crate) struct Mail<M> {
    pub(crate) sender: Sender<(Key, M)>,
    pub(crate) waker: Arc<Waker>,
}

impl<M> Clone for Mail<M> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }
}

impl<M> Hub<'_, M> {
    /// When this turn of the thread began: the clock is read once a turn.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The thread is to end as soon as what was begun is done.
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Has the connection driven when this socket becomes ready; it may have been another one's.
    ///
    /// # Errors
    /// The kernel's: no memory, or too many watched descriptors.
    pub fn adopt(&self, socket: &mut Socket, side: Side) -> io::Result<()> {
        let (fd, token) = (socket.as_raw_fd(), Token(self.key.token(side)));
        let all = Interest::READABLE | Interest::WRITABLE | Interest::PRIORITY;
        if socket.is_registered {
            return self.registry.reregister(&mut SourceFd(&fd), token, all);
        }
        self.registry.register(&mut SourceFd(&fd), token, all)?;
        socket.is_registered = true;
        Ok(())
    }

    /// Has nobody driven when this socket becomes ready, so that it can be kept for another
    /// connection while this one goes on.
    ///
    /// # Errors
    /// When it was not adopted.
    pub fn disown(&self, socket: &mut Socket) -> io::Result<()> {
        self.registry.deregister(&mut SourceFd(&socket.as_raw_fd()))?;
        socket.is_registered = false;
        Ok(())
    }

    /// Begins to connect. The socket becomes writable when that has succeeded or failed:
    /// [`Socket::connected`] tells. It is not adopted yet.
    ///
    /// # Errors
    /// When it fails at once: nobody listens at a unix socket, or there are no descriptors.
    pub fn connect(&self, to: &Address, tcp: &TcpOptions) -> io::Result<Socket> {
        listener::connect(to, tcp)
    }

    /// A way to tell the driven connection something from another thread.
    pub fn remote(&self) -> Remote<M> {
        Remote { key: self.key, mail: self.mail.clone() }
    }
}

/// Tells one connection something, from any thread.
pub struct Remote<M> {
    key: Key,
    mail: Mail<M>,
}

impl<M> Remote<M> {
    /// The connection is driven with [`Event::Told`](crate::Event::Told) soon. When it is gone, the
    /// message is dropped.
    pub fn tell(&self, message: M) {
        if self.mail.sender.send((self.key, message)).is_ok() {
            // A thread that cannot be woken looks by itself, a tick later.
            self.mail.waker.wake().ok();
        }
    }
}
