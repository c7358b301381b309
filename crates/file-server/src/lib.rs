//! Files over HTTP/1.1.

mod access_log;
mod admin;
mod answer;
mod asking;
mod caches;
mod coding;
mod conditions;
mod config;
mod connection;
mod content_type;
mod disk_threads;
mod error;
mod fill;
mod find;
mod listing;
mod meta;
mod metrics;
mod path;
mod range;
mod requests;
mod root;
mod sending;
mod server;
mod shared;
mod sketch;
mod stream;
mod tier;
mod worker;

pub use access_log::{AccessLog, Lines, LogFormat};
pub use config::{Config, Content, Limits, Tiers};
pub use error::{Error, Result};
pub use haul_reactor::Address;
pub use metrics::Stats;
pub use server::{Addresses, Handle, Server};
pub use tier::Tier;
