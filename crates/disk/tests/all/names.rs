//! Tests the resolution of names, and the path and range in errors.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use haul_disk::{
    AlignedBuf, DirectIo, Disk, Durability, LOCK_NAME, Op, Open, OsDisk, PAGE_BYTES, probe,
    read_full, write_full,
};
use haul_testing::LoopImage;

use crate::disk_dir;

/// Fails if other users of the machine can read what a store or a log holds, with the usual umask.
#[test]
fn files_are_for_their_owner_only() {
    let dir = disk_dir();
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().mode() & 0o777;
    let disk = OsDisk::open_or_create(dir.path().join("parent/store")).unwrap();
    disk.create("file", Open::default()).unwrap();
    disk.create_dir("below").unwrap();
    let _lock = disk.lock("", "a test").unwrap();
    let lock = format!("parent/store/{LOCK_NAME}");
    let modes = ["parent/store", "parent/store/below", "parent/store/file", &lock].map(mode);
    assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
    fs::create_dir(dir.path().join("usual")).unwrap();
    assert_eq!(mode("parent"), mode("usual"), "the umask applies to the parents");
    let disk = OsDisk::open(dir.path().join("usual")).unwrap().with_umask();
    disk.create("file", Open::default()).unwrap();
    fs::write(dir.path().join("usual/other"), "").unwrap();
    assert_eq!(mode("usual/file"), mode("usual/other"));
}

#[test]
fn names_cannot_leave_the_root() {
    let dir = disk_dir();
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
    fs::create_dir_all(root.join("inside")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    fs::write(root.join("own"), "own").unwrap();
    symlink(&outside, root.join("link")).unwrap();
    symlink(outside.join("secret"), root.join("link-to-file")).unwrap();
    let disk = OsDisk::open(&root).unwrap();

    let absolute = outside.join("secret");
    for name in [
        "../outside/secret",
        "inside/../../outside/secret",
        "link/secret",
        "link-to-file",
        absolute.to_str().unwrap(),
    ] {
        assert!(disk.open(name, Open::default()).is_err(), "opened {name}");
        assert!(disk.create(name, Open::default()).is_err(), "created {name}");
    }
    for dir in ["..", "inside/../..", "link", outside.to_str().unwrap()] {
        let stolen = format!("{dir}/stolen");
        assert!(disk.list(dir).is_err(), "listed {dir}");
        assert!(disk.sync_dir(dir).is_err(), "synced {dir}");
        assert!(disk.create_dir(dir).is_err(), "accepted {dir}");
        assert!(disk.create_dir(&stolen).is_err(), "made {stolen}");
        assert!(disk.create(&stolen, Open::default()).is_err(), "created {stolen}");
        assert!(disk.rename("own", &stolen).is_err(), "renamed to {stolen}");
        assert!(disk.rename(&format!("{dir}/secret"), "mine").is_err(), "renamed from {dir}");
        assert!(disk.remove(&format!("{dir}/secret")).is_err(), "removed from {dir}");
    }
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read(root.join("own")).unwrap(), b"own");
}

#[test]
fn create_refuses_existing_names() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    disk.create("name", Open::default()).unwrap();
    let error = disk.create("name", Open::default()).unwrap_err();
    assert!(error.is_already_exists(), "{error:?}");
    assert_eq!((error.op, error.path), (Op::Create, dir.path().join("name")));

    disk.create_dir("dir").unwrap();
    disk.create_dir("dir").unwrap();
    assert!(disk.create_dir("name").is_err(), "a file is no directory");
}

#[test]
fn names_are_listed_renamed_and_removed() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    disk.create_dir("dir").unwrap();
    for name in ["b", "a", "dir/c"] {
        write_full(&*disk.create(name, Open::default()).unwrap(), name.as_bytes(), 0).unwrap();
    }
    assert_eq!(disk.list("").unwrap(), ["a", "b", "dir"]);
    disk.rename("a", "dir/c").unwrap();
    disk.sync_dir("dir").unwrap();
    disk.sync_dir("").unwrap();
    assert_eq!(disk.list("dir").unwrap(), ["c"]);
    assert_eq!(fs::read(dir.path().join("dir/c")).unwrap(), b"a");
    disk.remove("dir/c").unwrap();
    assert!(disk.list("dir").unwrap().is_empty());
    assert!(disk.remove("dir/c").unwrap_err().is_not_found());
    assert!(disk.open("dir/c", Open::default()).unwrap_err().is_not_found());
    assert_eq!(disk.root(), dir.path());
}

#[test]
fn read_stops_at_end_of_file() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("short", Open::default()).unwrap();
    write_full(&*file, b"0123456789", 0).unwrap();
    let mut buffer = [0; 16];
    assert_eq!(read_full(&*file, &mut buffer, 4).unwrap(), 6);
    assert_eq!(&buffer[..6], b"456789");
    assert_eq!(read_full(&*file, &mut buffer, 10).unwrap(), 0);
    file.resize(3).unwrap();
    assert_eq!(file.bytes().unwrap(), 3);
    assert_eq!(read_full(&*file, &mut buffer, 0).unwrap(), 3);
}

