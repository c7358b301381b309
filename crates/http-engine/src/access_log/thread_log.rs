//! The access log of a thread whose connections do not belong to an [`Engine`](crate::Engine).

use std::time::Instant;

use haul_http1::Request;

use super::destination::AccessLog;
use super::line::LogDates;
use super::record::{Record, Recorder, RequestOutcome};
use crate::clock::SecondClock;

/// Writes the lines of one thread to an access log.
#[derive(Debug)]
pub struct ThreadLog {
    log: AccessLog,
    recorder: Recorder,
    clock: SecondClock,
}

impl ThreadLog {
    /// Creates the writer of a thread.
    pub fn new(log: AccessLog) -> Self {
        Self { log, recorder: Recorder::default(), clock: SecondClock::default() }
    }

    /// Begins the record of a request whose head was received at `now`; `None` if its head was not
    /// valid.
    pub fn begin(&mut self, request: Option<&Request<'_>>, now: Instant) -> Record {
        self.recorder.begin(self.log.format, request, now)
    }

    /// Writes the line of a request that has ended at `now`.
    pub fn end(&mut self, record: Record, outcome: RequestOutcome<'_>, now: Instant) {
        if let Some(at) = self.clock.update(now) {
            self.recorder.dates = LogDates::of(at);
        }
        self.recorder.end(&self.log, record, outcome);
    }
}
