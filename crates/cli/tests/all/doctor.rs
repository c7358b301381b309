//! Tests `haul doctor`.

use haul_testing::LoopImage;
use serde_json::Value;

use crate::helper::TestDir;

#[test]
fn report_has_facts_and_checks() {
    let place = TestDir::on_disk();
    let ended = place.run(&["doctor", "."]);
    for words in ["haul ", "kernel", "memory", "vm.dirty_ratio = ", "file system", "free space"] {
        assert!(ended.text().contains(words), "{words}:\n{}", ended.text());
    }
    let report: Value =
        serde_json::from_slice(place.run(&["doctor", "--json", "."]).stdout()).unwrap();
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(report["machine"]["kernel"], kernel.trim());
    assert_eq!(report["storage"]["path"], ".");
    let names: Vec<_> =
        report["checks"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    for name in ["kernel", "mount", "free space", "io_uring", "descriptors"] {
        assert!(names.iter().any(|found| *found == name), "{name}: {names:?}");
    }
    assert!(std::fs::read_dir(place.path(".")).unwrap().next().is_none(), "left behind");
}

#[test]
fn report_contains_no_secrets() {
    let place = TestDir::on_disk();
    let mut command = place.command(&["doctor", "--json"]);
    command.env("HAUL_SECRET_KEY", "open-sesame").env("AWS_SECRET_ACCESS_KEY", "open-sesame");
    let output = command.output().unwrap();
    assert!(!output.stdout.is_empty());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("open-sesame"));
}

#[test]
fn missing_directory_is_an_error() {
    let place = TestDir::on_disk();
    place.run(&["doctor", "nowhere"]).code(3).stderr_contains(&["nowhere", "No such file"]);
}

#[test]
fn full_disk_is_a_problem() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let place = TestDir::on_disk();
    let dir = image.mount().to_str().unwrap();
    let report: Value =
        serde_json::from_slice(place.run(&["doctor", "--json", dir]).code(1).stdout()).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let free = checks.iter().find(|check| check["name"] == "free space").unwrap();
    assert_eq!(free["status"], "problem", "{free}");
    assert!(free["remedy"].as_str().unwrap().contains("haul store compact"), "{free}");
}
