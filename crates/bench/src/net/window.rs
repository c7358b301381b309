//! When a load counts: not while it settles, and for so long then.

use std::time::{Duration, Instant};

use super::sample::Sample;
use super::usage::{Meter, Usage};

/// How long a load runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Before anything counts.
    pub(crate) settle: Duration,
    pub(crate) measure: Duration,
}

/// What has to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    GoOn,
    /// From here on it counts: forget what was.
    Begin,
    End,
}

/// Where in its time a load is.
#[derive(Debug)]
pub(crate) struct Window {
    meter: Meter,
    measure: Duration,
    begins: Instant,
    began: Option<(Instant, Usage)>,
}

impl Window {
    pub(crate) fn new(load: Load, meter: Meter) -> Self {
        let begins = Instant::now() + load.settle;
        Self { meter, measure: load.measure, begins, began: None }
    }

    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        match &self.began {
            None if now < self.begins => Turn::GoOn,
            None => {
                let usage = self.meter.usage();
                self.began = Some((Instant::now(), usage));
                Turn::Begin
            }
            Some((began, _)) if now.duration_since(*began) >= self.measure => Turn::End,
            Some(_) => Turn::GoOn,
        }
    }

    /// The time and what was used, as soon as it is over.
    pub(crate) fn finish(self) -> Sample {
        let now = Instant::now();
        let Some((began, before)) = self.began else { return Sample::default() };
        let used = before.until(&self.meter.usage());
        Sample { wall: now.duration_since(began), used, ..Sample::default() }
    }
}
