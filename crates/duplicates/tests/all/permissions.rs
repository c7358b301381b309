//! Tests that links do not change the owner or the mode of a file, and that nothing is left behind
//! in directories that do not allow an action.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use haul_duplicates::act::{Action, Options};
use haul_testing::{LoopImage, skip};

use crate::actions::{group, options, process};
use crate::{disk_dir, write_all};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn links_do_not_change_the_mode_unless_requested() {
    for action in [Action::HardLink, Action::SymLink] {
        let dir = disk_dir();
        write_all(dir.path(), &[("a", b"content"), ("b", b"content"), ("c", b"content")]);
        let [a, b, c] = ["a", "b", "c"].map(|name| dir.path().join(name));
        set_mode(&a, 0o600);
        set_mode(&b, 0o644);
        set_mode(&c, 0o600);
        let all = group(&[a.clone(), b.clone(), c.clone()]);
        for dry_run in [true, false] {
            let actions = process(Options { dry_run, ..options(action.clone()) }, &all);
            assert_eq!(actions.done, [&*c], "{action:?}");
            assert!(actions.skipped.len() == 1 && actions.skipped[0].0 == b);
            assert!(actions.skipped[0].1.contains("--ignore-permissions"), "{:?}", actions.skipped);
        }
        assert_eq!(fs::symlink_metadata(&b).unwrap().mode() & 0o7777, 0o644);
        let ignore = Options { ignore_permissions: true, ..options(action) };
        assert_eq!(process(ignore, &group(&[a, b.clone()])).done, [b]);
    }
}

#[test]
fn links_do_not_change_the_owner() {
    if !rustix::process::geteuid().is_root() {
        return skip("requires root");
    }
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"content"), ("b", b"content")]);
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    chown(&b, Some(65534), None).unwrap();
    let actions = process(options(Action::HardLink), &group(&[a.clone(), b.clone()]));
    assert!(actions.done.is_empty() && actions.skipped[0].1.contains("another owner"));
    // Another action keeps or removes the owner together with the file.
    assert_eq!(process(options(Action::Remove), &group(&[a, b.clone()])).done, [b]);
}

#[test]
fn move_to_another_file_system_keeps_owner_and_mode() {
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"content"), ("b", b"content")]);
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    chown(&b, Some(65534), Some(65533)).unwrap();
    set_mode(&b, 0o4750);
    let target = image.mount().join("target");
    let actions = process(options(Action::Move(target.clone())), &group(&[a, b.clone()]));
    assert_eq!(actions.done, [&*b], "{:?}", actions.skipped);
    let moved = fs::metadata(target.join(b.strip_prefix("/").unwrap())).unwrap();
    assert_eq!((moved.uid(), moved.gid(), moved.mode() & 0o7777), (65534, 65533, 0o4750));
}

#[test]
fn nothing_is_left_behind_in_append_only_directories() {
    for action in [Action::Remove, Action::HardLink, Action::SymLink] {
        let dir = disk_dir();
        write_all(dir.path(), &[("a", b"content"), ("sub/b", b"content")]);
        let sub = dir.path().join("sub");
        let chattr = |flag| Command::new("chattr").arg(flag).arg(&sub).status();
        if !chattr("+a").is_ok_and(|status| status.success()) {
            return skip("chattr +a is not supported");
        }
        let pair = group(&[dir.path().join("a"), sub.join("b")]);
        let actions = process(options(action.clone()), &pair);
        let names: Vec<_> = fs::read_dir(&sub).unwrap().map(|it| it.unwrap().file_name()).collect();
        chattr("-a").unwrap();
        assert_eq!((actions.done.len(), actions.skipped.len()), (0, 1), "{action:?}");
        assert_eq!(names, ["b"], "{action:?}");
    }
}
