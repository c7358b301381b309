//! Modules shared by the benchmarks of servers: they run a server as a process on its own core,
//! measure its CPU time, and generate load on another core.

pub(crate) mod comparison;
pub(crate) mod congestion;
pub(crate) mod content;
pub(crate) mod cores;
pub(crate) mod environment;
pub(crate) mod haul;
pub(crate) mod http;
pub(crate) mod nginx;
pub(crate) mod poller;
pub(crate) mod proc_facts;
pub(crate) mod programs;
pub(crate) mod sample;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod usage;
