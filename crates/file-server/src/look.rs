//! What was asked for, found here or where that takes time, and given.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use haul_reactor::{Context, IoStatus};
use rustix::fs::{self, Mode, OFlags};

use crate::answer::{self, Page};
use crate::asking::Asking;
use crate::caches::{Asked, Caches, Key};
use crate::connection::{Connection, Done, Message, State};
use crate::disk_threads::Full;
use crate::fill::load;
use crate::find::{Found, NotKnown};
use crate::listing::{Cursor, Listed};
use crate::meta::{HotFile, OpenFile, Version};
use crate::path::encoded;
use crate::requests::Outcome;
use crate::resident::load_at_once;
use crate::root::Wait;
use crate::sending::{Sending, Source};
use crate::shared::{Work, ms_since};
use crate::tier::Tier;
use crate::worker::Worker;

/// A request for a file.
pub(crate) struct What<'a> {
    pub(crate) asking: &'a Asking<'a>,
    pub(crate) asked: Asked<'a>,
    pub(crate) query: Option<&'a [u8]>,
    pub(crate) is_head: bool,
}

impl Worker {
    /// Finds what was asked for: here, or where it takes time.
    pub(crate) fn look(
        &mut self,
        connection: &mut Connection,
        what: &What<'_>,
        ready: Option<Done>,
        hub: &mut Context<'_, Message>,
    ) -> io::Result<Outcome> {
        let shared = Arc::clone(&self.desk.shared);
        let now_ms = self.ms(hub);
        let (found, found_ms) = match ready {
            Some(Done::Found(found, found_ms)) => (found, found_ms),
            Some(Done::Loaded(file)) => {
                return Ok(self.give(connection, what, &Source::Hot(file, Tier::Read), hub));
            }
            Some(Done::Listed(listed)) => {
                return Ok(self.give_listing(connection, what, &listed, hub));
            }
            Some(Done::Failed(status)) => return Ok(self.fail(connection, what, status, hub)),
            None => {
                if let Some(file) = shared.caches.hot(what.asked, now_ms) {
                    return self.give_hot(connection, what, file, hub);
                }
                if let Some(file) = shared.caches.open(what.asked, now_ms) {
                    return Ok(self.give(connection, what, &Source::File(file), hub));
                }
                match shared.finder.find(what.asked.path, what.asked.accepted, Wait::Never) {
                    Ok(found) => (found, now_ms),
                    Err(NotKnown) => return Ok(self.find_elsewhere(connection, what, hub)),
                }
            }
        };
        shared.caches.learn(what.asked, &found);
        match found {
            Found::File(file) => self.found_file(connection, what, file, found_ms, hub),
            Found::WithoutSlash => {
                let mut to = encoded(what.asked.path) + "/";
                if let Some(query) = what.query {
                    to = format!("{to}?{}", String::from_utf8_lossy(query));
                }
                let page = Page::of_status(301).with("Location", to);
                Ok(self.page(connection, &page, what.is_head, hub))
            }
            Found::Directory(dir) => Ok(self.list(connection, what, dir, hub)),
            Found::Status(status) => Ok(self.fail(connection, what, status, hub)),
        }
    }

    /// Without a descriptor, with a disk that fails or is asked for too much, what is here is the
    /// best there is.
    fn fail(
        &self,
        connection: &mut Connection,
        what: &What<'_>,
        status: u16,
        hub: &Context<'_, Message>,
    ) -> Outcome {
        let kept = matches!(status, 500 | 503).then(|| self.desk.shared.caches.any(what.asked));
        match kept.flatten() {
            Some(source) => self.give(connection, what, &source, hub),
            None => self.page(connection, &Page::of_status(status), what.is_head, hub),
        }
    }

