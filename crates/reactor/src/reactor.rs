//! Runs the event loop of a thread: waits for events, drives connections and accepts new ones.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::time::{Duration, Instant};

use haul_sync::mpsc::{Receiver, channel};
use mio::unix::SourceFd;
use mio::{Events, Interest, Token};

use crate::admission::peer_table::EvictionQueue;
use crate::admission::{AdmissionLimit, Permit};
use crate::clock::Clock;
use crate::context::{Context, register};
use crate::handle::{Handle, Shared};
use crate::key::{Key, Source, listener_token, source};
use crate::listener::Listener;
use crate::messages::MessageQueue;
use crate::poller::{Poll, waker};
use crate::service::{AcceptInfo, Connection, Event, Next, Service};
use crate::socket::SocketKind;
use crate::table::Table;

/// The time between two ticks. At a tick, the loop checks the deadlines and retries failed accepts.
const TICK: Duration = Duration::from_millis(100);
/// The maximum number of connections accepted per listener and iteration. It bounds the delay of
/// open connections while many new ones arrive.
const ACCEPTS_PER_ITERATION: usize = 64;
const EVENTS_PER_ITERATION: usize = 512;

/// The event loop of one thread, with its listeners and connections.
pub struct Reactor<S: Service> {
    service: S,
    poll: Poll,
    listeners: Vec<ListenerState>,
    table: Table<S::Connection>,
    limit: AdmissionLimit,
    /// Connections of this thread that gave way to others.
    evictions: Arc<EvictionQueue>,
    /// Connections whose sockets became ready in this iteration.
    ready: Vec<Key>,
    /// Connections that returned [`Next::Yield`], in the order in which they returned it.
    yielded: Vec<Key>,
    queue: MessageQueue<S::Message>,
    messages: Receiver<(Key, S::Message)>,
    /// The first message of the queue, which was found there when the last iteration ended.
    first_message: Option<(Key, S::Message)>,
    shared: Arc<Shared>,
    is_draining: bool,
    clock: Clock,
    now: Instant,
    next_tick: Instant,
}

struct ListenerState {
    listener: Listener,
    /// `true` if connections may be pending: set by an event, and cleared when accepting fails with
    /// `EAGAIN`, because the kernel reports pending connections only once.
    may_have_more: bool,
    /// `true` while accepting is suspended, because the limit of connections or descriptors was
    /// reached. Cleared at each tick and whenever a connection is closed.
    is_deferred: bool,
}

