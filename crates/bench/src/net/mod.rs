//! Compares server programs: starts each on a core of its own, drives it with wrk from another core,
//! and measures the CPU time of its processes, in interleaved rounds.

pub(crate) mod bench;
pub(crate) mod client;
mod congestion;
mod cores;
mod haul;
pub(crate) mod meter;
pub(crate) mod nginx;
pub(crate) mod objects;
pub(crate) mod presigned;
pub(crate) mod programs;
pub(crate) mod sample;
pub(crate) mod server;
pub(crate) mod signed_put;
pub(crate) mod site;
pub(crate) mod wrk;

pub(crate) use cores::Pinned;
pub(crate) use haul::{files_command, haul_command, serve_command, signed_serve, with_tls};
