//! Runs HTTP/1.1 sessions: parses message heads strictly, writes new heads, and relays bodies.
//!
//! A session forwards one request at a time; pipelined requests wait. An upstream connection, to a
//! target, is reused for another request of the same or another client only if the request and its
//! response ended exactly at their declared lengths. A request whose head is ambiguous is answered
//! with 400, and none of its bytes reach a target.

mod context;
mod counters;
mod exchange;
mod forward;
mod idle_pool;
mod linger;
mod messages;
mod options;
mod peers;
mod request;
mod session;
mod timeouts;
mod tunnel;
mod upstream;

pub(crate) use context::HttpContext;
pub(crate) use counters::HttpCounters;
pub use counters::HttpStats;
pub(crate) use idle_pool::IdlePool;
pub use options::HttpOptions;
pub(crate) use session::HttpSession;
