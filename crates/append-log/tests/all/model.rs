//! Runs random operations on a log, and compares its records with a model.

use haul_disk_sim::MemoryDisk;
use haul_testing::{Random, replay_command, seed};

use crate::history::History;
use crate::operations::{options, run_random};

#[test]
fn random_operations_match_the_model() {
    let seed = seed();
    println!("{}", replay_command(seed));
    let mut random = Random(seed);
    for _ in 0..8 {
        let disk = MemoryDisk::default();
        let mut history = History::begin(&disk, options());
        for _ in 0..100 {
            run_random(&mut history, &mut random);
            assert_eq!(history.readable(), history.now.acknowledged);
        }
        history.close();
    }
}
