//! Tests actions on duplicates, and the reasons to skip a file.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use haul_bulk_read::{digest::HashKind, open_directory};
use haul_disk::{Lease, LeaseOutcome};
use haul_duplicates::act::{Action, Events, Executor, Options, SkipReason};
use haul_duplicates::keep::Rules;
use haul_duplicates::report::{Group, Member, Timestamp};
use haul_duplicates::{Transform, TransformOptions};
use haul_testing::{LoopImage, eventually};
use rustix::fs::{Mode, OFlags, openat};

use crate::{disk_dir, found, write_all};

/// The recorded events of an executor.
#[derive(Default)]
pub(crate) struct RecordedActions {
    pub(crate) done: Vec<PathBuf>,
    pub(crate) skipped: Vec<(PathBuf, String)>,
}

impl Events for RecordedActions {
    fn done(&mut self, _keep: &Path, drop: &Path, _bytes: u64) {
        self.done.push(drop.to_owned());
    }

    fn skipped(&mut self, path: &Path, reason: &SkipReason) {
        self.skipped.push((path.to_owned(), reason.to_string()));
    }
}

pub(crate) fn options(action: Action) -> Options {
    Options::new(action)
}

/// Creates a group without identities.
pub(crate) fn group(paths: &[PathBuf]) -> Group {
    let bytes = fs::metadata(&paths[0]).map_or(0, |meta| meta.len());
    let member = |path: &PathBuf| Member { path: path.clone(), identity: None };
    Group { bytes, hash: String::new(), members: paths.iter().map(member).collect() }
}

/// Processes a group as soon as no file of it is being written: a child that a parallel test forked
/// keeps the descriptors with which this test wrote the files until it calls `exec`.
pub(crate) fn process(options: Options, group: &Group) -> RecordedActions {
    wait_for_writers(group);
    process_now(options, group)
}

/// Waits until no descriptor for writing the files of a group is open.
pub(crate) fn wait_for_writers(group: &Group) {
    let has_writer = |member: &Member| {
        let (parent, name) = (member.path.parent().unwrap(), member.path.file_name().unwrap());
        // A path may be longer than `PATH_MAX`.
        let dir = open_directory(parent).ok();
        let file = dir.and_then(|dir| {
            openat(&dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
        });
        file.is_some_and(|file| matches!(Lease::take(file.as_fd()), Ok(LeaseOutcome::HasWriter)))
    };
    eventually("no file is being written", || !group.members.iter().any(has_writer));
}

fn process_now(options: Options, group: &Group) -> RecordedActions {
    let mut actions = RecordedActions::default();
    Executor::new(options).process(group, &mut actions);
    actions
}

/// Creates a directory with equal files `a` and `sub/b`.
fn pair() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"content"), ("sub/b", b"content")]);
    let (a, b) = (dir.path().join("a"), dir.path().join("sub/b"));
    (dir, a, b)
}

