//! Tests that `haul cache warm` reads in disk order: a simulated rotational disk counts the seek
//! distance.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use haul_disk_sim::{Options, Parameters, SpinningDisk};

use crate::helper::{TestDir, noise};

const FILES: usize = 200;
const FILE_BYTES: usize = 64 << 10;

/// Creates files whose order on disk differs from the order of their names.
fn scattered(dir: &Path) -> Vec<PathBuf> {
    let paths: Vec<_> = (0..FILES).map(|number| dir.join(format!("{number:03}"))).collect();
    for path in &paths {
        File::create_new(path).unwrap();
    }
    for step in 0..FILES {
        // 77 and 200 are coprime, so each file is written once.
        let number = step * 77 % FILES;
        let mut file = File::options().write(true).open(&paths[number]).unwrap();
        file.write_all(&noise(number as u64, FILE_BYTES)).unwrap();
        file.sync_all().unwrap();
    }
    paths
}

#[test]
fn warm_reads_a_rotational_disk_in_one_sweep() {
    let mut options = Options::new(Parameters::travelstar_7k320(), 128 << 20);
    options.time_scale = 0.0;
    let disk = match SpinningDisk::start(&options) {
        Ok(disk) => disk,
        Err(why) => return haul_testing::skip(&why),
    };
    disk.mkfs("ext4", &["-q", "-F"]).unwrap();
    let mounted = disk.mount("ext4", "").unwrap();
    // The path contains /proc/self. The mount exists only in the mount namespace of this process,
    // so another process needs the process id in place of `self`.
    let dir = mounted.path().to_string_lossy().replace("self", &std::process::id().to_string());
    let paths = scattered(Path::new(&dir));

    let place = TestDir::new();
    let way = |read: &dyn Fn()| {
        place.run(&["cache", "evict", "--sync", &dir]).code(0);
        let before = disk.counters();
        read();
        let after = disk.counters();
        let bytes = after.bytes_read - before.bytes_read;
        assert!(bytes >= (FILES * FILE_BYTES) as u64, "only {bytes} bytes were read");
        after.seek_sectors - before.seek_sectors
    };
    let by_name = way(&|| paths.iter().for_each(|path| drop(std::fs::read(path).unwrap())));
    let warmed = way(&|| drop(place.run(&["cache", "warm", &dir]).code(0)));
    let as_solid =
        way(&|| drop(place.run(&["cache", "warm", "--disk-kind", "solid", &dir]).code(0)));
    println!("seek distance with --disk-kind solid: {as_solid} sectors");
    assert!(warmed * 4 < as_solid, "seek distance {warmed}, with --disk-kind solid {as_solid}");
    println!("seek distance: {by_name} by name, {warmed} warmed");
    // The factor leaves a margin: the disk also seeks to the journal and the inodes, and the number
    // of these seeks varies.
    assert!(warmed * 4 < by_name, "seek distance {warmed}, by name {by_name}");
}
