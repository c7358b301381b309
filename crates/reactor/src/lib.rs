//! An epoll event loop for one thread: sockets, connections and deadlines.
//!
//! # What it is
//! The layer below the protocol of a server. A [`Reactor`] waits for ready sockets and drives the
//! connections they belong to. A server runs one reactor per thread, typically one thread per core;
//! its reactors share only an [`AdmissionLimit`].
//! - The server implements [`Service`] and [`Connection`] as explicit state machines; the reactor
//!   drives each connection until its sockets would block.
//! - [`Socket`] is a non-blocking socket that tracks its readiness; [`Listener`] and [`Address`]
//!   support TCP and unix sockets.
//! - [`Context`] is the reactor's interface for the connection being driven. It returns the time,
//!   connects and registers sockets (also sockets registered for another connection before), and
//!   creates a [`MessageSender`] for other threads.
//! - [`Handle`] stops a reactor, gracefully or at once.
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
//! - **No connection starves another.** Connections that use up their byte budget are driven
//!   round-robin; each listener accepts at most 64 connections per iteration; a deadline fires at
//!   most one tick of 100 ms late, plus the duration of an iteration.
//! - A message for a closed connection is dropped; it never reaches another connection.
//! - Connections beyond the admission limit, or beyond the limit of descriptors, stay in the
//!   kernel's accept queue until other connections are closed. In between, the thread sleeps and
//!   retries at each tick.
//!
//! # Cost
//! One `epoll_wait` returns up to 512 ready sockets. A socket is registered once, edge-triggered
//! for all events. After a short read, a TCP socket counts as drained without another read that
//! returns `EAGAIN`. A unix socket needs that read, because a read also ends after a message with
//! descriptors. An idle connection costs its descriptors and no time; deadlines are checked ten
//! times a second, in one array.
//!
//! # What it is not
//! It has no futures, tasks, protocols or TLS, and reads and writes no socket by itself.
//!
//! # Sources
//! The manual page `epoll(7)`, on edge-triggered events; \[RFC9112\], on closing connections. The
//! poller is the crate `mio`.

mod address;
mod admission;
mod context;
mod handle;
mod key;
mod lingering_close;
mod listener;
mod reactor;
mod service;
mod socket;
mod table;

pub use address::{Address, ParseAddressError};
pub use admission::AdmissionLimit;
pub use context::{Context, MessageSender};
pub use handle::{Handle, ReactorStats};
pub use lingering_close::LingeringClose;
pub use listener::{Listener, TcpOptions};
pub use reactor::Reactor;
pub use service::{AcceptInfo, Connection, Event, Next, Service};
pub use socket::{IoStatus, Socket, SocketKind, is_self_connected};
