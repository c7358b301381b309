//! Bundles the state that an HTTP session needs while the reactor drives it.

use haul_reactor::Context;

use super::idle_pool::IdlePool;
use super::options::HttpOptions;
use crate::stream_session::Shared;
use crate::thread_context::ThreadContext;

/// References to the state of the relay, of the thread, and of the thread's reactor.
pub(crate) struct HttpContext<'a, 'r, M> {
    pub(crate) shared: &'a Shared,
    pub(crate) options: &'a HttpOptions,
    pub(crate) thread: &'a mut ThreadContext,
    pub(crate) idle_pool: &'a mut IdlePool,
    pub(crate) reactor: &'a Context<'r, M>,
}
