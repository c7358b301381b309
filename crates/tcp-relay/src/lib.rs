//! Connections relayed between TCP and unix sockets: what is small copied, what is large spliced.
//!
//! # What it is
//! A [`Server`] accepts connections on some addresses, connects each to one of some targets, and
//! moves bytes both ways until both sides have ended. A thread a core does it, each with its own
//! listeners, sockets and pipes.
//! - Each direction of each connection chooses its way while it runs: small bursts are copied, large
//!   ones spliced through a pipe that is borrowed for the burst ([`Moving`]).
//! - Targets take turns, or are chosen by load or by client ([`Balance`]); those that do not answer
//!   are left out ([`CheckOptions`]).
//! - With [`HttpOptions`] it reads the heads of HTTP/1.1 and writes them anew; bodies pass through as
//!   before: `docs/relay-http.md`.
//! - The PROXY protocol tells who the client is, in and out ([`proxy`]).
//! - [`Stats`] count what was done; an admin address tells them to Prometheus.
//!
//! # Example
//! ```
//! use std::io::{Read, Write};
//! use std::net::{TcpListener, TcpStream};
//!
//! use haul_tcp_relay::{Address, Config, Server};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let target = TcpListener::bind("127.0.0.1:0")?;
//! let to = Address::Tcp(target.local_addr()?);
//! let relay = Server::bind(Config::new(vec!["127.0.0.1:0".parse()?], vec![to]))?;
//! let Address::Tcp(address) = relay.addresses().listen[0] else { unreachable!() };
//! let handle = relay.handle();
//! let thread = std::thread::spawn(|| relay.run());
//!
//! let mut client = TcpStream::connect(address)?;
//! client.write_all(b"hello")?;
//! let mut greeting = [0; 5];
//! target.accept()?.0.read_exact(&mut greeting)?;
//! assert_eq!(&greeting, b"hello");
//!
//! drop(client);
//! handle.drain();
//! let stats = thread.join().unwrap()?;
//! assert_eq!(stats.up.bytes_copied, 5);
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - **Every byte arrives, once and in order, or the connection is seen to break.** An end is told
//!   to the other side after the last byte; whatever else ends a side (a reset, a deadline, a target
//!   that is gone) resets the other one. (A unix socket knows no reset: its peer sees an end.)
//! - **No byte of one connection reaches another**: a pipe with bytes inside is never used again.
//! - **What is held is bounded.** A direction takes nothing while its target takes nothing: it holds
//!   one burst, 64 KiB in memory or what fits in a pipe. Too many connections wait in the kernel.
//! - **Everybody has a turn.** A direction moves [`Limits::share_bytes`] and lets others go first.
//! - Who must send a PROXY header and does not, is not believed and not served.
//!
//! # Cost
//! An idle connection has two descriptors, no pipe and no buffer. A small burst costs a read and a
//! write; a large one two splices, and one more call to see that it was all. In steady state no
//! pipe is made. Where copies end and splices begin was measured: `docs/relay.md`.
//!
//! # What it is not
//! Without [`HttpOptions`] it does not look into what it moves. It keeps no copies, ends no TLS, and looks up no names: addresses are numbers.
//!
//! # Inside
//! `flow.rs` is one direction, and knows nothing of connections: `Flow::run` moves what can be moved
//! from a socket to another one, `Flow::expect` bounds it to a length that is known, `Flow::put`
//! lets bytes go first. `Core` is what flows of a thread share. `pair.rs` is two flows between two
//! sockets, and how they end. `opening.rs` finds out who the client is, `connect.rs` tries the
//! targets of `target/` one after the other. `relayed.rs` makes a connection of these; `http/` makes
//! one of flows and of the heads between them, and of a pair when client and target have left HTTP.
//! `service.rs` serves both to the reactor; `server.rs` has the threads.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[HAProxyPipe\] when to splice, and that ends wait for what is in
//! the pipe; \[RFC7239\] who a client is told to be; \[ProxyProtocol\]; \[Thaler98\] which target is a client's.

mod choice;
mod config;
mod connect;
mod error;
mod flow;
mod http;
mod metrics;
mod opening;
mod pair;
pub mod proxy;
mod relayed;
mod server;
mod service;
mod sockets;
mod stats;
mod target;

pub use choice::{LARGE_BYTES, Moving};
pub use config::{Config, Limits};
pub use error::{Error, Result};
pub use haul_http1::{ChunkLimits, HeadLimits};
pub use haul_pipe::{PoolOptions, PoolStats};
pub use haul_reactor::{Address, TcpOptions};
pub use http::{HttpOptions, HttpStats};
pub use server::{Addresses, Handle, Server};
pub use stats::{Ended, Moved, Stats};
pub use target::{Balance, CheckOptions, Seen};
