//! Tests which groups a search finds, and how many bytes it reads.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{DeviceKind, ReadOptions, WalkOptions};
use haul_duplicates::{Options, Phase, Replication, Transform, TransformOptions, find};
use haul_testing::Random;

use crate::oracle::{Count, groups, plant};
use crate::{RecordedEvents, disk_dir, found, paths, run_search, write_all};

#[test]
fn groups_equal_those_of_sha256_on_random_trees() {
    let mut random = Random::from_environment();
    for _ in 0..3 {
        let dir = disk_dir();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        plant(&one, &mut random, 30);
        plant(&other, &mut random, 10);
        // Copy files of the first root to the second root.
        for (number, path) in crate::oracle::files(&one).iter().take(8).enumerate() {
            fs::copy(path, other.join(format!("copy {number}"))).unwrap();
        }
        let roots = [&*one, &*other];
        for replication in
            [1, 2, 3].map(Replication::Over).into_iter().chain([2, 4].map(Replication::Under))
        {
            for count in [Count::Files, Count::Names, Count::Roots] {
                for kind in [DeviceKind::SolidState, DeviceKind::Rotational] {
                    let options = Options {
                        replication,
                        isolate: matches!(count, Count::Roots),
                        match_links: matches!(count, Count::Names),
                        read: ReadOptions { kind: Some(kind), ..ReadOptions::default() },
                        ..Options::default()
                    };
                    let events = RecordedEvents::default();
                    let found = paths(&run_search(&roots, &options, &events));
                    assert!(
                        found == groups(&roots, replication, count),
                        "{replication:?} {count:?} {kind:?}"
                    );
                    assert_eq!(events.failed(), [""; 0]);
                }
            }
        }
    }
}

#[test]
fn every_hash_finds_the_same_groups() {
    let dir = disk_dir();
    let big = Random::from_environment().bytes(3 << 20);
    write_all(dir.path(), &[("a", b"abc"), ("b", b"abc"), ("c", &big), ("d", &big)]);
    for hash in HashKind::ALL {
        let groups = found(dir.path(), &Options { hash, ..Options::default() });
        let hashes: Vec<_> = groups.iter().map(|group| &*group.hash).collect();
        assert_eq!(hashes, [hash.of(&big).to_string(), hash.of(b"abc").to_string()]);
    }
}

#[test]
fn groups_are_sorted_by_length_and_files_by_root_and_path() {
    let dir = disk_dir();
    let files: [(&str, &[u8]); 7] = [
        ("a/z", b"one"),
        ("b/a", b"one"),
        ("a/b/c", b"one"),
        ("b/y", b"longer"),
        ("b/x", b"longer"),
        ("a/1", b"two"),
        ("b/1", b"two"),
    ];
    write_all(dir.path(), &files);
    let roots = [dir.path().join("b"), dir.path().join("a")];
    let events = RecordedEvents::default();
    let found = find(&roots, &WalkOptions::default(), &Options::default(), &events);
    let names: Vec<Vec<_>> = found
        .groups()
        .map(|group| {
            let name = |path: &Path| path.strip_prefix(dir.path()).unwrap().display().to_string();
            group.members.iter().map(|member| name(&member.path)).collect()
        })
        .collect();
    assert_eq!(
        names,
        [&["b/x", "b/y"][..], &["b/1", "a/1"], &["b/a", "a/b/c", "a/z"]]
            .map(|group| group.to_vec())
    );
    let stats = found.stats();
    assert_eq!((stats.groups, stats.files, stats.bytes), (3, 7, 27));
    assert_eq!((stats.redundant_files, stats.redundant_bytes), (4, 15));
    assert_eq!((stats.scanned_files, stats.scanned_bytes), (7, 27));
}

#[test]
fn difference_in_the_middle_is_detected_by_samples() {
    let dir = disk_dir();
    let mut random = Random::from_environment();
    let mut bytes = random.bytes(32 << 20);
    fs::write(dir.path().join("a"), &bytes).unwrap();
    let different = random.bytes(3 << 20);
    bytes[15 << 20..18 << 20].copy_from_slice(&different);
    fs::write(dir.path().join("b"), &bytes).unwrap();
    let events = RecordedEvents::default();
    assert!(run_search(&[dir.path()], &Options::default(), &events).is_empty());
    assert!(events.bytes() <= 2 * 17 * 4096, "{} bytes", events.bytes());
}

#[test]
fn reads_stop_after_a_difference() {
    let dir = disk_dir();
    let mut bytes = Random::from_environment().bytes(40 << 20);
    for (name, at) in [("a", 0), ("b", 700_000), ("c", 5_000_000)] {
        // Change one byte between the samples.
        bytes[at + 5000] ^= 1;
        fs::write(dir.path().join(name), &bytes).unwrap();
        bytes[at + 5000] ^= 1;
    }
    let events = RecordedEvents::default();
    assert!(run_search(&[dir.path()], &Options::default(), &events).is_empty());
    let rounds = events.read.lock().unwrap().clone();
    let (samples, mega) = (3 * 17 * 4096, 1 << 20);
    assert_eq!(rounds, [0, samples, 3 * mega], "all differ in the first MiB");
}

