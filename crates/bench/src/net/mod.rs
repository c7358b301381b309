//! What benches of servers share: a server as a process on a core of its own, what it used, and a
//! load that asks from another core.

pub(crate) mod answer;
pub(crate) mod congestion;
pub(crate) mod content;
pub(crate) mod contest;
pub(crate) mod cores;
pub(crate) mod nginx;
pub(crate) mod place;
pub(crate) mod poller;
pub(crate) mod proc_facts;
pub(crate) mod programs;
pub(crate) mod sample;
pub(crate) mod server;
pub(crate) mod usage;
pub(crate) mod window;
