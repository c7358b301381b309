//! Queues the requests to a drive. The drive's thread takes the request that the model chooses,
//! lets the model compute its completion time, waits until then, and replies.

use std::fs::File;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;

use crate::idle::wait_until_idle;
use crate::medium::{Medium, Write};
use crate::model::Counters;
use crate::model::{Drive, Kind, Nanos, Parameters, Request};

/// The callback for a completed request; it receives the bytes that a read returned.
pub(crate) type Reply = Box<dyn FnOnce(io::Result<Vec<u8>>) + Send>;

/// The shortest sleep while the clock may be stopped.
const WAIT_STEP: Duration = Duration::from_micros(200);

/// Maps virtual time to real time.
#[derive(Debug, Clone, Copy)]
struct Clock {
    began: Instant,
    scale: f64,
    /// When the clock was stopped; `None` while it runs.
    held_since: Option<Instant>,
}

impl Clock {
    /// Returns the real time that corresponds to the present virtual time.
    fn present(&self) -> Instant {
        self.held_since.unwrap_or_else(Instant::now)
    }

    /// Lets a stopped clock continue with the time at which it was stopped.
    fn release(&mut self) {
        if let Some(since) = self.held_since.take() {
            self.began += since.elapsed();
        }
    }

    /// Returns the present virtual time. At scale 0, virtual time advances only with the requests,
    /// so the present is `free_ns`, the last request's completion time.
    #[expect(clippy::cast_possible_truncation, reason = "centuries")]
    fn now_ns(&self, free_ns: Nanos) -> Nanos {
        if self.scale <= 0.0 {
            return free_ns;
        }
        (self.present().saturating_duration_since(self.began).as_nanos() as f64 / self.scale)
            as Nanos
    }

    /// Returns the real time that corresponds to a virtual time. At scale 0 this is the clock's
    /// start, so the drive does not wait.
    fn moment(&self, moment_ns: Nanos) -> Instant {
        self.began + Duration::from_secs_f64(moment_ns as f64 / 1e9 * self.scale)
    }
}

/// A read that the drive has served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedRead {
    /// The first sector.
    pub sector: u64,
    /// The number of sectors.
    pub sectors: u64,
    /// The virtual service time.
    pub service_ns: Nanos,
}

struct PendingRequest {
    request: Request,
    bytes: Vec<u8>,
    reply: Reply,
}

struct State {
    drive: Drive,
    medium: Medium,
    clock: Clock,
    /// See [`Options::holds_clock`](crate::Options::holds_clock).
    holds_clock: bool,
    /// The number of times that the clock was stopped, or that it was to be stopped again.
    holds: u64,
    /// The waiting requests, the oldest first.
    pending: Vec<PendingRequest>,
    serving: Option<PendingRequest>,
    depth_max: u64,
    /// The reads served since [`DriveQueue::record_reads`]; `None` if they are not recorded.
    reads: Option<Vec<ServedRead>>,
    /// By how much replies precede the times that the model computes: the overhead that FUSE and
    /// the loop device add.
    transport: Duration,
    /// If set, the drive replies this time after it has chosen a request, without using the model.
    fixed_latency: Option<Duration>,
    has_power: bool,
    /// A scheduled power cut: how many requests are served before it, and its seed.
    cut_after: Option<(u64, u64)>,
    /// The error from writing the backing store at a scheduled power cut, which
    /// [`DriveQueue::power_on`] returns.
    cut_error: Option<io::Error>,
    is_stopped: bool,
}

impl State {
    /// Lets the drive serve a request; returns the real time at which to reply.
    fn reply_time(&mut self, request: &Request) -> Instant {
        if let Some(after) = self.fixed_latency {
            return Instant::now() + after;
        }
        let before_ns = self.drive.counters().service_ns();
        let done = self.clock.moment(self.drive.serve(request));
        if let Some(reads) = self.reads.as_mut().filter(|_| request.kind == Kind::Read) {
            let service_ns = self.drive.counters().service_ns() - before_ns;
            let Request { sector, sectors, .. } = *request;
            reads.push(ServedRead { sector, sectors, service_ns });
        }
        done.checked_sub(self.transport).unwrap_or(done)
    }

    /// Stops the clock at `moment`, until the process waits again.
    fn hold_clock(&mut self, moment: Instant) {
        if self.holds_clock && self.clock.scale > 0.0 {
            self.holds += 1;
            self.clock.held_since.get_or_insert(moment);
        }
    }

