//! Requests, understood one after the other, and answered.

use std::io;
use std::time::{Duration, Instant};

use haul_http_engine::LoggedRequest;
use haul_http1::{Framing, Request, Version, parse_request};
use haul_reactor::Context;

use crate::answer::{self, Page};
use crate::asking::Asking;
use crate::caches::Asked;
use crate::connection::{Connection, Flow, Message};
use crate::look::What;
use crate::path::{decoded, merged, split};
use crate::worker::Worker;

/// The longest body of a request that is taken, for nobody: after a longer one we close.
const SKIP_BYTES_MAX: u64 = 64 << 10;

const ALLOWED: &str = "GET, HEAD, OPTIONS";

const NOT_OURS: &str = "421 This server answers to localhost, to addresses, and to the names it was \
                        told when it was started\n";

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its response was sent or queued.
    Answered,
    /// Its answer is being sent.
    Sending,
    /// It waits for another thread, and is understood anew when that is done.
    Waiting,
}

impl Worker {
    /// Answers the requests at the front of `bytes`, as far as possible without waiting. Returns
    /// the number of bytes consumed.
    pub(crate) fn requests(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        hub: &mut Context<'_, Message>,
    ) -> (usize, io::Result<Flow>) {
        let (taken, flow) = self.answer_requests(connection, bytes, hub);
        let sent = self.send_queued(connection, hub.now());
        (taken, flow.and_then(|flow| sent.map(|()| flow)))
    }

    fn answer_requests(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        hub: &mut Context<'_, Message>,
    ) -> (usize, io::Result<Flow>) {
        let mut taken = 0;
        loop {
            taken += connection.skip(&bytes[taken..]);
            let rest = &bytes[taken..];
            if rest.is_empty() {
                self.await_rest(connection, connection.skip_bytes > 0, hub.now());
                return (taken, Ok(Flow::Go));
            }
            let request = match parse_request(rest, &self.head_limits) {
                Ok(Some(request)) => request,
                Ok(None) => {
                    self.await_rest(connection, true, hub.now());
                    return (taken, Ok(Flow::Go));
                }
                Err(refused) => {
                    self.refuse(connection, refused.status, refused.reason, hub);
                    return (bytes.len(), Ok(Flow::Go));
                }
            };
            connection.has_unread = taken + request.head_bytes < bytes.len();
            let outcome = match self.request(connection, &request, hub) {
                Ok(outcome) => outcome,
                Err(error) => return (taken, Err(error)),
            };
            if outcome == Outcome::Waiting {
                // It is all understood anew then, its body too.
                connection.skip_bytes = 0;
                return (taken, Ok(Flow::Go));
            }
            taken += request.head_bytes;
            connection.share_requests = connection.share_requests.saturating_sub(1);
            if outcome == Outcome::Answered {
                self.record_latency(connection);
                self.next_request(connection, hub.now());
            }
            let is_last = connection.closes || connection.share_requests == 0;
            if outcome == Outcome::Sending || is_last || self.pipeline.is_full() {
                connection.has_unread = taken < bytes.len();
                return (taken, Ok(Flow::Go));
            }
        }
    }

    /// Answers what is no request. Where it ends is not known, so it is the last one.
    fn refuse(
        &mut self,
        connection: &mut Connection,
        status: u16,
        reason: &str,
        hub: &Context<'_, Message>,
    ) {
        (connection.closes, connection.sends_on) = (true, true);
        if let Some(log) = &self.desk.shared.access_log {
            connection.log_line.begin(log.format, None, hub.now());
        }
        let page = Page::plain(status, format!("{status} {reason}\n"));
        let sending = answer::page(&self.manner(connection, false), &page);
        self.begin_sending(connection, sending, hub.now());
    }

    fn request(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        hub: &mut Context<'_, Message>,
    ) -> io::Result<Outcome> {
        let ready = connection.ready.take();
        let asking = Asking::of(request.fields);
        let is_head = request.method == "HEAD";
        let is_new = ready.is_none();
        if is_new {
            connection.requests += 1;
            connection.request_at = Some(hub.now());
            self.note(connection, request, &asking, hub.now());
        }
        let is_last = connection.requests >= self.desk.shared.limits.requests;
        connection.closes = !request.keep_alive || is_last || hub.is_draining();
        connection.is_old = request.version == Version::Http10;
        match request.framing {
            Framing::Length(bytes) if bytes <= SKIP_BYTES_MAX => {
                connection.skip_bytes = bytes;
                // Whoever asked whether to send the body may send it or not after our answer.
                connection.closes |= request.expect_continue && bytes > 0;
            }
            _ => {
                (connection.closes, connection.sends_on) = (true, true);
                let page = Page::of_status(413);
                return Ok(self.page(connection, &page, is_head, hub));
            }
        }
        if is_new && let Some(wait) = self.wait_for_rate(connection, hub.now()) {
            let page = Page::of_status(429).with("Retry-After", wait.as_secs().max(1).to_string());
            return Ok(self.page(connection, &page, is_head, hub));
        }
        if !self.desk.shared.hosts.allows(request.host) {
            let page = Page::plain(421, NOT_OURS.to_owned());
            return Ok(self.page(connection, &page, is_head, hub));
        }
        if !matches!(request.method, "GET" | "HEAD") {
            let status = if request.method == "OPTIONS" { 204 } else { 405 };
            let page = Page::of_status(status).with("Allow", ALLOWED);
            return Ok(self.page(connection, &page, is_head, hub));
        }
        let (path, query) = split(request.target.path().as_bytes());
        // A target with a host may have no path.
        let path = if path.is_empty() { b"/" } else { path };
        let mut space = std::mem::take(&mut self.space);
        let outcome = match decoded(path, &mut space) {
            Ok(path) => {
                let path = &*merged(path);
                let asked = Asked { accepted: asking.accepted, path };
                let what = What { asking: &asking, asked, query, is_head };
                self.look(connection, &what, ready, hub)
            }
            Err(_malformed) => Ok(self.page(connection, &Page::of_status(400), is_head, hub)),
        };
        self.space = space;
        outcome
    }

    /// Counts a request for the rate of its client; returns the time after which the client may
    /// repeat the request, if it exceeds the rate.
    fn wait_for_rate(&self, connection: &Connection, now: Instant) -> Option<Duration> {
        let (rate, peer) = (self.desk.shared.peer_rate.as_ref()?, connection.peer?);
        rate.try_take(peer, now).err()
    }

    /// Begins the line of the log.
    fn note(
        &self,
        connection: &mut Connection,
        request: &Request<'_>,
        asking: &Asking<'_>,
        now: Instant,
    ) {
        let Some(log) = &self.desk.shared.access_log else { return };
        let logged = LoggedRequest {
            referer: asking.referer,
            user_agent: asking.user_agent,
            ..LoggedRequest::of(request)
        };
        connection.log_line.begin(log.format, Some(&logged), now);
    }
}
