//! Tears the superblock of ext4 by power cuts of the spinning disk.
//!
//! The first `open` of a file after a mount stores the path of the mount in the superblock. The
//! change is in the journal, but a mount verifies the checksum of the superblock before it replays
//! the journal. The path and the checksum are in different sectors of 512 B.

use std::fs::File;
use std::io::Write;

use haul_disk_sim::{Options, Parameters, SpinningDisk};

use crate::start;

const SEEDS: u64 = 48;

/// Returns the number of power cuts, of [`SEEDS`], after which ext4 cannot be mounted.
fn failed_mounts(physical_sector_bytes: u64) -> Option<usize> {
    let parameters = Parameters { physical_sector_bytes, ..Parameters::travelstar_7k320() };
    let options = Options { time_scale: 0.0, ..Options::new(parameters, 64 << 20) };
    let disk = start(&options)?;
    Some((0..SEEDS).filter(|seed| !mounts_after_cut(&disk, *seed)).count())
}

/// Cuts the power while the kernel writes the superblock in place.
fn mounts_after_cut(disk: &SpinningDisk, seed: u64) -> bool {
    disk.mkfs("ext4", &["-q", "-F", "-b4096", "-Elazy_itable_init=0,lazy_journal_init=0"]).unwrap();
    let mounted = disk.mount("ext4", "commit=300").unwrap();
    let mut file = File::create(mounted.path().join("file")).unwrap();
    file.write_all(b"content").unwrap();
    // Commits the superblock to the journal.
    file.sync_all().unwrap();
    drop(file);
    disk.power_cut_after(2 + seed % 4, seed);
    // Writes the metadata in place, as the kernel does from time to time.
    File::open(disk.device()).unwrap().sync_all().ok();
    disk.power_cut(seed).unwrap();
    drop(mounted);
    disk.power_on().unwrap();
    match disk.mount("ext4", "") {
        Ok(_) => true,
        Err(why) => {
            assert!(why.contains("Bad message"), "SEED={seed}: {why}");
            false
        }
    }
}

#[test]
fn superblock_is_torn_by_sectors_shorter_than_itself_only() {
    let Some(failed) = failed_mounts(512) else { return };
    assert!(failed > 0, "after none of {SEEDS} power cuts");
    assert_eq!(failed_mounts(4096), Some(0));
}
