//! Tests file systems on the spinning disk.

use std::fs::File;
use std::process::Command;

use haul_disk_sim::SpinningDisk;
use haul_testing::run;

use crate::disk;

/// The tested file systems: name, options of mkfs, a read-only check, and size of the disk in
/// bytes.
pub(crate) const KINDS: [(&str, &[&str], &[&str], u64); 2] = [
    ("ext4", &["-q", "-F"], &["e2fsck", "-f", "-n"], 256 << 20),
    ("xfs", &["-q", "-f"], &["xfs_repair", "-n"], 400 << 20),
];

pub(crate) fn check(disk: &SpinningDisk, program: &[&str]) {
    let outcome = run(Command::new(program[0]).args(&program[1..]).arg(disk.device()));
    assert_eq!(outcome.err(), None, "the file system is damaged");
}

#[test]
fn files_survive_remount_and_file_system_is_clean() {
    for (fs, mkfs, fsck, bytes) in KINDS {
        let Some(disk) = disk(bytes) else { return };
        disk.mkfs(fs, mkfs).unwrap();
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
fn kernel_sees_a_rotational_disk_with_direct_io() {
    let Some(disk) = disk(64 << 20) else { return };
    let name = disk.device().trim_start_matches("/dev/");
    let attribute =
        |path: &str| std::fs::read_to_string(format!("/sys/block/{name}/{path}")).unwrap();
    assert_eq!(attribute("queue/rotational").trim(), "1");
    assert!(attribute("queue/scheduler").contains("[none]"));
    assert_eq!(attribute("queue/write_cache").trim(), "write back");
    assert_eq!(attribute("loop/dio").trim(), "1");
    assert_eq!(attribute("queue/discard_max_bytes").trim(), "0");
}

#[test]
fn dropping_a_disk_detaches_its_device() {
    let Some(disk) = disk(64 << 20) else { return };
    let name = disk.device().trim_start_matches("/dev/").to_owned();
    let backing = format!("/sys/block/{name}/loop/backing_file");
    let before = std::fs::read_to_string(&backing).unwrap();
    assert!(before.starts_with("/spinning-disk-"), "{before}");
    drop(disk);
    // Another process may reuse the device at once, so its backing file is compared.
    assert_ne!(std::fs::read_to_string(&backing).unwrap_or_default(), before);
}

#[test]
fn counters_are_readable_from_the_control_directory() {
    let Some(disk) = disk(64 << 20) else { return };
    std::fs::read(disk.device()).unwrap();
    let text = std::fs::read_to_string(disk.control().join("counters.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["bytes_read"], 64 << 20);
    assert_eq!(json, disk.counters().to_json());
}