impl<S: Service> Reactor<S> {
    /// Creates a reactor, which accepts no connections before [`Self::run`]. Reactors of other
    /// threads may share `limit`.
    ///
    /// # Errors
    /// If the kernel has no descriptors or memory left.
    pub fn new(service: S, listeners: Vec<Listener>, limit: AdmissionLimit) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(waker(&poll)?);
        for (index, listener) in listeners.iter().enumerate() {
            let (fd, token) = (listener.as_raw_fd(), Token(listener_token(index)));
            poll.registry().register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        }
        let state = |listener| ListenerState { listener, may_have_more: true, is_deferred: false };
        let (sender, messages) = channel();
        let clock = Clock::System;
        let now = clock.now();
        Ok(Self {
            service,
            poll,
            listeners: listeners.into_iter().map(state).collect(),
            table: Table::new(),
            limit,
            evictions: EvictionQueue::new(Arc::clone(&waker)),
            ready: Vec::new(),
            yielded: Vec::new(),
            queue: MessageQueue { sender, waker, is_woken: Arc::default() },
            messages,
            first_message: None,
            shared: Arc::default(),
            is_draining: false,
            clock,
            now,
            next_tick: now + TICK,
        })
    }

    /// Sets the clock of the deadlines, which is [`Clock::System`] by default.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.now = clock.now();
        self.next_tick = self.now + TICK;
        self.clock = clock;
        self
    }

    /// Returns a handle for other threads.
    pub fn handle(&self) -> Handle {
        Handle { shared: Arc::clone(&self.shared), waker: Arc::clone(&self.queue.waker) }
    }

    /// Runs the loop until the reactor is stopped, or until it is draining and has no connections
    /// left; then closes the connections that a stop left open, and returns the service.
    ///
    /// # Errors
    /// If `epoll_wait` fails.
    pub fn run(mut self) -> io::Result<S> {
        let mut events = Events::with_capacity(EVENTS_PER_ITERATION);
        let result = loop {
            if let Err(error) = self.iterate(&mut events) {
                break Err(error);
            }
            let is_drained = self.is_draining && self.table.is_empty();
            if is_drained || self.shared.is_stopping.load(Relaxed) {
                break Ok(());
            }
        };
        for key in self.table.keys() {
            self.close(key);
        }
        result.map(|()| self.service)
    }

    fn iterate(&mut self, events: &mut Events) -> io::Result<()> {
        self.await_wake_ups();
        match self.poll.poll(events, self.poll_timeout()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => events.clear(),
            result => result?,
        }
        self.shared.iterations.fetch_add(1, Relaxed);
        self.now = self.clock.now();
        // All events are recorded before the first connection is driven. A driven connection
        // therefore sees the current readiness of both of its sockets. It may also replace its
        // upstream socket, and no event of the old socket is recorded for the new one.
        for event in &*events {
            match source(event.token().0) {
                Source::Connection(key, kind) => self.record(key, kind, event),
                Source::Listener(index) => {
                    // Draining closes the listeners, but their earlier events may still be
                    // delivered.
                    if let Some(state) = self.listeners.get_mut(index) {
                        state.may_have_more = true;
                    }
                }
                Source::Waker => {}
            }
        }
        self.close_evicted();
        for key in std::mem::take(&mut self.ready) {
            self.drive(key, Event::Ready);
        }
        // Messages sent while the queue is processed wait for the next iteration, so that a
        // connection that receives messages continuously does not starve the others.
        let queued = self.first_message.take().into_iter().chain(self.messages.try_iter());
        for (key, message) in queued.take(EVENTS_PER_ITERATION).collect::<Vec<_>>() {
            self.drive(key, Event::Message(message));
        }
        for key in std::mem::take(&mut self.yielded) {
            if self.table.set_queued(key, false) {
                self.drive(key, Event::Resume);
            }
        }
        if self.shared.is_draining.load(Relaxed) && !self.is_draining {
            self.start_draining();
        }
        if self.now >= self.next_tick {
            self.tick();
        }
        self.accept();
        Ok(())
    }

    /// Lets the next message wake the thread, and looks for those sent before. Messages that are
    /// sent while the thread works therefore cost no system call.
    fn await_wake_ups(&mut self) {
        self.queue.is_woken.swap(false, AcqRel);
        if self.first_message.is_none() {
            self.first_message = self.messages.try_recv().ok();
        }
    }

    /// Returns the timeout of `epoll_wait`; `None` to wait without a limit.
    fn poll_timeout(&self) -> Option<Duration> {
        let may_accept = |state: &ListenerState| state.may_have_more && !state.is_deferred;
        let has_more = self.first_message.is_some() || !self.yielded.is_empty();
        if has_more || self.listeners.iter().any(may_accept) {
            return Some(Duration::ZERO);
        }
        let is_deferred = self.listeners.iter().any(|state| state.is_deferred);
        let has_own_deadline = self.service.next_deadline().is_some();
        let has_ticks = self.table.has_deadlines() || is_deferred || has_own_deadline;
        has_ticks.then(|| self.next_tick.saturating_duration_since(self.now))
    }

    fn record(&mut self, key: Key, kind: SocketKind, event: &mio::event::Event) {
        let Some(socket) = self.table.get(key).and_then(|connection| connection.socket(kind))
        else {
            return;
        };
        socket.update_readiness(event);
        // The events of a connection's two sockets are mostly adjacent, so this drops most
        // duplicates.
        if self.ready.last() != Some(&key) {
            self.ready.push(key);
        }
    }

    fn drive(&mut self, key: Key, event: Event<S::Message>) {
        // An evicted connection is closed when the queue of evictions is read.
        if !self.table.permit(key).is_some_and(Permit::set_busy) {
            return;
        }
        let Some(connection) = self.table.get(key) else { return };
        let mut context = Context {
            now: self.now,
            key,
            is_draining: self.is_draining,
            registry: self.poll.registry(),
            queue: &self.queue,
        };
        match self.service.drive(connection, event, &mut context) {
            Next::Wait(deadline) => {
                if self.register_accepted(key).is_err() {
                    self.shared.accept_failures.fetch_add(1, Relaxed);
                    return self.close(key);
                }
                self.table.set_deadline(key, deadline);
                self.record_waiting(key);
            }
            Next::Yield => {
                if self.table.set_queued(key, true) {
                    self.yielded.push(key);
                }
            }
            Next::Close => self.close(key),
        }
    }

    /// Registers the accepted socket of a connection that waits for the first time. A connection
    /// that ends before, because its request had arrived and was answered at once, costs no
    /// `epoll_ctl` call. The kernel reports what became ready before the registration.
    fn register_accepted(&mut self, key: Key) -> io::Result<()> {
        let connection = self.table.get(key);
        match connection.and_then(|connection| connection.socket(SocketKind::Accepted)) {
            Some(socket) if !socket.is_registered => {
                register(self.poll.registry(), key, socket, SocketKind::Accepted)
            }
            _ => Ok(()),
        }
    }

    /// Records that the connection may be evicted, if it waits for a request.
    fn record_waiting(&mut self, key: Key) {
        if !self.table.permit(key).is_some_and(Permit::is_evictable) {
            return;
        }
        let is_waiting = |connection: &mut _| self.service.is_waiting(connection);
        if self.table.get(key).is_some_and(is_waiting) {
            self.table.permit(key).into_iter().for_each(|permit| permit.set_waiting(self.now));
        }
    }

    fn close_evicted(&mut self) {
        for key in self.evictions.take() {
            if let Some(connection) = self.table.get(key) {
                self.service.on_evict(connection);
            }
            self.close(key);
        }
    }

    fn close(&mut self, key: Key) {
        if let Some(connection) = self.table.remove(key) {
            self.shared.closed.fetch_add(1, Relaxed);
            self.service.on_close(connection);
            // The closed connection freed a permit and a descriptor, so accepting may succeed.
            self.listeners.iter_mut().for_each(|state| state.is_deferred = false);
        }
    }

    fn tick(&mut self) {
        self.next_tick = self.now + TICK;
        for state in &mut self.listeners {
            state.is_deferred = false;
        }
        if self.service.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.service.on_deadline(self.now);
        }
        for key in self.table.expired(self.now) {
            self.table.set_deadline(key, None);
            self.drive(key, Event::Deadline);
        }
    }

    fn start_draining(&mut self) {
        self.is_draining = true;
        for state in self.listeners.drain(..) {
            // Without this, the kernel reports connections of a socket that is still open elsewhere.
            let fd = state.listener.as_raw_fd();
            self.poll.registry().deregister(&mut SourceFd(&fd)).ok();
        }
        for key in self.table.keys() {
            self.drive(key, Event::Drain);
        }
    }

    fn accept(&mut self) {
        for index in 0..self.listeners.len() {
            for _ in 0..ACCEPTS_PER_ITERATION {
                let state = &self.listeners[index];
                if !state.may_have_more || state.is_deferred {
                    break;
                }
                self.accept_one(index);
                // The new connection may have evicted another one of this thread.
                self.close_evicted();
            }
        }
    }

    fn accept_one(&mut self, index: usize) {
        let can_accept = self.service.can_accept(index);
        let state = &mut self.listeners[index];
        if !can_accept {
            state.is_deferred = true;
            self.shared.accepts_deferred.fetch_add(1, Relaxed);
            return;
        }
        let (permit, key) = (self.limit.try_acquire(), self.table.next_key());
        let can_evict = || self.limit.can_evict(self.now);
        let Some(key) = key.filter(|_| permit.is_some() || can_evict()) else {
            state.is_deferred = true;
            self.shared.accepts_deferred.fetch_add(1, Relaxed);
            return;
        };
        let (socket, peer) = match state.listener.accept() {
            Ok(Some(accepted)) => accepted,
            Ok(None) => {
                state.may_have_more = false;
                return;
            }
            Err(_no_descriptors) => {
                state.is_deferred = true;
                self.shared.accept_failures.fetch_add(1, Relaxed);
                return;
            }
        };
        let evict = || self.limit.acquire_and_evict(self.now, &self.evictions);
        let permit = permit.unwrap_or_else(evict);
        let info = AcceptInfo { listener: index, peer };
        let Some(permit) = permit.admit(peer.map(|peer| peer.ip()), key, self.now, &self.evictions)
        else {
            self.service.on_refuse(socket, info);
            return;
        };
        let mut context = Context {
            now: self.now,
            key,
            is_draining: self.is_draining,
            registry: self.poll.registry(),
            queue: &self.queue,
        };
        self.shared.accepted.fetch_add(1, Relaxed);
        match self.service.on_accept(socket, info, &mut context) {
            Some(connection) => {
                self.table.insert(connection, permit);
                self.drive(key, Event::Ready);
            }
            None => {
                self.shared.closed.fetch_add(1, Relaxed);
            }
        }
    }
}
