//! Simulates machines that lose their power at any disk change and at any request, while the remote
//! store fails, loses responses and executes requests late.
//!
//! A machine owns a store's copy, ships, merges, drops parts and fetches them. Others restore the
//! copy, follow it as a standby, and take it over, while the previous owner may continue. After
//! each failure the store's and the copy's content is compared with a model of the acknowledged
//! changes. All steps run on one thread, except for the store's own threads.

mod audit;
mod cloud;
mod machine;
mod model;
mod successor;
mod watcher;
mod world;

use haul_testing::{PrintOnPanic, depth, replay_command};

use world::{Counts, World};

/// The number of steps per simulation.
const STEPS: usize = 120;

/// The number of simulations per unit of depth.
const SIMULATIONS: u64 = 10;

fn simulate(seed: u64) -> Counts {
    let _seed = PrintOnPanic(replay_command(seed));
    let mut world = World::new(seed);
    for step in 0..STEPS {
        let event = world.next_event();
        let _step = PrintOnPanic(format!("step {step}, {event:?}"));
        world.execute(event);
    }
    let _step = PrintOnPanic("the end".to_owned());
    world.finish()
}

#[test]
fn nothing_acknowledged_is_lost_when_both_sides_fail() {
    let first = haul_testing::seed();
    let mut all = Counts::default();
    for seed in first..first + SIMULATIONS * depth() {
        all += simulate(seed);
    }
    let Counts { power_cuts, rounds, merges, remote_parts, restores, takeovers, fenced } = all;
    assert!(power_cuts > 20 && rounds > 50 && restores > 3 && takeovers > 3, "{all:?}");
    assert!(fenced > 0 && remote_parts > 0 && merges > 0, "{all:?}");
}
