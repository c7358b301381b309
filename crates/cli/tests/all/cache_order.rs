//! The order in which `haul cache warm` reads, by the way of the arm of a simulated spinning disk.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use haul_disk_sim::{Options, Parameters, SpinningDisk};

use crate::helper::{Place, noise};

const FILES: usize = 200;
const FILE_BYTES: usize = 64 << 10;

/// Files named and numbered in one order, and written in another, so that they lie in that.
fn scattered(dir: &Path) -> Vec<PathBuf> {
    let paths: Vec<_> = (0..FILES).map(|number| dir.join(format!("{number:03}"))).collect();
    for path in &paths {
        File::create_new(path).unwrap();
    }
    for step in 0..FILES {
        // 77 and 200 have no common divisor: each comes once.
        let number = step * 77 % FILES;
        let mut file = File::options().write(true).open(&paths[number]).unwrap();
        file.write_all(&noise(number as u64, FILE_BYTES)).unwrap();
        file.sync_all().unwrap();
    }
    paths
}

#[test]
fn warming_a_spinning_disk_moves_its_arm_once_across_the_files() {
    let mut options = Options::new(Parameters::travelstar_7k320(), 128 << 20);
    options.time_scale = 0.0;
    let disk = match SpinningDisk::start(&options) {
        Ok(disk) => disk,
        Err(why) => return haul_test_image::skip(&why),
    };
    disk.make("ext4", &["-q", "-F"]).unwrap();
    let mounted = disk.mount("ext4", "").unwrap();
    // The mount is nowhere but in this process.
    let dir = mounted.path().to_string_lossy().replace("self", &std::process::id().to_string());
    let paths = scattered(Path::new(&dir));

    let place = Place::new();
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
    println!("sectors moved across when called solid: {as_solid}");
    assert!(
        warmed * 4 < as_solid,
        "{warmed} sectors moved across, against {as_solid} called solid"
    );
    println!("sectors moved across: {by_name} by name, {warmed} warmed");
    // The journal's place and the inodes are on the way, too, and not always as often.
    assert!(warmed * 4 < by_name, "{warmed} sectors moved across, against {by_name} by name");
}
