//! Connections that speak HTTP/1.1: heads are read strictly and written anew, bodies pass through.
//!
//! One request is under way on a connection; what a client sends ahead waits. A connection to a
//! target is used for the next request, of the same client or of another one, only when both
//! messages ended exactly where they said. What
//! cannot be understood in one way only is answered with 400, and no byte of it reaches a target.

mod answer;
mod asking;
mod connection;
mod counters;
mod exchange;
mod half;
mod heads;
mod inbox;
mod linger;
mod options;
mod peer;
mod spares;
mod tunnel;
mod waiting;

pub(crate) use connection::{Around, HttpRelayed};
pub(crate) use counters::HttpCounters;
pub use counters::HttpStats;
pub use options::HttpOptions;
pub(crate) use spares::Spares;
