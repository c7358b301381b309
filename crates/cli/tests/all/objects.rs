//! Tests the `haul store` commands for single objects and listings.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::helper::{TestDir, noise};

fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn objects_round_trip_through_files_and_pipes() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    for bytes in [0, 5, (5 << 20) + 3] {
        let content = noise(7, bytes);
        place.write("in", &content);
        place.run(&["store", "put", "b-1/file", "in"]).code(0);
        place.run_with(&["store", "put", "b-1/pipe"], &content).code(0);
        for key in ["b-1/file", "b-1/pipe"] {
            assert!(place.run(&["store", "get", key]).code(0).stdout() == content, "{key}");
            place.run(&["store", "get", key, "out"]).code(0);
            assert!(fs::read(place.path("out")).unwrap() == content, "{key}");
        }
    }
    place.run(&["store", "get", "b-1/file", "/dev/null"]).code(0);
}

#[test]
fn range_selects_a_part_of_the_object() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    place.run_with(&["store", "put", "b-1/k"], b"0123456789").code(0);
    for (range, part) in
        [("0-0", "0"), ("2-5", "2345"), ("7-", "789"), ("-3", "789"), ("8-99", "89")]
    {
        let got = place.run(&["store", "get", "b-1/k", "--range", range]).code(0);
        assert_eq!(got.text(), part, "{range}");
    }
    place
        .run(&["store", "get", "b-1/k", "--range", "10-"])
        .code(2)
        .stderr_contains(&["outside of the object", "10 B"]);
    place.run(&["store", "get", "b-1/k", "--range", "5-4"]).code(2);
}

#[test]
fn listing_groups_at_slashes() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    for key in ["a/1", "a/2", "a/b/3", "c"] {
        place.run_with(&["store", "put", &format!("b-1/{key}")], b"x").code(0);
    }
    let ls = |arguments: &[&str]| {
        let all = [&["store", "ls"], arguments].concat();
        let lines: Vec<String> =
            place.run(&all).code(0).lines().into_iter().map(str::to_owned).collect();
        lines
    };
    assert_eq!(ls(&[]), ["b-1"]);
    assert_eq!(ls(&["b-1"]), ["a/", "c"]);
    assert_eq!(ls(&["b-1/a/"]), ["a/1", "a/2", "a/b/"]);
    assert_eq!(ls(&["b-1/a"]), ["a/"]);
    assert_eq!(ls(&["-r", "b-1/a"]), ["a/1", "a/2", "a/b/3"]);
    assert!(ls(&["-l", "b-1/c"])[0].ends_with("Z  c"));
    assert_eq!(json_of(&ls(&["--json", "b-1"])[0]), json!({"bucket": "b-1", "prefix": "a/"}));
    let bucket = json_of(&ls(&["--json"])[0]);
    assert_eq!((&bucket["objects"], &bucket["bytes"]), (&json!(4), &json!(4)));
    place
        .run(&["store", "ls", "b-1/z"])
        .code(1)
        .stderr_contains(&["no key in b-1 begins with \"z\""]);
}

#[test]
fn long_listing_is_complete_and_may_be_cut_by_its_reader() {
    let place = TestDir::new();
    for number in 0..2500 {
        let name = format!("a-rather-long-name-to-fill-pipes-{number:04}");
        place.write(format!("tree/{name}"), "");
    }
    place.run(&["store", "import", "b-1", "tree"]).code(0);
    assert_eq!(place.run(&["store", "ls", "b-1"]).code(0).lines().len(), 2500);

    let mut child = place
        .command(&["store", "ls", "--json", "b-1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn stat_prints_text_and_json() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    place.write("in", "hello");
    place.run(&["store", "put", "b-1/k", "in"]).code(0);
    let text = place.run(&["store", "stat", "b-1/k"]).code(0);
    for line in ["key:      k", "bytes:    5 (5 B)", "etag:     5d41402abc4b2a76b9719d911017c592"] {
        assert!(text.text().contains(line), "{}", text.text());
    }
    let stat = json_of(place.run(&["store", "stat", "--json", "b-1/k"]).code(0).text());
    assert_eq!(stat["bytes"], json!(5));
    assert!(stat["attributes"]["x-amz-meta-mtime"].is_string(), "{stat}");
    let bucket = json_of(place.run(&["store", "stat", "--json", "b-1"]).code(0).text());
    assert_eq!(bucket["objects"], json!(1));
    place
        .run(&["store", "stat", "b-1/nothing"])
        .code(1)
        .stderr_contains(&["object \"nothing\" does not exist"]);
}

#[test]
fn deleting_many_objects_requires_confirmation() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    for key in ["a/1", "a/2", "b"] {
        place.run_with(&["store", "put", &format!("b-1/{key}")], b"x").code(0);
    }
    place.run(&["store", "rm", "b-1/nothing", "b-1/b"]).code(1).stderr_contains(&["b-1/nothing"]);
    assert_eq!(place.run(&["store", "ls", "-r", "b-1"]).code(0).lines(), ["a/1", "a/2"]);

    place.run(&["store", "rm", "b-1"]).code(2).stderr_contains(&["is a bucket"]);
    place.run(&["store", "rm", "-r", "b-1/a/"]).code(2).stderr_contains(&["2 objects", "--yes"]);
    place.run(&["store", "rb", "b-1"]).code(1).stderr_contains(&["not empty"]);
    place.run(&["store", "rm", "-r", "--yes", "b-1/a/"]).code(0);
    place.run(&["store", "compact"]).code(0);
    place.run(&["store", "rb", "b-1"]).code(0);
    assert_eq!(place.run(&["store", "ls"]).code(0).text(), "");
}

#[test]
fn snapshot_is_a_store_with_the_objects_of_its_moment() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    place.run_with(&["store", "put", "b-1/k"], b"before").code(0);
    let run = place.run(&["store", "snapshot", "copy", "--json"]);
    let created: Value = serde_json::from_str(run.code(0).text()).unwrap();
    assert_eq!((&created["objects"], &created["object_bytes"]), (&1.into(), &6.into()));
    place.run_with(&["store", "put", "b-1/k"], b"after").code(0);
    let get_copy = ["store", "--data", "copy", "get", "b-1/k"];
    assert_eq!(place.run(&get_copy).code(0).text(), "before");
    assert_eq!(place.run(&["store", "get", "b-1/k"]).code(0).text(), "after");
    place.run(&["store", "snapshot", "copy"]).code(3).stderr_contains(&["copy", "not empty"]);
    let run = place.run(&["store", "snapshot", "second"]);
    assert!(run.code(0).text().contains("created snapshot second: 1 object (5 B)"));
}