    /// Counts a request for a scheduled power cut; returns the seed if the power is cut during this
    /// request.
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

/// A drive with its request queue, shared between its thread and the threads that submit requests.
pub(crate) struct DriveQueue {
    state: Mutex<State>,
    changed: Condvar,
}

impl DriveQueue {
    pub(crate) fn new(parameters: &Parameters, bytes: u64, file: File, scale: f64) -> Self {
        let state = State {
            drive: Drive::new(parameters.clone(), bytes),
            medium: Medium::new(file, parameters.write_cache_bytes, parameters.physical_sectors()),
            clock: Clock { began: Instant::now(), scale, held_since: None },
            holds_clock: false,
            holds: 0,
            pending: Vec::new(),
            serving: None,
            depth_max: 0,
            reads: None,
            transport: Duration::ZERO,
            fixed_latency: None,
            has_power: true,
            cut_after: None,
            cut_error: None,
            is_stopped: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Submits a request to the drive; without power the request fails at once.
    pub(crate) fn submit(
        &self,
        kind: Kind,
        sector: u64,
        sectors: u64,
        bytes: Vec<u8>,
        reply: Reply,
    ) {
        let mut state = self.state.lock();
        if !state.has_power || state.is_stopped {
            drop(state);
            return reply(Err(Errno::IO.into()));
        }
        let arrived_ns = state.clock.now_ns(state.drive.free_ns());
        let request = Request { kind, sector, sectors, arrived_ns };
        state.pending.push(PendingRequest { request, bytes, reply });
        let depth = state.pending.len() + usize::from(state.serving.is_some());
        state.depth_max = state.depth_max.max(depth as u64);
        self.changed.notify_all();
    }

    /// Serves requests until [`DriveQueue::stop`].
    pub(crate) fn run(&self) {
        let mut state = self.state.lock();
        while !state.is_stopped {
            // The process may still send a request in response to the last reply.
            if state.clock.held_since.is_some() {
                self.changed.wait(&mut state);
                continue;
            }
            let requests: Vec<_> = state.pending.iter().map(|pending| pending.request).collect();
            let Some(chosen) = state.drive.choose(&requests) else {
                self.changed.wait(&mut state);
                continue;
            };
            state.serving = Some(state.pending.remove(chosen));
            if let Some(seed) = state.due_cut() {
                let outcome = MutexGuard::unlocked(&mut state, || self.power_cut(seed));
                state.cut_error = outcome.err();
                continue;
            }
            let reply_at = state.reply_time(&requests[chosen]);
            let began = state.clock.began;
            // The clock may be stopped and continue later.
            let reply_at = |clock: &Clock| reply_at + clock.began.saturating_duration_since(began);
            loop {
                let left = reply_at(&state.clock).saturating_duration_since(state.clock.present());
                // A power cut removes the request that is being served.
                if left.is_zero() || state.serving.is_none() || state.is_stopped {
                    break;
                }
                match state.clock.held_since {
                    None => drop(self.changed.wait_for(&mut state, left)),
                    Some(_) => self.changed.wait(&mut state),
                }
            }
            let Some(served) = state.serving.take() else { continue };
            let replied_at = reply_at(&state.clock);
            state.hold_clock(replied_at);
            self.changed.notify_all();
            let outcome = execute(&mut state.medium, served.request, served.bytes);
            MutexGuard::unlocked(&mut state, || (served.reply)(outcome));
        }
        let left: Vec<_> = state.pending.drain(..).collect();
        drop(state);
        left.into_iter().for_each(|pending| (pending.reply)(Err(Errno::IO.into())));
    }

    /// Lets the clock continue whenever it was stopped and the process waits, until
    /// [`DriveQueue::stop`].
    pub(crate) fn run_clock(&self) {
        let mut state = self.state.lock();
        state.holds_clock = true;
        while !state.is_stopped {
            let holds = state.holds;
            if state.clock.held_since.is_none() {
                self.changed.wait(&mut state);
                continue;
            }
            MutexGuard::unlocked(&mut state, wait_until_idle);
            if state.holds == holds {
                state.clock.release();
                self.changed.notify_all();
            }
        }
    }

    /// Returns the present virtual time.
    pub(crate) fn now(&self) -> Duration {
        let state = self.state.lock();
        Duration::from_nanos(state.clock.now_ns(state.drive.free_ns()))
    }

    /// Waits until a virtual time has passed, and stops the clock if [`Self::run_clock`] runs.
    pub(crate) fn wait_until(&self, time: Duration) {
        loop {
            let mut state = self.state.lock();
            let now_ns = state.clock.now_ns(state.drive.free_ns());
            let left = time.saturating_sub(Duration::from_nanos(now_ns));
            if left.is_zero() || state.is_stopped {
                let present = state.clock.present();
                state.hold_clock(present);
                self.changed.notify_all();
                return;
            }
            let left = left.mul_f64(state.clock.scale).max(WAIT_STEP);
            drop(state);
            sleep(left);
        }
    }

    /// Changes the time scale. Virtual time continues from the last request's completion time.
    pub(crate) fn set_time_scale(&self, scale: f64) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let passed = Duration::from_secs_f64(state.drive.free_ns() as f64 / 1e9 * scale);
        state.clock.began = now.checked_sub(passed).unwrap_or(now);
        (state.clock.scale, state.clock.held_since) = (scale, None);
        self.changed.notify_all();
    }

    /// Sends all replies after a fixed time, without using the model; `None` uses the model again.
    pub(crate) fn set_fixed_latency(&self, after: Option<Duration>) {
        self.state.lock().fixed_latency = after;
    }

    /// Sets by how much replies precede the times that the model computes. A reply never precedes
    /// its request.
    pub(crate) fn set_transport(&self, transport: Duration) {
        self.state.lock().transport = transport;
    }

    pub(crate) fn transport(&self) -> Duration {
        self.state.lock().transport
    }

    /// Stops the thread; all waiting and later requests fail.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    pub(crate) fn counters(&self) -> Counters {
        let state = self.state.lock();
        Counters { depth_max: state.depth_max, ..*state.drive.counters() }
    }

