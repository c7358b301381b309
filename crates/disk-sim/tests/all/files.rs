//! File systems on the disk.

use std::fs::File;
use std::process::Command;

use haul_disk_sim::SpinningDisk;
use haul_test_image::run;

use crate::disk;

/// How each file system is made, and checked without repairing anything.
pub(crate) const KINDS: [(&str, &[&str], &[&str], u64); 2] = [
    ("ext4", &["-q", "-F"], &["e2fsck", "-f", "-n"], 256 << 20),
    ("xfs", &["-q", "-f"], &["xfs_repair", "-n"], 400 << 20),
];

pub(crate) fn check(disk: &SpinningDisk, program: &[&str]) {
    let outcome = run(Command::new(program[0]).args(&program[1..]).arg(disk.device()));
    assert_eq!(outcome.err(), None, "the file system is damaged");
}

#[test]
fn files_on_it_are_there_after_mounting_again_and_the_file_system_is_clean() {
    for (fs, mkfs, fsck, bytes) in KINDS {
        let Some(disk) = disk(bytes) else { return };
        disk.make(fs, mkfs).unwrap();
        let content = |number: usize| format!("file {number}\n").repeat(1 + number * 300);
        let mounted = disk.mount(fs, "").unwrap();
        for number in 0..50 {
            std::fs::write(mounted.path().join(format!("{number}")), content(number)).unwrap();
        }
        File::open(mounted.path().join("49")).unwrap().sync_all().unwrap();
        drop(mounted);
        check(&disk, fsck);
        let mounted = disk.mount(fs, "").unwrap();
        for number in 0..50 {
            let read = std::fs::read_to_string(mounted.path().join(format!("{number}"))).unwrap();
            assert!(read == content(number), "{fs}: file {number} differs");
        }
        drop(mounted);
        let counters = disk.counters();
        assert!(counters.syncs > 0, "the kernel's syncs arrive: {counters:?}");
        assert_eq!(counters.requests, counters.reads + counters.writes + counters.syncs);
        assert!(counters.bytes_written > 50 * 49 / 2 * 300 * 8, "{counters:?}");
    }
}

#[test]
fn the_kernel_believes_in_a_spinning_disk_and_sends_many_requests_at_once() {
    let Some(disk) = disk(64 << 20) else { return };
    let name = disk.device().trim_start_matches("/dev/");
    let tell = |path: &str| std::fs::read_to_string(format!("/sys/block/{name}/{path}")).unwrap();
    assert_eq!(tell("queue/rotational").trim(), "1");
    assert!(tell("queue/scheduler").contains("[none]"));
    assert_eq!(tell("queue/write_cache").trim(), "write back");
    assert_eq!(tell("loop/dio").trim(), "1");
    assert_eq!(tell("queue/discard_max_bytes").trim(), "0");
}

#[test]
fn nothing_is_left_behind() {
    let Some(disk) = disk(64 << 20) else { return };
    let name = disk.device().trim_start_matches("/dev/").to_owned();
    let backing = format!("/sys/block/{name}/loop/backing_file");
    let before = std::fs::read_to_string(&backing).unwrap();
    assert!(before.starts_with("/spinning-disk-"), "{before}");
    drop(disk);
    // Others may take the device as soon as it is free: what counts is whose file it reads.
    assert_ne!(std::fs::read_to_string(&backing).unwrap_or_default(), before);
}

#[test]
fn what_it_counted_can_be_read_from_its_directory() {
    let Some(disk) = disk(64 << 20) else { return };
    std::fs::read(disk.device()).unwrap();
    let text = std::fs::read_to_string(disk.control().join("counters.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["bytes_read"], 64 << 20);
    assert_eq!(json, disk.counters().to_json());
}
