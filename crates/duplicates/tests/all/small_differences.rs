//! Tests that searches with every hash function detect the smallest differences.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{DeviceKind, ReadOptions};
use haul_duplicates::Options;
use haul_duplicates::act::{Action, Executor};
use haul_testing::Random;
use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

use crate::actions::{RecordedActions, options, process, wait_for_writers};
use crate::{disk_dir, found, paths};

/// Returns options for every hash function and device kind.
fn all_modes() -> impl Iterator<Item = Options<'static>> {
    let with = |hash, kind| {
        let read = ReadOptions { kind: Some(kind), ..ReadOptions::default() };
        Options { hash, read, ..Options::default() }
    };
    HashKind::ALL.into_iter().flat_map(move |hash| {
        [DeviceKind::SolidState, DeviceKind::Rotational].map(|kind| with(hash, kind))
    })
}

#[test]
fn single_byte_difference_is_detected_at_any_offset() {
    let dir = disk_dir();
    for at in 0..128 {
        let mut bytes = vec![b'0'; 128];
        bytes[at] = b'1';
        fs::write(dir.path().join(format!("{at:03}")), &bytes).unwrap();
        // Each file has one duplicate, and differs from all other files in two bytes.
        fs::write(dir.path().join(format!("{at:03} again")), &bytes).unwrap();
    }
    for options in all_modes() {
        let groups = paths(&found(dir.path(), &options));
        let expected = (0..128)
            .map(|at| [format!("{at:03}"), format!("{at:03} again")])
            .map(|names| names.map(|name| dir.path().join(name)).into());
        assert!(groups == expected.collect(), "{:?}", options.hash);
    }
}

#[test]
fn short_contents_do_not_collide() {
    let dir = disk_dir();
    for number in 0..3000_u32 {
        fs::write(dir.path().join(number.to_string()), number.to_le_bytes()).unwrap();
    }
    for options in all_modes() {
        assert!(found(dir.path(), &options).is_empty(), "{:?}", options.hash);
    }
}

#[test]
fn difference_near_the_end_of_a_large_file_is_detected() {
    let dir = disk_dir();
    let bytes = Random::from_environment().bytes(10 << 20);
    let [one, two, three] = ["1", "2", "3"].map(|name| dir.path().join(name));
    for path in [&one, &two, &three] {
        fs::write(path, &bytes).unwrap();
    }
    let at = (10 << 20) - (10 << 10);
    let file = fs::File::options().write(true).open(&three).unwrap();
    file.write_all_at(&[!bytes[at]], at as u64).unwrap();
    for options in all_modes().filter(|options| options.hash == HashKind::Xxh3) {
        let groups = paths(&found(dir.path(), &options));
        assert_eq!(groups, [[one.clone(), two.clone()].into()].into(), "{:?}", options.hash);
    }
}

#[test]
fn difference_between_samples_is_detected_by_every_hash() {
    let dir = disk_dir();
    let zeros = vec![0; 1_500_000];
    for name in ["a", "b"] {
        let bytes = [&zeros[..500_000], name.as_bytes(), &zeros].concat();
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    for options in all_modes() {
        assert!(found(dir.path(), &options).is_empty(), "{:?}", options.hash);
    }
    // The samples of the two files are equal.
    let sampled = Options { skip_content: true, ..Options::default() };
    assert_eq!(found(dir.path(), &sampled)[0].members.len(), 2);
}

/// Creates nested directories with names of 250 bytes and returns the innermost.
fn nested(dir: &std::path::Path, levels: usize) -> (PathBuf, OwnedFd) {
    let name = "long".repeat(62) + "er";
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
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
fn files_at_long_paths_are_processed() {
    // Paths shorter and longer than `PATH_MAX`.
    for levels in [4, 20] {
        let dir = disk_dir();
        let (path, at) = nested(dir.path(), levels);
        for (number, text) in (0..40).flat_map(|n| [(n, "same".to_owned()), (n, n.to_string())]) {
            for copy in ["a", "b"] {
                let name = OsString::from(format!("{copy}{number}{}", text.len()));
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                let file = openat(&at, &name, flags, Mode::from_raw_mode(0o644)).unwrap();
                rustix::io::write(&file, text.as_bytes()).unwrap();
            }
        }
        let groups = found(dir.path(), &Options::default());
        let members: Vec<_> = groups.iter().map(|group| group.members.len()).collect();
        assert_eq!((members.len(), members.iter().sum::<usize>()), (41, 160), "{levels}");
        assert!(groups[0].members[0].path.starts_with(&path));
        let mut actions = RecordedActions::default();
        let mut executor = Executor::new(options(Action::Remove));
        for group in &groups {
            wait_for_writers(group);
            executor.process(group, &mut actions);
        }
        assert_eq!((actions.done.len(), actions.skipped), (119, vec![]), "{levels}");
        assert_eq!(rustix::fs::Dir::read_from(&at).unwrap().count() - 2, 160 - 119);
        let groups = found(dir.path(), &Options::default());
        assert!(groups.is_empty(), "{groups:?}");
        for action in [Action::HardLink, Action::Move(dir.path().join("target"))] {
            for name in ["x", "y"] {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                let file = openat(&at, name, flags, Mode::from_raw_mode(0o644)).unwrap();
                rustix::io::write(&file, b"another").unwrap();
            }
            let actions = process(options(action), &found(dir.path(), &Options::default())[0]);
            assert_eq!((actions.done.len(), actions.skipped), (1, vec![]), "{levels}");
            rustix::fs::unlinkat(&at, "x", rustix::fs::AtFlags::empty()).unwrap();
            rustix::fs::unlinkat(&at, "y", rustix::fs::AtFlags::empty()).ok();
        }
    }
}
