//! Counts HTTP requests, responses and tunnels in each thread, and sums the counters of all
//! threads.

use haul_admin_endpoint::{LatencyHistogram, LatencyStats};

use crate::counter::Counter;

/// The HTTP counters of one thread.
#[derive(Debug, Default)]
pub(crate) struct HttpCounters {
    /// Valid requests received from clients.
    pub(crate) requests: Counter,
    /// Responses of targets, by status class: 1xx at index 0 to 5xx at index 4.
    pub(crate) responses: [Counter; 5],
    /// Responses that the relay generated itself (refused requests, failed targets, timeouts), by
    /// status code.
    pub(crate) error_responses: [Counter; ERROR_STATUSES.len()],
    /// Times from the head of a request to the head of the target's response.
    pub(crate) latency: LatencyHistogram,
    /// Requests refused because their client exceeded its rate.
    pub(crate) rate_limited: Counter,
    /// Requests sent over a reused upstream connection.
    pub(crate) reused: Counter,
    /// Requests sent again over a new connection because the target had closed the reused one.
    pub(crate) retried: Counter,
    /// Connections upgraded to a tunnel.
    pub(crate) tunnels: Counter,
}

/// The status codes of the responses that the relay generates itself.
const ERROR_STATUSES: [u16; 12] = [400, 408, 413, 414, 417, 429, 431, 501, 502, 503, 504, 505];

impl HttpCounters {
    /// Counts a response of a target.
    pub(crate) fn response(&self, status: u16) {
        if let Some(counter) = self.responses.get(usize::from(status / 100).wrapping_sub(1)) {
            counter.add(1);
        }
    }

    /// Counts an error response that the relay generated itself.
    pub(crate) fn error_response(&self, status: u16) {
        if let Some(index) = ERROR_STATUSES.iter().position(|known| *known == status) {
            self.error_responses[index].add(1);
        }
    }
}

/// Statistics of HTTP requests, responses and tunnels since the relay started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpStats {
    /// Valid requests received from clients.
    pub requests: u64,
    /// Responses of targets, by status class: 1xx at index 0 to 5xx at index 4.
    pub responses: [u64; 5],
    /// Responses that the relay generated itself (refused requests, failed targets, timeouts), by
    /// status code.
    pub error_responses: Vec<(u16, u64)>,
    /// Times from the head of a request to the head of the target's response.
    pub latency: LatencyStats,
    /// Requests refused because their client exceeded its rate.
    pub rate_limited: u64,
    /// Requests sent over a reused upstream connection.
    pub reused: u64,
    /// Requests sent again over a new connection because the target had closed the reused one.
    pub retried: u64,
    /// Connections upgraded to a tunnel.
    pub tunnels: u64,
}

impl HttpStats {
    pub(crate) fn add(&mut self, counters: &HttpCounters) {
        self.requests += counters.requests.get();
        self.latency.add(&counters.latency);
        self.rate_limited += counters.rate_limited.get();
        self.reused += counters.reused.get();
        self.retried += counters.retried.get();
        self.tunnels += counters.tunnels.get();
        for (sum, counter) in self.responses.iter_mut().zip(&counters.responses) {
            *sum += counter.get();
        }
        if self.error_responses.is_empty() {
            self.error_responses = ERROR_STATUSES.map(|status| (status, 0)).to_vec();
        }
        for ((_, sum), counter) in self.error_responses.iter_mut().zip(&counters.error_responses) {
            *sum += counter.get();
        }
    }

    /// Returns the number of responses with this status code that the relay generated itself.
    pub fn error_responses(&self, status: u16) -> u64 {
        self.error_responses
            .iter()
            .find(|(known, _)| *known == status)
            .map_or(0, |(_, count)| *count)
    }
}
