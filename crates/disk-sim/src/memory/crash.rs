//! Runs a test with a power cut at every workload step, and at some recovery steps.
//!
//! # Source
//! \[Mohan18\] on exhaustive crashes of small workloads; \[LevelFault\] on names that survive a
//! power cut only if their directory was synced.

use std::any::Any;
use std::io::Write;

use haul_testing::{PrintOnPanic, Random, depth, replay_command, seed};

use crate::memory::device::Device;
use crate::memory::disk::MemoryDisk;
#[cfg(target_env = "gnu")]
use crate::memory::heap;
use crate::memory::medium::Medium;
use crate::memory::step::{Note, Step};

/// Options for [`crash_everywhere`].
#[derive(Debug, Clone)]
pub struct Crashes {
    /// The approximate number of steps, for each unit of [`depth`], after which a machine is
    /// stopped. A workload with fewer steps is stopped after all of them.
    pub steps: u64,
    /// The most hostile device kind tested; all earlier kinds in [`Device`] are tested, too.
    pub worst: Device,
    /// The limit for exhaustive tests: if `worst` may leave at most this number of states after a
    /// step, all of them are tested. Otherwise random states are drawn.
    pub all_up_to: u64,
    /// How many states are drawn after a step for each device kind, if not all are tested.
    pub draws: u64,
    /// The share of states whose recovery is crashed, too, as a reciprocal of at least 1: 8 means
    /// one state in eight on average.
    pub again_one_in: u64,
    /// The approximate number of steps at which one recovery is crashed. A recovery with fewer
    /// steps is crashed at all of them.
    pub again_steps: u64,
    /// The seed for all random choices.
    pub seed: u64,
}

impl Default for Crashes {
    fn default() -> Self {
        Self {
            steps: 200,
            worst: Device::StaleBlocks,
            all_up_to: 32,
            draws: 4,
            again_one_in: 8,
            again_steps: 16,
            seed: seed(),
        }
    }
}

/// A machine restarted after a crash, and the notes recorded before the crash.
#[derive(Debug)]
pub struct Crash {
    /// The restarted machine's disk.
    pub disk: MemoryDisk,
    /// The workload's notes, followed by the check's notes if the recovery was crashed.
    notes: Vec<Note>,
}

impl Crash {
    /// Returns the notes that have the type `T`, in the order in which they were recorded.
    pub fn notes<T: Any>(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.notes.iter().filter_map(Note::get)
    }
}

/// Runs a workload once and records its steps. Then stops the machine before the first step and
/// after each step (of a long workload, after random ones: see [`Crashes::steps`]), both by killing
/// the process and by cutting the power, and calls `check` with each resulting state. `check`
/// recovers, verifies the state, and may continue to work. For some states, the machine is crashed
/// again at steps of `check` (see [`Crashes::again_one_in`]). Returns and prints the number of
/// states checked.
///
/// The workload and `check` can record acknowledgements as notes on the disk (see
/// [`MemoryDisk::note`]); each [`Crash`] contains the notes recorded before it. The workload and
/// `check` may use threads, because the states are derived from the recorded steps. Without
/// threads, the states depend only on the seed.
///
/// # Panics
/// If `check` panics. The state and the command that reproduces it are then printed.
pub fn crash_everywhere<W>(
    crashes: &Crashes,
    workload: impl FnOnce(&MemoryDisk) -> W,
    check: impl Fn(&W, &Crash),
) -> u64 {
    #[cfg(target_env = "gnu")]
    heap::keep_freed_buffers();
    let disk = MemoryDisk::default();
    let outcome = {
        let _context = PrintOnPanic(format!("the workload\n{}", replay_command(crashes.seed)));
        workload(&disk)
    };
    let check = |crash: &Crash| check(&outcome, crash);
    let mut run = Run { crashes, check: &check, states: 0, random: Random(crashes.seed) };
    let steps = disk.steps();
    let (mut medium, mut notes) = (Medium::default(), Vec::new());
    run.crash_at(&medium, &notes, "before the first step");
    for (number, step) in steps.iter().enumerate() {
        apply_step(&mut medium, &mut notes, step);
        let is_last = number + 1 == steps.len();
        if run.random.below(steps.len() as u64) >= crashes.steps * depth() && !is_last {
            continue;
        }
        let moment = format!("after step {} of {}, {step:?}", number + 1, steps.len());
        run.crash_at(&medium, &notes, &moment);
    }
    print_count(&format!("{} crash states", run.states), crashes.seed);
    run.states
}

