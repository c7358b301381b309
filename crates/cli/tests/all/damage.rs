//! Tests that the `haul store` commands detect and report damage.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::helper::{TestDir, noise};

/// Flips a bit in the middle of `content` in the file below `dir` that contains it.
fn flip(place: &TestDir, dir: &str, content: &[u8]) -> (PathBuf, u64) {
    for entry in fs::read_dir(place.path("haul-data").join(dir)).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let start = &content[..64];
        let Some(at) = bytes.windows(start.len()).position(|window| window == start) else {
            continue;
        };
        let middle = at + content.len() / 2;
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[bytes[middle] ^ 0x10], middle as u64).unwrap();
        return (path, middle as u64);
    }
    panic!("no file in {dir} contains the bytes");
}

#[test]
fn damage_is_reported_and_other_objects_stay_readable() {
    let place = TestDir::new();
    let (small, big) = (noise(1, 5000), noise(2, (5 << 20) + 100));
    place.write("tree/small", &small);
    place.write("tree/big", &big);
    place.write("tree/good", noise(3, 5000));
    place.run(&["store", "import", "b-1", "tree"]).code(0);
    place.run(&["store", "verify"]).code(0);

    for (dir, content, key) in [("volumes", &small, "small"), ("objects", &big, "big")] {
        let (file, at) = flip(&place, dir, content);
        let file_name = file.file_name().unwrap().to_str().unwrap();
        let ended =
            place.run(&["store", "verify"]).code(1).stderr_contains(&["found 1 damaged region"]);
        let lines = ended.lines();
        let start = format!("damaged: b-1/{key}: ");
        assert!(lines[0].starts_with(&start) && lines[0].contains(file_name), "{lines:?}");

        let ended = place.run(&["store", "verify", "--json"]).code(1);
        let lines: Vec<Value> =
            ended.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["kind"], "damage");
        assert_eq!((&lines[0]["bucket"], &lines[0]["key"]), (&"b-1".into(), &key.into()));
        let offset = lines[0]["offset"].as_u64().unwrap();
        assert!(offset <= at && at - offset < 2 << 20, "reported {offset}, flipped {at}");
        assert_eq!((&lines[1]["kind"], &lines[1]["damaged"]), (&"summary".into(), &1.into()));

        let name = format!("b-1/{key}");
        assert_eq!(place.run(&["store", "ls", "b-1"]).code(0).lines(), ["big", "good", "small"]);
        place
            .run(&["store", "get", &name, "out"])
            .code(1)
            .stderr_contains(&["damaged", "offset", file_name]);
        assert!(!place.path("out").exists(), "damaged bytes must not be returned");
        place
            .run(&["store", "export", "b-1", "copy"])
            .code(1)
            .stderr_contains(&[&name, "exported 2 obj"]);
        assert!(!place.path("copy").join(key).exists());
        assert_eq!(place.run(&["store", "get", "b-1/good"]).code(0).stdout(), noise(3, 5000));

        // Flip the bit back, so that the next flip is the only damage.
        assert_eq!(flip(&place, dir, content).0, file);
        place.run(&["store", "verify"]).code(0);
        fs::remove_dir_all(place.path("copy")).unwrap();
    }
}