fn names(dir: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

#[test]
fn actions_take_effect_and_leave_no_temporary_files() {
    for action in [Action::Remove, Action::HardLink, Action::SymLink] {
        let (dir, a, b) = pair();
        let actions = process(options(action.clone()), &group(&[a.clone(), b.clone()]));
        assert_eq!((actions.done, actions.skipped), (vec![b.clone()], vec![]), "{action:?}");
        assert_eq!(fs::read(&a).unwrap(), b"content");
        match action {
            Action::Remove => assert!(!b.exists()),
            Action::HardLink => assert_eq!(inode(&a), inode(&b)),
            _ => assert_eq!(fs::read_link(&b).unwrap(), a),
        }
        let expected = if action == Action::Remove { vec![] } else { vec![b] };
        assert_eq!(names(&dir.path().join("sub")), expected, "{action:?}");
    }
}

#[test]
fn move_keeps_the_path_and_never_overwrites() {
    let (dir, a, b) = pair();
    let target = dir.path().join("target");
    let actions = process(options(Action::Move(target.clone())), &group(&[a.clone(), b.clone()]));
    assert_eq!(actions.done, [&*b]);
    let moved = target.join(b.strip_prefix("/").unwrap());
    assert_eq!(fs::read(&moved).unwrap(), b"content");
    assert!(!b.exists());

    fs::write(&b, "content").unwrap();
    let actions = process(options(Action::Move(target)), &group(&[a, b.clone()]));
    assert!(actions.skipped[0].1.contains("already exists"), "{:?}", actions.skipped);
    assert!(b.exists() && moved.exists());
}

#[test]
fn move_across_file_systems_keeps_times_and_links_are_refused() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let (_dir, a, b) = pair();
    let modified = fs::metadata(&b).unwrap().modified().unwrap();
    let target = image.mount().join("target");
    let actions = process(options(Action::Move(target.clone())), &group(&[a.clone(), b.clone()]));
    assert_eq!((actions.done, actions.skipped), (vec![b.clone()], vec![]));
    let moved = target.join(b.strip_prefix("/").unwrap());
    assert_eq!(fs::read(&moved).unwrap(), b"content");
    assert_eq!(fs::metadata(&moved).unwrap().modified().unwrap(), modified);
    assert_eq!(names(moved.parent().unwrap()), [&*moved]);
    assert!(!b.exists());
    for action in [Action::HardLink, Action::Dedupe] {
        let actions = process(options(action), &group(&[a.clone(), moved.clone()]));
        assert!(actions.skipped[0].1.contains("another file system"), "{:?}", actions.skipped);
    }
    assert_eq!(names(moved.parent().unwrap()), [&*moved]);
}

#[test]
fn dedupe_shares_blocks_of_equal_files_only() {
    let Some(image) = LoopImage::new("xfs", 512 << 20) else { return };
    let path = |name: &str| image.mount().join(name);
    for name in ["a", "b", "c"] {
        fs::write(path(name), vec![5; 1_000_001]).unwrap();
    }
    let mut other = vec![5; 1_000_001];
    other[999_999] = 6;
    fs::write(path("c"), &other).unwrap();
    let before = inode(&path("b"));
    let actions = process(options(Action::Dedupe), &group(&[path("a"), path("b"), path("c")]));
    assert_eq!(actions.done, [path("b")]);
    assert!(actions.skipped[0].0 == path("c") && actions.skipped[0].1.contains("differs"));
    assert_eq!(inode(&path("b")), before);
    assert!(fs::read(path("c")).unwrap() == other);
}

#[test]
fn dry_run_changes_nothing() {
    let (dir, a, b) = pair();
    let dry = Options { dry_run: true, ..options(Action::Remove) };
    assert_eq!(process(dry, &group(&[a, b.clone()])).done, [&*b]);
    assert!(b.exists() && names(dir.path()).len() == 2);
}

/// Creates a pair and changes it by `change`, then asserts that every action skips it for `reason`.
fn assert_skipped(reason: &str, change: impl FnOnce(&Path, &Path) -> Option<File>) {
    let (dir, a, b) = pair();
    let group = found(dir.path(), &haul_duplicates::Options::default()).remove(0);
    let open_file = change(&a, &b);
    let contents = |path: &Path| fs::read(path).ok();
    let before = (contents(&a), contents(&b));
    for action in
        [Action::Remove, Action::HardLink, Action::SymLink, Action::Move(dir.path().join("t"))]
    {
        // A file that the test itself keeps open stays in use.
        if open_file.is_none() {
            wait_for_writers(&group);
        }
        let actions = process_now(options(action), &group);
        assert_eq!(actions.done, [""; 0].map(PathBuf::from), "{reason}");
        let is_reported = actions.skipped.iter().any(|(_, text)| text.contains(reason));
        assert!(is_reported, "{reason}: {:?}", actions.skipped);
        assert_eq!((contents(&a), contents(&b)), before, "{reason}");
    }
    let rest: Vec<_> = names(&dir.path().join("sub"));
    assert!(rest.iter().all(|path| !path.display().to_string().contains(".haul-")), "{rest:?}");
    drop(open_file);
}

