//! Requests, understood one after the other, and answered.

use std::io;

use haul_http1::{Framing, Request, Version, parse_request};
use haul_reactor::Context;

use crate::access_log::LogFormat;
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
    /// All of its answer is with the kernel.
    Answered,
    /// Its answer is being sent.
    Sending,
    /// It waits for another thread, and is understood anew when that is done.
    Waiting,
}

impl Worker {
    /// Answers the requests that `bytes` begin with, as far as that can be done at once. Says how
    /// many bytes were taken.
    pub(crate) fn requests(
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
                // Told first: one that is closed then goes on being read for a while.
                connection.has_unread = taken < bytes.len();
                self.next_request(connection, hub.now());
            }
            if outcome == Outcome::Sending || connection.closes || connection.share_requests == 0 {
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
        connection.begun.begin(&[b"-"], None);
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
        if ready.is_none() {
            connection.requests += 1;
            self.note(connection, request, &asking);
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

    /// Begins the line of the log.
    fn note(&self, connection: &mut Connection, request: &Request<'_>, asking: &Asking<'_>) {
        let Some(log) = &self.desk.shared.access_log else { return };
        let tail = match log.format {
            LogFormat::Common => None,
            LogFormat::Combined => Some([asking.referer, asking.user_agent]),
        };
        let version: &[u8] = match request.version {
            Version::Http10 => b" HTTP/1.0",
            Version::Http11 => b" HTTP/1.1",
        };
        let target = request.target.path().as_bytes();
        connection.begun.begin(&[request.method.as_bytes(), b" ", target, version], tail);
    }
}