    pub(crate) fn record_reads(&self) {
        self.state.lock().reads = Some(Vec::new());
    }

    /// Returns the recorded reads in service order, and stops recording.
    pub(crate) fn take_reads(&self) -> Vec<ServedRead> {
        self.state.lock().reads.take().unwrap_or_default()
    }

    /// Cuts the power; see [`Medium::cut`]. Without power this has no effect.
    pub(crate) fn power_cut(&self, seed: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.has_power {
            return Ok(());
        }
        state.has_power = false;
        state.cut_after = None;
        state.drive.lose_caches();
        let serving = state.serving.take();
        let (mut replies, mut in_flight) = (Vec::new(), Vec::new());
        for PendingRequest { request, bytes, reply } in
            serving.into_iter().chain(state.pending.drain(..))
        {
            if request.kind == Kind::Write {
                in_flight.push(Write { sector: request.sector, bytes });
            }
            replies.push(reply);
        }
        let outcome = state.medium.cut(seed, in_flight);
        drop(state);
        self.changed.notify_all();
        replies.into_iter().for_each(|reply| reply(Err(Errno::IO.into())));
        outcome
    }

    /// Schedules a power cut: `requests` more requests are served, and the power is cut during the
    /// next one.
    pub(crate) fn power_cut_after(&self, requests: u64, seed: u64) {
        self.state.lock().cut_after = Some((requests, seed));
    }

    pub(crate) fn power_on(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        match state.cut_error.take() {
            Some(error) => return Err(error),
            None => state.has_power = true,
        }
        Ok(())
    }

    pub(crate) fn has_power(&self) -> bool {
        self.state.lock().has_power
    }
}

fn execute(medium: &mut Medium, request: Request, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
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

    fn queue(scale: f64) -> DriveQueue {
        DriveQueue::new(
            &Parameters::travelstar_7k320(),
            1 << 30,
            tempfile::tempfile().unwrap(),
            scale,
        )
    }

    fn read(sector: u64) -> Request {
        Request { kind: Kind::Read, sector, sectors: 8, arrived_ns: 0 }
    }

    #[test]
    fn replies_are_earlier_by_the_transport_and_counters_unaffected() {
        let transport = Duration::from_micros(300);
        for scale in [1.0, 0.1] {
            let (with, without) = (queue(scale), queue(scale));
            with.set_transport(transport);
            for sector in [1_000_000, 0, 500_000] {
                let reply_at = |queue: &DriveQueue| {
                    let mut state = queue.state.lock();
                    state.reply_time(&read(sector)).duration_since(state.clock.began)
                };
                assert_eq!(reply_at(&with) + transport, reply_at(&without));
            }
            assert_eq!(with.counters(), without.counters());
            assert!(with.counters().service_ns() > 3 * MS);
        }
    }

    #[test]
    fn held_clock_stands_still_and_continues_where_it_stopped() {
        let queue = queue(1.0);
        let mut state = queue.state.lock();
        state.hold_clock(Instant::now());
        assert!(state.clock.held_since.is_none(), "only if the option is set");
        state.holds_clock = true;
        let stopped_at = Instant::now();
        state.hold_clock(stopped_at);
        let held_ns = state.clock.now_ns(0);
        sleep(Duration::from_millis(5));
        assert_eq!(state.clock.now_ns(0), held_ns);
        let began = state.clock.began;
        state.clock.release();
        assert!(state.clock.began >= began + Duration::from_millis(5));
        assert!(state.clock.now_ns(0) >= held_ns);
    }

    #[test]
    fn fixed_latency_bypasses_the_drive() {
        let queue = queue(1.0);
        queue.set_fixed_latency(Some(Duration::from_secs(1)));
        let reply_at = queue.state.lock().reply_time(&read(7));
        assert!(reply_at > Instant::now());
        assert_eq!(queue.counters(), Counters::default());
    }
}
