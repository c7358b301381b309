//! Requests, understood one after the other, and answered.

use std::io::{self, IoSlice};
use std::sync::Arc;

use haul_http1::{Framing, Request, Version, parse_request};
use haul_reactor::{Hub, Moved};

use crate::access_log::LogFormat;
use crate::answer::{self, Page};
use crate::asking::Asking;
use crate::caches::{Asked, HotFile};
use crate::connection::{Connection, Flow, Message, Ready};
use crate::disk_threads::Size;
use crate::fill::load;
use crate::find::{Found, NotKnown};
use crate::listing;
use crate::meta::OpenFile;
use crate::path::{decoded, encoded, split};
use crate::root::Wait;
use crate::sending::{Sending, Source};
use crate::tier::Tier;
use crate::worker::Worker;

/// The longest body of a request that is taken, for nobody: after a longer one we close.
const SKIP_BYTES_MAX: u64 = 64 << 10;

const ALLOWED: &str = "GET, HEAD, OPTIONS";

const NOT_OURS: &str = "421 This server answers to localhost, to addresses, and to the names it was \
                        told when it was started\n";

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
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
        hub: &mut Hub<'_, Message>,
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
        hub: &Hub<'_, Message>,
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
        hub: &mut Hub<'_, Message>,
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

    /// Finds what was asked for: here, or where it takes time.
    fn look(
        &mut self,
        connection: &mut Connection,
        what: &What<'_>,
        ready: Option<Ready>,
        hub: &mut Hub<'_, Message>,
    ) -> io::Result<Outcome> {
        let shared = Arc::clone(&self.desk.shared);
        let now_ms = self.ms(hub);
        let found = match ready {
            Some(Ready::Found(found)) => found,
            Some(Ready::Loaded(file, bytes)) => {
                return self.loaded(connection, what, file, bytes.ok(), Tier::Read, hub);
            }
            Some(Ready::Page(page)) => return Ok(self.page(connection, &page, what.is_head, hub)),
            None => {
                if let Some(file) = shared.caches.hot(what.asked, now_ms) {
                    return self.give_hot(connection, what, file, hub);
                }
                if let Some(file) = shared.caches.open(what.asked, now_ms) {
                    return Ok(self.give(connection, what, &Source::File(file), hub));
                }
                match shared.finder.find(what.asked.path, what.asked.accepted, Wait::Never) {
                    Ok(found) => found,
                    Err(NotKnown) => return Ok(self.find_elsewhere(connection, what, hub)),
                }
            }
        };
        shared.caches.learn(what.asked, &found);
        match found {
            Found::File(file) => self.found_file(connection, what, file, hub),
            Found::WithoutSlash => {
                let mut to = encoded(what.asked.path) + "/";
                if let Some(query) = what.query {
                    to = format!("{to}?{}", String::from_utf8_lossy(query));
                }
                let page = Page::of_status(301).with("Location", to);
                Ok(self.page(connection, &page, what.is_head, hub))
            }
            Found::Directory(dir) => {
                let (path, json) = (what.asked.path.to_vec(), what.asking.wants_json);
                let finder = Arc::clone(&shared.finder);
                Ok(self.wait_for(connection, hub, Size::Small, move || {
                    Ready::Page(listing::answer(&finder, dir, &path, json))
                }))
            }
            Found::Status(status) => {
                // Without a descriptor, or with a disk that fails, what is here is the best there is.
                let kept = matches!(status, 500 | 503).then(|| shared.caches.any(what.asked));
                Ok(match kept.flatten() {
                    Some(source) => self.give(connection, what, &source, hub),
                    None => self.page(connection, &Page::of_status(status), what.is_head, hub),
                })
            }
        }
    }

    fn find_elsewhere(
        &mut self,
        connection: &mut Connection,
        what: &What<'_>,
        hub: &Hub<'_, Message>,
    ) -> Outcome {
        let (path, accepted) = (what.asked.path.to_vec(), what.asked.accepted);
        let (finder, caches) =
            (Arc::clone(&self.desk.shared.finder), Arc::clone(&self.desk.shared.caches));
        self.wait_for(connection, hub, Size::Small, move || {
            let found = finder.find(&path, accepted, Wait::May);
            let found = found.unwrap_or(Found::Status(503));
            // Here, since its asker may be gone, and others believe that somebody looks.
            caches.learn(Asked { accepted, path: &path }, &found);
            Ready::Found(found)
        })
    }

    fn found_file(
        &mut self,
        connection: &mut Connection,
        what: &What<'_>,
        file: Arc<OpenFile>,
        hub: &mut Hub<'_, Message>,
    ) -> io::Result<Outcome> {
        let shared = Arc::clone(&self.desk.shared);
        if let Some(hot) = shared.caches.hot_in_state(what.asked, &file.meta) {
            return self.give_hot(connection, what, hot, hub);
        }
        let bytes = file.meta.version.bytes;
        if what.is_head || shared.hot_bytes_max == 0 || bytes > shared.hot_bytes_max {
            let file = shared.caches.keep_open(what.asked, file, self.ms(hub));
            return Ok(self.give(connection, what, &Source::File(file), hub));
        }
        let resident = haul_disk::resident(&file.fd, 0, bytes);
        if resident.is_ok_and(|there| there.resident_bytes >= bytes) {
            let bytes = load(&file).ok();
            return self.loaded(connection, what, file, bytes, Tier::Resident, hub);
        }
        Ok(self.wait_for(connection, hub, Size::Small, move || {
            let bytes = load(&file);
            Ready::Loaded(file, bytes)
        }))
    }

    /// A small file was read whole, or could not be.
    fn loaded(
        &mut self,
        connection: &mut Connection,
        what: &What<'_>,
        file: Arc<OpenFile>,
        bytes: Option<Box<[u8]>>,
        tier: Tier,
        hub: &mut Hub<'_, Message>,
    ) -> io::Result<Outcome> {
        let Some(bytes) = bytes else {
            return Ok(self.page(connection, &Page::of_status(500), what.is_head, hub));
        };
        let meta = match Arc::try_unwrap(file) {
            Ok(file) => file.meta,
            // Nobody else has it: it was found for this request.
            Err(file) => return Ok(self.give(connection, what, &Source::File(file), hub)),
        };
        let hot = self.desk.shared.caches.keep_hot(what.asked, meta, bytes, self.ms(hub));
        Ok(self.give(connection, what, &Source::Hot(hot, tier), hub))
    }

    /// The shortest way: everything is in memory, and nothing special is asked for.
    fn give_hot(
        &mut self,
        connection: &mut Connection,
        what: &What<'_>,
        file: Arc<HotFile>,
        hub: &mut Hub<'_, Message>,
    ) -> io::Result<Outcome> {
        if what.is_head || what.asking.is_conditional || what.asking.range.is_some() {
            return Ok(self.give(connection, what, &Source::Hot(file, Tier::Memory), hub));
        }
        let told = self.manner(connection, false).connection();
        let pieces = [&*self.clock.ok, told, &*file.meta.whole];
        let head_bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let all = pieces.map(IoSlice::new);
        let all = [all[0], all[1], all[2], IoSlice::new(&file.body)];
        let sent = match connection.socket.write(&all, false) {
            Ok(Moved::Bytes(sent)) => sent,
            Ok(Moved::WouldBlock) => 0,
            Err(error) => {
                self.desk.counts.cut_short.add(1);
                self.answered(connection, 200, 0, Tier::Memory);
                return Err(error);
            }
        };
        if sent < head_bytes + file.body.len() {
            let rest = Sending::rest_of(&pieces, sent, &file, &self.desk);
            self.begin_sending(connection, rest, hub.now());
            return Ok(Outcome::Sending);
        }
        let body_bytes = file.body.len() as u64;
        self.desk.counts.sent(Tier::Memory, body_bytes);
        self.answered(connection, 200, body_bytes, Tier::Memory);
        Ok(Outcome::Answered)
    }

    fn give(
        &self,
        connection: &mut Connection,
        what: &What<'_>,
        source: &Source,
        hub: &Hub<'_, Message>,
    ) -> Outcome {
        let manner = self.manner(connection, what.is_head);
        let sending = answer::file(&manner, what.asking, source, || self.boundary());
        self.begin_sending(connection, sending, hub.now());
        Outcome::Sending
    }

    fn page(
        &self,
        connection: &mut Connection,
        page: &Page,
        is_head: bool,
        hub: &Hub<'_, Message>,
    ) -> Outcome {
        let sending = answer::page(&self.manner(connection, is_head), page);
        self.begin_sending(connection, sending, hub.now());
        Outcome::Sending
    }

    /// Has something done by a thread that may wait, and the request understood anew afterwards.
    fn wait_for(
        &self,
        connection: &mut Connection,
        hub: &Hub<'_, Message>,
        size: Size,
        job: impl FnOnce() -> Ready + Send + 'static,
    ) -> Outcome {
        let remote = hub.remote();
        self.begin_waiting(connection);
        self.desk.shared.disk.hand(size, move || remote.tell(Message::Ready(job())));
        Outcome::Waiting
    }
}

/// A request for a file.
struct What<'a> {
    asking: &'a Asking<'a>,
    asked: Asked<'a>,
    query: Option<&'a [u8]>,
    is_head: bool,
}
