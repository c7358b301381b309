//! A relay for TCP and unix sockets that copies small bursts and splices large ones.
//!
//! # What it is
//! A [`Server`] accepts connections on one or more addresses, connects each client to one of its
//! targets, and moves bytes in both directions until both sides have closed. The bytes that one
//! read or splice takes from a socket are a burst. By default the relay runs one thread per CPU;
//! each thread has its own listeners, sockets and pipes.
//! - After each burst, a direction of a connection selects the method for its next burst: it copies
//!   small bursts, and splices large ones through a pipe leased for the burst ([`TransferMode`]).
//! - The relay selects the target of a connection round-robin, by the fewest open connections, or
//!   by the client's address ([`Balance`]). Targets that have failed are tried after all others
//!   ([`CheckOptions`]).
//! - With [`HttpOptions`] the relay parses the heads of HTTP/1.1 messages and writes new heads; it
//!   relays bodies by copy and splice, too (`docs/relay-http.md`).
//! - The relay reads the client's addresses from PROXY protocol headers and sends such headers to
//!   targets ([`proxy`]).
//! - [`Stats`] holds the counters of the relay; an admin address serves them to Prometheus.
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
//! - **Every byte arrives, once and in order, or the connection is reset.** The relay forwards EOF
//!   after the last byte. If one side ends in any other way (a reset, a timeout, a failed target),
//!   the relay resets the other side. (Unix sockets have no reset: the peer of a unix socket reads
//!   EOF.)
//! - **No byte of one connection reaches another connection**: a pipe that holds bytes when its
//!   lease ends is closed and never reused.
//! - **Memory is bounded.** A direction reads nothing while its destination is full, so it buffers
//!   at most one burst: 64 KiB in memory or the content of one pipe. Connections over
//!   [`Limits::connections_max`] wait in the kernel's accept queue.
//! - **Connections are scheduled fairly.** After a direction has moved about
//!   [`Limits::budget_bytes`], the other connections of its thread run.
//! - If [`Config::proxy_in`] is set, a client that sends no valid PROXY header is disconnected.
//!
//! # Cost
//! An idle connection uses two descriptors, no pipe and no buffer. A small burst costs a read and a
//! write; a large burst costs two splices, and a third splice that finds the source empty. In
//! steady state no pipe is created. `docs/relay.md` has the measurements behind the threshold
//! between copy and splice.
//!
//! # What it is not
//! Without [`HttpOptions`] the relay does not parse the bytes it moves. It caches nothing. It
//! terminates the TLS of clients ([`Config::tls`]), whose bytes it copies, because they cannot be
//! spliced; connections to targets have no TLS. Targets may be host names, which a background thread
//! resolves repeatedly ([`Config::resolve_interval`]).
//!
//! # Inside
//! `flow/` moves bytes in one direction between two sockets and knows nothing of connections:
//! `Flow::run` moves bytes until a socket would block, `Flow::set_length` limits the flow to a
//! known length, `Flow::prepend` adds bytes to send first. All flows of a thread share one
//! `ThreadContext`. `duplex.rs` runs both directions between two sockets until both have ended.
//! `preamble.rs` determines the client's addresses and performs the TLS handshake; `connect.rs` tries the targets of `target/` one
//! after another. `stream_session.rs` combines these modules into a connection without HTTP.
//! `http/` is an HTTP session, which becomes a `Duplex` after an upgrade. `service.rs` runs both
//! kinds of sessions in the reactor; `server.rs` starts and stops the threads.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[HAProxyPipe\] on when to splice, and on forwarding EOF only
//! after the content of the pipe; \[RFC7239\] on sending the client's address to targets;
//! \[ProxyProtocol\] on the PROXY header; \[Thaler98\] on selecting the same target for the same
//! client.

mod config;
mod connect;
mod counter;
mod duplex;
mod end_reason;
mod endpoints;
mod error;
mod flow;
mod http;
mod http_options;
mod metrics;
mod preamble;
pub mod proxy;
mod server;
mod service;
mod stats;
mod stream_session;
mod target;
mod thread_context;
mod transfer_mode;

pub use config::{Config, Limits};
pub use end_reason::EndReason;
pub use error::{Error, Result};
pub use haul_http_engine::{AccessLog, Lines, LogFormat};
pub use haul_http1::{ChunkLimits, HeadLimits};
pub use haul_pipe::{PoolOptions, PoolStats};
pub use haul_reactor::{
    Address, Clock, HostAddress, Listener, ManualClock, ParseHostAddressError, ParseRateError,
    Rate, TcpOptions,
};
pub use haul_tls::Acceptor;
pub use http::HttpStats;
pub use http_options::HttpOptions;
pub use server::{Addresses, Handle, Server};
pub use stats::{DirectionStats, Stats};
pub use target::{Balance, CheckOptions, TargetStats};
pub use transfer_mode::{LARGE_BYTES, TransferMode};
