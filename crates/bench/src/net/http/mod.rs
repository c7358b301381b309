//! The load generator of the benchmarks of HTTP servers, and the files that the servers serve.

pub(crate) mod client;
mod connection;
mod response;
pub(crate) mod s3;
pub(crate) mod site;
pub(crate) mod tls;
mod transport;
