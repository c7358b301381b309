//! Anything a log can do, against the plainest model of what it holds.

use haul_disk_sim::{MemoryDisk, Random, replay_command, seed};

use crate::acts::{act, options};
use crate::history::History;

#[test]
fn any_sequence_of_operations_leaves_what_the_model_says() {
    let seed = seed();
    println!("{}", replay_command(seed));
    let mut random = Random(seed);
    for _ in 0..8 {
        let disk = MemoryDisk::default();
        let mut history = History::begin(&disk, options());
        for _ in 0..100 {
            act(&mut history, &mut random);
            assert_eq!(history.readable(), history.now.acknowledged);
        }
        history.close();
    }
}
