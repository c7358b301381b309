//! The thread that is the drive: it takes requests, lets the model say when each is done, waits
//! until then, and answers.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;

use crate::counters::Counters;
use crate::medium::{Medium, Write};
use crate::model::{Drive, Kind, Nanos, Parameters, Request};

/// Who is told of the end of a request: with the bytes of a read.
pub(crate) type Answer = Box<dyn FnOnce(io::Result<Vec<u8>>) + Send>;

/// How virtual time passes: seconds by the clock for each second of the drive.
#[derive(Debug, Clone, Copy)]
struct Clock {
    began: Instant,
    scale: f64,
}

impl Clock {
    /// Virtual time now. Where nobody waits, time passes with the requests alone.
    #[expect(clippy::cast_possible_truncation, reason = "centuries")]
    fn now_ns(&self, free_ns: Nanos) -> Nanos {
        if self.scale <= 0.0 {
            return free_ns;
        }
        (self.began.elapsed().as_nanos() as f64 / self.scale) as Nanos
    }

    /// A virtual time by the clock; long ago where nobody waits.
    fn moment(&self, moment_ns: Nanos) -> Instant {
        self.began + Duration::from_secs_f64(moment_ns as f64 / 1e9 * self.scale)
    }
}

struct Waiting {
    request: Request,
    bytes: Vec<u8>,
    answer: Answer,
}

struct State {
    drive: Drive,
    medium: Medium,
    clock: Clock,
    /// Oldest first.
    waiting: Vec<Waiting>,
    serving: Option<Waiting>,
    depth_max: u64,
    /// Answers leave so much earlier: the way to whoever asked takes as long.
    transport: Duration,
    /// The drive is left out of it, and every answer takes this long.
    answers_after: Option<Duration>,
    has_power: bool,
    /// The power goes with the request this many further on, by this seed.
    cut_after: Option<(u64, u64)>,
    /// Why the medium does not hold what it should after such a cut.
    spoiled: Option<io::Error>,
    is_stopped: bool,
}

impl State {
    /// Lets the drive serve a request; when by the clock its answer is to leave.
    fn answer_leaves(&mut self, request: &Request) -> Instant {
        if let Some(after) = self.answers_after {
            return Instant::now() + after;
        }
        let done = self.clock.moment(self.drive.serve(request));
        done.checked_sub(self.transport).unwrap_or(done)
    }

    /// Counts a request; the seed, if the power is to go while it is served.
    fn due_cut(&mut self) -> Option<u64> {
        let (left, seed) = self.cut_after.as_mut()?;
        let seed = *seed;
        match left.checked_sub(1) {
            Some(less) => *left = less,
            None => return Some(seed),
        }
        None
    }
}

/// The drive with its queue, for many threads.
pub(crate) struct Arm {
    state: Mutex<State>,
    changed: Condvar,
}

impl Arm {
    pub(crate) fn new(parameters: &Parameters, bytes: u64, file: File, scale: f64) -> Self {
        let state = State {
            drive: Drive::new(parameters.clone(), bytes),
            medium: Medium::new(file, parameters.write_cache_bytes),
            clock: Clock { began: Instant::now(), scale },
            waiting: Vec::new(),
            serving: None,
            depth_max: 0,
            transport: Duration::ZERO,
            answers_after: None,
            has_power: true,
            cut_after: None,
            spoiled: None,
            is_stopped: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Hands a request to the drive; without power it fails at once.
    pub(crate) fn submit(
        &self,
        kind: Kind,
        sector: u64,
        sectors: u64,
        bytes: Vec<u8>,
        answer: Answer,
    ) {
        let mut state = self.state.lock();
        if !state.has_power || state.is_stopped {
            drop(state);
            return answer(Err(Errno::IO.into()));
        }
        let arrived_ns = state.clock.now_ns(state.drive.free_ns());
        let request = Request { kind, sector, sectors, arrived_ns };
        state.waiting.push(Waiting { request, bytes, answer });
        let depth = state.waiting.len() + usize::from(state.serving.is_some());
        state.depth_max = state.depth_max.max(depth as u64);
        self.changed.notify_all();
    }

    /// Serves until [`Arm::stop`].
    pub(crate) fn run(&self) {
        let mut state = self.state.lock();
        while !state.is_stopped {
            let requests: Vec<_> = state.waiting.iter().map(|waiting| waiting.request).collect();
            let Some(chosen) = state.drive.choose(&requests) else {
                self.changed.wait(&mut state);
                continue;
            };
            state.serving = Some(state.waiting.remove(chosen));
            if let Some(seed) = state.due_cut() {
                let outcome = MutexGuard::unlocked(&mut state, || self.power_cut(seed));
                state.spoiled = outcome.err();
                continue;
            }
            let leaves = state.answer_leaves(&requests[chosen]);
            loop {
                let left = leaves.saturating_duration_since(Instant::now());
                // A power cut takes away what is being served.
                if left.is_zero() || state.serving.is_none() || state.is_stopped {
                    break;
                }
                self.changed.wait_for(&mut state, left);
            }
            let Some(served) = state.serving.take() else { continue };
            let outcome = carry_out(&mut state.medium, served.request, served.bytes);
            MutexGuard::unlocked(&mut state, || (served.answer)(outcome));
        }
        let left: Vec<_> = state.waiting.drain(..).collect();
        drop(state);
        left.into_iter().for_each(|waiting| (waiting.answer)(Err(Errno::IO.into())));
    }

    /// From now on time passes at another speed; what was until now took as long as it did.
    pub(crate) fn set_time_scale(&self, scale: f64) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let passed = Duration::from_secs_f64(state.drive.free_ns() as f64 / 1e9 * scale);
        state.clock = Clock { began: now.checked_sub(passed).unwrap_or(now), scale };
    }

    /// From now on every answer takes this long and the drive does not count it; or the drive
    /// answers again.
    pub(crate) fn answer_after(&self, after: Option<Duration>) {
        self.state.lock().answers_after = after;
    }

    /// From now on answers leave so much earlier, but never before their requests came.
    pub(crate) fn set_transport(&self, transport: Duration) {
        self.state.lock().transport = transport;
    }

    pub(crate) fn transport(&self) -> Duration {
        self.state.lock().transport
    }

    /// The thread ends; every request fails.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    pub(crate) fn counters(&self) -> Counters {
        let state = self.state.lock();
        Counters { depth_max: state.depth_max, ..*state.drive.counters() }
    }