#[test]
fn direct_files_transfer_whole_pages() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("direct", Open { direct: true, ..Open::default() }).unwrap();
    let mut pages = AlignedBuf::zeroed(3 * PAGE_BYTES);
    pages.fill(7);
    write_full(&*file, &pages, PAGE_BYTES as u64).unwrap();
    file.sync(Durability::Data).unwrap();
    let mut back = AlignedBuf::zeroed(3 * PAGE_BYTES);
    assert_eq!(read_full(&*file, &mut back, PAGE_BYTES as u64).unwrap(), 3 * PAGE_BYTES);
    assert_eq!(&back[..], &pages[..]);
    assert_eq!(read_full(&*file, &mut back, 0).unwrap(), 3 * PAGE_BYTES);
    assert!(back[..PAGE_BYTES].iter().all(|byte| *byte == 0), "the hole in front");

    if let Some(DirectIo::Aligned { .. }) = probe(dir.path()).unwrap().direct_io {
        let error = file.read_some(&mut back, 1).unwrap_err();
        assert_eq!((error.op, error.offset), (Op::Read, Some(1)));
        assert_eq!(error.source.kind(), std::io::ErrorKind::InvalidInput);
    }
}

#[test]
fn read_only_file_refuses_writes() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    disk.create("file", Open::default()).unwrap();
    let file = disk.open("file", Open { read_only: true, ..Open::default() }).unwrap();
    let error = write_full(&*file, b"no", 0).unwrap_err();
    assert_eq!((error.op, error.path), (Op::Write, dir.path().join("file")));
}

#[test]
fn write_error_has_path_and_range() {
    // Writes to `/dev/full` always fail with ENOSPC.
    let disk = OsDisk::open("/dev").unwrap();
    let file = disk.open("full", Open::default()).unwrap();
    let error = write_full(&*file, b"hello", 4096).unwrap_err();
    assert!(error.is_full(), "{error:?}");
    assert_eq!((error.op, error.path.as_path()), (Op::Write, Path::new("/dev/full")));
    assert_eq!((error.offset, error.bytes), (Some(4096), Some(5)));
    assert_eq!(error.to_string(), "cannot write /dev/full (5 bytes at offset 4096)");
}

#[test]
fn write_beyond_maximum_length_counts_as_full() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("long", Open::default()).unwrap();
    let offset = 1 << 62;
    let error = write_full(&*file, b"x", offset).unwrap_err();
    assert!(error.is_full(), "{error:?}");
    assert_eq!((error.offset, error.bytes), (Some(offset), Some(1)));
}

#[test]
fn full_disk_is_reported_and_accepts_writes_after_removal() {
    let Some(image) = LoopImage::new("ext4", 16 << 20) else { return };
    let disk = OsDisk::open(image.mount()).unwrap();
    let first = disk.create("first", Open::default()).unwrap();
    let mebibyte = vec![1; 1 << 20];
    let error = (0..16).find_map(|n| write_full(&*first, &mebibyte, n << 20).err()).unwrap();
    assert!(error.is_full(), "{error:?}");
    assert_eq!((error.op, &error.path), (Op::Write, &image.mount().join("first")));

    let second = disk.create("second", Open::default()).unwrap();
    let error = haul_disk::fill(&*second, 4 << 20).unwrap_err();
    assert!(error.is_full(), "{error:?}");
    assert_eq!(error.op, Op::Allocate, "detected before any zero was written");

    drop(first);
    disk.remove("first").unwrap();
    // ext4 reuses freed blocks only after the journal has committed the removal. A child that another
    // test has forked may have the file open until it executes its program.
    haul_testing::eventually("space for the second file", || {
        rustix::fs::syncfs(fs::File::open(image.mount()).unwrap()).unwrap();
        haul_disk::fill(&*second, 4 << 20).is_ok()
    });
}

#[test]
fn unnamed_file_is_unlisted_and_can_be_reopened() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.unnamed(Open { direct: true, ..Open::default() }).unwrap();
    assert_eq!(disk.list("").unwrap(), Vec::<String>::new());
    let mut page = AlignedBuf::default();
    page.fill(7);
    write_full(&*file, &page, 0).unwrap();
    let plain = disk.reopen(&*file, Open { read_only: true, ..Open::default() }).unwrap();
    let mut byte = [0; 3];
    assert_eq!(read_full(&*plain, &mut byte, 1).unwrap(), 3);
    assert_eq!(byte, [7; 3]);
    plain.write_some(b"x", 0).unwrap_err();
    let dsync = disk.reopen(&*file, Open { dsync: true, ..Open::default() }).unwrap();
    let flags = rustix::fs::fcntl_getfl(dsync.descriptor().unwrap()).unwrap();
    assert_eq!(flags.bits() & libc::O_SYNC.cast_unsigned(), libc::O_DSYNC.cast_unsigned());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn linked_file_has_two_names_until_one_is_removed() {
    let (dir, other) = (disk_dir(), disk_dir());
    let (disk, to) = (OsDisk::open(dir.path()).unwrap(), OsDisk::open(other.path()).unwrap());
    let file = disk.create("file", Open::default()).unwrap();
    write_full(&*file, b"bytes", 0).unwrap();
    assert_eq!(haul_disk::link_count(&*file).unwrap(), 1);
    to.link(&*file, "link").unwrap();
    assert_eq!(haul_disk::link_count(&*file).unwrap(), 2);
    assert_eq!(fs::read(other.path().join("link")).unwrap(), b"bytes");
    let error = to.link(&*file, "link").unwrap_err();
    assert!(error.is_already_exists() && error.op == Op::Link, "{error}");
    to.link(&*file, "../escape").unwrap_err();
    disk.remove("file").unwrap();
    assert_eq!(haul_disk::link_count(&*file).unwrap(), 1);
    assert_eq!(fs::read(other.path().join("link")).unwrap(), b"bytes");
}
