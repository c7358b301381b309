//! Leases on files.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::thread;

use haul_disk::{Lease, Leased};

use crate::disk_dir;

fn lease(file: &File) -> Option<Lease<'_>> {
    match Lease::take(file.as_fd()).unwrap() {
        Leased::Ours(lease) => Some(lease),
        Leased::HasWriter => None,
        Leased::NoLeases => unreachable!("the disk of the tests has leases"),
    }
}

#[test]
fn a_writer_waits_for_the_end_of_the_lease_and_is_noticed() {
    let dir = disk_dir();
    let path = dir.path().join("file");
    fs::write(&path, "before").unwrap();
    let file = File::open(&path).unwrap();
    let lease = lease(&file).unwrap();
    assert!(lease.is_held());
    let writer = {
        let path = path.clone();
        thread::spawn(move || fs::write(path, "after").unwrap())
    };
    while lease.is_held() {
        thread::yield_now();
    }
    assert_eq!(fs::read(&path).unwrap(), b"before", "readers do not wait, and it is not changed");
    drop(lease);
    writer.join().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"after");
}

#[test]
fn there_is_no_lease_beside_a_writer() {
    let dir = disk_dir();
    let path = dir.path().join("file");
    let mut writer = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    writer.write_all(b"x").unwrap();
    let file = File::open(&path).unwrap();
    assert!(lease(&file).is_none());
    drop(writer);
    assert!(lease(&file).is_some());
}

#[test]
fn a_lease_does_not_keep_the_name_and_names_do_not_end_it() {
    let dir = disk_dir();
    let (path, other) = (dir.path().join("file"), dir.path().join("other"));
    fs::write(&path, "x").unwrap();
    let file = File::open(&path).unwrap();
    let lease = lease(&file).unwrap();
    fs::rename(&path, &other).unwrap();
    fs::hard_link(&other, &path).unwrap();
    fs::remove_file(&other).unwrap();
    assert!(lease.is_held());
}
