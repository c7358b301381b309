//! Serves `/metrics`, `/health`, `/ready` and a console of a server on another address than the one for its clients.
//!
//! # What it is
//! One thread serves the metrics and health of a server ([`StatusSource`]) to Prometheus, load
//! balancers and operators over HTTP/1.1. The thread responds even while the server's own threads
//! are busy. The address is separate, so that operators can make it unreachable for the clients of
//! the server. The endpoint is read-only.
//!
//! A server that returns an [`Overview`] also gets a console at `/`: a page for browsers with charts
//! of its values and heat maps of its latencies, over the last two minutes, hour, or 24 hours. The
//! endpoint records these values ([`History`]), so that the page shows the time before it was
//! opened. Servers with an HTTP server of their own can serve the same page from [`console_page`],
//! [`console_file`], [`History`] and [`Sampler`].
//!
//! # Example
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use haul_admin_endpoint::{Address, Admin, StatusSource};
//!
//! struct Idle;
//!
//! impl StatusSource for Idle {
//!     fn metrics(&self) -> String {
//!         "requests_total 0\n".to_owned()
//!     }
//!     fn unready_reason(&self) -> Option<&'static str> {
//!         None
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let admin = Admin::bind(&"127.0.0.1:0".parse()?, Idle)?;
//! let Address::Tcp(address) = *admin.address() else { unreachable!() };
//! let mut client = TcpStream::connect(address)?;
//! client.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
//! let mut response = String::new();
//! client.read_to_string(&mut response)?;
//! assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nok\n"));
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - `/health` and `/ready` return 200 and `ok`, or 503 and the reason; all responses are
//!   `no-store`. `/health` fails if only a restart helps, and `/ready` also while the server should
//!   receive no new clients, for example because it is draining.
//! - **No client delays another.** The endpoint closes idle and slow clients after a timeout, which
//!   is one second while more than half of [`CONNECTIONS_MAX`] are connected; clients over the
//!   limit wait in the kernel's accept queue.
//! - Memory is bounded: at most [`CONNECTIONS_MAX`] clients, each with a header section of about 16
//!   KiB and one response, and 1,800 rows of history.
//!
//! # Cost
//! The endpoint uses one thread, one epoll descriptor, and one descriptor per client. Without
//! clients the thread sleeps. With a console, a second thread wakes every ten seconds. A row of the
//! history has 8 bytes for each series, and 4 bytes for each bucket of latencies that is in use.
//!
//! # What it is not
//! It has no configurable routes, no TLS and no authentication: every client that can reach the
//! address can read everything. It collects no metrics itself, except those of the process
//! ([`Exposition::process`]); [`Exposition`] writes the metrics that a server has collected, and
//! [`LatencyHistogram`] counts the durations of requests.
//!
//! # Sources
//! `/metrics` uses the text format 0.0.4 of Prometheus; messages follow \[RFC9112\].
//! Keys refer to `docs/sources.md`.

mod admin;
mod client;
mod console;
mod exposition;
mod history;
mod hosts;
mod latency;
mod overview;
mod process;
mod recent;
mod response;
mod sampler;

pub use admin::{Admin, CONNECTIONS_MAX};
pub use console::{CONSOLE_POLICY, console_file, console_page};
pub use exposition::{Exposition, Family, MetricType, Value};
pub use haul_reactor::Address;
pub use history::{History, Span};
pub use hosts::AllowedHosts;
pub use latency::{LatencyHistogram, LatencyStats};
pub use overview::{Overview, Series, Unit};
pub use recent::{RecentRequest, RecentRequests};
pub use sampler::Sampler;

/// The source of metrics and health, called by the thread of [`Admin`] for each request, and by a
/// second thread that records the history of its [`overview`](StatusSource::overview).
pub trait StatusSource: Send + Sync + 'static {
    /// Returns the body of `/metrics`.
    fn metrics(&self) -> String;

    /// Returns the reason why the server should receive no new clients now, for `/ready`; `None` if
    /// it accepts connections and is not draining.
    fn unready_reason(&self) -> Option<&'static str>;

    /// Returns the reason why the server must be restarted, for `/health` and `/ready`; by default
    /// there is none.
    fn failure_reason(&self) -> Option<&'static str> {
        None
    }

    /// Returns the values that the console at `/` draws; by default there is no console.
    fn overview(&self) -> Option<Overview> {
        None
    }

    /// Returns the recent requests that the console shows and `/requests.json` has; by default the
    /// server records none.
    fn recent_requests(&self) -> Option<&RecentRequests> {
        None
    }

    /// Returns `true` if requests with this `Host` (`host` or `host:port`) are served; by default
    /// all are. Restricting the hosts prevents DNS rebinding, in which a foreign web page resolves
    /// its own host name to this machine: see [`AllowedHosts`].
    fn is_allowed_host(&self, host: Option<&str>) -> bool {
        let _any = host;
        true
    }
}
