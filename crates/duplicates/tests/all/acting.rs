//! What is done about duplicates, and what is left alone.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use haul_bulk_read::digest::HashKind;
use haul_duplicates::act::{Action, Actor, Events, Left, Options};
use haul_duplicates::keep::Rules;
use haul_duplicates::report::{Group, Member, Moment};
use haul_duplicates::{Transform, TransformOptions};
use haul_test_image::LoopImage;

use crate::{disk_dir, found, write_all};

/// What an actor told.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) done: Vec<PathBuf>,
    pub(crate) left: Vec<(PathBuf, String)>,
}

impl Events for Heard {
    fn done(&mut self, _keep: &Path, drop: &Path, _bytes: u64) {
        self.done.push(drop.to_owned());
    }

    fn left(&mut self, path: &Path, why: &Left) {
        self.left.push((path.to_owned(), why.to_string()));
    }
}

pub(crate) fn options(action: Action) -> Options {
    Options { action, rules: Rules::default(), lock: true, dry_run: false, transform: None }
}

/// A group of these files, as a report without identities has it.
pub(crate) fn group(paths: &[PathBuf]) -> Group {
    let bytes = fs::metadata(&paths[0]).map_or(0, |meta| meta.len());
    let member = |path: &PathBuf| Member { path: path.clone(), identity: None };
    Group { bytes, hash: String::new(), members: paths.iter().map(member).collect() }
}

fn act(options: Options, group: &Group) -> Heard {
    let mut heard = Heard::default();
    Actor::new(options).act(group, &mut heard);
    heard
}

