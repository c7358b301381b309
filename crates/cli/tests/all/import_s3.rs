//! Tests `haul import-s3` between two servers.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::helper::{Finished, Serving, TestDir, noise};

/// Two servers, each with a directory.
struct Servers {
    place: TestDir,
    _target_place: TestDir,
    from: Serving,
    to: Serving,
}

impl Servers {
    fn start() -> Self {
        let (place, target_place) = (TestDir::on_disk(), TestDir::on_disk());
        let (from, to) = (place.serve(), target_place.serve());
        Self { place, _target_place: target_place, from, to }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let [from, to] = [&self.from, &self.to].map(|it| format!("http://{}", it.address("S3")));
        let mut words = vec!["import-s3", "--from", &from, "--to", &to];
        words.extend(arguments);
        let mut command = self.place.command(&words);
        command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        Finished(self.command(arguments).output().unwrap())
    }

    fn put(&self, path: &str, body: &[u8]) {
        assert_eq!(self.from.request("PUT", path, body).0, 200, "{path}");
    }
}

fn lines(ended: &Finished) -> Vec<Value> {
    ended.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the summary, which is the last line, without the time.
fn summary(ended: &Finished) -> Value {
    let mut summary = lines(ended).pop().unwrap();
    assert!(summary.as_object_mut().unwrap().remove("seconds").is_some_and(|it| it.is_f64()));
    summary
}

#[test]
fn buckets_are_imported_and_reported() {
    let servers = Servers::start();
    servers.put("/b-1", b"");
    servers.put("/b-1/a%20b", b"12345");
    servers.put("/b-1/c", b"123");
    servers.put("/b-2", b"");
    let dry = servers.run(&["--dry-run"]).code(0);
    let expected =
        ["create bucket b-1", "copy b-1/a b (5 B)", "copy b-1/c (3 B)", "create bucket b-2"];
    let mut found = dry.lines();
    found.sort_unstable();
    let mut sorted = expected.to_vec();
    sorted.sort_unstable();
    assert_eq!(found, sorted);
    assert_eq!(servers.to.request("GET", "/b-1/c", b"").0, 404);

    let named = servers.run(&["b-2"]).code(0);
    named.stderr_contains(&["copied 0 objects"]);
    let copied = servers.run(&["--json"]).code(0);
    let expected = json!({
        "kind": "summary", "dry_run": false, "buckets": 2, "objects": 2, "versions": 2, "bytes": 8,
        "skipped": 0, "deleted": 0, "different": 0, "failed": 0, "verified_by_length": 0,
        "not_carried": [], "complete": true,
    });
    assert_eq!(summary(&copied), expected);
    let object = json!({
        "kind": "object", "bucket": "b-1", "key": "c", "versions": 1, "bytes": 3,
    });
    assert!(lines(&copied).contains(&object), "{}", copied.text());
    assert!(servers.to.request("GET", "/b-1/a%20b", b"").1.ends_with(b"\r\n\r\n12345"));

    let again = servers.run(&[]).code(0);
    let again = again.stderr_contains(&["copied 0 objects", "2 objects unchanged"]);
    assert_eq!(again.stdout(), b"");
    assert_eq!(servers.to.request("PUT", "/b-1/extra", b"x").0, 200);
    servers.run(&["--delete"]).code(0).stderr_contains(&["1 object deleted"]);
    assert_eq!(servers.to.request("GET", "/b-1/extra", b"").0, 404);
    servers.run(&["--progress"]).code(0).stderr_contains(&["haul: 0 objects, 0 B, "]);
}

#[test]
fn failures_have_exit_codes_and_say_what_to_do() {
    let servers = Servers::start();
    servers.put("/b-1", b"");
    let from = format!("http://{}", servers.from.address("S3"));
    servers.run(&["b-9"]).code(3).stderr_contains(&["no bucket \"b-9\"", "name buckets"]);
    for (from, to, words) in [
        (
            "http://127.0.0.1:1",
            &*from,
            ["no response to GET http://127.0.0.1:1/", "the server runs"],
        ),
        (
            &from,
            "http://127.0.0.1:1",
            ["no response to GET http://127.0.0.1:1/", "the server runs"],
        ),
        (&from, &from, ["invalid URL", "both the source and the target"]),
        ("s3://b", &from, ["invalid URL s3://b", "use http:// or https://"]),
    ] {
        let ended = servers.place.run(&["import-s3", "--from", from, "--to", to]);
        ended.code(3).stderr_contains(&words);
    }
    servers.place.run(&["import-s3"]).code(2).stderr_contains(&["--from"]);
    servers.run(&["--jobs", "0"]).code(2).stderr_contains(&["--jobs"]);

    // Versions of the target that the source does not have.
    let enabled = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    servers.put("/b-1?versioning", enabled);
    servers.put("/b-1/k", b"source");
    assert_eq!(servers.to.request("PUT", "/b-1", b"").0, 200);
    assert_eq!(servers.to.request("PUT", "/b-1/k", b"target").0, 200);
    let words = ["b-1/k has other versions", "1 object left alone", "delete them at the target"];
    servers.run(&[]).code(1).stderr_contains(&words);
    let json = servers.run(&["--json"]).code(1);
    assert_eq!(summary(&json)["different"], 1);
}

#[test]
fn first_signal_stops_after_the_objects_in_progress() {
    let servers = Servers::start();
    servers.put("/b-1", b"");
    for number in 0..600 {
        servers.put(&format!("/b-1/{number:04}"), &noise(number, 1000));
    }
    let mut command = servers.command(&["--json", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let rest: Vec<_> = stdout.lines().map(Result::unwrap).collect();
    let ended = Finished(child.wait_with_output().unwrap()).code(143);
    ended.stderr_contains(&["finishing objects in progress", "continue with the same command"]);
    let last: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["complete"]), (&json!("summary"), &json!(false)));
    let copied = last["objects"].as_u64().unwrap();
    assert!(copied < 600, "{copied}");
    let second = summary(&servers.run(&["--json"]).code(0));
    assert_eq!((&second["objects"], &second["skipped"]), (&json!(600 - copied), &json!(copied)));
}

#[test]
fn killed_import_is_continued() {
    let servers = Servers::start();
    servers.put("/b-1", b"");
    let enabled = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    servers.put("/b-1?versioning", enabled);
    for round in 0..3 {
        for number in 0..300 {
            servers.put(&format!("/b-1/{number:04}"), &noise(1000 * round + number, 100));
        }
    }
    let mut command = servers.command(&["--json", "--jobs", "4"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let rest = summary(&servers.run(&["--json"]).code(0));
    assert!(rest["versions"].as_u64().is_some_and(|versions| versions < 900), "{rest}");
    assert_eq!(rest["different"], 0);
    let last = summary(&servers.run(&["--json"]).code(0));
    assert_eq!((&last["versions"], &last["skipped"]), (&json!(0), &json!(300)));
}
