//! One thread, its sockets, their deadlines.
//!
//! # What it is
//! What servers have in common below their protocols. A [`Reactor`] is a thread that asks the
//! kernel which sockets are ready and drives their connections; a server has one on each core, and
//! they share nothing but a [`Gate`] that counts.
//! - [`Service`] and [`Connection`] are what a server implements: explicit states that are driven
//!   until they would block.
//! - [`Socket`] remembers whether it is ready, [`Listener`] and [`Address`] are TCP or unix.
//! - [`Hub`] is what a connection may ask for while it is driven: time, another socket, a
//!   [`Remote`] for other threads. A socket can be left to another connection.
//! - [`Handle`] stops a reactor, gracefully or at once.
//!
//! # Example
//! ```
//! use std::io::{IoSlice, Read, Write};
//! use std::net::TcpStream;
//!
//! use haul_reactor::{
//!     Accepted, Address, Connection, Event, Gate, Hub, Listener, Moved, Next, Reactor, Service, Side,
//!     Socket, TcpOptions,
//! };
//!
//! /// Says back what it hears, in capitals.
//! struct Loud;
//! struct Peer(Socket);
//!
//! impl Connection for Peer {
//!     fn socket(&mut self, _side: Side) -> Option<&mut Socket> {
//!         Some(&mut self.0)
//!     }
//! }
//!
//! impl Service for Loud {
//!     type Connection = Peer;
//!     type Message = ();
//!
//!     fn accepted(&mut self, socket: Socket, _: Accepted, _: &mut Hub<'_, ()>) -> Option<Peer> {
//!         Some(Peer(socket))
//!     }
//!
//!     fn drive(&mut self, peer: &mut Peer, _: Event<()>, _: &mut Hub<'_, ()>) -> Next {
//!         let mut buffer = [0; 512];
//!         while peer.0.is_readable() {
//!             match peer.0.read(&mut buffer) {
//!                 Ok(Moved::Bytes(0)) | Err(_) => return Next::Close,
//!                 Ok(Moved::Bytes(bytes)) => {
//!                     buffer[..bytes].make_ascii_uppercase();
//!                     if peer.0.write(&[IoSlice::new(&buffer[..bytes])], false).is_err() {
//!                         return Next::Close;
//!                     }
//!                 }
//!                 Ok(Moved::WouldBlock) => {}
//!             }
//!         }
//!         Next::Wait(None)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = Listener::bind(&"127.0.0.1:0".parse()?, TcpOptions::default(), 128)?;
//! let Address::Tcp(address) = *listener.address() else { unreachable!() };
//! let reactor = Reactor::new(Loud, vec![listener], Gate::new(100))?;
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
//! - **Nobody is left waiting.** Those who use up their share take turns; new peers are taken on 64
//!   at a time; a deadline is noticed at most a tick of 100 ms late.
//! - What is told to a connection that is gone reaches nobody else.
//! - More peers than the gate lets in, or than there are descriptors for, wait in the kernel's
//!   queue and are accepted when there is room; the thread sleeps meanwhile.
//!
//! # Cost
//! A ready socket is driven after one `epoll_wait` for all that are ready. A socket is registered
//! once, for everything, when it comes; later there are no calls about readiness. A read of
//! TCP that did not fill its buffer is not repeated to find that out; of a unix socket it is, since
//! it stops behind each message with a descriptor. An idle connection costs its descriptors
//! and nothing in time; deadlines are looked at ten times a second, in one array.
//!
//! # What it is not
//! No futures, no tasks, no protocol, no TLS. It moves no bytes by itself.
//!
//! # Sources
//! The manual page `epoll(7)`, on edges. The poll is `mio`'s.

mod address;
mod gate;
mod handle;
mod hub;
mod key;
mod listener;
mod reactor;
mod service;
mod socket;
mod table;

pub use address::{Address, NoAddress};
pub use gate::Gate;
pub use handle::{Handle, ReactorStats};
pub use hub::{Hub, Remote};
pub use listener::{Listener, TcpOptions};
pub use reactor::Reactor;
pub use service::{Accepted, Connection, Event, Next, Service, Side};
pub use socket::{Moved, Socket, is_to_itself};