    /// Takes the power away: see [`Medium::cut`]. Without power, nothing changes.
    pub(crate) fn power_cut(&self, seed: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.has_power {
            return Ok(());
        }
        state.has_power = false;
        state.cut_after = None;
        state.drive.lose_caches();
        let serving = state.serving.take();
        let (mut answers, mut under_way) = (Vec::new(), Vec::new());
        for Waiting { request, bytes, answer } in serving.into_iter().chain(state.waiting.drain(..))
        {
            if request.kind == Kind::Write {
                under_way.push(Write { sector: request.sector, bytes });
            }
            answers.push(answer);
        }
        let outcome = state.medium.cut(seed, under_way);
        drop(state);
        self.changed.notify_all();
        answers.into_iter().for_each(|answer| answer(Err(Errno::IO.into())));
        outcome
    }

    /// Takes the power away when so many more requests were served, while the next one is.
    pub(crate) fn power_cut_after(&self, requests: u64, seed: u64) {
        self.state.lock().cut_after = Some((requests, seed));
    }

    /// Gives the power back.
    pub(crate) fn power_on(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        match state.spoiled.take() {
            Some(error) => return Err(error),
            None => state.has_power = true,
        }
        Ok(())
    }

    pub(crate) fn has_power(&self) -> bool {
        self.state.lock().has_power
    }
}

fn carry_out(medium: &mut Medium, request: Request, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    match request.kind {
        Kind::Read => medium.read(request.sector, request.sectors),
        Kind::Write => medium.write(Write { sector: request.sector, bytes }).map(|()| Vec::new()),
        Kind::Sync => medium.sync().map(|()| Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MS;

    fn arm(scale: f64) -> Arm {
        Arm::new(&Parameters::travelstar_7k320(), 1 << 30, tempfile::tempfile().unwrap(), scale)
    }

    fn read(sector: u64) -> Request {
        Request { kind: Kind::Read, sector, sectors: 8, arrived_ns: 0 }
    }

    #[test]
    fn answers_leave_earlier_by_the_transport_and_the_drive_knows_nothing_of_it() {
        let transport = Duration::from_micros(300);
        for scale in [1.0, 0.1] {
            let (with, without) = (arm(scale), arm(scale));
            with.set_transport(transport);
            for sector in [1_000_000, 0, 500_000] {
                let leaves = |arm: &Arm| {
                    let mut state = arm.state.lock();
                    state.answer_leaves(&read(sector)).duration_since(state.clock.began)
                };
                assert_eq!(leaves(&with) + transport, leaves(&without));
            }
            assert_eq!(with.counters(), without.counters());
            assert!(with.counters().service_ns() > 3 * MS);
        }
    }

    #[test]
    fn while_the_transport_is_measured_the_drive_is_asked_nothing() {
        let arm = arm(1.0);
        arm.answer_after(Some(Duration::from_secs(1)));
        let leaves = arm.state.lock().answer_leaves(&read(7));
        assert!(leaves > Instant::now());
        assert_eq!(arm.counters(), Counters::default());
    }
}
