//! What is counted of HTTP.

use crate::stats::Counter;

/// The counters of one thread.
#[derive(Debug, Default)]
pub(crate) struct HttpCounters {
    /// Requests that were understood.
    pub(crate) requests: Counter,
    /// Responses of targets, by the first digit of their status.
    pub(crate) responses: [Counter; 5],
    /// Answers of the relay itself: requests refused, targets that fail, who takes too long.
    pub(crate) answers: [Counter; ANSWERS.len()],
    /// Requests sent over a connection to a target that had been used before.
    pub(crate) reused: Counter,
    /// Requests sent again, because that connection had been ended.
    pub(crate) asked_again: Counter,
    /// Connections that left HTTP.
    pub(crate) tunnels: Counter,
}

/// The statuses the relay answers with by itself.
const ANSWERS: [u16; 11] = [400, 408, 413, 414, 417, 431, 501, 502, 503, 504, 505];

impl HttpCounters {
    pub(crate) fn response(&self, status: u16) {
        if let Some(counter) = self.responses.get(usize::from(status / 100).wrapping_sub(1)) {
            counter.add(1);
        }
    }

    pub(crate) fn answer(&self, status: u16) {
        if let Some(place) = ANSWERS.iter().position(|known| *known == status) {
            self.answers[place].add(1);
        }
    }
}

/// What a relay that reads HTTP did so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpStats {
    /// Requests that were understood.
    pub requests: u64,
    /// Responses of targets, by the first digit of their status, from 1 on.
    pub responses: [u64; 5],
    /// Answers of the relay itself, by their status.
    pub answers: Vec<(u16, u64)>,
    /// Requests sent over a connection to a target that had been used before.
    pub reused: u64,
    /// Requests sent again, because that connection had been ended.
    pub asked_again: u64,
    /// Connections that left HTTP.
    pub tunnels: u64,
}

impl HttpStats {
    pub(crate) fn add(&mut self, counters: &HttpCounters) {
        self.requests += counters.requests.get();
        self.reused += counters.reused.get();
        self.asked_again += counters.asked_again.get();
        self.tunnels += counters.tunnels.get();
        for (sum, counter) in self.responses.iter_mut().zip(&counters.responses) {
            *sum += counter.get();
        }
        if self.answers.is_empty() {
            self.answers = ANSWERS.map(|status| (status, 0)).to_vec();
        }
        for ((_, sum), counter) in self.answers.iter_mut().zip(&counters.answers) {
            *sum += counter.get();
        }
    }

    /// How often the relay answered so by itself.
    pub fn answered(&self, status: u16) -> u64 {
        self.answers.iter().find(|answer| answer.0 == status).map_or(0, |answer| answer.1)
    }
}
