//! What all threads of a server have in common, and what each has for itself.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use haul_http_engine::{AccessLog, LogDates};
use haul_http1::Date;
use haul_reactor::RateLimit;
use haul_tls::Acceptor;

use crate::caches::{Caches, Key};
use crate::carrier::Carriers;
use crate::config::{Cold, Limits, Tiers};
use crate::connection::Done;
use crate::disk_threads::DiskThreads;
use crate::find::Finder;
use crate::flights::Flights;
use crate::hosts::Hosts;
use crate::listing::{ListingKey, Listings};
use crate::meta::Version;
use crate::metrics::Counts;
use crate::sketch::Sketch;
use crate::tier::Rules;

/// The bytes of a file read at once to be encrypted: as many as one call of `sendmsg(2)` sends.
const ENCRYPTED_BYTES: usize = 64 << 10;

/// One for the server.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) finder: Arc<Finder>,
    pub(crate) hosts: Hosts,
    pub(crate) tls: Option<Acceptor>,
    pub(crate) caches: Arc<Caches>,
    pub(crate) listings: Arc<Listings>,
    /// What is being read for all who wait for it.
    pub(crate) together: Arc<Flights<Work, Done>>,
    pub(crate) sketch: Sketch,
    pub(crate) rules: Rules,
    pub(crate) disk: DiskThreads,
    pub(crate) limits: Limits,
    pub(crate) peer_rate: Option<RateLimit>,
    pub(crate) access_log: Option<AccessLog>,
    /// The longest file of the cache; 0 when there is no cache.
    pub(crate) hot_bytes_max: u64,
    pub(crate) started: Instant,
}

impl Shared {
    /// The moment in milliseconds of the server.
    pub(crate) fn ms(&self, now: Instant) -> u64 {
        ms_since(self.started, now)
    }
}

pub(crate) fn ms_since(started: Instant, now: Instant) -> u64 {
    let since = now.saturating_duration_since(started);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What may be done for several requests at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// What is at a path, for who takes these forms, is looked up.
    Find(Key),
    /// A file in this state is read into the cache.
    Load(Key, Version),
    /// A directory in this state is listed.
    List(ListingKey, Version),
}

/// One for each thread that serves.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) carriers: Carriers,
    /// Bytes of a file on their way to a client with TLS; empty between two calls.
    pub(crate) buffer: RefCell<Box<[u8]>>,
}

impl Desk {
    pub(crate) fn new(shared: &Arc<Shared>, tiers: &Tiers) -> Self {
        // Bytes in a pipe cannot be encrypted.
        let (cold, buffer_bytes) = match shared.tls {
            None => (tiers.cold, 0),
            Some(_) => (Cold::Copy, ENCRYPTED_BYTES),
        };
        Self {
            shared: Arc::clone(shared),
            counts: Arc::new(Counts::new()),
            carriers: Carriers::new(cold, tiers.carriers_max),
            buffer: RefCell::new(vec![0; buffer_bytes].into()),
        }
    }
}

/// The date, as it is written; made anew when a second has passed.
#[derive(Debug)]
pub(crate) struct Clock {
    turn: Option<Instant>,
    second: u64,
    pub(crate) date: Date,
    /// The beginning of every plain answer, up to and with its date.
    pub(crate) ok: Vec<u8>,
    pub(crate) log_dates: LogDates,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let date = Date::of(SystemTime::UNIX_EPOCH);
        Self { turn: None, second: 0, date, ok: Vec::new(), log_dates: LogDates::default() }
    }

    /// A turn of the thread has begun; the calendar is asked once in each.
    pub(crate) fn turn(&mut self, now: Instant) {
        if self.turn == Some(now) {
            return;
        }
        self.turn = Some(now);
        let at = SystemTime::now();
        let second = at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if second == self.second && !self.ok.is_empty() {
            return;
        }
        self.second = second;
        self.date = Date::of(at);
        self.log_dates = LogDates::of(at);
        self.ok.clear();
        self.ok.extend_from_slice(b"HTTP/1.1 200 OK\r\nDate: ");
        self.ok.extend_from_slice(self.date.as_bytes());
        self.ok.extend_from_slice(b"\r\n");
    }
}
