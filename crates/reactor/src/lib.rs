//! An epoll event loop for one thread, which drives connections when their sockets are ready or
//! their deadlines pass.
//!
//! # What it is
//! This crate is the layer below the protocol of a server. A [`Reactor`] waits until sockets are
//! ready, and then calls [`Service::drive`] for their connections: it "drives" the connections. A
//! server runs one reactor per thread, typically one thread per core; its reactors share only an
//! [`AdmissionLimit`].
//! - The server implements [`Service`] and [`Connection`] as explicit state machines: each call
//!   advances a connection until its sockets would block.
//! - [`Socket`] is a non-blocking socket that tracks its readiness; [`Listener`] and [`Address`]
//!   support TCP and unix sockets.
//! - [`Context`] is passed to [`Service::drive`]. It returns the time, connects and registers
//!   sockets, moves a socket from one connection to another, and creates a [`MessageSender`] for
//!   other threads; [`wake_once`] sends several messages with one wake-up.
//! - [`RateLimit`] limits the requests of each peer; the service decides what to do with requests
//!   above the limit.
//! - [`Handle`] stops a reactor, gracefully or at once. [`ManualClock`] lets a test decide when
//!   deadlines pass.
//!
//! # Example
//! ```
//! use std::io::{IoSlice, Read, Write};
//! use std::net::TcpStream;
//!
//! use haul_reactor::{
//!     AcceptInfo, Address, AdmissionLimit, Connection, Context, Event, IoStatus, Listener, Next,
//!     Reactor, Service, SocketKind, Socket, TcpOptions,
//! };
//!
//! /// Echoes its input in upper case.
//! struct Echo;
//! struct Peer(Socket);
//!
//! impl Connection for Peer {
//!     fn socket(&mut self, _side: SocketKind) -> Option<&mut Socket> {
//!         Some(&mut self.0)
//!     }
//! }
//!
//! impl Service for Echo {
//!     type Connection = Peer;
//!     type Message = ();
//!
//!     fn on_accept(&mut self, socket: Socket, _: AcceptInfo, _: &mut Context<'_, ()>) -> Option<Peer> {
//!         Some(Peer(socket))
//!     }
//!
//!     fn drive(&mut self, peer: &mut Peer, _: Event<()>, _: &mut Context<'_, ()>) -> Next {
//!         let mut buffer = [0; 512];
//!         while peer.0.is_readable() {
//!             match peer.0.read(&mut buffer) {
//!                 Ok(IoStatus::Bytes(0)) | Err(_) => return Next::Close,
//!                 Ok(IoStatus::Bytes(bytes)) => {
//!                     buffer[..bytes].make_ascii_uppercase();
//!                     if peer.0.write(&[IoSlice::new(&buffer[..bytes])], false).is_err() {
//!                         return Next::Close;
//!                     }
//!                 }
//!                 Ok(IoStatus::WouldBlock) => {}
//!             }
//!         }
//!         Next::Wait(None)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = Listener::bind(&"127.0.0.1:0".parse()?, TcpOptions::default(), 128)?;
//! let Address::Tcp(address) = *listener.address() else { unreachable!() };
//! let reactor = Reactor::new(Echo, vec![listener], AdmissionLimit::new(100))?;
//! let handle = reactor.handle();
//! let thread = std::thread::spawn(|| reactor.run().map(drop));
//!
//! let mut client = TcpStream::connect(address)?;
//! client.write_all(b"hello")?;
//! let mut answer = [0; 5];
//! client.read_exact(&mut answer)?;
//! assert_eq!(&answer, b"HELLO");
//! handle.stop();
//! thread.join().unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - **No connection starves another.** Connections that use up their byte budget (the bytes that
//!   the service lets a connection move in one call) are driven round-robin; each listener accepts
//!   at most 64 connections per iteration; a deadline fires at most one tick of 100 ms late, plus
//!   the duration of an iteration.
//! - A message for a closed connection is dropped; it never reaches another connection.
//! - Connections beyond the admission limit, or beyond the limit of descriptors, stay in the
//!   kernel's accept queue until other connections are closed. The thread retries when it closes a
//!   connection, and at each tick.
//! - With [`AdmissionLimit::with_peer_limit`], one peer cannot take all permitted connections: at
//!   the limit of the peer, its new connection replaces a waiting one or is refused.
//!
//! # Cost
//! One `epoll_wait` returns up to 512 ready sockets. A socket is registered once, edge-triggered
//! for all events. A read that returns fewer bytes than requested shows that a TCP socket is empty,
//! so no further read that returns `EAGAIN` is needed. A unix socket needs this further read,
//! because a read also ends after a message with descriptors. An idle connection costs its
//! descriptors and no time; deadlines are checked ten times a second, in one array.
//!
//! # What it is not
//! This crate has no futures, tasks, protocols or TLS. The service reads and writes the sockets,
//! never the reactor.
//!
//! # Sources
//! The manual page `epoll(7)`, on edge-triggered events; \[RFC9112\], on closing connections. The
//! poller is the crate `mio`.

mod address;
mod admission;
mod clock;
mod context;
mod handle;
mod key;
mod lingering_close;
mod listener;
mod messages;
mod poller;
mod rate_limit;
mod reactor;
mod service;
mod socket;
mod table;

pub use address::{Address, HostAddress, ParseAddressError, ParseHostAddressError};
pub use admission::peer::Peer;
pub use admission::{AdmissionLimit, AdmissionStats};
pub use clock::{Clock, ManualClock};
pub use context::Context;
pub use handle::{Handle, ReactorStats};
pub use lingering_close::LingeringClose;
pub use listener::{Listener, TcpOptions};
pub use messages::{MessageSender, wake_once};
pub use rate_limit::{ParseRateError, Rate, RateLimit};
pub use reactor::Reactor;
pub use service::{AcceptInfo, Connection, Event, Next, Service};
pub use socket::{IoStatus, Socket, SocketKind, is_self_connected};