/// Writes other bytes of the same length and restores the `mtime`.
fn forge(path: &Path) -> std::io::Result<()> {
    let modified = fs::metadata(path)?.modified()?;
    fs::write(path, "CONTENT")?;
    File::options().write(true).open(path)?.set_modified(modified)
}

#[test]
fn changed_or_busy_files_are_skipped() {
    assert_skipped("changed since the report", |_, b| no_file(fs::write(b, "longer content")));
    assert_skipped("changed since the report", |_, b| {
        fs::remove_file(b).unwrap();
        no_file(fs::write(b, "content"))
    });
    assert_skipped("differs", |_, b| no_file(forge(b)));
    assert_skipped("differs", |a, _| no_file(forge(a)));
    assert_skipped("No such file", |_, b| no_file(fs::remove_file(b)));
    assert_skipped("No such file", |a, _| no_file(fs::remove_file(a)));
    assert_skipped("changed since the report", |a, b| {
        fs::remove_file(b).unwrap();
        no_file(symlink(a, b))
    });
    assert_skipped("not a regular file", |_, b| {
        fs::remove_file(b).unwrap();
        no_file(fs::create_dir(b))
    });
    assert_skipped("being written", |_, b| Some(File::options().append(true).open(b).unwrap()));
    assert_skipped("being written", |a, _| Some(File::options().append(true).open(a).unwrap()));
    assert_skipped("locked by another", |a, _| {
        let file = File::open(a).unwrap();
        file.lock().unwrap();
        Some(file)
    });
    assert_skipped("locked by another", |_, b| {
        let file = File::open(b).unwrap();
        file.lock_shared().unwrap();
        Some(file)
    });
}

fn no_file(result: std::io::Result<()>) -> Option<File> {
    result.unwrap();
    None
}

#[test]
fn without_lock_option_locks_are_ignored() {
    let (_dir, a, b) = pair();
    let file = File::open(&b).unwrap();
    file.lock().unwrap();
    let unlocked = Options { lock: false, ..options(Action::Remove) };
    assert_eq!(process(unlocked, &group(&[a, b.clone()])).done, [b]);
}

#[test]
fn group_with_a_later_modification_is_skipped() {
    let (_dir, a, b) = pair();
    let changed = fs::metadata(&b).unwrap();
    let at = changed.mtime() * 1_000_000_000 + changed.mtime_nsec();
    for (before, done) in [(at - 1, 0), (at, 1)] {
        let rules = Rules { modified_before: Some(Timestamp(before)), ..Rules::default() };
        let actions =
            process(Options { rules, ..options(Action::Remove) }, &group(&[a.clone(), b.clone()]));
        assert_eq!(actions.done.len(), done, "{:?}", actions.skipped);
    }
}

#[test]
fn same_entry_under_another_path_is_not_a_copy() {
    let (dir, _, b) = pair();
    symlink("sub", dir.path().join("link")).unwrap();
    let rules = Rules { match_links: true, ..Rules::default() };
    let group = group(&[b.clone(), dir.path().join("link/b")]);
    for action in [Action::Remove, Action::SymLink, Action::HardLink, Action::Dedupe] {
        let actions = process(Options { rules: rules.clone(), ..options(action) }, &group);
        assert!(actions.skipped[0].1.contains("another path to"), "{:?}", actions.skipped);
        assert_eq!(fs::read(&b).unwrap(), b"content");
    }
}

#[test]
fn hard_links_are_removed_only_with_match_links_and_one_remains() {
    let (dir, a, _) = pair();
    let links = ["l", "m", "n"].map(|name| dir.path().join(name));
    links.iter().for_each(|link| fs::hard_link(&a, link).unwrap());
    let all: Vec<_> = [a.clone()].into_iter().chain(links.clone()).collect();
    assert!(process(options(Action::Remove), &group(&all)).done.is_empty());
    let actions = process(options(Action::HardLink), &group(&all));
    assert!(actions.done.is_empty() && actions.skipped.is_empty());
    let rules = Rules { match_links: true, keep_count: 0, ..Rules::default() };
    let actions = process(Options { rules, ..options(Action::Remove) }, &group(&all));
    assert_eq!((actions.done.len(), actions.skipped.len()), (3, 0));
    assert_eq!(fs::read(&a).unwrap(), b"content");
    assert!(links.iter().all(|link| !link.exists()));
}

