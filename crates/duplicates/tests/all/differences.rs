//! The smallest differences, anywhere, by every hash.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{Kind, ReadOptions};
use haul_duplicates::Options;
use haul_duplicates::act::{Action, Actor};
use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

use crate::acting::{Heard, options};
use crate::random::Random;
use crate::{disk_dir, found, paths};

/// The search in all ways that read differently.
fn all_ways() -> impl Iterator<Item = Options<'static>> {
    let with = |hash, kind| {
        let read = ReadOptions { kind: Some(kind), ..ReadOptions::default() };
        Options { hash, read, ..Options::default() }
    };
    HashKind::ALL
        .into_iter()
        .flat_map(move |hash| [Kind::Solid, Kind::Rotating].map(|kind| with(hash, kind)))
}

#[test]
fn one_byte_that_differs_is_noticed_wherever_it_is() {
    let dir = disk_dir();
    for at in 0..128 {
        let mut bytes = vec![b'0'; 128];
        bytes[at] = b'1';
        fs::write(dir.path().join(format!("{at:03}")), &bytes).unwrap();
        // Each has one equal; the rest differ in two places.
        fs::write(dir.path().join(format!("{at:03} again")), &bytes).unwrap();
    }
    for options in all_ways() {
        let groups = paths(&found(dir.path(), &options));
        let expected = (0..128)
            .map(|at| [format!("{at:03}"), format!("{at:03} again")])
            .map(|names| names.map(|name| dir.path().join(name)).into());
        assert!(groups == expected.collect(), "{:?}", options.hash);
    }
}

#[test]
fn no_two_of_many_short_contents_have_one_digest() {
    let dir = disk_dir();
    for number in 0..3000_u32 {
        fs::write(dir.path().join(number.to_string()), number.to_le_bytes()).unwrap();
    }
    for options in all_ways() {
        assert!(found(dir.path(), &options).is_empty(), "{:?}", options.hash);
    }
}

#[test]
fn a_byte_near_the_end_of_a_big_file_is_noticed() {
    let dir = disk_dir();
    let bytes = Random::from_environment().bytes(10 << 20);
    let [one, two, three] = ["1", "2", "3"].map(|name| dir.path().join(name));
    for path in [&one, &two, &three] {
        fs::write(path, &bytes).unwrap();
    }
    let at = (10 << 20) - (10 << 10);
    let file = fs::File::options().write(true).open(&three).unwrap();
    file.write_all_at(&[!bytes[at]], at as u64).unwrap();
    for options in all_ways().filter(|options| options.hash == HashKind::Xxh3) {
        let groups = paths(&found(dir.path(), &options));
        assert_eq!(groups, [[one.clone(), two.clone()].into()].into(), "{:?}", options.hash);
    }
}

#[test]
fn a_byte_between_samples_is_noticed_by_every_hash() {
    let dir = disk_dir();
    let zeros = vec![0; 1_500_000];
    for name in ["a", "b"] {
        let bytes = [&zeros[..500_000], name.as_bytes(), &zeros].concat();
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    for options in all_ways() {
        assert!(found(dir.path(), &options).is_empty(), "{:?}", options.hash);
    }
    // Who does not ask for the content takes them for equal.
    let sampled = Options { skip_content: true, ..Options::default() };
    assert_eq!(found(dir.path(), &sampled)[0].members.len(), 2);
}

/// Makes directories of 250 bytes one in the other, and gives the last one.
fn deep(dir: &std::path::Path, levels: usize) -> (PathBuf, OwnedFd) {
    let name = "long".repeat(62) + "er";
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    let mut path = dir.to_path_buf();
    let mut at = open(dir, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&at, &name, Mode::from_raw_mode(0o755)).unwrap();
        at = openat(&at, &name, flags, Mode::empty()).unwrap();
        path.push(&name);
    }
    (path, at)
}

#[test]
fn files_below_long_paths_are_found_and_dealt_with_or_told() {
    // The kernel takes the first path, and not the second.
    for levels in [4, 20] {
        let dir = disk_dir();
        let (path, at) = deep(dir.path(), levels);
        for (number, text) in (0..40).flat_map(|n| [(n, "same".to_owned()), (n, n.to_string())]) {
            for copy in ["a", "b"] {
                let name = OsString::from(format!("{copy}{number}{}", text.len()));
                let flags = OFlags::CREATE | OFlags::WRONLY;
                let file = openat(&at, &name, flags, Mode::from_raw_mode(0o644)).unwrap();
                rustix::io::write(&file, text.as_bytes()).unwrap();
            }
        }
        let groups = found(dir.path(), &Options::default());
        let members: Vec<_> = groups.iter().map(|group| group.members.len()).collect();
        assert_eq!((members.len(), members.iter().sum::<usize>()), (41, 160), "{levels}");
        assert!(groups[0].members[0].path.starts_with(&path));
        let mut heard = Heard::default();
        let mut actor = Actor::new(options(Action::Remove));
        groups.iter().for_each(|group| actor.act(group, &mut heard));
        assert_eq!(heard.done.len(), if levels == 4 { 119 } else { 0 }, "{:?}", heard.left.first());
        let long = |(_, why): &(PathBuf, String)| why.contains("too long");
        assert!(heard.left.iter().all(long), "{:?}", heard.left.first());
        let left = rustix::fs::Dir::read_from(&at).unwrap().count() - 2;
        assert_eq!(left, 160 - heard.done.len());
    }
}
