//! Requests files, called pages, on many HTTP connections from one thread: as fast as responses
//! arrive, or at a fixed rate while other connections download big files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;

use super::connection::{Connection, Received};
use super::site::{Pages, Site};
use crate::net::content::Content;
use crate::net::poller::{Poller, READ, SILENCE_MAX, WAIT_MAX, silence};
use crate::net::sample::{Extent, Sample, measure};
use crate::net::usage::Meter;
use haul_measure::{Result, Watcher};

/// One response in this many is compared byte by byte; of the other responses, only the bytes are
/// counted.
const COMPARE_EVERY: u64 = 64;
/// The maximum number of bytes received at a time, so that a download does not delay short
/// responses.
const BUFFER_BYTES: usize = 256 << 10;

/// A load generator for one server, and its connections.
pub(crate) struct Client<'a> {
    site: &'a Site,
    connections: Vec<Connection>,
    poller: Poller<'a>,
    /// The length in bytes of the response for each page, head included; `None` until the head of a
    /// response for the page has arrived.
    lengths: Vec<Option<u64>>,
    /// `true` if every response is compared byte by byte.
    pub(crate) compare_all: bool,
    /// `false` if each request uses a new connection.
    pub(crate) keep_alive: bool,
    requests: u64,
    buffer: Vec<u8>,
}

impl<'a> Client<'a> {
    /// Opens the connections, with TLS if there is a configuration of it.
    pub(crate) fn new(
        site: &'a Site,
        watcher: &'a dyn Watcher,
        address: SocketAddr,
        connections: usize,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Result<Self> {
        let poller = Poller::new(watcher)?;
        let connections: Vec<_> =
            (0..connections).map(|_| Connection::new(address, tls)).collect::<Result<_>>()?;
        for (token, connection) in (0..).zip(&connections) {
            poller.add(&connection.transport, token, READ)?;
        }
        let (lengths, buffer) = (vec![None; site.pages.len()], vec![0; BUFFER_BYTES]);
        let (compare_all, keep_alive, requests) = (false, true, 0);
        Ok(Self { site, connections, poller, lengths, compare_all, keep_alive, requests, buffer })
    }

    /// Fetches the pages that `next` returns, until `extent` ends the measurement. Each connection
    /// requests the next page as soon as it has received the previous page.
    pub(crate) fn fetch(
        &mut self,
        mut next: impl FnMut() -> Option<usize>,
        extent: Extent,
        meter: Meter,
    ) -> Result<Sample> {
        let mut unused = 0..self.connections.len();
        let sample = measure(extent, meter, |sample| {
            for (at, page) in unused.by_ref().zip(std::iter::from_fn(&mut next)) {
                self.request(at, page, true)?;
            }
            for at in self.ready(WAIT_MAX)? {
                let received = self.receive(at)?;
                sample.bytes += received.bytes;
                if received.is_end {
                    sample.requests += 1;
                    next().map(|page| self.request(at, page, true)).transpose()?;
                }
            }
            Ok(())
        })?;
        while !self.connections.iter().all(Connection::is_idle) {
            for at in self.ready(WAIT_MAX)? {
                self.receive(at)?;
            }
        }
        Ok(sample)
    }

    /// Fetches each page of `pages` once.
    pub(crate) fn fetch_once(&mut self, pages: &Pages, meter: Meter) -> Result<Sample> {
        let mut left = pages.clone();
        self.fetch(|| left.next(), Extent::Requests(pages.len() as u64), meter)
    }

    /// Fetches random pages of `pages` by `schedule`, while the last `downloads` connections fetch
    /// the pages of `big`. Latency counts from the time at which a request was due, even if all
    /// connections were busy then and the request was sent later \[HdrHistogram\].
    pub(crate) fn fetch_at_rate(
        &mut self,
        mut schedule: Schedule,
        pages: &Pages,
        (big, downloads): (&Pages, usize),
        meter: Meter,
    ) -> Result<Sample> {
        let mut next = random(pages, 2);
        let mut next_big = big.clone().cycle();
        let short = self.connections.len() - downloads;
        let mut idle: Vec<usize> = (0..short).collect();
        let mut due_at = vec![Duration::ZERO; short];
        for (at, page) in (short..self.connections.len()).zip(next_big.by_ref()) {
            self.request(at, page, false)?;
        }
        let start = Instant::now();
        let sample = measure(Extent::Requests(schedule.count), meter, |sample| {
            let now = start.elapsed();
            if now > schedule.time() + SILENCE_MAX {
                return Err(silence());
            }
            while !idle.is_empty() {
                let (Some(due), Some(page)) = (schedule.next_due(now), next()) else { break };
                let Some(at) = idle.pop() else { break };
                due_at[at] = due;
                self.request(at, page, true)?;
            }
            // Polls without sleeping: a late wake-up would delay the next request and count as
            // latency of the server. Sorts by index, because connections of downloads have the
            // highest indexes: short responses are thus received before downloads.
            let mut ready = self.ready(Duration::ZERO)?;
            ready.sort_unstable();
            for at in ready {
                let received = self.receive(at)?;
                if at >= short {
                    sample.bytes += received.bytes;
                    if received.is_end
                        && let Some(page) = next_big.next()
                    {
                        self.request(at, page, false)?;
                    }
                } else if received.is_end {
                    sample.requests += 1;
                    sample.latencies.record(start.elapsed().saturating_sub(due_at[at]));
                    idle.push(at);
                }
            }
            Ok(())
        })?;
        Ok(Sample { mixed: true, ..sample })
    }

    /// Requests a page on the connection with the index `at`. `may_compare` is `false` for
    /// downloads beside short requests, because comparing them would delay the short requests.
    fn request(&mut self, at: usize, page: usize, may_compare: bool) -> Result<()> {
        self.requests += 1;
        let compare = self.compare_all || self.requests.is_multiple_of(COMPARE_EVERY);
        let length = self.lengths[page].filter(|_| !(may_compare && compare));
        if !self.keep_alive {
            self.connections[at].reconnect()?;
            self.poller.add(&self.connections[at].transport, at as u64, READ)?;
        }
        self.connections[at].request(self.site, page, length, may_compare && compare)
    }

    fn receive(&mut self, at: usize) -> Result<Received> {
        let connection = &mut self.connections[at];
        let received = connection.receive(self.site, &mut self.buffer)?;
        if let Some(length) = received.length {
            self.lengths[connection.page] = Some(length);
        }
        Ok(received)
    }

    fn ready(&mut self, time_max: Duration) -> Result<Vec<usize>> {
        let tokens = self.poller.wait(time_max)?;
        Ok(tokens.into_iter().filter_map(|token| usize::try_from(token).ok()).collect())
    }
}

/// Returns a function that returns random pages without end, or `None` if `pages` is empty. Each
/// seed gives a different sequence.
pub(crate) fn random(pages: &Pages, seed: u64) -> impl FnMut() -> Option<usize> {
    let pages = pages.clone();
    let mut index = 0;
    move || {
        index += 1;
        let number = Content(seed).number(index).checked_rem(pages.len() as u64)?;
        Some(pages.start + usize::try_from(number).ok()?)
    }
}

/// A schedule of requests at equal intervals. A late request does not delay the requests after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    per_second: f64,
    count: u64,
    next: u64,
}