    /// Has a thread look that may wait. Who asks for something that was right until lately does not
    /// wait for it: in front of that thread there may be thousands.
    fn find_elsewhere(
        &self,
        connection: &mut Connection,
        what: &What<'_>,
        hub: &Context<'_, Message>,
    ) -> Outcome {
        let shared = &self.desk.shared;
        let (finder, caches) = (Arc::clone(&shared.finder), Arc::clone(&shared.caches));
        let (key, started) = (Key::of(what.asked), shared.started);
        let work = Work::Find(key.clone());
        let find = move || {
            // Before: what changes meanwhile may not be seen.
            let found_ms = ms_since(started, Instant::now());
            let found = finder.find(key.asked().path, key.asked().accepted, Wait::May);
            let found = found.unwrap_or(Found::Status(503));
            // Here, since its asker may be gone.
            caches.learn(key.asked(), &found);
            Done::Found(found, found_ms)
        };
        if !shared.caches.are_believed() {
            return self.find_alone(connection, what, hub, find);
        }
        if let Some(kept) = shared.caches.any_lately(what.asked, self.ms(hub)) {
            drop(self.together(work, |_done| (), true, find));
            return self.give(connection, what, &kept, hub);
        }
        // Others believe what is kept as long as somebody looks, so that is done in any case.
        let is_kept = shared.caches.any(what.asked).is_some();
        self.wait_for(connection, hub, work, is_kept, find)
    }

    /// For one asker, who is to see every change: others may have begun to look before it.
    fn find_alone(
        &self,
        connection: &mut Connection,
        what: &What<'_>,
        hub: &Context<'_, Message>,
        find: impl FnOnce() -> Done + Send + 'static,
    ) -> Outcome {
        let (asker, remote) = (Arc::new(()), hub.message_sender());
        let job = move || remote.send(Message::Ready(find()));
        match self.desk.shared.disk.hand_small(Some(Arc::downgrade(&asker)), job) {
            Ok(()) => {
                self.desk.counts.disk_jobs.add(1);
                wait(connection, asker)
            }
            Err(Full) => self.fail(connection, what, 503, hub),
        }
    }

    fn found_file(
        &mut self,
        connection: &mut Connection,
        what: &What<'_>,
        file: Arc<OpenFile>,
        found_ms: u64,
        hub: &mut Context<'_, Message>,
    ) -> io::Result<Outcome> {
        let shared = Arc::clone(&self.desk.shared);
        if let Some(hot) = shared.caches.hot_in_state(what.asked, &file.meta) {
            return self.give_hot(connection, what, hot, hub);
        }
        let bytes = file.meta.version.bytes;
        if what.is_head || shared.hot_bytes_max == 0 || bytes > shared.hot_bytes_max {
            let file = shared.caches.keep_open(what.asked, file, found_ms);
            return Ok(self.give(connection, what, &Source::File(file), hub));
        }
        if let Some(body) = load_at_once(&file) {
            let hot = keep_hot(&shared.caches, what.asked, file, body, found_ms);
            return Ok(self.give(connection, what, &Source::Hot(hot, Tier::Resident), hub));
        }
        let work = Work::Load(what.asked.key_for(&file.meta), file.meta.version);
        let (key, caches) = (Key::of(what.asked), Arc::clone(&shared.caches));
        Ok(self.wait_for(connection, hub, work, false, move || match load(&file) {
            Ok(body) => Done::Loaded(keep_hot(&caches, key.asked(), file, body, found_ms)),
            Err(_broken) => Done::Failed(500),
        }))
    }

    /// A directory as it is now, which somebody may have read already, or be reading.
    fn list(
        &self,
        connection: &mut Connection,
        what: &What<'_>,
        dir: Arc<OwnedFd>,
        hub: &Context<'_, Message>,
    ) -> Outcome {
        let Ok(stat) = fs::fstat(&*dir) else {
            return self.fail(connection, what, 500, hub);
        };
        let shared = &self.desk.shared;
        let (now_ms, version) = (self.ms(hub), Version::of(&stat));
        let Some(cursor) = Cursor::parse(what.query.unwrap_or_default()) else {
            return self.page(connection, &Page::of_status(400), what.is_head, hub);
        };
        let key = shared.listings.key(what.asked.path, cursor, what.asking.wants_json);
        if let Some(listed) = shared.listings.kept(&key, version, now_ms) {
            return self.give_listing(connection, what, &listed, hub);
        }
        let (finder, listings) = (Arc::clone(&shared.finder), Arc::clone(&shared.listings));
        let work = Work::List(key.clone(), version);
        self.wait_for(connection, hub, work, false, move || {
            let Ok(dir) = own(dir) else { return Done::Failed(503) };
            match listings.make(&finder, dir, key, version, now_ms) {
                Ok(listed) => Done::Listed(listed),
                Err(status) => Done::Failed(status),
            }
        })
    }

