//! Tests the results that commands print with `--json`.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::helper::{Finished, Serving, TestDir};

/// Returns the lines of stdout as JSON.
fn lines(ended: &Finished) -> Vec<Value> {
    ended.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the only line of stdout as JSON, without the time, which must be a number.
fn object(ended: &Finished) -> Value {
    let mut lines = lines(ended);
    assert_eq!(lines.len(), 1, "{}", ended.text());
    let mut object = lines.remove(0);
    if let Some(seconds) = object.as_object_mut().unwrap().remove("seconds") {
        assert!(seconds.is_f64(), "{seconds}");
    }
    object
}

#[test]
fn imports_and_exports_print_their_summaries() {
    let place = TestDir::new();
    place.write("tree/a", "12345");
    place.write("tree/d/b", "123");
    std::os::unix::fs::symlink("a", place.path("tree/link")).unwrap();
    let store = |arguments: &[&str], code| {
        let ended = place.run(&[&["store"], arguments, &["--json"]].concat()).code(code);
        assert!(!ended.stderr().contains("ported"), "{}", ended.stderr());
        object(&ended)
    };
    let imported = json!({
        "bucket": "b-1", "files": 2, "bytes": 8, "skipped_links": 1, "skipped_special": 0,
        "failed_files": 0,
    });
    assert_eq!(store(&["import", "b-1", "tree"], 0), imported);
    let again = store(&["import", "b-1", "tree", "--skip-existing"], 0);
    assert_eq!((&again["files"], &again["existing_files"]), (&json!(0), &json!(2)));
    let exported = |prefix: &str, objects: u64, bytes: u64| {
        json!({
            "bucket": "b-1", "prefix": prefix, "objects": objects, "bytes": bytes,
            "failed_objects": 0,
        })
    };
    assert_eq!(store(&["export", "b-1", "copy"], 0), exported("", 2, 8));
    assert_eq!(store(&["export-tar", "b-1/d/", "a.tar"], 0), exported("d/", 1, 3));
    let imported = store(&["import-tar", "b-2", "a.tar"], 0);
    assert_eq!((&imported["files"], &imported["complete"]), (&json!(1), &json!(true)));

    fs::write(place.path(OsStr::from_bytes(b"tree/\xff")), "x").unwrap();
    let ended = place.run(&["store", "import", "b-3", "tree", "--json"]).code(1);
    let partial = object(&ended);
    assert_eq!((&partial["files"], &partial["failed_files"]), (&json!(2), &json!(1)));
    for arguments in [&["export-tar", "b-1"][..], &["get", "b-1/a"], &["get", "b-1/a", "-"]] {
        let words = [&["store"], arguments, &["--json"]].concat();
        place.run(&words).code(2).stderr_contains(&["--json", "name a file"]);
    }
}

#[test]
fn commands_on_objects_print_what_they_did() {
    let place = TestDir::new();
    place.write("file", "12345");
    place.run(&["store", "mb", "b-1"]).code(0);
    let store = |arguments: &[&str], code| {
        place.run(&[&["store"], arguments, &["--json"]].concat()).code(code)
    };
    let put = object(&store(&["put", "b-1/a", "file"], 0));
    let stat = object(&store(&["stat", "b-1/a"], 0));
    for key in ["bucket", "key", "bytes", "modified", "etag"] {
        assert_eq!(put[key], stat[key], "{key}");
    }
    let mut get = object(&store(&["get", "b-1/a", "copy", "--range", "1-2"], 0));
    assert_eq!(get["read_bytes"].take(), json!(2));
    get.as_object_mut().unwrap().remove("read_bytes");
    assert_eq!(get, stat);
    assert_eq!(fs::read(place.path("copy")).unwrap(), b"23");
    for key in ["b", "p/1", "p/2"] {
        store(&["put", &format!("b-1/{key}"), "file"], 0);
    }
    let removed = lines(&store(&["rm", "b-1/b", "b-1/none"], 1));
    let one = |key: &str, deleted: u64, failed: u64| {
        json!({
            "bucket": "b-1", "key": key, "deleted_objects": deleted, "failed_objects": failed,
        })
    };
    assert_eq!(removed, [one("b", 1, 0), one("none", 0, 1)]);
    let all = object(&store(&["rm", "--recursive", "--yes", "b-1/p/"], 0));
    let expected = json!({
        "bucket": "b-1", "prefix": "p/", "deleted_objects": 2, "deleted_bytes": 10,
        "failed_objects": 0,
    });
    assert_eq!(all, expected);
    let compacted = object(&store(&["compact"], 0));
    for key in ["freed_bytes", "removed_volumes", "moved_bytes", "dead_bytes"] {
        assert!(compacted[key].is_u64(), "{compacted}");
    }
    let map = object(&store(&["map"], 0));
    assert!(map["dir"].as_str().is_some_and(|dir| dir.ends_with("haul-data")), "{map}");
    assert_eq!((&map["volume"], map["live_bytes"].as_u64() > Some(0)), (&json!(1), true), "{map}");
    let accepted = object(&store(&["accept-damage"], 0));
    assert_eq!(accepted, json!({ "kind": "summary", "accepted_regions": 0, "missing": [] }));
}

#[test]
fn actions_on_duplicates_print_each_file_and_the_totals() {
    let place = TestDir::new();
    for name in ["d/a", "d/b", "d/c"] {
        place.write(name, "equal");
    }
    let report = place.run(&["dups", "d"]).code(0);
    let path = |name: &str| place.path(name).canonicalize().unwrap().to_str().unwrap().to_owned();
    let (a, b, c) = (path("d/a"), path("d/b"), path("d/c"));
    let file = |path: &str| json!({ "kind": "file", "path": path, "kept": a, "bytes": 5 });
    let totals = |action: &str, is_dry: bool, files: u64, skipped: u64| {
        json!({
            "kind": "summary", "action": action, "dry_run": is_dry, "files": files,
            "bytes": 5 * files, "skipped": skipped,
        })
    };
    let dry = ["dups", "remove", "--json", "--dry-run"];
    let mut shown = lines(&place.run_with(&dry, report.stdout()).code(0));
    assert_eq!(shown.pop().unwrap(), totals("remove", true, 2, 0));
    shown.sort_by_key(|line| line["path"].to_string());
    assert_eq!(shown, [file(&b), file(&c)]);
    fs::remove_file(place.path("d/c")).unwrap();
    let linked = place.run_with(&["dups", "link", "--json"], report.stdout()).code(1);
    assert!(!linked.stderr().contains("skipped"), "{}", linked.stderr());
    let linked = lines(&linked);
    assert_eq!(linked.last(), Some(&totals("link", false, 1, 1)));
    assert!(linked.contains(&file(&b)), "{linked:?}");
    let skipped = linked.iter().find(|line| line["kind"] == "skipped").unwrap();
    assert_eq!(skipped["path"], json!(c));
    assert!(!skipped["reason"].as_str().unwrap().is_empty());
    let both = ["dups", "remove", "--json", "--dry-run", "--output", "x"];
    place.run_with(&both, report.stdout()).code(2);
}

#[test]
fn check_of_a_list_prints_each_result() {
    let place = TestDir::new();
    for name in ["d/a", "d/b", "d/c"] {
        place.write(name, name);
    }
    let list = place.run(&["sum", "d"]).code(0);
    place.write("list", list.stdout());
    place.write("d/b", "changed");
    place.write("d/new", "");
    fs::remove_file(place.path("d/c")).unwrap();
    let results = |options: &[&str]| {
        let words = [&["sum", "--check", "list", "d", "--json"], options].concat();
        lines(&place.run(&words).code(1))
    };
    let one = |path: &str, result: &str| json!({ "path": path, "result": result });
    let changed = [one("d/b", "changed"), one("d/c", "missing"), one("d/new", "added")];
    assert_eq!(results(&["--quiet"]), changed);
    assert_eq!(results(&[])[0], one("d/a", "ok"));
}

#[test]
fn log_prints_its_counts() {
    let place = TestDir::new();
    let input = b"one\ntwo\nthree";
    let ended = place.run_with(&["log", "d", "--json", "--max-size", "4KiB"], input).code(0);
    let expected = json!({
        "lines": 3, "bytes": 13, "written_bytes": 13, "closed_files": 0, "removed_files": 0,
        "compressed_files": 0, "dropped_lines": 0, "lost_lines": 0, "write_failures": 0,
        "sync_failures": 0,
    });
    assert_eq!(object(&ended), expected);
    place.run(&["log", "d", "--json", "--tee"]).code(2).stderr_contains(&["--tee"]);
}

/// Starts a server with `--json`; returns it and its ready line.
fn start(place: &TestDir, arguments: &[&str]) -> (Serving, Value) {
    let words = [arguments, &["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--json"]];
    let serving = TestDir::start(&mut place.command(&words.concat()));
    let ready: Value = serde_json::from_str(&serving.line).unwrap();
    assert_eq!(ready["kind"], "ready");
    assert!(ready["admin"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{ready}");
    (serving, ready)
}

fn request(url: &Value, head: &str) -> String {
    let address = url.as_str().unwrap().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{head} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Stops a server, and returns the counts that it prints.
fn stop(serving: Serving) -> Value {
    serving.signal(Signal::TERM);
    let (code, stdout, stderr) = serving.wait();
    assert_eq!(code, Some(0), "{stderr}");
    let closed: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(closed["kind"], "closed");
    assert!(closed["seconds"].as_f64().unwrap() > 0.0);
    closed
}

#[test]
fn servers_print_their_addresses_and_counts() {
    let place = TestDir::new();
    let (serving, ready) = start(&place, &["serve"]);
    for (head, status) in [("GET /b-1/k", " 404 "), ("HEAD /b-1", " 404 "), ("GET /", " 200 ")] {
        assert!(request(&ready["s3"], head).contains(status), "{head}");
    }
    let closed = stop(serving);
    assert_eq!(closed["requests"]["get"], json!({ "4xx": 1 }), "{closed}");
    assert_eq!(closed["requests"]["head"], json!({ "4xx": 1 }), "{closed}");
    assert_eq!((&closed["received_bytes"], closed["sent_bytes"].is_u64()), (&json!(0), true));

    place.write("www/a", "hello");
    let (serving, ready) = start(&place, &["files", "www"]);
    assert!(request(&ready["files"], "GET /a").ends_with("\r\n\r\nhello"));
    assert!(request(&ready["files"], "GET /b").contains(" 404 "));
    let closed = stop(serving);
    assert_eq!(closed["responses"], json!({ "200": 1, "404": 1 }));
    assert_eq!(closed["connections"], json!(2));
    assert!(closed["sent_bytes"].as_u64().unwrap() >= 5, "{closed}");
}
