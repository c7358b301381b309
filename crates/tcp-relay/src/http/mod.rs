//! Runs HTTP/1.1 sessions: parses message heads strictly, writes new heads, and relays bodies.
//!
//! A session forwards one request at a time; pipelined requests wait. The relay reuses an upstream
//! connection (a connection to a target) for the next request, of the same client or of another,
//! only if the previous request and its response ended exactly at their declared lengths. The relay
//! answers a request whose head is ambiguous with 400, and none of its bytes reach a target.

mod access_record;
mod context;
mod counters;
mod exchange;
mod forward;
mod idle_pool;
mod linger;
mod messages;
mod peers;
mod request;
mod session;
mod timeouts;
mod tunnel;
mod upstream;

pub(crate) use access_record::{LogContext, log_refusal};
pub(crate) use context::HttpContext;
pub(crate) use counters::HttpCounters;
pub use counters::HttpStats;
pub(crate) use idle_pool::IdlePool;
pub(crate) use session::HttpSession;
