//! A simulation's world: the machine that owns the copy, the one that owned it before, a standby,
//! and the remote store.

use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use haul_disk_sim::MemoryDisk;
use haul_testing::Random;

use crate::error::{Error, Result};
use crate::options::Options;
use crate::progress::Progress;
use crate::simulation::crash::audit;
use crate::simulation::crash::cloud::{Cloud, Weather};
use crate::simulation::crash::machine::{
    BIG_BYTES, LEASE, Machine, Process, SlowClock, is_remote, random_options,
};
use crate::simulation::crash::model::{Model, Object};
use crate::simulation::crash::watcher::Watcher;

/// The number of attempts that may fail. All requests in later ones succeed.
const FAILURES_MAX: usize = 4;

const KEYS: u64 = 8;

/// A step in a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The owner stores or deletes objects.
    Changes,
    Ship,
    Merge,
    /// The owner drops local parts, or fetches them.
    MoveParts,
    Checkpoint,
    Compact,
    Renew,
    TimePasses,
    WeatherChanges,
    /// The owner's power fails during a following step.
    PowerCut,
    Kill,
    Stop,
    /// The copy is restored on another machine, which continues it.
    Restore,
    /// The standby follows the copy.
    StandBy,
    StandbyFails,
    TakeOver,
    PreviousOwner,
    Audit,
}

const EVENTS: [(Event, u64); 18] = [
    (Event::Changes, 40),
    (Event::Ship, 24),
    (Event::Merge, 12),
    (Event::MoveParts, 12),
    (Event::Checkpoint, 2),
    (Event::Compact, 3),
    (Event::Renew, 4),
    (Event::TimePasses, 3),
    (Event::WeatherChanges, 4),
    (Event::PowerCut, 10),
    (Event::Kill, 2),
    (Event::Stop, 2),
    (Event::Restore, 2),
    (Event::StandBy, 8),
    (Event::StandbyFails, 2),
    (Event::TakeOver, 2),
    (Event::PreviousOwner, 6),
    (Event::Audit, 4),
];

/// The number of times that each event happened, for the events that every run must include.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) power_cuts: u64,
    pub(super) rounds: u64,
    pub(super) merges: u64,
    /// Volumes that were only in the copy.
    pub(super) remote_parts: u64,
    pub(super) restores: u64,
    pub(super) takeovers: u64,
    /// Previous owners that noticed that they had lost the copy.
    pub(super) fenced: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.power_cuts += more.power_cuts;
        self.rounds += more.rounds;
        self.merges += more.merges;
        self.remote_parts += more.remote_parts;
        self.restores += more.restores;
        self.takeovers += more.takeovers;
        self.fenced += more.fenced;
    }
}

pub(super) struct World {
    pub(super) random: Random,
    /// All owners' lease.
    lease: Option<Duration>,
    pub(super) cloud: Arc<Cloud>,
    pub(super) clock: Arc<SlowClock>,
    pub(super) model: Model,
    /// The machine that owns the copy, or did before a standby or another machine attempted to.
    pub(super) owner: Process,
    /// A process that owned the copy before, and does not know that it lost it.
    pub(super) previous: Option<Process>,
    pub(super) standby: Option<Watcher>,
    pub(super) counts: Counts,
}

