//! Connections relayed.

mod admin;
mod choice;
mod config;
mod connect;
mod error;
mod flow;
mod http;
mod metrics;
pub mod proxy;
mod relayed;
mod server;
mod service;
mod sockets;
mod stats;
mod target;

pub use choice::{LARGE_BYTES, Moving, Way};
pub use config::{Config, Limits};
pub use error::{Error, Result};
pub use haul_pipe::{PoolOptions, PoolStats};
pub use haul_reactor::{Address, TcpOptions};
pub use http::HttpOptions;
pub use server::{Addresses, Handle, Server};
pub use stats::{Ended, Moved, Stats};
pub use target::{Balance, CheckOptions, Seen};
