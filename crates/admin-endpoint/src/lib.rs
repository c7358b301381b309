//! `/metrics` and `/health` of a server, on an address of their own.
//!
//! # What it is
//! One thread that tells what a server says of itself ([`Told`]) to Prometheus, to load balancers
//! and to people, over HTTP/1.1. It is a thread of its own, so that it answers when those that serve
//! are busy, and an address of its own, so that clients of the server do not reach it. Nothing can be
//! changed there.
//!
//! # Example
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use haul_admin_endpoint::{Address, Admin, Told};
//!
//! struct Idle;
//!
//! impl Told for Idle {
//!     fn metrics(&self) -> String {
//!         "requests_total 0\n".to_owned()
//!     }
//!     fn trouble(&self) -> Option<&'static str> {
//!         None
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let admin = Admin::bind(&"127.0.0.1:0".parse()?, Idle)?;
//! let Address::Tcp(address) = *admin.address() else { unreachable!() };
//! let mut client = TcpStream::connect(address)?;
//! client.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok\n"));
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - `/health` is 200 and `ok` without trouble, and 503 with the reason otherwise; nothing that is
//!   told may be kept by a cache.
//! - **Nobody holds the others up.** Clients that say nothing, or take nothing, have so many seconds,
//!   and one when there are many of them; further ones wait in the kernel's queue.
//! - What a client takes is bounded: a head of 16 KiB, one answer at a time, [`CONNECTIONS_MAX`]
//!   connections.
//!
//! # Cost
//! A thread, an epoll descriptor, and a connection each for whoever asks. Without clients it sleeps.
//!
//! # What it is not
//! No routes of others, no TLS, no passwords: whoever reaches the address is told everything. It
//! counts nothing by itself.
//!
//! # Sources
//! The format of `/metrics` is the text format of Prometheus, 0.0.4; what a message is, \[RFC9112\].
//! Keys refer to `docs/sources.md`.

mod admin;
mod answer;
mod client;

pub use admin::{Admin, CONNECTIONS_MAX};
pub use haul_reactor::Address;

/// What a server says of itself. It is asked by the thread of [`Admin`], for each request anew.
pub trait Told: Send + 'static {
    /// The text of `/metrics`.
    fn metrics(&self) -> String;

    /// Why nobody should be sent to the server now; `None` when all is well.
    fn trouble(&self) -> Option<&'static str>;

    /// Whether a request that names this `host` or `host:port` is answered. All are, unless said
    /// otherwise: a page from elsewhere can have a name of its own lead to this machine.
    fn answers_to(&self, host: Option<&str>) -> bool {
        let _any = host;
        true
    }
}
