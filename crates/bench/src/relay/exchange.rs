//! Questions and answers through a relay: clients and backend, on one thread.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::peer::{Peer, ROOM_BYTES, Side, Step};
use super::traffic::Exchange;
use crate::error::{Error, Result};
use crate::net::poller::{Poller, Want};
use crate::net::sample::Sample;
use crate::net::usage::Meter;
use crate::net::window::{Load, Turn, Window};
use crate::stats::Latencies;
use crate::watch::Watcher;

/// A relay through which nothing comes for so long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const WAIT_MAX: Duration = Duration::from_millis(100);
const LISTENER: u64 = u64::MAX;

/// The two ends of a relay.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub(super) relay: SocketAddr,
    pub(super) backend: &'a TcpListener,
    pub(super) watcher: &'a dyn Watcher,
}

impl Ends<'_> {
    /// Who is ready, by token; nobody, for a moment, is no failure. `last` is when somebody was.
    pub(super) fn ready(&self, poller: &mut Poller, last: &mut Instant) -> Result<Vec<u64>> {
        let mut ready = Vec::new();
        poller.wait(WAIT_MAX, &mut ready)?;
        self.watcher.check()?;
        if !ready.is_empty() {
            *last = Instant::now();
        } else if last.elapsed() > SILENCE_MAX {
            let why = format!("nothing came through the relay for {SILENCE_MAX:?}");
            let why = io::Error::new(ErrorKind::TimedOut, why);
            return Err(Error::other("wait for an answer")(why));
        }
        Ok(ready)
    }
}

/// When it is over.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    Time(Load),
    /// So many answers.
    Done(u64),
}

struct Client {
    peer: Peer,
    began: Instant,
    /// It has its answer, and waits for the end of the connection.
    heard: bool,
}

/// A load that is under way.
pub(super) struct Talk<'a> {
    ends: Ends<'a>,
    exchange: Exchange,
    poller: Poller,
    clients: Vec<Option<Client>>,
    backends: Vec<Option<Peer>>,
    next_number: u64,
    done: u64,
    /// All that were ever answered.
    pub(super) answered: u64,
    /// What has come, at both ends.
    bytes: u64,
    latencies: Latencies,
    stopping: bool,
    last: Instant,
    room: Vec<u8>,
}

/// Whatever relays left behind: connections nobody will use.
pub(super) fn drop_strays(listener: &TcpListener) -> Result<()> {
    loop {
        match listener.accept() {
            Ok(stray) => drop(stray),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(Error::other("accept a connection")(error)),
        }
    }
}

impl<'a> Talk<'a> {
    pub(super) fn new(ends: Ends<'a>, exchange: Exchange) -> Result<Self> {
        drop_strays(ends.backend)?;
        let poller = Poller::new()?;
        poller.add(ends.backend, LISTENER, Want::Read)?;
        Ok(Self {
            ends,
            exchange,
            poller,
            clients: Vec::new(),
            backends: Vec::new(),
            next_number: 0,
            done: 0,
            answered: 0,
            bytes: 0,
            latencies: Latencies::default(),
            stopping: false,
            last: Instant::now(),
            room: vec![0; ROOM_BYTES],
        })
    }

    /// Asks and answers until it is over, and until nothing is on its way.
    pub(super) fn run(&mut self, until: Until, meter: Meter) -> Result<Sample> {
        let (load, answers) = match until {
            Until::Time(load) => (load, u64::MAX),
            Until::Done(answers) => {
                (Load { settle: Duration::ZERO, measure: Duration::MAX }, answers)
            }
        };
        let mut window = Window::new(load, meter);
        self.stopping = false;
        for at in 0..self.exchange.connections {
            self.ask(at)?;
        }
        loop {
            match window.turn(Instant::now()) {
                Turn::GoOn if self.done < answers => {}
                Turn::Begin => self.forget(),
                // Of what takes longer than all the time there is, one counts at least.
                Turn::End if self.done == 0 => {}
                Turn::GoOn | Turn::End => break,
            }
            self.step()?;
        }
        let (done, bytes) = (self.done, self.bytes);
        let latencies = std::mem::take(&mut self.latencies);
        let sample = window.finish();
        self.stopping = true;
        while self.clients.iter().flatten().any(|client| !client.heard) {
            self.step()?;
        }
        Ok(Sample { done, bytes, latencies, ..sample })
    }

    fn forget(&mut self) {
        (self.done, self.bytes, self.latencies) = (0, 0, Latencies::default());
    }

