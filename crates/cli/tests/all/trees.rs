//! Tests `haul store import` and `haul store export`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::helper::{TestDir, noise};

/// Returns content and mtime of every file below `dir`, by relative path.
fn tree(dir: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let mut files = BTreeMap::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            } else if entry.file_type().unwrap().is_file() {
                let name = entry.path().strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                let modified = entry.metadata().unwrap().modified().unwrap();
                files.insert(name, (fs::read(entry.path()).unwrap(), modified));
            }
        }
    }
    files
}

fn odd_tree(place: &TestDir) {
    let sizes = [0, 1, 4095, 4096, 65_536, (4 << 20) - 1, 4 << 20, (5 << 20) + 7];
    for (seed, bytes) in (1..).zip(sizes) {
        place.write(format!("tree/sizes/{bytes}"), noise(seed, bytes));
    }
    for name in
        ["a b", "ü/é\u{301}/日本", ".hidden/.x", "new\nline", "q?a&b=c#d%20", "tail ", "--x"]
    {
        place.write(format!("tree/names/{name}"), name);
    }
    for number in 0..300 {
        place.write(format!("tree/many/{}/{number}", number % 7), noise(number, 100));
    }
    let file = File::options().write(true).open(place.path("tree/names/a b")).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::new(981_173_106, 123_456_789)).unwrap();
}

#[test]
fn tree_round_trips_with_content_and_mtimes() {
    let place = TestDir::new();
    odd_tree(&place);
    let original = tree(&place.path("tree"));

    let import = place.run(&["store", "import", "b-1", "tree"]).code(0);
    assert!(import.stderr().contains("imported 315 files"), "{}", import.stderr());
    assert_eq!(import.text(), "");

    let listed = place.run(&["store", "ls", "--recursive", "--json", "b-1"]).code(0);
    let keys: Vec<String> = listed
        .lines()
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| {
            let key = line["key"].as_str().unwrap().to_owned();
            assert_eq!(line["bytes"].as_u64().unwrap(), original[&key].0.len() as u64);
            key
        })
        .collect();
    assert!(keys.iter().eq(original.keys()), "{keys:?}");

    place
        .run(&["store", "export", "b-1", "copy"])
        .code(0)
        .stderr_contains(&["exported 315 objects"]);
    assert!(tree(&place.path("copy")) == original, "bytes or times differ");

    place.run(&["store", "verify"]).code(0);
}

#[test]
fn repeated_import_skips_stored_files() {
    let place = TestDir::new();
    for number in 0..20 {
        place.write(format!("tree/{number}"), noise(number, 1000));
    }
    let again = ["store", "import", "--skip-existing", "b-1", "tree"];
    place.run(&again).code(0).stderr_contains(&["imported 20 files"]);
    place.run(&again).code(0).stderr_contains(&["imported 0 files", "skipped 20 files"]);
    place.write("tree/3", "other");
    place.run(&again).code(0).stderr_contains(&["imported 1 file ", "skipped 19 files"]);
    let got = place.run(&["store", "get", "b-1/3"]).code(0);
    assert_eq!(got.stdout(), b"other");
}

#[test]
fn invalid_names_are_reported_and_the_other_files_stored() {
    let place = TestDir::new();
    place.write("tree/good", "good");
    place.write(Path::new("tree").join(OsStr::from_bytes(b"\xff\xfe")), "no UTF-8");
    let long = "x".repeat(200);
    place.write(format!("tree/{long}/{long}/{long}/{long}/{long}/{long}"), "too long");
    place.run(&["store", "import", "b-1", "tree"]).code(1).stderr_contains(&[
        "not valid UTF-8",
        "1205 bytes",
        "imported 1 file ",
        "2 files not imported",
    ]);
    let listed = place.run(&["store", "ls", "--recursive", "b-1"]).code(0);
    assert_eq!(listed.lines(), ["good"]);
}

