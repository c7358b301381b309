//! Connects a client to a target: tries one target after another, each with a time limit.

use std::io;
use std::time::{Duration, Instant};

use haul_reactor::{Context, Socket, SocketKind, TcpOptions};
use rustix::io::Errno;

use crate::target::{ActiveTarget, Attempts, is_local_exhaustion};

/// The attempts to connect one client to a target, until one succeeds.
#[derive(Debug)]
pub(crate) struct Connector {
    attempts: Attempts,
    target: Option<ActiveTarget>,
    tcp: TcpOptions,
    time_max: Duration,
    deadline: Option<Instant>,
}

/// The state of the attempts after one call of [`Connector::advance`].
#[derive(Debug)]
pub(crate) enum Progress {
    /// An attempt is in progress: wait for the socket until this deadline.
    Waiting(Instant),
    /// The socket is connected to this target.
    Connected(ActiveTarget),
    /// All targets were tried without success.
    NoTarget,
}

/// The time between two attempts to connect to a unix socket whose accept queue is full. Such an
/// attempt may therefore end later than its deadline, by at most this time.
const RETRY_TIME: Duration = Duration::from_millis(100);

impl Connector {
    /// Creates a connector that ends each attempt after `time_max`.
    pub(crate) fn new(attempts: Attempts, tcp: TcpOptions, time_max: Duration) -> Self {
        Self { attempts, target: None, tcp, time_max, deadline: None }
    }

    /// Starts an attempt, or checks the attempt in progress and starts the next one if it failed.
    /// The socket is stored in `upstream`, where the reactor finds it.
    pub(crate) fn advance<M>(
        &mut self,
        upstream: &mut Option<Socket>,
        reactor: &Context<'_, M>,
    ) -> Progress {
        let now = reactor.now();
        loop {
            if let Some(socket) = upstream {
                if let Some(deadline) = self.deadline.filter(|deadline| now < *deadline)
                    && !socket.is_writable()
                {
                    return Progress::Waiting(deadline);
                }
                let is_connected = socket.is_writable() && socket.connect_result().is_ok();
                if let Some(target) = self.target.take_if(|_| is_connected) {
                    target.connected(true, now);
                    return Progress::Connected(target);
                }
                self.fail_attempt(now);
                // The failed socket may be connected to itself and then occupies the target's port,
                // so it is reset at once.
                upstream.take().map(Socket::reset).unwrap_or_default();
            }
            let Some(target) = self.next(now) else { return Progress::NoTarget };
            let no_address = || io::Error::from(io::ErrorKind::AddrNotAvailable);
            let started = target
                .address()
                .ok_or_else(no_address)
                .and_then(|address| reactor.connect(address, &self.tcp));
            self.target = Some(target);
            match started.and_then(|mut socket| {
                reactor.register(&mut socket, SocketKind::Connected).map(|()| socket)
            }) {
                Ok(socket) => *upstream = Some(socket),
                // The accept queue of a unix socket is full. The kernel does not report when the
                // queue has room again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Progress::Waiting(now + RETRY_TIME);
                }
                // A failure for lack of local resources says nothing about the target.
                Err(error) if Errno::from_io_error(&error).is_some_and(is_local_exhaustion) => {
                    self.target = None
                }
                Err(_) => self.fail_attempt(now),
            }
        }
    }

    /// Returns the target to try next: the current one again if its accept queue was full or another
    /// of its addresses is left, and the deadline has not passed; otherwise the next of `attempts`.
    fn next(&mut self, now: Instant) -> Option<ActiveTarget> {
        if self.deadline.is_some_and(|deadline| now < deadline)
            && let Some(target) = self.target.take()
        {
            return Some(target);
        }
        if let Some(target) = self.target.take() {
            target.connected(false, now);
        }
        self.deadline = Some(now + self.time_max);
        self.attempts.next_target()
    }

    /// Selects the next address of the target for the next attempt, if any is left; otherwise
    /// records that the target failed.
    fn fail_attempt(&mut self, now: Instant) {
        let Some(mut target) = self.target.take() else { return };
        if target.next_address() {
            self.deadline = Some(now + self.time_max);
            self.target = Some(target);
        } else {
            target.connected(false, now);
        }
    }
}
