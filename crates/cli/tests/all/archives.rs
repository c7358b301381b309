//! Tests `haul store import-tar` and `haul store export-tar`.

use std::fs;
use std::process::{Command, Stdio};

use crate::helper::{TestDir, noise};

/// Runs a shell command in the directory.
fn shell(place: &TestDir, command: &str) {
    let status = Command::new("sh")
        .args(["-c", command])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{command}");
}

/// Stores a tree with a small, an empty and a big file in the bucket `b-1`.
fn stored_tree(place: &TestDir) {
    place.write("tree/small", "small");
    place.write("tree/d/empty", "");
    place.write("tree/d/big", noise(1, (4 << 20) + 5));
    place.run(&["store", "import", "b-1", "tree"]).code(0);
}

#[test]
fn archive_round_trips_through_files_and_pipes() {
    let place = TestDir::new();
    stored_tree(&place);
    place
        .run(&["store", "export-tar", "b-1", "a.tar"])
        .code(0)
        .stderr_contains(&["exported 3 objects"]);
    let piped = place.run(&["store", "export-tar", "b-1", "-"]).code(0);
    assert_eq!(piped.stdout(), fs::read(place.path("a.tar")).unwrap());

    place
        .run(&["store", "import-tar", "b-2/p/", "a.tar"])
        .code(0)
        .stderr_contains(&["imported 3 files"]);
    place.run_with(&["store", "import-tar", "b-3"], piped.stdout()).code(0);
    assert_eq!(
        place.run(&["store", "ls", "-r", "b-2"]).code(0).lines(),
        ["p/d/big", "p/d/empty", "p/small"]
    );
    let again = place.run(&["store", "export-tar", "b-3"]).code(0);
    assert_eq!(again.stdout(), piped.stdout());
    place
        .run(&["store", "import-tar", "--skip-existing", "b-3", "a.tar"])
        .code(0)
        .stderr_contains(&["imported 0 files", "skipped 3 files, already stored"]);
    let names = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().ends_with(".part")).count(), 0);
}

#[test]
fn gnu_tar_reads_and_writes_the_archives() {
    let place = TestDir::new();
    stored_tree(&place);
    place.run(&["store", "export-tar", "b-1/d/", "a.tar"]).code(0);
    shell(&place, "mkdir copy && tar -C copy -xf a.tar && cmp copy/big tree/d/big");
    assert!(place.path("copy/empty").exists());
    shell(&place, "tar -C tree -cf b.tar .");
    place.run(&["store", "import-tar", "b-2", "b.tar"]).code(0);
    let keys = |bucket| place.run(&["store", "ls", "-r", bucket]).code(0).stdout().to_vec();
    assert_eq!(keys("b-1"), keys("b-2"));
}

#[test]
fn truncated_archive_fails_and_stores_what_is_before() {
    let place = TestDir::new();
    stored_tree(&place);
    let archive = place.run(&["store", "export-tar", "b-1"]).code(0).stdout().to_vec();
    let end = archive.len() - 2048;
    place.run_with(&["store", "import-tar", "b-2"], &archive[..end]).code(1).stderr_contains(&[
        "imported 2 files",
        "cannot import all of stdin: the archive is truncated",
        &format!("byte {end}"),
        "2 files before that place are stored",
    ]);
    assert_eq!(place.run(&["store", "ls", "-r", "b-2"]).code(0).lines(), ["d/big", "d/empty"]);
    place.run_with(&["store", "import-tar", "b-2"], &noise(1, 5000)).code(1).stderr_contains(&[
        "imported 0 files",
        "damaged at byte 0",
        "not a tar archive",
    ]);
}

#[test]
fn mistakes_create_neither_a_store_nor_an_archive() {
    let place = TestDir::new();
    place
        .run(&["store", "import-tar", "b-1", "nowhere.tar"])
        .code(3)
        .stderr_contains(&["nowhere.tar", "No such file"]);
    assert!(!place.path("haul-data").exists());
    place.run(&["store", "mb", "b-1"]).code(0);
    place
        .run(&["store", "export-tar", "b-2", "a.tar"])
        .code(1)
        .stderr_contains(&["bucket \"b-2\" does not exist"]);
    assert!(!place.path("a.tar").exists());
    place
        .run(&["store", "export-tar", "b-1", "missing/a.tar"])
        .code(3)
        .stderr_contains(&["cannot write", "No such file"]);
    place
        .run(&["store", "export-tar", "b-1", "/dev/full"])
        .code(1)
        .stderr_contains(&["cannot write /dev/full", "No space left"]);
}

#[test]
fn refused_members_are_reported_and_the_others_stored() {
    let place = TestDir::new();
    place.write("tree/good", "good");
    place.write("outside", "outside");
    shell(&place, "cd tree && ln -s good link && truncate -s 1M hole");
    shell(&place, "cd tree && tar -P -S -cf ../a.tar ../outside good link hole");
    place.run(&["store", "import-tar", "b-1", "a.tar"]).code(1).stderr_contains(&[
        "cannot import ../outside: the name contains \"..\"",
        "cannot import hole: sparse members are not supported",
        "skipped 1 symbolic link",
        "imported 1 file ",
        "2 files not imported",
    ]);
    assert_eq!(place.run(&["store", "ls", "-r", "b-1"]).code(0).lines(), ["good"]);
}