/// Calls `once` with consecutive seeds until it has checked at least `least` states for each unit
/// of [`depth`]. `once` crashes a workload and returns the number of states that it checked.
pub fn crash_until(least: u64, crashes: &Crashes, mut once: impl FnMut(&Crashes) -> u64) {
    let (mut states, mut crashes) = (0, crashes.clone());
    while states < least * depth() {
        states += once(&crashes);
        crashes.seed = crashes.seed.wrapping_add(1);
    }
}

/// Prints a test's count, such as "N crash states", preceded by the tested crate's name and
/// followed by the command that reproduces the test. The line bypasses the test harness's output
/// capture.
pub fn print_count(counted: &str, seed: u64) {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let engine = package.trim_start_matches("haul-");
    let line = format!("\n{engine}: {counted} ({})\n", replay_command(seed));
    drop(std::io::stdout().write_all(line.as_bytes()));
}

fn apply_step(medium: &mut Medium, notes: &mut Vec<Note>, step: &Step) {
    medium.apply_step(step);
    if let Step::Note(note) = step {
        notes.push(note.clone());
    }
}

struct Run<'a> {
    crashes: &'a Crashes,
    check: &'a dyn Fn(&Crash),
    states: u64,
    random: Random,
}

impl Run<'_> {
    fn devices(&self) -> impl Iterator<Item = Device> + use<> {
        let worst = self.crashes.worst;
        Device::ALL.into_iter().filter(move |device| *device <= worst)
    }

    /// Crashes the machine in the state of `medium`: kills the process, and cuts the power with
    /// various outcomes.
    fn crash_at(&mut self, medium: &Medium, notes: &[Note], moment: &str) {
        if !medium.pending.is_empty() {
            self.start(medium, notes, &format!("a kill {moment}"));
        }
        let worst = medium.states(self.crashes.worst);
        let count = worst.count();
        if count <= self.crashes.all_up_to {
            for n in 0..count {
                let description = format!("a power cut {moment}: state {n} of {count}");
                self.start(&worst.nth(n), notes, &description);
            }
            return;
        }
        for device in self.devices() {
            let states = medium.states(device);
            for n in 0..self.crashes.draws.min(states.count()) {
                let left = states.draw(&mut Random(self.random.number()));
                let description = format!("a power cut {moment}: draw {n} of {device:?}");
                self.start(&left, notes, &description);
            }
        }
    }

    /// Restarts the machine on the state `left`, checks it, and for some states crashes the
    /// recovery, too.
    fn start(&mut self, left: &Medium, notes: &[Note], description: &str) {
        let _context =
            PrintOnPanic(format!("{description}\n{}", replay_command(self.crashes.seed)));
        let steps = self.check(left, notes);
        if self.random.below(self.crashes.again_one_in) != 0 {
            return;
        }
        let (mut medium, mut notes) = (left.clone(), notes.to_vec());
        for (number, step) in steps.iter().enumerate() {
            apply_step(&mut medium, &mut notes, step);
            if self.random.below(steps.len() as u64) >= self.crashes.again_steps {
                continue;
            }
            let _context =
                PrintOnPanic(format!("a second crash after step {} of {description}", number + 1));
            let device = self.random.below(Device::ALL.len() as u64 + 1);
            let device = usize::try_from(device).ok().and_then(|kind| self.devices().nth(kind));
            let left = match device {
                Some(device) => medium.states(device).draw(&mut self.random),
                None => medium.clone(),
            };
            self.check(&left, &notes);
        }
    }

    fn check(&mut self, left: &Medium, notes: &[Note]) -> Vec<Step> {
        let crash = Crash { disk: MemoryDisk::on(left), notes: notes.to_vec() };
        (self.check)(&crash);
        self.states += 1;
        crash.disk.steps()
    }
}
