//! The turns of a thread.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::gate::Gate;
use crate::handle::{Handle, Shared};
use crate::hub::{Hub, Mail};
use crate::key::{Key, Subject, listener_token, subject, waker_token};
use crate::listener::Listener;
use crate::service::{Accepted, Connection, Event, Next, Service, Side};
use crate::table::Table;

/// How exact deadlines are, and how soon accepting is tried again when it could not be.
const TICK: Duration = Duration::from_millis(100);
/// So that a flood of new peers does not keep those who are here waiting.
const ACCEPTS_PER_TURN: usize = 64;
const EVENTS_PER_TURN: usize = 512;

/// One thread's listeners and connections.
pub struct Reactor<S: Service> {
    service: S,
    poll: Poll,
    listeners: Vec<Waiting>,
    table: Table<S::Connection>,
    gate: Gate,
    /// Those whose sockets became ready in this turn.
    ready: Vec<Key>,
    /// Those who asked for another turn, in that order.
    again: Vec<Key>,
    mail: Mail<S::Message>,
    letters: Receiver<(Key, S::Message)>,
    /// More than one turn takes: the kernel has told of them already.
    may_have_letters: bool,
    shared: Arc<Shared>,
    is_draining: bool,
    now: Instant,
    next_tick: Instant,
}

struct Waiting {
    listener: Listener,
    /// The kernel tells once that peers wait.
    may_have_more: bool,
    /// There is no place or no descriptor for the next one: looked at each tick.
    is_held_back: bool,
}

