//! The power is cut at every step of a workload, and at steps of the recovery from it.
//!
//! # Source
//! \[Mohan18\], all crashes of small workloads; \[LevelFault\], names that survive only a sync of
//! their directory.

use std::any::Any;
use std::fmt;
use std::io::Write;
use std::thread;

use crate::memory::device::Device;
use crate::memory::disk::MemoryDisk;
use crate::memory::medium::Medium;
use crate::memory::step::{Note, Step};
use crate::random::Random;

/// How much is tried.
#[derive(Debug, Clone)]
pub struct Crashes {
    /// The most hostile device; all kinder ones are tried, too.
    pub worst: Device,
    /// Where that may leave at most so many states, all of them are tried.
    pub all_up_to: u64,
    /// Where there are more, so many are drawn for each kind of device.
    pub draws: u64,
    /// The recovery of one of so many states is crashed, too, ...
    pub again_one_in: u64,
    /// ... at this many of its steps, or at all where it has no more.
    pub again_steps: u64,
    /// What decides all that is left to chance.
    pub seed: u64,
}

impl Default for Crashes {
    fn default() -> Self {
        Self {
            worst: Device::StaleBlocks,
            all_up_to: 32,
            draws: 4,
            again_one_in: 8,
            again_steps: 16,
            seed: seed(),
        }
    }
}

/// A machine after a crash, and what was noted before it.
#[derive(Debug)]
pub struct Crash {
    /// The machine that starts again.
    pub disk: MemoryDisk,
    /// What the test noted until the crash, first by the workload and then, where the recovery
    /// was crashed, by the check.
    notes: Vec<Note>,
}

impl Crash {
    /// What was noted of this type, in order.
    pub fn notes<T: Any>(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.notes.iter().filter_map(Note::get)
    }
}

/// The seed of a test: that of the environment, to go through a failure again, or a new one.
#[must_use]
pub fn seed() -> u64 {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    seed.unwrap_or_else(|| {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::from(since.subsec_nanos()) ^ since.as_secs()
    })
}

/// The command that goes through the running test again.
#[must_use]
pub fn replay_command(seed: u64) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let test = thread::current().name().unwrap_or_default().to_owned();
    format!("SEED={seed} cargo test -p {package} {test}")
}

/// Runs a workload once and writes its steps down, then stops the machine before its first step
/// and after each: kills it, and cuts its power in the ways [`Crashes`] says. `check` starts it
/// again, looks whether all is there, and goes on with it as it likes; the steps of that are
/// crashed in the same way. Returns how many states were checked, and prints it.
///
/// A workload notes on its disk what it was told (see [`MemoryDisk::note`]), and `check` may: each
/// crash shows what was noted before it. Both may use threads: the states come from the steps
/// that were written down, which for a workload of one thread the seed decides alone.
///
/// # Panics
/// When `check` does; then the state and the command to see it again are printed.
pub fn crash_everywhere<W>(
    crashes: &Crashes,
    workload: impl FnOnce(&MemoryDisk) -> W,
    check: impl Fn(&W, &Crash),
) -> u64 {
    let disk = MemoryDisk::default();
    let outcome = {
        let _told = Told(format!("the workload\n{}", replay_command(crashes.seed)));
        workload(&disk)
    };
    let check = |crash: &Crash| check(&outcome, crash);
    let mut run = Run { crashes, check: &check, states: 0, random: Random(crashes.seed) };
    let steps = disk.steps();
    let (mut medium, mut notes) = (Medium::default(), Vec::new());
    run.crash_at(&medium, &notes, "before the first step");
    for (number, step) in steps.iter().enumerate() {
        take(&mut medium, &mut notes, step);
        let place = format!("after step {} of {}, {step:?}", number + 1, steps.len());
        run.crash_at(&medium, &notes, &place);
    }
    tell_count(&format!("{} crash states", run.states), crashes.seed);
    run.states
}

/// Runs `once`, which crashes some workload, with one seed after the other until at least so many
/// states were checked.
pub fn crash_until(least: u64, crashes: &Crashes, mut once: impl FnMut(&Crashes) -> u64) {
    let (mut states, mut crashes) = (0, crashes.clone());
    while states < least {
        states += once(&crashes);
        crashes.seed = crashes.seed.wrapping_add(1);
    }
}

/// Says what a test counted, such as "N crash states", past the test harness, which keeps what is
/// printed to itself. The name of the engine goes before it, the command to see it again behind.
pub fn tell_count(counted: &str, seed: u64) {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let engine = package.trim_start_matches("haul-");
    let line = format!("\n{engine}: {counted} ({})\n", replay_command(seed));
    drop(std::io::stdout().write_all(line.as_bytes()));
}

fn take(medium: &mut Medium, notes: &mut Vec<Note>, step: &Step) {
    medium.take(step);
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

    /// The machine stops here: is killed, and loses its power in many ways.
    fn crash_at(&mut self, medium: &Medium, notes: &[Note], place: &str) {
        if !medium.pending.is_empty() {
            self.start(medium, notes, &format!("a kill {place}"));
        }
        let worst = medium.states(self.crashes.worst);
        let count = worst.count();
        if count <= self.crashes.all_up_to {
            for n in 0..count {
                let what = format!("a power cut {place}: state {n} of {count}");
                self.start(&worst.nth(n), notes, &what);
            }
            return;
        }
        for device in self.devices() {
            let states = medium.states(device);
            for n in 0..self.crashes.draws.min(states.count()) {
                let left = states.draw(&mut Random(self.random.number()));
                let what = format!("a power cut {place}: draw {n} of {device:?}");
                self.start(&left, notes, &what);
            }
        }
    }

    /// The machine starts again, and perhaps stops once more.
    fn start(&mut self, left: &Medium, notes: &[Note], what: &str) {
        let _told = Told(format!("{what}\n{}", replay_command(self.crashes.seed)));
        let steps = self.check(left, notes);
        if self.random.below(self.crashes.again_one_in) != 0 {
            return;
        }
        let (mut medium, mut notes) = (left.clone(), notes.to_vec());
        for (number, step) in steps.iter().enumerate() {
            take(&mut medium, &mut notes, step);
            if self.random.below(steps.len() as u64) >= self.crashes.again_steps {
                continue;
            }
            let _told = Told(format!("a second crash after step {} of {what}", number + 1));
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

/// Says where it was when a check fails.
struct Told(String);

impl Drop for Told {
    #[expect(clippy::print_stderr, reason = "it belongs to the message of the panic")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("in {self}");
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
