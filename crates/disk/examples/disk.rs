//! Shows the properties of the storage of a directory, and writes a file that survives a power cut.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use haul_disk::{Disk, Durability, Open, OsDisk, probe, write_full};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let storage = probe(dir.path())?;
    println!("{storage}"); // file system, journal, device, write cache, alignment, ...
    println!("smallest write without a read: {} bytes", storage.write_unit_bytes());

    let disk = OsDisk::open(dir.path())?;
    let file = disk.create("greeting", Open::default())?;
    write_full(&*file, b"hello", 0)?; // with the kernel
    file.sync(Durability::Data)?; // the bytes are durable,
    disk.sync_dir("")?; //           and now the name is, too
    assert_eq!(std::fs::read(dir.path().join("greeting"))?, b"hello");

    let outside = disk.create("../greeting", Open::default());
    println!("{}", outside.err().ok_or("a name led out of the directory")?);
    Ok(())
}