impl<S: Service> Reactor<S> {
    /// A thread's worth of listening; nothing happens before [`Self::run`]. The gate may be shared
    /// with other threads.
    ///
    /// # Errors
    /// When the kernel gives no descriptors or memory for it.
    pub fn new(service: S, listeners: Vec<Listener>, gate: Gate) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), Token(waker_token()))?);
        for (index, listener) in listeners.iter().enumerate() {
            let (fd, token) = (listener.as_raw_fd(), Token(listener_token(index)));
            poll.registry().register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        }
        let waiting = |listener| Waiting { listener, may_have_more: true, is_held_back: false };
        let (sender, letters) = channel();
        let now = Instant::now();
        Ok(Self {
            service,
            poll,
            listeners: listeners.into_iter().map(waiting).collect(),
            table: Table::new(),
            gate,
            ready: Vec::new(),
            again: Vec::new(),
            mail: Mail { sender, waker },
            letters,
            may_have_letters: false,
            shared: Arc::default(),
            is_draining: false,
            now,
            next_tick: now + TICK,
        })
    }

    /// For other threads.
    pub fn handle(&self) -> Handle {
        Handle { shared: Arc::clone(&self.shared), waker: Arc::clone(&self.mail.waker) }
    }

    /// Serves until it is stopped, or drained and without connections. What is left then is closed.
    ///
    /// # Errors
    /// When the kernel does not say any more what is ready.
    pub fn run(mut self) -> io::Result<S> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let ended = loop {
            if let Err(error) = self.turn(&mut events) {
                break Err(error);
            }
            let is_over = self.is_draining && self.table.is_empty();
            if is_over || self.shared.is_stopping.load(Relaxed) {
                break Ok(());
            }
        };
        for key in self.table.keys() {
            self.close(key);
        }
        ended.map(|()| self.service)
    }

    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        match self.poll.poll(events, self.patience()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => events.clear(),
            answer => answer?,
        }
        self.shared.turns.fetch_add(1, Relaxed);
        self.now = Instant::now();
        // All are noted before the first one is driven: a connection sees both of its sockets as they
        // are now, and no event finds a socket that came in place of the one it is about.
        for event in &*events {
            match subject(event.token().0) {
                Subject::Connection(key, side) => self.note(key, side, event),
                Subject::Listener(index) => {
                    // Those of before it began to drain may still come.
                    if let Some(waiting) = self.listeners.get_mut(index) {
                        waiting.may_have_more = true;
                    }
                }
                Subject::Waker => {}
            }
        }
        for key in std::mem::take(&mut self.ready) {
            self.drive(key, Event::Ready);
        }
        // Those that are there now: what is sent because of them comes in the next turn, so that
        // who keeps being told something does not keep the others waiting.
        let letters: Vec<_> = self.letters.try_iter().take(EVENTS_PER_TURN).collect();
        self.may_have_letters = letters.len() == EVENTS_PER_TURN;
        for (key, message) in letters {
            self.drive(key, Event::Told(message));
        }
        for key in std::mem::take(&mut self.again) {
            if self.table.set_queued(key, false) {
                self.drive(key, Event::Again);
            }
        }
        if self.shared.is_draining.load(Relaxed) && !self.is_draining {
            self.begin_to_drain();
        }
        if self.now >= self.next_tick {
            self.tick();
        }
        self.accept();
        Ok(())
    }

    /// How long this turn may wait for the kernel.
    fn patience(&self) -> Option<Duration> {
        let may_accept = |waiting: &Waiting| waiting.may_have_more && !waiting.is_held_back;
        let has_more = self.may_have_letters || !self.again.is_empty();
        if has_more || self.listeners.iter().any(may_accept) {
            return Some(Duration::ZERO);
        }
        let is_held_back = self.listeners.iter().any(|waiting| waiting.is_held_back);
        let is_due = self.service.due().is_some();
        let has_ticks = self.table.has_deadlines() || is_held_back || is_due;
        has_ticks.then(|| self.next_tick.saturating_duration_since(self.now))
    }

    fn note(&mut self, key: Key, side: Side, event: &mio::event::Event) {
        let Some(socket) = self.table.get(key).and_then(|held| held.socket(side)) else { return };
        socket.note(event);
        // Both sockets of a connection may be ready: mostly their events come one after the other.
        if self.ready.last() != Some(&key) {
            self.ready.push(key);
        }
    }

    fn drive(&mut self, key: Key, event: Event<S::Message>) {
        let Some(connection) = self.table.get(key) else { return };
        let mut hub = Hub {
            now: self.now,
            key,
            is_draining: self.is_draining,
            registry: self.poll.registry(),
            mail: &self.mail,
        };
        match self.service.drive(connection, event, &mut hub) {
            Next::Wait(deadline) => self.table.set_deadline(key, deadline),
            Next::Again => {
                if self.table.set_queued(key, true) {
                    self.again.push(key);
                }
            }
            Next::Close => self.close(key),
        }
    }

    fn close(&mut self, key: Key) {
        if let Some(connection) = self.table.remove(key) {
            self.shared.closed.fetch_add(1, Relaxed);
            self.service.closed(connection);
            // There is a place now, or a descriptor.
            self.listeners.iter_mut().for_each(|waiting| waiting.is_held_back = false);
        }
    }

    fn tick(&mut self) {
        self.next_tick = self.now + TICK;
        for waiting in &mut self.listeners {
            waiting.is_held_back = false;
        }
        if self.service.due().is_some_and(|due| due <= self.now) {
            self.service.overdue(self.now);
        }
        for key in self.table.late(self.now) {
            self.table.set_deadline(key, None);
            self.drive(key, Event::Deadline);
        }
    }

    fn begin_to_drain(&mut self) {
        self.is_draining = true;
        self.listeners.clear();
        for key in self.table.keys() {
            self.drive(key, Event::Drain);
        }
    }

    fn accept(&mut self) {
        for index in 0..self.listeners.len() {
            for _ in 0..ACCEPTS_PER_TURN {
                let waiting = &self.listeners[index];
                if !waiting.may_have_more || waiting.is_held_back {
                    break;
                }
                self.accept_one(index);
            }
        }
    }

    fn accept_one(&mut self, index: usize) {
        let waiting = &mut self.listeners[index];
        let (place, key) = (self.gate.enter(), self.table.next_key());
        let (Some(place), Some(key)) = (place, key) else {
            waiting.is_held_back = true;
            self.shared.held_back.fetch_add(1, Relaxed);
            return;
        };
        let (mut socket, peer) = match waiting.listener.accept() {
            Ok(Some(accepted)) => accepted,
            Ok(None) => {
                waiting.may_have_more = false;
                return;
            }
            Err(_no_descriptors) => {
                waiting.is_held_back = true;
                self.shared.accept_failures.fetch_add(1, Relaxed);
                return;
            }
        };
        let mut hub = Hub {
            now: self.now,
            key,
            is_draining: self.is_draining,
            registry: self.poll.registry(),
            mail: &self.mail,
        };
        if hub.adopt(&mut socket, Side::Near).is_err() {
            self.shared.accept_failures.fetch_add(1, Relaxed);
            return;
        }
        self.shared.accepted.fetch_add(1, Relaxed);
        let accepted = Accepted { listener: index, peer };
        match self.service.accepted(socket, accepted, &mut hub) {
            Some(connection) => {
                self.table.insert(connection, place);
                self.drive(key, Event::Ready);
            }
            None => {
                self.shared.closed.fetch_add(1, Relaxed);
            }
        }
    }
}