#[test]
fn colliding_digests_are_detected_by_the_final_comparison() {
    // Wang and Yu, "How to Break MD5 and Other Hash Functions", EUROCRYPT 2005.
    let one = "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89\
               55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b\
               d8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0\
               e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70";
    let mut bytes = haul_bulk_read::digest::from_hex(one.as_bytes()).unwrap();
    let dir = disk_dir();
    fs::write(dir.path().join("a"), &bytes).unwrap();
    for at in [19, 45, 59, 83, 109, 123] {
        bytes[at] ^= 0x80;
    }
    fs::write(dir.path().join("b"), &bytes).unwrap();
    let options_of = |hash| haul_duplicates::Options { hash, ..Default::default() };
    assert!(found(dir.path(), &options_of(HashKind::Xxh3)).is_empty());
    let groups = found(dir.path(), &options_of(HashKind::Md5));
    assert_eq!(groups[0].members.len(), 2, "MD5 collides");
    let actions = process(options(Action::Remove), &groups[0]);
    assert!(
        actions.done.is_empty() && actions.skipped[0].1.contains("differs"),
        "{:?}",
        actions.skipped
    );
}

#[test]
fn transformed_files_are_compared_by_output() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"Hello"), ("b", b"HELLO"), ("c", b"other")]);
    let temp = disk_dir();
    let transform = || {
        let plain = TransformOptions::default();
        Some(Transform::new("tr A-Z a-z", plain, HashKind::Xxh3, temp.path()).unwrap())
    };
    let paths = ["a", "b", "c"].map(|name| dir.path().join(name));
    let actions =
        process(Options { transform: transform(), ..options(Action::Remove) }, &group(&paths));
    assert_eq!(actions.done, [&*paths[1]]);
    assert!(actions.skipped[0].0 == paths[2] && actions.skipped[0].1.contains("differs"));
}

#[test]
fn arbitrary_names_are_handled() {
    use std::os::unix::ffi::OsStringExt;
    let dir = disk_dir();
    let long = vec![b'x'; 255];
    for name in [&b"\xff\xfe"[..], b"new\nline", b"-rf", b" ", &long] {
        let name = std::ffi::OsString::from_vec(name.to_vec());
        let paths = [dir.path().join("a"), dir.path().join(name)];
        for path in &paths {
            File::create(path).unwrap().write_all(b"x").unwrap();
        }
        for action in [Action::HardLink, Action::Remove] {
            let rules = Rules { match_links: action == Action::Remove, ..Rules::default() };
            let actions = process(Options { rules, ..options(action) }, &group(&paths));
            assert_eq!(actions.done.len(), 1, "{:?}", actions.skipped);
        }
        assert_eq!(names(dir.path()), [&*paths[0]]);
    }
}

#[test]
fn long_files_are_compared_to_the_last_byte() {
    let dir = disk_dir();
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    for bytes in [(1 << 20) - 1, 1 << 20, (3 << 20) + 1] {
        for path in &paths {
            File::create(path).unwrap().write_all(&vec![1; bytes]).unwrap();
        }
        let last = bytes as u64 - 1;
        let file = File::options().write(true).open(&paths[1]).unwrap();
        file.write_all_at(&[2], last).unwrap();
        drop(file);
        assert!(process(options(Action::Remove), &group(&paths)).done.is_empty());
        File::options().write(true).open(&paths[1]).unwrap().write_all_at(&[1], last).unwrap();
        assert_eq!(process(options(Action::Remove), &group(&paths)).done.len(), 1);
    }
}
