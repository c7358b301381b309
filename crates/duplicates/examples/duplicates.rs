//! Finds files of equal content, and removes all but one of them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error as StdError;
use std::path::Path;

use haul_bulk_read::WalkOptions;
use haul_duplicates::act::{Action, Events, Executor, Options as ActOptions, SkipReason};
use haul_duplicates::{Error, Options, find};

struct Log;
impl haul_duplicates::Events for Log {
    fn failed(&self, error: Error) {
        eprintln!("{error}");
    }
}
impl Events for Log {
    fn done(&mut self, keep: &Path, drop: &Path, _bytes: u64) {
        println!("removed {}, kept {}", drop.display(), keep.display());
    }
    fn skipped(&mut self, path: &Path, reason: &SkipReason) {
        eprintln!("skipped {}: {reason}", path.display());
    }
}

fn main() -> Result<(), Box<dyn StdError>> {
    let dir = tempfile::tempdir()?;
    for (name, text) in [("a", "hello"), ("b", "hello"), ("c", "other")] {
        std::fs::write(dir.path().join(name), text)?;
    }
    let roots = [dir.path().to_path_buf()];
    let found = find(&roots, &WalkOptions::default(), &Options::default(), &Log);
    let mut executor = Executor::new(ActOptions::new(Action::Remove));
    for group in found.groups() {
        executor.process(&group, &mut Log); // compares the files again, byte by byte
    }
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 2);
    Ok(())
}
