//! Tests that links change nothing but the blocks, and that a move to another file system keeps
//! what a file has beside its content.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use haul_duplicates::act::{Action, Options};
use haul_testing::{LoopImage, skip};
use rustix::fs::{IFlags, XattrFlags, getxattr, ioctl_getflags, ioctl_setflags, setxattr};

use crate::actions::{group, options, process};
use crate::{disk_dir, write_all};

/// An ACL that lets user 65534 read a file of mode 0644, as the kernel stores it.
const ACL: [u8; 44] = [
    2, 0, 0, 0, // version
    1, 0, 6, 0, 255, 255, 255, 255, // owner
    2, 0, 4, 0, 254, 255, 0, 0, // user 65534
    4, 0, 4, 0, 255, 255, 255, 255, // group
    16, 0, 4, 0, 255, 255, 255, 255, // mask
    32, 0, 4, 0, 255, 255, 255, 255, // others
];

/// The capability `cap_net_raw+ep`, as the kernel stores it.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn set(path: &Path, name: &str, value: &[u8]) {
    setxattr(path, name, value, XattrFlags::empty()).unwrap();
}

fn get(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    let length = getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

/// Asserts that neither link replaces `b`, with the words of the reason, and that both do with
/// `ignore_permissions`.
fn assert_skipped(change: impl Fn(&Path, &Path), reason: &str) {
    for action in [Action::HardLink, Action::SymLink] {
        let dir = disk_dir();
        write_all(dir.path(), &[("a", b"content"), ("b", b"content")]);
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        change(&a, &b);
        let all = group(&[a, b.clone()]);
        let before = fs::symlink_metadata(&b).unwrap().ino();
        for dry_run in [true, false] {
            let actions = process(Options { dry_run, ..options(action.clone()) }, &all);
            assert!(actions.done.is_empty(), "{reason}");
            assert!(actions.skipped[0].1.contains(reason), "{:?}", actions.skipped);
            assert!(actions.skipped[0].1.contains("--ignore-permissions"));
        }
        assert_eq!(fs::symlink_metadata(&b).unwrap().ino(), before);
        let ignore = Options { ignore_permissions: true, ..options(action) };
        assert_eq!(process(ignore, &all).done, [b]);
    }
}

#[test]
fn links_do_not_change_acl_capabilities_attributes_or_flags() {
    assert_skipped(|_, b| set(b, "system.posix_acl_access", &ACL), "ACL");
    assert_skipped(|a, _| set(a, "system.posix_acl_access", &ACL), "ACL");
    assert_skipped(|_, b| set(b, "user.k", b"v"), "extended attribute user.k");
    let values = |a: &Path, b: &Path| {
        set(a, "user.k", b"1");
        set(b, "user.k", b"2");
    };
    assert_skipped(values, "extended attribute user.k");
    let no_dump = |_: &Path, b: &Path| {
        let file = File::open(b).unwrap();
        ioctl_setflags(&file, ioctl_getflags(&file).unwrap() | IFlags::NODUMP).unwrap();
    };
    assert_skipped(no_dump, "flags");
    if !rustix::process::geteuid().is_root() {
        return skip("requires root");
    }
    assert_skipped(|a, _| set(a, "security.capability", &CAPABILITY), "capabilities");
    assert_skipped(|_, b| set(b, "trusted.k", b"v"), "trusted.k");
}

#[test]
fn equal_attributes_are_no_obstacle() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"content"), ("b", b"content")]);
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    for file in [&a, &b] {
        set(file, "system.posix_acl_access", &ACL);
        // Longer than the first buffer.
        set(file, "user.long", &[7; 3000]);
    }
    assert_eq!(process(options(Action::HardLink), &group(&[a, b.clone()])).done, [b]);
}

#[test]
fn move_to_another_file_system_keeps_attributes_times_and_holes() {
    let Some(image) = LoopImage::new("ext4", 96 << 20) else { return };
    let dir = disk_dir();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    for file in [&a, &b] {
        let file = File::create(file).unwrap();
        std::os::unix::fs::FileExt::write_at(&file, b"middle", 32 << 20).unwrap();
        file.set_len(64 << 20).unwrap();
    }
    set(&b, "system.posix_acl_access", &ACL);
    set(&b, "security.capability", &CAPABILITY);
    set(&b, "user.k", b"v");
    let modified = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_000_000_000_123_456_789);
    File::options().write(true).open(&b).unwrap().set_modified(modified).unwrap();

    let target = image.mount().join("target");
    let all = group(&[a.clone(), b.clone()]);
    let actions = process(options(Action::Move(target.clone())), &all);
    assert_eq!(actions.done, [&*b], "{:?}", actions.skipped);
    let moved = target.join(b.strip_prefix("/").unwrap());
    let status = fs::metadata(&moved).unwrap();
    assert_eq!(status.modified().unwrap(), modified);
    assert_eq!(status.len(), 64 << 20);
    assert!(status.blocks() * 512 <= 64 << 10, "{} blocks", status.blocks());
    assert!(fs::read(&moved).unwrap() == fs::read(&a).unwrap());
    assert_eq!(get(&moved, "system.posix_acl_access").as_deref(), Some(&ACL[..]));
    assert_eq!(get(&moved, "security.capability").as_deref(), Some(&CAPABILITY[..]));
    assert_eq!(get(&moved, "user.k").as_deref(), Some(&b"v"[..]));
    assert_eq!(status.mode() & 0o7777, 0o644);
}

#[test]
fn moved_file_inherits_no_acl_from_its_new_directory() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"content"), ("b", b"content")]);
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    set(image.mount(), "system.posix_acl_default", &ACL);
    let actions = process(options(Action::Move(image.mount().into())), &group(&[a, b.clone()]));
    assert_eq!(actions.done, [&*b], "{:?}", actions.skipped);
    let moved = image.mount().join(b.strip_prefix("/").unwrap());
    assert_eq!(get(&moved, "system.posix_acl_access"), None);
}