impl World {
    /// Returns a world with an empty store that has a copy.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let cloud = Cloud::new(random.number());
        let clock = Arc::<SlowClock>::default();
        let machine = Machine::new(&cloud, MemoryDisk::default());
        let progress = Arc::new(Progress::without_waiting());
        let mut owner = Process::open(&machine, progress, None).unwrap();
        let lease = *random.pick(&[None, Some(LEASE)]);
        owner.claim(random_options(&mut random, lease), &clock).unwrap();
        let (model, counts) = (Model::default(), Counts::default());
        Self { random, lease, cloud, clock, model, owner, previous: None, standby: None, counts }
    }

    pub(super) fn options(&mut self) -> Options {
        random_options(&mut self.random, self.lease)
    }

    /// Returns the space for a store's local parts; `None` if everything is local.
    pub(super) fn local_space(&mut self) -> Option<u64> {
        *self.random.pick(&[None, Some(0), Some(5 << 20), Some(8 << 20)])
    }

    /// Returns `true` with a probability of 1 in `cases`.
    pub(super) fn one_in(&mut self, cases: u64) -> bool {
        self.random.below(cases) == 0
    }

    pub(super) fn next_event(&mut self) -> Event {
        let mut number = self.random.below(EVENTS.iter().map(|(_, weight)| weight).sum());
        for (event, weight) in EVENTS {
            if number < weight {
                return event;
            }
            number -= weight;
        }
        Event::Audit
    }

    pub(super) fn execute(&mut self, event: Event) {
        match event {
            Event::Changes => {
                for _ in 0..=self.random.below(4) {
                    self.change();
                }
            }
            Event::Ship => self.ship(),
            Event::Merge => self.counts.merges += u64::from(self.owner.merge()),
            Event::MoveParts => {
                let moved = self.owner.move_parts();
                self.check_outcome(moved);
                self.counts.remote_parts += self.owner.remote_parts();
            }
            Event::Checkpoint => {
                let written = self.owner.store.write_checkpoint();
                self.check_outcome(written.map_err(Error::from));
            }
            Event::Compact => {
                let compacted = self.owner.store.compact();
                self.check_outcome(compacted.map(drop).map_err(Error::from));
            }
            Event::Renew => {
                let renewed = self.owner.renew();
                self.check_outcome(renewed);
            }
            Event::TimePasses => {
                let by = LEASE.mul_f64(self.random.below(100) as f64 / 80.0);
                self.clock.advance(by);
            }
            Event::WeatherChanges => {
                let kinds = [Weather::Calm, Weather::Flaky(4), Weather::Flaky(20), Weather::Down];
                self.cloud.set_weather(*self.random.pick(&kinds));
            }
            Event::PowerCut => self.owner.machine.cut_power_later(&mut self.random),
            Event::Kill => self.restart(),
            Event::Stop => {
                self.owner.stop();
                self.restart();
            }
            Event::Restore => self.restore_elsewhere(),
            Event::StandBy => self.stand_by(false),
            Event::StandbyFails => self.standby = None,
            Event::TakeOver => self.stand_by(true),
            Event::PreviousOwner => self.continue_previous_owner(),
            Event::Audit => self.audit(),
        }
        if self.owner.machine.is_off() {
            self.restart();
        }
    }

    /// Checks that a failure has a cause, and restarts a machine without power.
    fn check_outcome(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            assert!(self.owner.machine.is_off() || is_remote(&error), "{error:?}");
        }
    }

    /// Stores or deletes an object.
    pub(super) fn change(&mut self) {
        if self.owner.machine.is_off() {
            return;
        }
        let key = format!("key {}", self.random.below(KEYS));
        let bytes = match self.random.below(8) {
            0..3 => 8 + self.random.below(5000),
            3..7 => 100_000 + self.random.below(700_000),
            _ => BIG_BYTES + self.random.below(500_000),
        };
        let object =
            Object { number: self.model.next_number(), bytes: usize::try_from(bytes).unwrap() };
        let object = (!self.one_in(6)).then_some(object);
        self.store(&key, object);
    }

    fn store(&mut self, key: &str, object: Option<Object>) {
        self.model.begin(key, object);
        let changed = self.owner.create_bucket().and_then(|()| self.owner.change(key, object));
        match changed {
            Ok(()) => self.model.acknowledge(),
            Err(_) if !self.owner.machine.keeps_power() => {}
            Err(error) => {
                let is_refused = matches!(error, haul_file_store::Error::NotReplicated { .. });
                let error = Error::from(error);
                assert!(is_refused || is_remote(&error), "{error:?}");
                self.model.continue_local(&self.owner.contents());
            }
        }
    }

    /// Runs a round, or claims the copy if that failed before.
    fn ship(&mut self) {
        if !self.owner.has_claimed() {
            let options = self.options();
            if let Err(error) = self.owner.claim(options, &self.clock) {
                return self.check_outcome(Err(error));
            }
        }
        match self.owner.ship() {
            Ok(manifest) => {
                self.counts.rounds += 1;
                self.model.acknowledge_copied(manifest);
            }
            Err(error) => self.check_outcome(Err(error)),
        }
    }

    /// Restarts the owner's machine, which may not claim the copy at once.
    pub(super) fn restart(&mut self) {
        for attempt in 0.. {
            self.counts.power_cuts += u64::from(self.owner.machine.is_off());
            let machine = self.owner.machine.restart(&mut self.random);
            let local_space = self.local_space();
            let opened = self.attempt(attempt, &machine, |_| {
                let progress = Arc::new(Progress::without_waiting());
                Process::open(&machine, progress, local_space)
            });
            match opened {
                Ok(process) => {
                    let is_on = machine.keeps_power();
                    self.owner = process;
                    if is_on {
                        break;
                    }
                }
                Err(error) => {
                    assert!(machine.is_off() || is_remote(&error), "{error:?}");
                    self.owner.machine = machine;
                }
            }
        }
        self.model.continue_local(&self.owner.contents());
    }

    /// Calls `call`, during which the machine's power may fail. After some failures, all requests
    /// succeed.
    pub(super) fn attempt<T>(
        &mut self,
        number: usize,
        machine: &Machine,
        call: impl FnOnce(&mut Self) -> T,
    ) -> T {
        assert!(number < 10 * FAILURES_MAX, "no attempt succeeds");
        if number >= FAILURES_MAX {
            return Arc::clone(&self.cloud).calmly(|| call(self));
        }
        if self.one_in(3) {
            machine.cut_power_later(&mut self.random);
        }
        call(self)
    }

    fn audit(&mut self) {
        audit::check(self.cloud.fork(), &mut self.model, Some(&mut self.random));
    }

    /// Checks that the copy has everything, that all its states can be restored, and that no
    /// garbage remains.
    pub(super) fn finish(mut self) -> Counts {
        (self.standby, self.previous) = (None, None);
        self.cloud.set_weather(Weather::Calm);
        self.cloud.execute_late();
        audit::check(self.cloud.fork(), &mut self.model, None);
        self.owner.machine.keeps_power();
        // The second process finds what the first one's changes made unnecessary.
        for is_first in [true, false] {
            self.restart();
            let (keep, delete_after) = (Duration::ZERO, Duration::ZERO);
            let options = Options { keep, delete_after, ..self.options() };
            self.owner.claim(options, &self.clock).unwrap();
            if is_first {
                let number = self.model.next_number();
                self.store("last", Some(Object { number, bytes: 100 }));
            }
            let manifest = self.owner.ship().unwrap();
            self.model.acknowledge_copied(manifest);
            audit::check(self.cloud.fork(), &mut self.model, None);
        }
        let big_files = self.owner.store.big_files();
        self.owner.stop();
        audit::check(self.cloud.fork(), &mut self.model, None);
        audit::check_no_garbage(self.cloud.fork(), &big_files);
        self.counts
    }
}
