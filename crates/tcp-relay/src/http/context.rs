//! Bundles the state that an HTTP session needs while the reactor drives it.

use std::net::IpAddr;
use std::time::Duration;

use haul_http_engine::ThreadLog;
use haul_reactor::Context;

use super::access_record::LogContext;
use super::idle_pool::IdlePool;
use crate::http_options::HttpOptions;
use crate::stream_session::Shared;
use crate::thread_context::ThreadContext;

/// References to the state of the relay, of the thread, and of the thread's reactor.
pub(crate) struct HttpContext<'a, 'r, M> {
    pub(crate) shared: &'a Shared,
    pub(crate) options: &'a HttpOptions,
    pub(crate) thread: &'a mut ThreadContext,
    pub(crate) idle_pool: &'a mut IdlePool,
    /// The access log; `None`: no requests are logged.
    pub(crate) log: &'a mut Option<ThreadLog>,
    pub(crate) reactor: &'a Context<'r, M>,
}

impl<M> HttpContext<'_, '_, M> {
    /// Returns the access log, the recent requests, and the names that both contain.
    pub(super) fn log_context(&mut self) -> LogContext<'_> {
        let recent = self.shared.recent.as_deref();
        LogContext { log: self.log, recent, targets: &self.shared.targets }
    }

    /// Takes a token of the client for a request; returns `false` if the client exceeds its rate.
    pub(super) fn is_within_rate(&self, client: Option<IpAddr>) -> bool {
        let (Some(rate), Some(client)) = (&self.shared.peer_rate, client) else { return true };
        let is_within = rate.try_take(client, self.reactor.now()).is_ok();
        self.thread.counters.http.rate_limited.add(u64::from(!is_within));
        is_within
    }

    /// Returns the time after which a client that exceeds its rate may send a request again.
    pub(super) fn retry_after(&self) -> Duration {
        self.options.peer_rate.map_or(Duration::ZERO, |rate| rate.interval())
    }
}
