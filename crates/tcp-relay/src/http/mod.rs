//! HTTP/1.1 sessions: message heads are parsed strictly and written again, bodies are relayed.
//!
//! A session forwards one request at a time; pipelined requests wait. An upstream connection is
//! reused, for the same client or another one, only if both messages ended exactly at their
//! declared length. A request whose head is ambiguous is answered with 400, and none of its bytes
//! reach a target.

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
