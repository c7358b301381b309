//! Runs a scenario under many thread schedules. The tests of several crates include this file.
//!
//! The environment variable `HAUL_SCHEDULES` sets the number of schedules of each test. A failed
//! test prints its schedule. To repeat it, run this test with the schedule in `HAUL_SCHEDULE`.

use haul_sync::shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use haul_sync::shuttle::{self, Config, FailurePersistence, MaxSteps, Runner};

/// The number of schedules of each test if `HAUL_SCHEDULES` is not set.
const SCHEDULES: usize = 1000;

/// The number of times that [`PctScheduler`] changes the priorities of threads in a schedule. Most
/// concurrency bugs appear after two or three changes.
const PRIORITY_CHANGES: usize = 3;

/// The code of a thread.
pub(crate) type Body = Box<dyn FnOnce() + Send>;

/// Runs `scenario` under random schedules, `cost` times fewer than of a short scenario. In half of
/// them the next thread is chosen by random priorities, in the others at random at each step.
pub(crate) fn explore_part(name: &str, cost: usize, scenario: fn()) {
    if let Ok(schedule) = std::env::var("HAUL_SCHEDULE") {
        return shuttle::replay(scenario, &schedule);
    }
    let all = std::env::var("HAUL_SCHEDULES").ok().map_or(SCHEDULES, |text| text.parse().unwrap());
    let each = all.div_ceil(2 * cost);
    run(RandomScheduler::new(each), scenario);
    run(PctScheduler::new(PRIORITY_CHANGES, each), scenario);
    println!("{name}: {} schedules", 2 * each);
}

fn run(scheduler: impl Scheduler + 'static, scenario: fn()) {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::Print;
    config.max_steps = MaxSteps::FailAfter(200_000);
    config.stack_size = 1 << 18;
    Runner::new(scheduler, config).run(scenario);
}

/// Runs each body in a thread whose switches `shuttle` schedules, and joins the threads.
pub(crate) fn in_threads(bodies: Vec<Body>) {
    let threads: Vec<_> = bodies.into_iter().map(shuttle::thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
