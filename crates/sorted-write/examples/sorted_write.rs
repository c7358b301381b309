//! Writes records in descending order, which reach the file in ascending order, and then pages that
//! are durable one by one.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use haul_disk::OsDisk;
use haul_sorted_write::{Options, PageFile, PageFileOptions, SortedWriter};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("big"), vec![0; 1 << 20])?;
    let writer = SortedWriter::start(Options::default())?;
    let big = writer.open(&OsDisk::open(dir.path())?, "big")?;
    for n in (0..200_u64).rev() {
        writer.write(big, n * 5000, &n.to_le_bytes())?; // in memory
    }
    writer.barrier()?; // all of them are durable
    let stats = writer.stats();
    let (sorted, unsorted) = (stats.seek_bytes, stats.unsorted_seek_bytes);
    println!("{sorted} bytes between the requests; between the writes as called: {unsorted}");
    writer.close()?;

    let options = PageFileOptions { log_bytes_max: 8 << 20, ..PageFileOptions::default() };
    let (pages, _) = PageFile::open_path(dir.path().join("pages"), 1 << 20, options)?;
    pages.write(4096, b"hello")?.wait()?; // durable in the log of the file
    pages.close()?; // durable in the file itself
    assert_eq!(&std::fs::read(dir.path().join("pages"))?[4096..4101], b"hello");
    Ok(())
}