#[test]
fn move_that_would_lose_an_attribute_is_refused_and_leaves_nothing() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let without = image.mount().join("ramfs");
    fs::create_dir(&without).unwrap();
    // ramfs has no extended attributes of users.
    let mount = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    if !mount(Command::new("mount").args(["-t", "ramfs", "none"]).arg(&without)) {
        return skip("ramfs cannot be mounted");
    }
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"content"), ("b", b"content")]);
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    set(&b, "user.k", b"v");
    let all = group(&[a, b.clone()]);
    let target = without.join("target");
    let refused = process(options(Action::Move(target.clone())), &all);
    let left: Vec<_> = fs::read_dir(&without).unwrap().collect();
    let ignore = Options { ignore_permissions: true, ..options(Action::Move(target)) };
    let moved = process(ignore, &all);
    assert!(mount(Command::new("umount").arg(&without)));
    assert!(refused.done.is_empty() && left.is_empty(), "{left:?}");
    let reason = &refused.skipped[0].1;
    assert!(reason.contains("user.k") && reason.contains("--ignore-permissions"), "{reason}");
    assert_eq!(moved.done, [b]);
}

/// Asserts that no link replaces a file on `file_system` after `chattr` with this argument.
fn assert_chattr_counts(file_system: &str, image_bytes: u64, arguments: &[&str], reason: &str) {
    let Some(image) = LoopImage::new(file_system, image_bytes) else { return };
    write_all(image.mount(), &[("a", b"content"), ("b", b"content"), ("c", b"content")]);
    let [a, b, c] = ["a", "b", "c"].map(|name| image.mount().join(name));
    let changed = Command::new("chattr").args(arguments).arg(&b).status();
    if !changed.is_ok_and(|status| status.success()) {
        return skip(&format!("chattr {arguments:?} fails on {file_system}"));
    }
    for action in [Action::HardLink, Action::SymLink] {
        let actions = process(options(action), &group(&[a.clone(), b.clone()]));
        assert!(actions.done.is_empty(), "{file_system} {arguments:?}");
        assert!(actions.skipped[0].1.contains(reason), "{:?}", actions.skipped);
    }
    let actions = process(options(Action::HardLink), &group(&[a, c.clone()]));
    assert_eq!(actions.done, [c], "{:?}", actions.skipped);
}

#[test]
fn links_do_not_change_flags_or_the_project_of_any_file_system() {
    assert_chattr_counts("btrfs", 128 << 20, &["+m"], "flags");
    assert_chattr_counts("xfs", 512 << 20, &["+x"], "flags");
    assert_chattr_counts("xfs", 512 << 20, &["-p", "7"], "project");
}

/// Creates files of one content below `inside`, of which the first has as many links as ext4
/// permits.
fn exhaust_links(image: &LoopImage, names: &[&str]) -> Vec<PathBuf> {
    let (inside, outside) = (image.mount().join("in"), image.mount().join("out"));
    fs::create_dir(&outside).unwrap();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, &b"content"[..])).collect();
    write_all(&inside, &files);
    let paths: Vec<_> = names.iter().map(|name| inside.join(name)).collect();
    let linked = |n: &usize| fs::hard_link(&paths[0], outside.join(n.to_string())).is_ok();
    assert!((0..).take_while(linked).count() > 60_000);
    paths
}

#[test]
fn file_to_keep_without_links_to_spare_gives_its_place_to_the_next() {
    let Some(image) = LoopImage::new("ext4", 96 << 20) else { return };
    let paths = exhaust_links(&image, &["a", "b", "c", "d"]);
    for dry_run in [true, false] {
        let linking = Options { dry_run, ..options(Action::HardLink) };
        let actions = process(linking, &group(&paths));
        assert_eq!(actions.done, paths[2..], "{:?}", actions.skipped);
        assert_eq!(actions.skipped.len(), 1);
        assert!(actions.skipped[0].0 == paths[1]);
        assert!(actions.skipped[0].1.contains("as many links"), "{:?}", actions.skipped);
    }
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!([inode(&paths[1]); 2], [inode(&paths[2]), inode(&paths[3])]);
    // A second file to keep that does not suit changes nothing about it.
    let mut keep_two = options(Action::HardLink);
    keep_two.rules.keep_count = 2;
    let [b, c] = ["e", "f"].map(|name| image.mount().join("in").join(name));
    let other_mode = image.mount().join("in/other-mode");
    for path in [&b, &c, &other_mode] {
        fs::write(path, "content").unwrap();
    }
    fs::set_permissions(&other_mode, Permissions::from_mode(0o600)).unwrap();
    let actions = process(keep_two, &group(&[paths[0].clone(), other_mode, b.clone(), c.clone()]));
    assert_eq!(actions.done, [&*c], "{:?}", actions.skipped);
    assert!(actions.skipped[0].0 == b && actions.skipped[0].1.contains("as many links"));
    assert_eq!(inode(&b), inode(&c));
}

#[test]
fn dry_run_counts_the_links_that_it_does_not_create() {
    let Some(image) = LoopImage::new("ext4", 96 << 20) else { return };
    let paths = exhaust_links(&image, &["a", "b", "c"]);
    fs::remove_file(image.mount().join("out/0")).unwrap();
    let linking = Options { dry_run: true, ..options(Action::HardLink) };
    let actions = process(linking, &group(&paths));
    assert_eq!(actions.done, [&*paths[1]], "one link is left: {:?}", actions.skipped);
    assert!(actions.skipped[0].0 == paths[2]);
}
