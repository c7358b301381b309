//! What a thread serves: the two traits its user implements, and what it is told.

use std::net::SocketAddr;
use std::time::Instant;

use crate::hub::Hub;
use crate::socket::Socket;

/// Which of the two sockets of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that was accepted.
    Near,
    /// The one we connected, if there is any.
    Far,
}

/// What is kept for each connection.
pub trait Connection {
    /// The socket of a side, so that its readiness can be noted in it.
    fn socket(&mut self, side: Side) -> Option<&mut Socket>;
}

/// Where an accepted connection came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Which listener, in the order they were given.
    pub listener: usize,
    /// The peer's address; `None` for a unix socket.
    pub peer: Option<SocketAddr>,
}

/// Why a connection is driven.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// It is new, or a socket of it became ready: they know.
    Ready,
    /// It asked for another turn with [`Next::Again`].
    Again,
    /// Its deadline has passed.
    Deadline,
    /// The thread is to end: begin nothing new.
    Drain,
    /// Another thread told it this, by a [`Remote`](crate::Remote).
    Told(M),
}

/// What a connection waits for after it was driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A socket that becomes ready, a message, or this moment; the last one given counts alone.
    Wait(Option<Instant>),
    /// Its turn: it has used up its share of this one, and could go on at once. Its deadline stays.
    Again,
    /// Nothing more: it is handed to [`Service::closed`].
    Close,
}

/// What a thread does with its connections.
///
/// All of it runs on one thread, and nothing in it may wait: [`Self::drive`] works until its
/// sockets would block or its share is used up.
pub trait Service {
    /// What is kept for each connection.
    type Connection: Connection;
    /// What other threads may tell a connection.
    type Message: Send + 'static;

    /// Takes on a peer, whose socket is registered already; `None` closes it at once. The
    /// connection is driven next.
    fn accepted(
        &mut self,
        socket: Socket,
        from: Accepted,
        hub: &mut Hub<'_, Self::Message>,
    ) -> Option<Self::Connection>;

    /// Goes on with a connection. It may be driven for no reason: sockets tell what is ready.
    fn drive(
        &mut self,
        connection: &mut Self::Connection,
        event: Event<Self::Message>,
        hub: &mut Hub<'_, Self::Message>,
    ) -> Next;

    /// When it wants to be driven itself, by [`Self::overdue`]; `None`: never. It is asked each turn.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// That moment has passed.
    fn overdue(&mut self, _now: Instant) {}

    /// A connection is over. Its sockets are closed when it is dropped.
    fn closed(&mut self, connection: Self::Connection) {
        drop(connection);
    }
}
