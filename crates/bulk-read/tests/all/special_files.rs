//! Tests reads of special, unreadable, linked and sparse files.

use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::PathBuf;

use haul_bulk_read::{Error, FileId, ReadOptions, ReadRequest, WalkOptions, read, walk};
use haul_testing::{LoopImage, run, skip};

use crate::{Collected, RecordedEvents, disk_dir, paths, read_whole, walk_ok, write_all};

#[test]
fn files_without_a_length_are_read_to_eof() {
    let roots = ["/proc/version", "/proc/cpuinfo", "/sys/kernel/mm/transparent_hugepage/enabled"];
    let roots: Vec<_> = roots.map(PathBuf::from).into_iter().filter(|path| path.exists()).collect();
    let tree = walk_ok(&roots, &WalkOptions::default());
    let (collected, _) = read_whole(&tree, &ReadOptions::default());
    let version = std::fs::read("/proc/version").unwrap();
    assert!(!version.is_empty());
    assert_eq!(collected.bytes(0), version);
    for (request, root) in roots.iter().enumerate() {
        assert!(collected.outcome(request).unwrap().bytes > 0, "{}", root.display());
    }
}

#[test]
fn unreadable_file_fails_without_affecting_others() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", "1")]);
    // Address 0 is not mapped, so reading it fails.
    let roots = ["/proc/self/mem".into(), dir.path().to_path_buf()];
    let tree = walk_ok(&roots, &WalkOptions::default());
    let (collected, stats) = read_whole(&tree, &ReadOptions::default());
    let Err(Error::Disk(error)) = collected.outcome(0) else { panic!("expected an error") };
    assert_eq!((error.op, error.path.as_path()), (haul_disk::Op::Read, roots[0].as_path()));
    assert_eq!((collected.bytes(1).as_slice(), stats.failed), (&b"1"[..], 1));
}

#[test]
fn permission_errors_are_reported_and_the_rest_is_read() {
    let dir = disk_dir();
    write_all(dir.path(), &[("open/a", "1"), ("open/b", "2"), ("closed/c", "3")]);
    let mode = |name: &str, mode| {
        let path = dir.path().join(name);
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    let is_root = rustix::process::geteuid().is_root();
    mode("closed", if is_root { 0o700 } else { 0 });
    mode("open/a", if is_root { 0o600 } else { 0 });
    mode("open/b", 0o644);
    mode("open", 0o755);
    mode("", 0o755);
    // `set_thread_uid` changes the UID of the new thread only, not of the whole process.
    let result = std::thread::scope(|scope| {
        let unprivileged = || {
            if is_root {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            }
            if std::fs::read_dir(dir.path()).is_err() {
                return None;
            }
            let events = RecordedEvents::default();
            let options = WalkOptions { sort: true, ..WalkOptions::default() };
            let tree = walk(&[dir.path().to_path_buf()], &options, &events);
            let (collected, stats) = read_whole(&tree, &ReadOptions::default());
            Some((paths(&tree, dir.path()), events.failed(), collected, stats))
        };
        scope.spawn(unprivileged).join().unwrap()
    });
    mode("closed", 0o700);
    let Some((found, failed, collected, stats)) = result else {
        return skip("other users cannot access the test directory");
    };
    assert_eq!(found, ["open/a", "open/b"]);
    let expected = format!("cannot open {}: ", dir.path().join("closed").display());
    assert!(failed.len() == 1 && failed[0].starts_with(&expected), "{failed:?}");
    let error = collected.outcome(0).unwrap_err().to_string();
    let expected = format!("cannot open {}: ", dir.path().join("open/a").display());
    assert!(error.starts_with(&expected), "{error}");
    // `open/b` is readable but owned by another user, so it is opened without `O_NOATIME`.
    assert_eq!((collected.bytes(1).as_slice(), stats.failed), (&b"2"[..], 1));
}

#[test]
fn holes_read_as_zeros_at_offsets_beyond_32_bits() {
    let dir = disk_dir();
    let far = (1_u64 << 32) + 12_345;
    let file = File::create(dir.path().join("sparse")).unwrap();
    file.write_all_at(b"end", far).unwrap();
    drop(file);
    let tree = walk_ok(&[dir.path().to_path_buf()], &WalkOptions::default());
    let id = FileId(0);
    assert_eq!(tree.meta(id).bytes, far + 3);
    let requests = [
        ReadRequest { file: id, offset: far - 5, bytes: u64::MAX },
        ReadRequest { file: id, offset: (1 << 32) - 3, bytes: 6 },
        ReadRequest { file: id, offset: far + 1, bytes: 1 },
    ];
    let collected = Collected::default();
    let stats = read(&tree, &requests, &ReadOptions::default(), &collected);
    assert_eq!(collected.bytes(0), b"\0\0\0\0\0end");
    assert_eq!(
        (collected.bytes(1).as_slice(), collected.bytes(2).as_slice()),
        (&[0; 6][..], &b"n"[..])
    );
    assert_eq!((stats.requests, stats.bytes), (3, 15));
}

#[test]
fn listed_links_are_followed_on_read() {
    let dir = disk_dir();
    write_all(dir.path(), &[("real", "bytes")]);
    symlink("real", dir.path().join("link")).unwrap();
    let options = WalkOptions { report_links: true, ..WalkOptions::default() };
    let tree = walk_ok(&[dir.path().to_path_buf()], &options);
    let (collected, _) = read_whole(&tree, &ReadOptions::default());
    assert_eq!((collected.bytes(0), collected.bytes(1)), (b"bytes".to_vec(), b"bytes".to_vec()));
    // A root that is a symbolic link is followed, too.
    let tree = walk_ok(&[dir.path().join("link")], &WalkOptions::default());
    assert!(tree.is_link(FileId(0)));
    assert_eq!(read_whole(&tree, &ReadOptions::default()).0.bytes(0), b"bytes");
}

#[test]
fn bind_mount_is_walked_once_and_one_file_system_skips_mounts() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let dir = disk_dir();
    write_all(dir.path(), &[("a/file", "1"), ("b/hidden-by-the-mount", "2"), ("c/below", "3")]);
    write_all(image.mount(), &[("other", "4")]);
    let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
    let mount = |from: &std::path::Path, to: &std::path::Path| {
        run(std::process::Command::new("mount").arg("--bind").arg(from).arg(to))
    };
    if let Err(reason) = mount(&a, &b) {
        return skip(&reason);
    }
    let mounted = mount(image.mount(), &c);
    let events = RecordedEvents::default();
    let options = WalkOptions { sort: true, ..WalkOptions::default() };
    let tree = walk(&[dir.path().to_path_buf()], &options, &events);
    let one = WalkOptions { one_file_system: true, ..options };
    let single = walk(&[dir.path().to_path_buf()], &one, &RecordedEvents::default());
    for path in [&b, &c] {
        run(std::process::Command::new("umount").arg("--lazy").arg(path)).ok();
    }
    mounted.unwrap();
    let found: Vec<_> = paths(&tree, dir.path()).iter().map(|path| path[2..].to_owned()).collect();
    assert_eq!(found, ["file", "other"]);
    assert_eq!(events.skipped().len(), 1, "{:?}", events.skipped());
    assert_eq!(single.len(), 1, "{:?}", paths(&single, dir.path()));
}
