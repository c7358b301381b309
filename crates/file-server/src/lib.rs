//! Files over HTTP/1.1: hot ones from memory, cold ones past the page cache.
//!
//! # What it is
//! A server of the files below a directory, for machines on which a few files are asked for all the
//! time and many others now and then. What is downloaded once does not push out what everybody
//! wants, and nobody's page waits for somebody's download.
//!
//! | tier | what | how |
//! |---|---|---|
//! | [`Tier::Memory`] | small files | head and body from a cache of our own, in one send |
//! | [`Tier::Resident`] | what is in the page cache | `sendfile` |
//! | [`Tier::Direct`] | cold, from 1 MiB on | direct reads into one of two buffers in huge pages, while the other one is sent ([`Cold`]) |
//! | [`Tier::Read`] | cold and small, or asked for often | read by way of the page cache, where it stays |
//! | [`Tier::Uncached`] | as direct, where there are no direct reads or no buffers | read into a buffer, and dropped from the page cache |
//!
//! The choice is made for each 2 MiB of an answer, from what of it is in memory and how often it was
//! asked for.
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
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 206 Partial Content\r\n"));
//! assert!(answer.ends_with("\r\n\r\nell"));
//!
//! handle.drain(); // takes on nobody, finishes what was begun
//! thread.join().unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - Nothing outside of the directory is served: neither by `..`, nor by a symbolic link, nor by
//!   one that is exchanged at the right moment. Only regular files are.
//! - The threads that serve never wait for a disk. What is not in memory, names included, is left
//!   to others, and what others do is bounded: [`Tiers::disk_threads`], [`Tiers::carriers_max`].
//! - An answer is never continued with another file: one that gets shorter ends its connection
//!   (of what the kernel has taken already, what was cut off becomes zeros), one that is replaced is
//!   sent to its end.
//! - A head that does not come, and a client that does not take what it asked for, are not waited
//!   for longer than [`Limits`] say.
//! - Only this machine can connect, unless [`Config::is_public`] says otherwise.
//!
//! # Cost
//! A request for a small hot file is one `recv` and one `sendmsg`, without an allocation; one for a
//! file that is open and in memory is two calls more; a test counts them. An idle connection is a
//! descriptor and its state. A cold download takes one or two buffers of 2 MiB while it runs, and
//! no page of the page cache.
//!
//! # What it is not
//! No TLS, no HTTP/2: put a proxy in front. It compresses nothing, rewrites nothing, runs nothing.
//! A file that is written in place while it is sent is sent as it is then: replace files by renaming.
//! Two states of a file with the same length, inode and time, to the nanosecond, have the same tag.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[RFC9110\] what is answered; \[TinyLFU17\] how often something
//! was asked for, in little memory; \[NginxThreads15\] why a thread that serves must not wait for a disk;
//! the manual pages `splice(2)`, `openat2(2)`, `cachestat(2)`.

mod access_log;
mod admin;
mod answer;
mod asking;
mod caches;
mod carrier;
mod coding;
mod conditions;
mod config;
mod connection;
mod content_type;
mod disk_threads;
mod drive;
mod error;
mod fill;
mod find;
mod flights;
mod hosts;
mod listing;
mod look;
mod meta;
mod metrics;
mod pace;
mod path;
mod range;
mod requests;
mod resident;
mod root;
mod sending;
mod server;
mod shared;
mod sketch;
mod stream;
mod tier;
mod worker;

pub use access_log::{AccessLog, Lines, LogFormat};
pub use config::{Cold, Config, Content, Limits, Tiers};
pub use error::{Error, Result};
pub use haul_reactor::Address;
pub use metrics::Stats;
pub use server::{Addresses, Handle, Server};
pub use tier::Tier;
