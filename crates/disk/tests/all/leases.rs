//! Tests when leases are granted, refused and broken.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::thread;

use haul_disk::{Lease, LeaseOutcome};
use haul_testing::eventually;

use crate::disk_dir;

fn lease(file: &File) -> Option<Lease<'_>> {
    match Lease::take(file.as_fd()).unwrap() {
        LeaseOutcome::Granted(lease) => Some(lease),
        LeaseOutcome::HasWriter => None,
        LeaseOutcome::Unsupported => unreachable!("the file system of the tests has leases"),
    }
}

/// Takes the lease as soon as no child that another test has just started holds a copy of the
/// writer: descriptors are inherited from `fork` to `exec`.
fn lease_without_writer(file: &File) -> Lease<'_> {
    let mut granted = None;
    eventually("the lease is granted", || {
        granted = lease(file);
        granted.is_some()
    });
    granted.unwrap()
}

#[test]
fn writer_waits_for_the_lease_and_is_reported() {
    let dir = disk_dir();
    let path = dir.path().join("file");
    fs::write(&path, "before").unwrap();
    let file = File::open(&path).unwrap();
    let lease = lease_without_writer(&file);
    assert!(lease.is_held());
    let writer = {
        let path = path.clone();
        thread::spawn(move || fs::write(path, "after").unwrap())
    };
    eventually("the lease is broken", || !lease.is_held());
    assert_eq!(fs::read(&path).unwrap(), b"before", "readers do not wait");
    drop(lease);
    writer.join().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"after");
}

#[test]
fn lease_is_refused_while_a_writer_exists() {
    let dir = disk_dir();
    let path = dir.path().join("file");
    let mut writer = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    writer.write_all(b"x").unwrap();
    let file = File::open(&path).unwrap();
    assert!(lease(&file).is_none());
    drop(writer);
    lease_without_writer(&file);
}

#[test]
fn lease_survives_rename_and_removal() {
    let dir = disk_dir();
    let (path, other) = (dir.path().join("file"), dir.path().join("other"));
    fs::write(&path, "x").unwrap();
    let file = File::open(&path).unwrap();
    let lease = lease_without_writer(&file);
    fs::rename(&path, &other).unwrap();
    fs::hard_link(&other, &path).unwrap();
    fs::remove_file(&other).unwrap();
    assert!(lease.is_held());
}

#[test]
fn only_open_descriptor_is_told_from_one_of_several() {
    let dir = disk_dir();
    let path = dir.path().join("file");
    fs::write(&path, "content").unwrap();
    let file = File::open(&path).unwrap();
    let is_only_open = || Lease::is_only_open(file.as_fd()).unwrap();
    // A child that another test has just started may hold a copy of the writer.
    eventually("no other descriptor is open", || is_only_open() == Some(true));
    let other = File::open(&path).unwrap();
    assert_eq!(is_only_open(), Some(false));
    drop(other);
    eventually("the other descriptor is closed", || is_only_open() == Some(true));
    assert!(lease(&file).is_some(), "the write lease was released");
}
