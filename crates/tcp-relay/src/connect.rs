//! A connection to a target: one attempt after the other, each for a bounded time.

use std::time::{Duration, Instant};

use haul_reactor::{Hub, Side, Socket};

use crate::config::Limits;
use crate::target::{Attempts, Using};

/// The attempts to connect, until one succeeds.
#[derive(Debug)]
pub struct Connecting {
    attempts: Attempts,
    using: Option<Using>,
    time_max: Duration,
    deadline: Instant,
}

/// How far it has come.
#[derive(Debug)]
pub enum Progress {
    /// Wait for the socket, until then at most.
    Waiting(Instant),
    /// The socket is connected to this.
    Connected(Using),
    /// Every target was tried.
    NoTarget,
}

impl Connecting {
    /// Nothing is tried yet. Each attempt may take `time_max`.
    pub fn new(attempts: Attempts, time_max: Duration, now: Instant) -> Self {
        Self { attempts, using: None, time_max, deadline: now }
    }

    /// Begins, or looks whether the attempt under way has ended, and begins the next one when it
    /// failed. The socket is kept in `far`, where the reactor finds it.
    pub fn go_on<M>(
        &mut self,
        far: &mut Option<Socket>,
        limits: &Limits,
        hub: &mut Hub<M>,
    ) -> Progress {
        let now = hub.now();
        loop {
            if let Some(socket) = far {
                match socket.connected() {
                    Ok(false) if now < self.deadline => return Progress::Waiting(self.deadline),
                    Ok(is_connected) => {
                        if let Some(using) = self.using.take() {
                            using.connected(is_connected, now);
                            if is_connected {
                                return Progress::Connected(using);
                            }
                        }
                    }
                    Err(_) => self.failed(now),
                }
                *far = None;
            }
            let Some(using) = self.attempts.next_target() else { return Progress::NoTarget };
            self.deadline = now + self.time_max;
            let begun = hub.connect(using.address());
            self.using = Some(using);
            match begun.and_then(|mut socket| hub.adopt(&mut socket, Side::Far).map(|()| socket)) {
                Ok(socket) => *far = Some(socket),
                Err(_) => self.failed(now),
            }
        }
    }

    fn failed(&mut self, now: Instant) {
        if let Some(using) = self.using.take() {
            using.connected(false, now);
        }
    }
}