#[test]
fn links_and_special_files_are_skipped_with_a_note() {
    let place = TestDir::new();
    place.write("outside", "outside");
    place.write("tree/file", "file");
    symlink("../outside", place.path("tree/link")).unwrap();
    mknodat(CWD, place.path("tree/fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();

    place.run(&["store", "import", "b-1", "tree"]).code(0).stderr_contains(&[
        "1 symbolic link",
        "1 special file (sockets",
        "imported 1 file ",
    ]);
    symlink("tree", place.path("way")).unwrap();
    place
        .run(&["store", "import", "b-1", "way"])
        .code(0)
        .stderr_contains(&["1 symbolic link", "1 file "]);

    place.run(&["store", "import", "--follow", "b-2", "tree"]).code(0);
    assert_eq!(place.run(&["store", "get", "b-2/link"]).code(0).stdout(), b"outside");
}

#[test]
fn store_is_not_imported_into_itself() {
    let place = TestDir::new();
    place.write("file", "file");
    place.run(&["store", "mb", "b-1"]).code(0);
    place.run(&["store", "import", "b-1", "."]).code(0).stderr_contains(&["the store itself"]);
    assert_eq!(place.run(&["store", "ls", "--recursive", "b-1"]).code(0).lines(), ["file"]);
}

#[test]
fn key_of_a_single_file_is_prefix_and_name() {
    let place = TestDir::new();
    place.write("tree/a", "1");
    place.run(&["store", "import", "b-1", "tree/a", "--prefix", "p/q-"]).code(0);
    assert_eq!(place.run(&["store", "ls", "-r", "b-1"]).code(0).lines(), ["p/q-a"]);
}

#[test]
fn mistyped_path_does_not_create_a_store() {
    let place = TestDir::new();
    place
        .run(&["store", "import", "b-1", "nowhere"])
        .code(3)
        .stderr_contains(&["nowhere", "No such file"]);
    assert!(!place.path("haul-data").exists());
}

#[test]
fn exported_paths_omit_the_prefix() {
    let place = TestDir::new();
    for name in ["a/b/1", "a/b/2", "a/c/3", "d"] {
        place.write(format!("tree/{name}"), name);
    }
    place.run(&["store", "import", "b-1", "tree"]).code(0);
    place.run(&["store", "export", "b-1/a/", "copy"]).code(0);
    assert!(tree(&place.path("copy")).keys().eq(["b/1", "b/2", "c/3"]));
    place
        .run(&["store", "export", "b-1/nothing", "copy"])
        .code(1)
        .stderr_contains(&["begins with"]);
}

#[test]
fn export_stays_in_its_directory() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    for key in
        ["../up", "a/../../up", "/absolute", "x//y", "x/", "link/stolen", "good", "good/deep"]
    {
        place.run_with(&["store", "put", &format!("b-1/{key}")], key.as_bytes()).code(0);
    }
    fs::create_dir_all(place.path("outside")).unwrap();
    fs::create_dir_all(place.path("copy")).unwrap();
    symlink("../outside", place.path("copy/link")).unwrap();

    place.run(&["store", "export", "b-1", "copy"]).code(1).stderr_contains(&[
        "b-1/../up",
        "b-1/a/../../up",
        "b-1//absolute",
        "b-1/x//y",
        "b-1/x/",
        "b-1/link/stolen",
        "requires a directory of this name",
        "exported 1 object ",
        "7 objects not exported",
    ]);
    assert!(!place.path("up").exists());
    assert!(fs::read_dir(place.path("outside")).unwrap().next().is_none());
    assert!(tree(&place.path("copy")).keys().eq(["good/deep"]), "no temporary file is left");
}

#[test]
fn export_replaces_links_not_their_targets() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    place.run_with(&["store", "put", "b-1/k"], b"new").code(0);
    place.write("precious", "precious");
    fs::create_dir_all(place.path("copy")).unwrap();
    symlink("../precious", place.path("copy/k")).unwrap();
    place.run(&["store", "export", "b-1", "copy"]).code(0);
    assert_eq!(fs::read(place.path("precious")).unwrap(), b"precious");
    assert_eq!(fs::read(place.path("copy/k")).unwrap(), b"new");
}
