//! Counts the pages of files that are in the page cache, and evicts them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error as StdError;
use std::path::Path;

use haul_disk::Error;
use haul_page_cache::{Evicted, Files, FilesEvents};

struct Log;
impl FilesEvents for Log {
    fn failed(&self, error: haul_bulk_read::Error) {
        eprintln!("{error}");
    }
    fn not_a_file(&self, path: &Path) {
        eprintln!("{} is not a file", path.display());
    }
}

fn main() -> Result<(), Box<dyn StdError>> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("a"), [7; 10_000])?;
    let paths = [dir.path().to_owned()];
    let files = Files::find(&paths, false, &Log);
    let evicted = Evicted::run(&files, true, |error: &Error| eprintln!("{error}"));
    println!("before: {:?}", evicted.before);
    assert_eq!((evicted.before.files, evicted.before.bytes), (1, 10_000));
    Ok(())
}