/// A directory with equal files `a` and `b`, and their group.
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
fn each_action_does_what_it_says_and_leaves_nothing_behind() {
    for action in [Action::Remove, Action::HardLink, Action::SymLink] {
        let (dir, a, b) = pair();
        let heard = act(options(action.clone()), &group(&[a.clone(), b.clone()]));
        assert_eq!((heard.done, heard.left), (vec![b.clone()], vec![]), "{action:?}");
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
fn a_moved_file_keeps_its_path_and_takes_no_name() {
    let (dir, a, b) = pair();
    let target = dir.path().join("target");
    let heard = act(options(Action::Move(target.clone())), &group(&[a.clone(), b.clone()]));
    assert_eq!(heard.done, [&*b]);
    let moved = target.join(b.strip_prefix("/").unwrap());
    assert_eq!(fs::read(&moved).unwrap(), b"content");
    assert!(!b.exists());

    fs::write(&b, "content").unwrap();
    let heard = act(options(Action::Move(target)), &group(&[a, b.clone()]));
    assert!(heard.left[0].1.contains("is there already"), "{:?}", heard.left);
    assert!(b.exists() && moved.exists());
}

#[test]
fn a_file_is_moved_to_another_file_system_with_its_times_but_never_linked_there() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let (_dir, a, b) = pair();
    let modified = fs::metadata(&b).unwrap().modified().unwrap();
    let target = image.mount().join("target");
    let heard = act(options(Action::Move(target.clone())), &group(&[a.clone(), b.clone()]));
    assert_eq!((heard.done, heard.left), (vec![b.clone()], vec![]));
    let moved = target.join(b.strip_prefix("/").unwrap());
    assert_eq!(fs::read(&moved).unwrap(), b"content");
    assert_eq!(fs::metadata(&moved).unwrap().modified().unwrap(), modified);
    assert_eq!(names(moved.parent().unwrap()), [&*moved]);
    assert!(!b.exists());
    for action in [Action::HardLink, Action::Share] {
        let heard = act(options(action), &group(&[a.clone(), moved.clone()]));
        assert!(heard.left[0].1.contains("another file system"), "{:?}", heard.left);
    }
    assert_eq!(names(moved.parent().unwrap()), [&*moved]);
}

#[test]
fn shared_blocks_are_shared_by_the_kernel_and_only_when_equal() {
    let Some(image) = LoopImage::new("xfs", 512 << 20) else { return };
    let path = |name: &str| image.mount().join(name);
    for name in ["a", "b", "c"] {
        fs::write(path(name), vec![5; 1_000_001]).unwrap();
    }
    let mut other = vec![5; 1_000_001];
    other[999_999] = 6;
    fs::write(path("c"), &other).unwrap();
    let before = inode(&path("b"));
    let heard = act(options(Action::Share), &group(&[path("a"), path("b"), path("c")]));
    assert_eq!(heard.done, [path("b")]);
    assert!(heard.left[0].0 == path("c") && heard.left[0].1.contains("differs"));
    assert_eq!(inode(&path("b")), before);
    assert!(fs::read(path("c")).unwrap() == other);
}

#[test]
fn a_dry_run_changes_nothing() {
    let (dir, a, b) = pair();
    let dry = Options { dry_run: true, ..options(Action::Remove) };
    assert_eq!(act(dry, &group(&[a, b.clone()])).done, [&*b]);
    assert!(b.exists() && names(dir.path()).len() == 2);
}

/// Something happens to the pair; then removing must leave both and say why.
fn is_left(why: &str, happens: impl FnOnce(&Path, &Path) -> Option<File>) {
    let (dir, a, b) = pair();
    let group = found(dir.path(), &haul_duplicates::Options::default()).remove(0);
    let held = happens(&a, &b);
    let contents = |path: &Path| fs::read(path).ok();
    let before = (contents(&a), contents(&b));
    for action in
        [Action::Remove, Action::HardLink, Action::SymLink, Action::Move(dir.path().join("t"))]
    {
        let heard = act(options(action), &group);
        assert_eq!(heard.done, [""; 0].map(PathBuf::from), "{why}");
        let told = heard.left.iter().any(|(_, told)| told.contains(why));
        assert!(told, "{why}: {:?}", heard.left);
        assert_eq!((contents(&a), contents(&b)), before, "{why}");
    }
    let rest: Vec<_> = names(&dir.path().join("sub"));
    assert!(rest.iter().all(|path| !path.display().to_string().contains(".haul-")), "{rest:?}");
    drop(held);
}

/// Writes other bytes of the same length, and sets the time of modification back.
fn forge(path: &Path) -> std::io::Result<()> {
    let modified = fs::metadata(path)?.modified()?;
    fs::write(path, "CONTENT")?;
    File::options().write(true).open(path)?.set_modified(modified)
}

#[test]
fn what_is_not_as_it_was_is_left() {
    is_left("changed since the report", |_, b| drop_file(fs::write(b, "longer content")));
    is_left("changed since the report", |_, b| {
        fs::remove_file(b).unwrap();
        drop_file(fs::write(b, "content"))
    });
    is_left("differs", |_, b| drop_file(forge(b)));
    is_left("differs", |a, _| drop_file(forge(a)));
    is_left("No such file", |_, b| drop_file(fs::remove_file(b)));
    is_left("No such file", |a, _| drop_file(fs::remove_file(a)));
    is_left("changed since the report", |a, b| {
        fs::remove_file(b).unwrap();
        drop_file(symlink(a, b))
    });
    is_left("no regular file", |_, b| {
        fs::remove_file(b).unwrap();
        drop_file(fs::create_dir(b))
    });
    is_left("being written to", |_, b| Some(File::options().append(true).open(b).unwrap()));
    is_left("being written to", |a, _| Some(File::options().append(true).open(a).unwrap()));
    is_left("locked by another", |a, _| {
        let file = File::open(a).unwrap();
        file.lock().unwrap();
        Some(file)
    });
    is_left("locked by another", |_, b| {
        let file = File::open(b).unwrap();
        file.lock_shared().unwrap();
        Some(file)
    });
}

fn drop_file(result: std::io::Result<()>) -> Option<File> {
    result.unwrap();
    None
}

#[test]
fn the_lock_is_held_until_the_file_is_gone_and_not_asked_for_when_so_told() {
    let (_dir, a, b) = pair();
    let file = File::open(&b).unwrap();
    file.lock().unwrap();
    let rude = Options { lock: false, ..options(Action::Remove) };
    assert_eq!(act(rude, &group(&[a, b.clone()])).done, [b]);
}

#[test]
fn a_group_with_a_later_change_is_left_as_a_whole() {
    let (_dir, a, b) = pair();
    let changed = fs::metadata(&b).unwrap();
    let at = changed.mtime() * 1_000_000_000 + changed.mtime_nsec();
    for (before, done) in [(at - 1, 0), (at, 1)] {
        let rules = Rules { modified_before: Some(Moment(before)), ..Rules::default() };
        let heard =
            act(Options { rules, ..options(Action::Remove) }, &group(&[a.clone(), b.clone()]));
        assert_eq!(heard.done.len(), done, "{:?}", heard.left);
    }
}

#[test]
fn the_same_file_on_another_way_is_no_copy() {
    let (dir, _, b) = pair();
    symlink("sub", dir.path().join("way")).unwrap();
    let rules = Rules { match_links: true, ..Rules::default() };
    let group = group(&[b.clone(), dir.path().join("way/b")]);
    for action in [Action::Remove, Action::SymLink, Action::HardLink, Action::Share] {
        let heard = act(Options { rules: rules.clone(), ..options(action) }, &group);
        assert!(heard.left[0].1.contains("on another way"), "{:?}", heard.left);
        assert_eq!(fs::read(&b).unwrap(), b"content");
    }
}

#[test]
fn a_hard_link_is_removed_only_where_links_count_and_one_name_always_stays() {
    let (dir, a, _) = pair();
    let links = ["l", "m", "n"].map(|name| dir.path().join(name));
    links.iter().for_each(|link| fs::hard_link(&a, link).unwrap());
    let all: Vec<_> = [a.clone()].into_iter().chain(links.clone()).collect();
    assert!(act(options(Action::Remove), &group(&all)).done.is_empty());
    let heard = act(options(Action::HardLink), &group(&all));
    assert!(heard.done.is_empty() && heard.left.is_empty());
    let rules = Rules { match_links: true, keep_count: 0, ..Rules::default() };
    let heard = act(Options { rules, ..options(Action::Remove) }, &group(&all));
    assert_eq!((heard.done.len(), heard.left.len()), (3, 0));
    assert_eq!(fs::read(&a).unwrap(), b"content");
    assert!(links.iter().all(|link| !link.exists()));
}

#[test]
fn two_contents_of_one_digest_are_told_apart_when_it_matters() {
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
    assert_eq!(groups[0].members.len(), 2, "MD5 takes them for equal");
    let heard = act(options(Action::Remove), &groups[0]);
    assert!(heard.done.is_empty() && heard.left[0].1.contains("differs"), "{:?}", heard.left);
}

#[test]
fn transformed_files_are_compared_as_the_report_did() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"Hello"), ("b", b"HELLO"), ("c", b"other")]);
    let passing = disk_dir();
    let transform = || {
        let plain = TransformOptions::default();
        Some(Transform::new("tr A-Z a-z", plain, HashKind::Xxh3, passing.path()).unwrap())
    };
    let paths = ["a", "b", "c"].map(|name| dir.path().join(name));
    let heard = act(Options { transform: transform(), ..options(Action::Remove) }, &group(&paths));
    assert_eq!(heard.done, [&*paths[1]]);
    assert!(heard.left[0].0 == paths[2] && heard.left[0].1.contains("differs"));
}

#[test]
fn names_of_any_bytes_are_dealt_with() {
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
            let heard = act(Options { rules, ..options(action) }, &group(&paths));
            assert_eq!(heard.done.len(), 1, "{:?}", heard.left);
        }
        assert_eq!(names(dir.path()), [&*paths[0]]);
    }
}

#[test]
fn a_long_file_is_compared_to_its_last_byte() {
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
        assert!(act(options(Action::Remove), &group(&paths)).done.is_empty());
        File::options().write(true).open(&paths[1]).unwrap().write_all_at(&[1], last).unwrap();
        assert_eq!(act(options(Action::Remove), &group(&paths)).done.len(), 1);
    }
}
