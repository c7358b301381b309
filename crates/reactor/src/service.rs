//! Defines the traits that a server implements, and the events that the reactor passes to them.

use std::net::SocketAddr;
use std::time::Instant;

use crate::context::Context;
use crate::socket::{Socket, SocketKind};

/// The state of one connection, from which the reactor gets the connection's sockets.
pub trait Connection {
    /// Returns the connection's socket of this kind, if any. The event loop calls this to update
    /// the readiness of the socket.
    fn socket(&mut self, kind: SocketKind) -> Option<&mut Socket>;
}

/// The origin of an accepted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptInfo {
    /// The index of the listener, in the order passed to [`Reactor::new`](crate::Reactor::new).
    pub listener: usize,
    /// The peer's address; `None` for a unix socket.
    pub peer: Option<SocketAddr>,
}

/// The reason a connection is driven.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// The connection is new, or one of its sockets became ready; the sockets store their
    /// readiness.
    Ready,
    /// The connection yielded with [`Next::Yield`] in an earlier call.
    Resume,
    /// The deadline of the connection has passed.
    Deadline,
    /// The thread is draining: the connection must start no new work.
    Drain,
    /// Another thread sent this message through a [`MessageSender`](crate::MessageSender).
    Message(M),
}

/// The event a connection waits for after it was driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A ready socket, a message, or this deadline, which replaces any earlier deadline; `None`: no
    /// deadline.
    Wait(Option<Instant>),
    /// The next iteration of the loop: the connection has used up its byte budget but could
    /// continue. Its deadline stays unchanged.
    Yield,
    /// No event: the reactor closes the connection and passes it to [`Service::on_close`].
    Close,
}

/// The protocol of a server: creates and advances the state of its connections.
///
/// The reactor makes all calls on one thread, and no call may block: [`Self::drive`] works until
/// the sockets would block, or until the connection's byte budget is used up: the number of bytes
/// that the service lets a connection move in one call.
pub trait Service {
    /// The state of one connection.
    type Connection: Connection;
    /// A message that other threads may send to a connection.
    type Message: Send + 'static;

    /// Returns `true` if the service takes another connection of this listener now. Otherwise
    /// pending connections stay in the kernel's accept queue; the reactor asks again when it closes
    /// a connection, and at each tick.
    fn can_accept(&mut self, listener: usize) -> bool {
        let _ = listener;
        true
    }

    /// Creates the state of an accepted connection; the reactor then drives the connection, and
    /// registers its socket when it first waits. If this returns `None`, the connection ends when
    /// `socket` is dropped.
    fn on_accept(
        &mut self,
        socket: Socket,
        from: AcceptInfo,
        context: &mut Context<'_, Self::Message>,
    ) -> Option<Self::Connection>;

    /// Advances a connection. A call does not imply that a socket is ready: the readiness must be
    /// read from the sockets.
    fn drive(
        &mut self,
        connection: &mut Self::Connection,
        event: Event<Self::Message>,
        context: &mut Context<'_, Self::Message>,
    ) -> Next;

    /// Returns `true` if the connection, which was just driven and waits for an event, may be closed
    /// without harm, because it waits for a request or for the rest of a request head. If its peer
    /// opens more connections than [`AdmissionLimit`](crate::AdmissionLimit) allows, the reactor
    /// closes such a connection.
    fn is_waiting(&self, _connection: &Self::Connection) -> bool {
        false
    }

    /// Receives a waiting connection that gives way to a new one of the same peer, before
    /// [`Self::on_close`] receives it.
    fn on_evict(&mut self, _connection: &mut Self::Connection) {}

    /// Receives the socket of a connection that is refused, because its peer is at its limit. The
    /// connection ends when `socket` is dropped.
    fn on_refuse(&mut self, socket: Socket, _from: AcceptInfo) {
        drop(socket);
    }

    /// Returns the time at which [`Self::on_deadline`] must run next, if any. The reactor calls
    /// this at most twice per iteration.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// Runs at the first tick (there is one every 100 ms) after the time that
    /// [`Self::next_deadline`] returned.
    fn on_deadline(&mut self, _now: Instant) {}

    /// Receives a connection that the reactor has removed from its table. Dropping the connection
    /// closes its sockets.
    fn on_close(&mut self, connection: Self::Connection) {
        drop(connection);
    }
}