impl Schedule {
    /// Returns a schedule for the duration `time`, with at least one request.
    pub(crate) fn new(per_second: f64, time: Duration) -> Self {
        let per_second = per_second.max(1.0);
        #[expect(clippy::cast_possible_truncation, reason = "a count of what fits into a run")]
        #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
        let count = (per_second * time.as_secs_f64()) as u64;
        Self { per_second, count: count.max(1), next: 0 }
    }

    fn due(&self, request: u64) -> Duration {
        Duration::from_secs_f64(request as f64 / self.per_second)
    }

    fn time(&self) -> Duration {
        self.due(self.count)
    }

    /// Returns the due time of the next request and advances the schedule, or returns `None` if no
    /// request is due yet at `now`.
    fn next_due(&mut self, now: Duration) -> Option<Duration> {
        let due = self.due(self.next);
        let is_due = self.next < self.count && due <= now;
        self.next += u64::from(is_due);
        is_due.then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_their_due_times_after_a_stall() {
        let ms = Duration::from_millis;
        let mut schedule = Schedule::new(100.0, ms(100));
        assert_eq!(schedule.next_due(ms(0)), Some(ms(0)));
        assert_eq!(schedule.next_due(ms(9)), None);
        assert_eq!(schedule.next_due(ms(10)), Some(ms(10)));
        // The client stalled for 70 ms.
        let late: Vec<_> = std::iter::from_fn(|| schedule.next_due(ms(80))).collect();
        assert_eq!(late, [20, 30, 40, 50, 60, 70, 80].map(ms));
        assert_eq!(schedule.next_due(ms(1000)), Some(ms(90)));
        assert_eq!(schedule.next_due(ms(9999)), None);
    }

    #[test]
    fn schedule_has_at_least_one_request() {
        let mut schedule = Schedule::new(0.0, Duration::ZERO);
        assert_eq!(schedule.next_due(Duration::ZERO), Some(Duration::ZERO));
        assert_eq!((schedule.count, schedule.next_due(Duration::MAX)), (1, None));
    }
}