    /// The shortest way: everything is in memory, and nothing special is asked for.
    fn give_hot(
        &mut self,
        connection: &mut Connection,
        what: &What<'_>,
        file: Arc<HotFile>,
        hub: &mut Context<'_, Message>,
    ) -> io::Result<Outcome> {
        if what.is_head || what.asking.is_conditional || what.asking.range.is_some() {
            return Ok(self.give(connection, what, &Source::Hot(file, Tier::Memory), hub));
        }
        if connection.has_unread || !self.pipeline.is_empty() {
            return Ok(self.queue_response(connection, file));
        }
        let told = self.manner(connection, false).connection();
        let pieces = [&*self.clock.ok, told, &*file.meta.whole];
        let head_bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let all = pieces.map(IoSlice::new);
        let all = [all[0], all[1], all[2], IoSlice::new(&file.body)];
        let sent = match connection.socket.write(&all, false) {
            Ok(IoStatus::Bytes(sent)) => sent,
            Ok(IoStatus::WouldBlock) => 0,
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
        hub: &Context<'_, Message>,
    ) -> Outcome {
        let manner = self.manner(connection, what.is_head);
        let sending = answer::file(&manner, what.asking, source, || self.boundary());
        self.begin_sending(connection, sending, hub.now());
        Outcome::Sending
    }

    pub(crate) fn page(
        &self,
        connection: &mut Connection,
        page: &Page,
        is_head: bool,
        hub: &Context<'_, Message>,
    ) -> Outcome {
        let sending = answer::page(&self.manner(connection, is_head), page);
        self.begin_sending(connection, sending, hub.now());
        Outcome::Sending
    }

    fn give_listing(
        &self,
        connection: &mut Connection,
        what: &What<'_>,
        listed: &Arc<Listed>,
        hub: &Context<'_, Message>,
    ) -> Outcome {
        let sending = answer::listing(&self.manner(connection, what.is_head), listed);
        self.begin_sending(connection, sending, hub.now());
        Outcome::Sending
    }

    /// Has something done by a thread that may wait, once for all who ask for it meanwhile, and the
    /// request understood anew afterwards.
    fn wait_for(
        &self,
        connection: &mut Connection,
        hub: &Context<'_, Message>,
        work: Work,
        in_any_case: bool,
        job: impl FnOnce() -> Done + Send + 'static,
    ) -> Outcome {
        let remote = hub.message_sender();
        let tell = move |done| remote.send(Message::Ready(done));
        wait(connection, self.together(work, tell, in_any_case, job))
    }

    /// Has something done once for all who ask for it meanwhile, each of whom is told; if not
    /// `in_any_case`, as long as anybody holds what is given.
    fn together(
        &self,
        work: Work,
        tell: impl FnOnce(Done) + Send + 'static,
        in_any_case: bool,
        job: impl FnOnce() -> Done + Send + 'static,
    ) -> Arc<()> {
        let shared = &self.desk.shared;
        let (asker, landing) = shared.together.join(work, tell);
        if let Some(landing) = landing {
            let wanted = Some(Arc::downgrade(&asker));
            let held = in_any_case.then(|| Arc::clone(&asker));
            let handed = shared.disk.hand_small(wanted, move || {
                landing.land(&job());
                drop(held);
            });
            // Refused, it was dropped, and all who wait for it have been told.
            self.desk.counts.disk_jobs.add(u64::from(handed.is_ok()));
        }
        asker
    }
}

/// A directory is read once with each description.
fn own(dir: Arc<OwnedFd>) -> rustix::io::Result<OwnedFd> {
    let again = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    Arc::try_unwrap(dir).or_else(|dir| fs::openat(&*dir, ".", again, Mode::empty()))
}

fn wait(connection: &mut Connection, asker: Arc<()>) -> Outcome {
    connection.state = State::Waiting { _asker: asker };
    connection.deadline = None;
    Outcome::Waiting
}

/// Puts a small file into the cache, which was found at `found_ms`.
fn keep_hot(
    caches: &Caches,
    asked: Asked<'_>,
    file: Arc<OpenFile>,
    body: Box<[u8]>,
    found_ms: u64,
) -> Arc<HotFile> {
    // Others may have it, for whom it was found, too.
    let meta = Arc::try_unwrap(file).map_or_else(|file| file.meta.clone(), |file| file.meta);
    caches.keep_hot(asked, meta, body, found_ms)
}
