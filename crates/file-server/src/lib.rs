//! An HTTP/1.1 file server: hot files from memory, cold files bypassing the page cache.
//!
//! # What it is
//! A server of the files below a directory, for machines on which a few files are hot and many
//! others are requested now and then. Cold downloads neither evict hot files from the page cache
//! nor delay other clients.
//!
//! | tier | files | method |
//! |---|---|---|
//! | [`Tier::Memory`] | small hot files | head and body from an application cache, in one send |
//! | [`Tier::Resident`] | files in the page cache | `sendfile(2)` |
//! | [`Tier::Direct`] | cold, 1 MiB or longer | `O_DIRECT` reads into one of two huge-page buffers while the other one is sent ([`Cold`]) |
//! | [`Tier::Read`] | cold and small, or requested often | read through the page cache, where the data stays |
//! | [`Tier::Uncached`] | as `Direct`, without `O_DIRECT` support or a free buffer | read into a buffer, then dropped from the page cache |
//!
//! The tier is selected for each 2 MiB of a response, by how much of it is in memory and how often
//! it was requested.
//!
//! # Example
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use haul_file_server::{Address, Config, Server};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! std::fs::write(dir.path().join("greeting.txt"), "hello")?;
//! let mut config = Config::new(dir.path());
//! config.listen = "127.0.0.1:0".parse()?; // any free port
//! let server = Server::bind(config)?;
//! let Address::Tcp(address) = server.addresses().listen else { unreachable!() };
//! let handle = server.handle();
//! let thread = std::thread::spawn(|| server.run());
//!
//! let mut client = TcpStream::connect(address)?;
//! client.write_all(b"GET /greeting.txt HTTP/1.0\r\nRange: bytes=1-3\r\n\r\n")?;
//! let mut response = String::new();
//! client.read_to_string(&mut response)?;
//! assert!(response.starts_with("HTTP/1.1 206 Partial Content\r\n"));
//! assert!(response.ends_with("\r\n\r\nell"));
//!
//! handle.drain(); // accepts no more connections, and completes the responses under way
//! thread.join().unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - Nothing outside of the directory is served: not by `..`, not by a symbolic link, and not by a
//!   link that is replaced during the lookup. Only regular files are served.
//! - The serving threads never wait for a disk. Lookups and reads that would block run on disk
//!   threads, and their number is limited: [`Tiers::disk_threads`], [`Tiers::buffers_max`]. Only if
//!   the kernel evicts pages within 50 ms after they were checked, `sendfile(2)` reads them again.
//! - A response never continues with another file. If the file is truncated, the connection ends
//!   (bytes the kernel has already queued become zeros); if it is replaced, the old file is sent to
//!   its end.
//! - Slow clients are disconnected after the timeouts in [`Limits`].
//! - Plain HTTP is served only on loopback addresses and unix sockets unless [`Config::is_public`] is
//!   set.
//!
//! # Cost
//! A request for a small hot file is one `recv` and one `sendmsg` without an allocation, and so are
//! up to 32 pipelined requests for such files, until 256 KiB are to be sent; a request for a file
//! that is open and in the page cache is one call more, and two more every 50 ms (verified by a
//! test). The check of a cached file, at most once in [`Tiers::valid`], is three calls, and no
//! allocation; the first request for a small file is five, in a directory without encoded forms. An
//! idle connection is a descriptor and its state. A cold download uses one or two buffers of 2 MiB
//! while it runs, and no page cache.
//!
//! # What it is not
//! It has no connections of its own: `haul-http-engine` accepts and drives them. It has no HTTP/2.
//! With TLS ([`Config::tls`]), the kernel cannot send files by itself: their bytes are read into a
//! buffer and encrypted. It does not compress, rewrite or execute anything. A file that is
//! rewritten in place ends the responses that have begun: replace files by renaming. Two versions
//! of a file with the same length, inode and time, to the nanosecond, have the same entity tag, and
//! so have two between which only stores through a shared mapping changed pages that were dirty
//! already: the kernel alters no time then.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[RFC9110\] HTTP semantics; \[TinyLFU17\] request frequencies
//! in little memory; \[NginxThreads15\] why a serving thread must not wait for a disk; the manual
//! pages `splice(2)`, `openat2(2)`, `cachestat(2)`.

mod accept;
mod buffers;
mod config;
mod context;
mod error;
mod file;
mod listing;
mod lookup;
mod metrics;
mod outcome;
mod overview;
mod page;
mod request;
mod resolve;
mod response;
mod send;

pub use accept::{Addresses, Handle, Server};
pub use config::{Cold, Config, Content, Limits, Tiers};
pub use error::{Error, Result};
pub use file::tier::Tier;
pub use haul_http_engine::{AccessLog, Lines, LogFormat};
pub use haul_reactor::{
    Address, Clock, HostAddress, Listener, ManualClock, ParseHostAddressError, ParseRateError,
    Rate, TcpOptions,
};
pub use haul_tls::Acceptor;
pub use metrics::Stats;
