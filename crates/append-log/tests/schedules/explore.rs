//! Runs a scenario under many thread schedules. The tests of several crates include this file.
//!
//! The environment variable `HAUL_SCHEDULES` sets the number of schedules of each test. A failed
//! test prints its schedule. To repeat it, run this test with the schedule in `HAUL_SCHEDULE`.

use std::hash::{BuildHasher, RandomState};

use haul_sync::shuttle::scheduler::{
    PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId,
};
use haul_sync::shuttle::{self, Config, FailurePersistence, MaxSteps, Runner};

/// The number of schedules of each test if `HAUL_SCHEDULES` is not set.
const SCHEDULES: usize = 1000;

/// The number of times that [`PctScheduler`] changes the priorities of threads in a schedule. Most
/// concurrency bugs appear after two or three changes.
const PRIORITY_CHANGES: usize = 3;

/// The code of a thread.
pub(crate) type Body = Box<dyn FnOnce() + Send>;

/// Runs `scenario` under random schedules, `cost` times fewer than of a short scenario. In a third of
/// them the next thread is chosen at random at each step, in a third by random priorities, and in a
/// third one thread is suspended for a time.
pub(crate) fn explore_part(name: &str, cost: usize, scenario: fn()) {
    if let Ok(schedule) = std::env::var("HAUL_SCHEDULE") {
        return shuttle::replay(scenario, &schedule);
    }
    let all = std::env::var("HAUL_SCHEDULES").ok().map_or(SCHEDULES, |text| text.parse().unwrap());
    let each = all.div_ceil(3 * cost);
    run(RandomScheduler::new(each), scenario);
    run(PctScheduler::new(PRIORITY_CHANGES, each), scenario);
    run(SuspendingScheduler::new(each), scenario);
    println!("{name}: {} schedules", 3 * each);
}

/// A scheduler that suspends the thread that runs at a random step for a random number of steps, as
/// the kernel may do. Otherwise it chooses threads at random.
///
/// With it, a test finds a thread that relies on something between two of its steps that other
/// threads change only in many steps.
struct SuspendingScheduler {
    random: RandomScheduler,
    step: u64,
    /// The first step of the suspension, and the step after it.
    from: u64,
    until: u64,
    suspended: Option<TaskId>,
}

impl SuspendingScheduler {
    fn new(schedules: usize) -> Self {
        let random = RandomScheduler::new(schedules);
        Self { random, step: 0, from: 0, until: 0, suspended: None }
    }
}

impl Scheduler for SuspendingScheduler {
    fn new_execution(&mut self) -> Option<Schedule> {
        // The length of the last schedule is about that of the next one.
        let below = |end: u64| RandomState::new().hash_one(end) % end.max(1);
        self.from = below(self.step);
        self.until = self.from + below(self.step);
        (self.step, self.suspended) = (0, None);
        self.random.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        self.step += 1;
        if self.step == self.from {
            self.suspended = current;
        } else if self.step == self.until {
            self.suspended = None;
        }
        let is_other = |task: &&Task| Some(task.id()) != self.suspended;
        let others: Vec<_> = runnable.iter().copied().filter(is_other).collect();
        let runnable = if others.is_empty() { runnable } else { &others };
        self.random.next_task(runnable, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next_u64()
    }
}

/// Runs `scenario` under the schedules of a scheduler.
pub(crate) fn run(
    scheduler: impl Scheduler + 'static,
    scenario: impl Fn() + Send + Sync + 'static,
) {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::Print;
    config.max_steps = MaxSteps::FailAfter(200_000);
    config.stack_size = 1 << 20;
    Runner::new(scheduler, config).run(scenario);
}

/// Runs each body in a thread whose switches `shuttle` schedules, and joins the threads.
pub(crate) fn in_threads(bodies: Vec<Body>) {
    let threads: Vec<_> = bodies.into_iter().map(shuttle::thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
