//! A connection to a target: one attempt after the other, each for a bounded time.

use std::io;
use std::time::{Duration, Instant};

use haul_reactor::{Hub, Side, Socket, TcpOptions};
use rustix::io::Errno;

use crate::target::{Attempts, Using, is_ours};

/// The attempts to connect, until one succeeds.
#[derive(Debug)]
pub(crate) struct Connecting {
    attempts: Attempts,
    using: Option<Using>,
    tcp: TcpOptions,
    time_max: Duration,
    deadline: Option<Instant>,
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Wait for the socket, until then at most.
    Waiting(Instant),
    /// The socket is connected to this.
    Connected(Using),
    /// Every target was tried.
    NoTarget,
}

/// How soon a full queue is looked at again; deadlines are no more exact.
const RETRY_TIME: Duration = Duration::from_millis(100);

impl Connecting {
    /// Nothing is tried yet. Each attempt may take `time_max`.
    pub(crate) fn new(attempts: Attempts, tcp: TcpOptions, time_max: Duration) -> Self {
        Self { attempts, using: None, tcp, time_max, deadline: None }
    }

    /// Begins, or looks whether the attempt under way has ended, and begins the next one when it
    /// failed. The socket is kept in `far`, where the reactor finds it.
    pub(crate) fn go_on<M>(&mut self, far: &mut Option<Socket>, hub: &Hub<'_, M>) -> Progress {
        let now = hub.now();
        loop {
            if let Some(socket) = far {
                if let Some(deadline) = self.deadline.filter(|deadline| now < *deadline)
                    && !socket.is_writable()
                {
                    return Progress::Waiting(deadline);
                }
                let is_connected = socket.is_writable() && socket.connected().is_ok();
                if let Some(using) = self.over(is_connected, now) {
                    return Progress::Connected(using);
                }
                // A port that is connected to itself must be free again for whom it belongs to.
                far.take().map(Socket::reset).unwrap_or_default();
            }
            let Some(using) = self.next(now) else { return Progress::NoTarget };
            let begun = hub.connect(using.address(), &self.tcp);
            self.using = Some(using);
            match begun.and_then(|mut socket| hub.adopt(&mut socket, Side::Far).map(|()| socket)) {
                Ok(socket) => *far = Some(socket),
                // The queue of a unix socket is full, and nothing tells when it is not.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Progress::Waiting(now + RETRY_TIME);
                }
                // No word about the target.
                Err(error) if Errno::from_io_error(&error).is_some_and(is_ours) => {
                    self.using = None
                }
                Err(_) => drop(self.over(false, now)),
            }
        }
    }

    /// The target to connect to: once more the one whose queue was full, while its time lasts.
    fn next(&mut self, now: Instant) -> Option<Using> {
        if self.deadline.is_some_and(|deadline| now < deadline)
            && let Some(using) = self.using.take()
        {
            return Some(using);
        }
        self.over(false, now);
        self.deadline = Some(now + self.time_max);
        self.attempts.next_target()
    }

    /// An attempt is over. What was connected to, if it succeeded.
    fn over(&mut self, is_connected: bool, now: Instant) -> Option<Using> {
        let using = self.using.take()?;
        using.connected(is_connected, now);
        is_connected.then_some(using)
    }
}
