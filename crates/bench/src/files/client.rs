//! A load of many connections on one thread: closed, open, and downloads.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::connection::{Connection, Lengths, Look};
use super::schedule::Schedule;
use super::site::{Pages, Site};
use crate::error::{Error, Result};
use crate::net::poller::{Poller, Want};
use crate::net::sample::Sample;
use crate::net::usage::Meter;
use crate::net::window::{Load, Turn, Window};
use crate::places::Places;
use crate::stats::Latencies;
use crate::watch::Watcher;

/// One answer of so many is compared byte by byte; the others are counted.
const COMPARE_EVERY: u64 = 64;
/// A server that answers nothing for so long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long nobody is ready before it is looked whether to stop.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// The most that is taken from a download at a time, so that what is quick is not kept waiting.
const ROOM_BYTES: usize = 256 << 10;

/// Connections to one server.
pub(super) struct Client<'a> {
    site: &'a Site,
    watcher: &'a dyn Watcher,
    connections: Vec<Connection>,
    poller: Poller,
    lengths: &'a mut Lengths,
    /// Whether every answer is compared, not one of many alone.
    pub(super) compare_all: bool,
    asked: u64,
    heard: Instant,
    room: Vec<u8>,
}

/// What came of an open load.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// Times from when each was to be asked for.
    pub(super) latencies: Latencies,
    /// What the downloads beside it brought.
    pub(super) downloaded: u64,
    pub(super) wall: Duration,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        site: &'a Site,
        watcher: &'a dyn Watcher,
        (address, lengths): (SocketAddr, &'a mut Lengths),
        connections: usize,
    ) -> Result<Self> {
        let poller = Poller::new()?;
        let connections: Vec<_> =
            (0..connections).map(|_| Connection::new(address)).collect::<Result<_>>()?;
        for (token, connection) in (0..).zip(&connections) {
            poller.add(&connection.stream, token, Want::Read)?;
        }
        let (heard, room) = (Instant::now(), vec![0; ROOM_BYTES]);
        let (compare_all, asked) = (false, 0);
        Ok(Self { site, watcher, connections, poller, lengths, compare_all, asked, heard, room })
    }

    /// Each connection asks for a page at random as soon as it has the one before.
    pub(super) fn closed(&mut self, pages: &Pages, load: Load, meter: Meter) -> Result<Sample> {
        let mut places = Places::new(1, pages.len() as u64, 1);
        for at in 0..self.connections.len() {
            self.ask(at, any(pages, &mut places))?;
        }
        let mut window = Window::new(load, meter);
        let (mut done, mut bytes) = (0, 0);
        loop {
            match window.turn(Instant::now()) {
                Turn::GoOn => {}
                Turn::Begin => (done, bytes) = (0, 0),
                Turn::End => break,
            }
            for at in self.ready(WAIT_MAX)? {
                let look = self.look(at)?;
                bytes += look.bytes;
                if look.is_all {
                    done += 1;
                    self.ask(at, any(pages, &mut places))?;
                }
            }
        }
        let sample = window.finish();
        self.settle()?;
        Ok(Sample { done, bytes, ..sample })
    }

    /// All of these once, each connection one after the other.
    pub(super) fn download(&mut self, pages: &Pages, meter: Meter) -> Result<Sample> {
        let before = meter.usage();
        let began = Instant::now();
        let mut left: VecDeque<usize> = pages.clone().collect();
        let mut sample = Sample::default();
        for at in 0..self.connections.len() {
            left.pop_front().map(|page| self.ask(at, page)).transpose()?;
        }
        while sample.done < pages.len() as u64 {
            for at in self.ready(WAIT_MAX)? {
                let look = self.look(at)?;
                sample.bytes += look.bytes;
                if look.is_all {
                    sample.done += 1;
                    left.pop_front().map(|page| self.ask(at, page)).transpose()?;
                }
            }
        }
        sample.wall = began.elapsed();
        sample.used = before.until(&meter.usage());
        Ok(sample)
    }

    /// Pages at random, at a fixed rate, whether or not those before have been
    /// answered; beside them the last `downloads` connections fetch one of `cold` after the other.
    pub(super) fn open(
        &mut self,
        pages: &Pages,
        (per_second, time): (f64, Duration),
        (cold, downloads): (&Pages, usize),
    ) -> Result<Opened> {
        let mut places = Places::new(1, pages.len() as u64, 2);
        let quick = self.connections.len() - downloads;
        let mut free: Vec<usize> = (0..quick).collect();
        let mut began_at: Vec<Duration> = vec![Duration::ZERO; quick];
        let mut schedule = Schedule::new(per_second, time);
        let mut next_cold = cold.clone().cycle();
        for (at, page) in (quick..self.connections.len()).zip(next_cold.by_ref()) {
            self.ask_uncompared(at, page)?;
        }
        let mut opened = Opened::default();
        let start = Instant::now();
        // A server that cannot keep up is given time to answer what was asked; not for ever.
        while !(schedule.is_over() && free.len() == quick) {
            let now = start.elapsed();
            if now > time + SILENCE_MAX {
                return Err(silence());
            }
            while let Some(at) = free.pop() {
                let Some(due) = schedule.next_due(now) else {
                    free.push(at);
                    break;
                };
                began_at[at] = due;
                self.ask(at, any(pages, &mut places))?;
            }
            // Whoever sleeps wakes late, and would take that for the server's.
            let mut ready = self.ready(Duration::ZERO)?;
            ready.sort_unstable();
            for at in ready {
                let look = self.look(at)?;
                if at >= quick {
                    opened.downloaded += look.bytes;
                }
                match (look.is_all, at < quick) {
                    (false, _) => {}
                    (true, true) => {
                        let since_due = start.elapsed().saturating_sub(began_at[at]);
                        opened.latencies.record(since_due);
                        free.push(at);
                    }
                    (true, false) => {
                        let page = next_cold.next();
                        page.map(|page| self.ask_uncompared(at, page)).transpose()?;
                    }
                }
            }
        }
        opened.wall = start.elapsed();
        Ok(opened)
    }

    /// Takes the answers that are still on their way.
    fn settle(&mut self) -> Result<()> {
        while !self.connections.iter().all(Connection::is_idle) {
            for at in self.ready(WAIT_MAX)? {
                self.look(at)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, at: usize, page: usize) -> Result<()> {
        self.asked += 1;
        let compare = self.compare_all || self.asked.is_multiple_of(COMPARE_EVERY);
        self.connections[at].ask(self.site, page, self.lengths, compare)
    }

    /// For downloads beside what is quick: comparing them would keep that waiting.
    fn ask_uncompared(&mut self, at: usize, page: usize) -> Result<()> {
        self.connections[at].ask(self.site, page, self.lengths, false)
    }

    fn look(&mut self, at: usize) -> Result<Look> {
        self.connections[at].look(self.site, self.lengths, &mut self.room)
    }

    fn ready(&mut self, time_max: Duration) -> Result<Vec<usize>> {
        let mut tokens = Vec::new();
        self.poller.wait(time_max, &mut tokens)?;
        if !tokens.is_empty() {
            self.heard = Instant::now();
        } else if self.heard.elapsed() > SILENCE_MAX {
            return Err(silence());
        }
        self.watcher.check()?;
        Ok(tokens.into_iter().filter_map(|token| usize::try_from(token).ok()).collect())
    }
}

fn silence() -> Error {
    let why = io::Error::new(
        io::ErrorKind::TimedOut,
        format!("the server did not answer for {SILENCE_MAX:?}"),
    );
    Error::other("get an answer")(why)
}

fn any(pages: &Pages, places: &mut Places) -> usize {
    pages.start + usize::try_from(places.next()).unwrap_or_default()
}