    fn step(&mut self) -> Result<()> {
        for token in self.ends.ready(&mut self.poller, &mut self.last)? {
            let at = usize::try_from(token / 2).unwrap_or(usize::MAX);
            match token {
                LISTENER => self.accept()?,
                token if token.is_multiple_of(2) => self.drive_client(at)?,
                _ => self.drive_backend(at)?,
            }
        }
        Ok(())
    }

    /// The next question of a client, on a connection of its own if it is not kept.
    fn ask(&mut self, at: usize) -> Result<()> {
        let began = Instant::now();
        if self.clients.get(at).is_none_or(Option::is_none) {
            let what = || format!("connect to the relay at {}", self.ends.relay);
            let stream = TcpStream::connect(self.ends.relay).map_err(Error::other(what()))?;
            let number = Some(self.next_number);
            self.next_number += 1;
            let peer = Peer::new(stream, Side::Client, self.exchange, number)?;
            self.poller.add(&peer.stream, 2 * at as u64, Want::Read)?;
            let client = Client { peer, began, heard: false };
            if at < self.clients.len() {
                self.clients[at] = Some(client);
            } else {
                self.clients.push(Some(client));
            }
        }
        let Some(client) = &mut self.clients[at] else { return Ok(()) };
        client.peer.begin();
        (client.began, client.heard) = (began, false);
        self.drive_client(at)
    }

    fn drive_client(&mut self, at: usize) -> Result<()> {
        let Some(Some(client)) = self.clients.get_mut(at) else { return Ok(()) };
        if client.peer.has_more_to_say() {
            return say(&mut client.peer, &mut self.room, &self.poller, 2 * at as u64).map(drop);
        }
        let kept = self.exchange.kept;
        if !client.heard {
            match client.peer.hear(&mut self.room, &mut self.bytes)? {
                Step::Empty | Step::Full => return Ok(()),
                Step::Done => client.heard = true,
                Step::Closed => return Err(cut("answer")),
            }
        } else if kept {
            // Nobody asked, so nothing comes.
            return if client.peer.is_closed()? { Err(cut("connection")) } else { Ok(()) };
        }
        if !kept && !client.peer.is_closed()? {
            return Ok(());
        }
        client.peer.end();
        self.latencies.record(client.began.elapsed());
        self.done += 1;
        self.answered += 1;
        if !kept {
            self.clients[at] = None;
        }
        if self.stopping { Ok(()) } else { self.ask(at) }
    }

    fn accept(&mut self) -> Result<()> {
        loop {
            let stream = match self.ends.backend.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Error::other("accept a connection")(error)),
            };
            if self.exchange.ask_bytes == 0 {
                continue;
            }
            let mut peer = Peer::new(stream, Side::Backend, self.exchange, None)?;
            peer.begin();
            let free = self.backends.iter().position(Option::is_none);
            let at = free.unwrap_or(self.backends.len());
            self.poller.add(&peer.stream, 2 * at as u64 + 1, Want::Read)?;
            if at < self.backends.len() {
                self.backends[at] = Some(peer);
            } else {
                self.backends.push(Some(peer));
            }
        }
    }

    fn drive_backend(&mut self, at: usize) -> Result<()> {
        let Some(Some(peer)) = self.backends.get_mut(at) else { return Ok(()) };
        match peer.hear(&mut self.room, &mut self.bytes)? {
            Step::Empty | Step::Full => return Ok(()),
            Step::Done => {}
            Step::Closed if peer.has_heard_nothing() => {
                self.backends[at] = None;
                return Ok(());
            }
            Step::Closed => return Err(cut("question")),
        }
        if say(peer, &mut self.room, &self.poller, 2 * at as u64 + 1)? == Step::Full {
            return Ok(());
        }
        if self.exchange.kept {
            peer.end();
            peer.begin();
        } else {
            self.backends[at] = None;
        }
        Ok(())
    }
}

/// Says what is left, and waits for room where there is none.
fn say(peer: &mut Peer, room: &mut [u8], poller: &Poller, token: u64) -> Result<Step> {
    let said = peer.say(room)?;
    let wanted = if said == Step::Full { Want::Write } else { Want::Read };
    if peer.wants(wanted) {
        poller.change(&peer.stream, token, wanted)?;
    }
    Ok(said)
}

fn cut(what: &str) -> Error {
    let why = io::Error::from(ErrorKind::UnexpectedEof);
    Error::other(format!("get all of a {what} through the relay"))(why)
}