#[test]
fn file_of_unique_length_is_not_opened() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"1"), ("b", b"22"), ("c", b"333")]);
    fs::hard_link(dir.path().join("c"), dir.path().join("d")).unwrap();
    let events = RecordedEvents::default();
    assert!(run_search(&[dir.path()], &Options::default(), &events).is_empty());
    assert_eq!(events.read.lock().unwrap().len(), 1, "only the walk phase");
}

#[test]
fn file_changed_during_the_search_is_reported_and_left_out() {
    let dir = disk_dir();
    let big = vec![7; 200_000];
    for name in ["a", "b", "grows", "removed", "rewritten", "shrinks"] {
        fs::write(dir.path().join(name), &big).unwrap();
    }
    let at_phase = |phase: Phase| {
        if phase == Phase::Sampling {
            let path = |name: &str| dir.path().join(name);
            File::options().append(true).open(path("grows")).unwrap().set_len(200_001).unwrap();
            fs::remove_file(path("removed")).unwrap();
            let file = File::options().write(true).open(path("rewritten")).unwrap();
            file.write_all_at(&[7], 100_000).unwrap();
            File::options().write(true).open(path("shrinks")).unwrap().set_len(10).unwrap();
        }
    };
    let events = RecordedEvents { at_phase: Some(&at_phase), ..RecordedEvents::default() };
    let groups = run_search(&[dir.path()], &Options::default(), &events);
    let expected = [["a", "b"].map(|name| dir.path().join(name)).into()].into();
    assert_eq!(paths(&groups), expected);
    let failed = events.failed().join("\n");
    for name in ["grows", "removed", "rewritten", "shrinks"] {
        assert!(failed.contains(name), "{name} is not reported:\n{failed}");
    }
}

#[test]
fn special_files_do_not_block() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"x"), ("b", b"x")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let _socket = UnixListener::bind(dir.path().join("socket")).unwrap();
    symlink("a", dir.path().join("link")).unwrap();
    symlink(".", dir.path().join("loop")).unwrap();
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    for (follow_links, report_links) in [(false, false), (true, false), (false, true)] {
        let walk = WalkOptions { follow_links, report_links, ..WalkOptions::default() };
        let events = RecordedEvents::default();
        let found = find(&[dir.path().into()], &walk, &Options::default(), &events);
        let groups: Vec<_> = found.groups().collect();
        let files = paths(&groups).into_iter().flatten().filter(|path| !path.ends_with("link"));
        assert_eq!(files.collect::<Vec<_>>(), ["a", "b"].map(|name| dir.path().join(name)));
    }
}

#[test]
fn duplicate_and_linked_roots_make_no_duplicates() {
    let dir = disk_dir();
    write_all(dir.path(), &[("sub/a", b"x"), ("sub/b", b"y")]);
    symlink("sub", dir.path().join("link")).unwrap();
    let (sub, link) = (dir.path().join("sub"), dir.path().join("link"));
    let events = RecordedEvents::default();
    let roots = [dir.path(), &sub, &link, &sub, &sub.join("a"), &sub.join("a")];
    assert!(run_search(&roots, &Options::default(), &events).is_empty());
}

#[test]
fn transformed_files_are_compared_by_output() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"Hello"), ("b", b"hELLO"), ("c", b"other"), ("d", b"Hello\n")]);
    let temp = disk_dir();
    let (options, hash) = (TransformOptions::default(), HashKind::Xxh3);
    let command = "sh -c 'tr -d \"\\n\" | tr A-Z a-z'";
    let transform = Transform::new(command, options, hash, temp.path()).unwrap();
    let options = Options { transform: Some(&transform), ..Options::default() };
    let groups = found(dir.path(), &options);
    let expected = [["a", "b", "d"].map(|name| dir.path().join(name)).into()].into();
    assert_eq!(paths(&groups), expected);
    assert_eq!((groups[0].bytes, &*groups[0].hash), (5, &*hash.of(b"hello").to_string()));
}

#[test]
fn files_whose_length_says_nothing_are_left_out() {
    let dir = disk_dir();
    write_all(dir.path(), &[("empty", b""), ("also empty", b"")]);
    let roots: Vec<_> =
        ["/proc/version", "/proc/meminfo", "/sys/kernel/fscaps", "/sys/kernel/profiling"]
            .iter()
            .map(PathBuf::from)
            .chain([dir.path().to_owned()])
            .collect();
    let walk = WalkOptions { hidden: true, bytes_min: 0, ..WalkOptions::default() };
    let events = RecordedEvents::default();
    let groups: Vec<_> = find(&roots, &walk, &Options::default(), &events).groups().collect();
    let expected = ["empty", "also empty"].map(|name| dir.path().join(name));
    assert_eq!(paths(&groups), [expected.into()].into());
}
