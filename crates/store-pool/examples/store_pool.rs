//! Stores objects over two directories, and shows how they are spread.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use haul_file_store::{Attributes, ListRequest, Options, Precondition};
use haul_store_pool::Pool;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let small = Options { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..Options::default() };
    let dirs = [dir.path().join("d1"), dir.path().join("d2")];
    let (pool, _report) = Pool::open(&dirs, &small)?;
    pool.create_bucket("photos")?;
    for number in 0..10 {
        let (key, none) = (format!("2026/{number}"), Attributes::new());
        pool.put("photos", &key, b"hello", &none, &Precondition::None)?;
    }
    let page = pool.list("photos", &ListRequest { limit: 100, ..ListRequest::default() })?;
    assert_eq!(page.entries.len(), 10);
    for member in pool.members() {
        println!("{}: {} objects", member.dir().display(), member.store()?.stats().objects);
    }
    pool.close()?;
    Ok(())
}
