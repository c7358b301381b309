//! Tests that synced files survive power cuts of the spinning disk under a real kernel.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use haul_disk_sim::{MountedFs, SpinningDisk};
use haul_testing::run;

use crate::disk;
use crate::files::{KINDS, check};

fn content(number: usize) -> Vec<u8> {
    format!("file {number}\n").repeat(1 + number * 37 % 3000).into_bytes()
}

/// Writes files until the disk fails. Syncs each file and its name before acknowledging the file.
fn write_and_acknowledge(dir: &Path, acknowledged: &Sender<usize>) -> std::io::Result<()> {
    let names = File::open(dir)?;
    for number in 0.. {
        let mut file = File::create(dir.join(number.to_string()))?;
        file.write_all(&content(number))?;
        file.sync_all()?;
        names.sync_all()?;
        // Sending fails only if the test has already dropped the receiver.
        acknowledged.send(number).ok();
        std::fs::write(dir.join(format!("{number}-unsynced")), content(number))?;
    }
    Ok(())
}

/// Cuts the power while a thread writes files, and returns the number of acknowledged files.
fn cut_under_a_writer(disk: &SpinningDisk, mounted: &MountedFs<'_>, seed: u64) -> usize {
    let (sender, receiver): (_, Receiver<usize>) = channel();
    let (dir, acknowledged_min) = (mounted.path(), 20 + 3 * usize::try_from(seed).unwrap_or(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || write_and_acknowledge(&dir, &sender));
        for _ in 0..acknowledged_min {
            receiver.recv().expect("the disk works until the power is cut");
        }
        disk.power_cut(seed).expect("the power can be cut");
        let outcome = writer.join().expect("the writer does not panic");
        assert!(outcome.is_err(), "nothing works without power");
    });
    acknowledged_min + receiver.try_iter().count()
}

#[test]
fn synced_files_are_intact_after_a_power_cut() {
    for (fs, mkfs, fsck, bytes) in KINDS {
        for seed in 0..4 {
            println!("SEED={seed} on {fs}");
            let Some(disk) = disk(bytes) else { return };
            disk.mkfs(fs, mkfs).unwrap();
            let mounted = disk.mount(fs, "").unwrap();
            let count = cut_under_a_writer(&disk, &mounted, seed);
            let refused = disk.power_on().unwrap_err();
            assert!(refused.contains("unmount"), "{refused}");
            drop(mounted);
            disk.power_on().unwrap();

            // Mounting replays the journal.
            let mounted = disk.mount(fs, "").unwrap();
            for number in 0..count {
                let read = std::fs::read(mounted.path().join(number.to_string())).unwrap();
                assert!(read == content(number), "SEED={seed} {fs}: file {number} is damaged");
            }
            drop(mounted);
            check(&disk, fsck);
            assert_eq!(disk.counters().power_cuts, 1);
        }
    }
}

/// Reads the first sectors of the device, bypassing all caches.
fn sectors(disk: &SpinningDisk, dir: &Path) -> Vec<Vec<u8>> {
    let (from, copy) = (format!("if={}", disk.device()), dir.join("copy"));
    let to = format!("of={}", copy.display());
    run(Command::new("dd").args([&from, &to, "bs=64K", "count=16", "iflag=direct"]))
        .expect("the disk can be read");
    std::fs::read(copy).expect("dd made it").chunks(512).map(<[u8]>::to_vec).collect()
}

fn fill(disk: &SpinningDisk, dir: &Path, filling: u8, dd: &[&str]) {
    let (source, to) = (dir.join("source"), format!("of={}", disk.device()));
    std::fs::write(&source, vec![filling; 1 << 20]).expect("there is room");
    let from = format!("if={}", source.display());
    run(Command::new("dd").args([&from, &to, "bs=64K", "oflag=direct"]).args(dd))
        .expect("the disk can be written");
}

#[test]
fn unsynced_sectors_are_old_or_new_by_seed() {
    let dir = tempfile::tempdir().unwrap();
    let mut outcomes = Vec::new();
    for seed in [1, 1, 2] {
        let Some(disk) = disk(64 << 20) else { return };
        fill(&disk, dir.path(), 1, &["conv=fsync"]);
        fill(&disk, dir.path(), 2, &[]);
        assert!(sectors(&disk, dir.path()).iter().all(|sector| *sector == [2; 512]));
        disk.power_cut(seed).unwrap();
        disk.power_on().unwrap();
        let after = sectors(&disk, dir.path());
        assert!(after.iter().all(|sector| *sector == [1; 512] || *sector == [2; 512]));
        let new = after.iter().filter(|sector| sector[0] == 2).count();
        assert!((1..2047).contains(&new), "SEED={seed}: {new} of 2048 sectors are new");
        outcomes.push(after);
    }
    assert!(outcomes[0] == outcomes[1], "the same seed");
    assert!(outcomes[0] != outcomes[2], "another seed");
}

#[test]
fn requests_fail_until_power_on() {
    let Some(disk) = disk(64 << 20) else { return };
    let control = disk.control().join("control");
    let read = || {
        run(Command::new("dd").args([
            &format!("if={}", disk.device()),
            "of=/dev/null",
            "bs=4K",
            "count=1",
            "iflag=direct",
        ]))
    };
    read().unwrap();
    assert!(std::fs::write(&control, "cut nothing").is_err(), "not a command");
    std::fs::write(&control, "cut 5\n").unwrap();
    assert!(read().unwrap_err().contains("Input/output error"));
    std::fs::write(&control, "on\n").unwrap();
    read().unwrap();
    assert_eq!(disk.counters().power_cuts, 1);
}

#[test]
fn scheduled_power_cut_happens_at_its_request() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = disk(64 << 20) else { return };
    fill(&disk, dir.path(), 1, &["conv=fsync"]);
    let before = disk.counters();
    disk.power_cut_after(3, 7);
    let file = File::options().write(true).open(disk.device()).unwrap();
    let outcome = (1..9).find(|n| {
        let written = std::os::unix::fs::FileExt::write_all_at(&file, &[2; 4096], n * 4096);
        written.and_then(|()| file.sync_all()).is_err()
    });
    drop(file);
    // Each iteration sends a write and a sync, so the fourth request is the second sync.
    assert_eq!(outcome, Some(2), "{:?}", disk.counters());
    let after = disk.counters();
    assert_eq!((after.power_cuts, after.requests - before.requests), (1, 3), "{after:?}");
    disk.power_on().unwrap();
    assert!(sectors(&disk, dir.path())[8..16].iter().all(|sector| *sector == [2; 512]));
}
