//! Imports a directory into an object store.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error;
use std::path::Path;

use haul_file_store::Options;
use haul_store_pool::Pool;
use haul_transfer::{Import, ImportEvents, ImportPlan, Source};

struct Quiet;
impl ImportEvents for Quiet {
    fn is_stopped(&self) -> bool {
        false
    }
    fn progress(&self, _files: u64, _bytes: u64) {}
    fn failed(&self, path: &Path, error: &(dyn Error + 'static)) {
        eprintln!("{}: {error}", path.display());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let (data, tree) = (dir.path().join("store"), dir.path().join("tree"));
    std::fs::create_dir(&tree)?;
    std::fs::write(tree.join("a"), "one")?;

    let big_object_bytes = 1 << 20;
    let small = Options { volume_bytes: 4 << 20, big_object_bytes, ..Options::default() };
    let (store, _recovered) = Pool::open(std::slice::from_ref(&data), &small)?;
    store.create_bucket("photos")?;
    let (bucket, source) = ("photos", &Source::open(&tree, false)?);
    let plan = &ImportPlan::new(source, std::slice::from_ref(&data), "2026/");
    let (skip_existing, jobs, store) = (false, 4, &store);
    let import = Import { store, bucket, source, plan, big_object_bytes, skip_existing, jobs };
    let (imported, result) = import.run(&Quiet);
    result?;
    println!("{} files, {} bytes", imported.files, imported.bytes);
    assert_eq!(&store.get("photos", "2026/a")?.read(0, 3)?[..], b"one");
    Ok(())
}
