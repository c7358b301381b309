//! Copies of a store over several directories, and the refill of a lost one.

use std::fs;

use haul_testing::{Finished, eventually};
use rustix::process::Signal;

use super::{RemoteStore, admin};
use crate::helper::{Serving, TestDir, noise};

fn command(
    place: &TestDir,
    remote: &RemoteStore,
    dirs: &[&str],
    more: &[&str],
) -> std::process::Command {
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut command = place.command(&arguments);
    command.args(dirs.iter().flat_map(|dir| ["--data", dir])).args(remote.arguments()).args(more);
    command
}

fn content(number: u64) -> Vec<u8> {
    noise(number, if number.is_multiple_of(16) { 200_000 } else { 1000 })
}

fn put(server: &Serving, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let put = server.request("PUT", &format!("/b-1/{number}"), &content(number));
        assert_eq!(put.0, 200, "{}", String::from_utf8_lossy(&put.1));
    }
}

fn check(server: &Serving, numbers: std::ops::Range<u64>) {
    for number in numbers.clone() {
        let (status, answer) = server.request("GET", &format!("/b-1/{number}"), b"");
        assert!(status == 200 && answer.ends_with(&content(number)), "{number}: {status}");
    }
    let (_, listing) = server.request("GET", "/b-1?list-type=2", b"");
    let count = format!("<KeyCount>{}</KeyCount>", numbers.end);
    assert!(String::from_utf8_lossy(&listing).contains(&count));
}

fn page(server: &Serving, path: &str) -> String {
    String::from_utf8_lossy(&admin(server, path)).into_owned()
}

fn wait_for_copies(server: &Serving) {
    eventually("the copies have everything", || {
        page(server, "/metrics").contains("\nhaul_replication_behind_seconds 0\n")
    });
}

/// Reads stderr up to a line with `text`.
fn wait_for_line(server: &mut Serving, text: &str) {
    while !server.stderr_line().contains(text) {}
}

fn kill(server: Serving) {
    server.signal(Signal::KILL);
    server.wait();
}

#[test]
fn lost_disk_is_refilled_from_its_copy() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let start =
        |dirs: &[&str], more: &[&str]| TestDir::start(&mut command(&place, &remote, dirs, more));
    let small = ["--bucket", "b-1", "--big-object", "128KiB", "--ack", "remote"];
    let server = start(&["d1", "d2", "d3"], &small);
    put(&server, 0..100);
    wait_for_copies(&server);
    let metrics = page(&server, "/metrics");
    assert!(metrics.contains("/d2\"} 0\n"), "{metrics}");
    assert!(metrics.contains("haul_member_copy_failing{dir="), "{metrics}");
    assert!(page(&server, "/stats.json").contains("\"copied\":"));
    kill(server);

    // The disk is lost, and an empty one takes its place.
    fs::rename(place.path("d2"), place.path("lost")).unwrap();
    fs::create_dir(place.path("new")).unwrap();
    let dirs = ["d1", "new", "d3"];
    let again = ["--refill", "new", "--ack", "remote"];
    let mut server = start(&dirs, &again);
    wait_for_line(&mut server, "refilled new with the copy of 2");
    check(&server, 0..100);
    assert!(page(&server, "/health").contains("\r\n\r\nok\n"), "{}", page(&server, "/health"));
    put(&server, 100..130);
    eventually("its content is fetched", || !place.path("new/REMOTE").exists());
    kill(server);

    // A service manager starts the server with the same options.
    let mut server = start(&dirs, &again);
    wait_for_line(&mut server, "new is in the store: remove its --refill");
    check(&server, 0..130);
    kill(server);
    let back = command(&place, &remote, &["d1", "lost", "d3"], &[]).output().unwrap();
    Finished(back).code(3).stderr_contains(&["lost is no longer a member of the pool"]);

    // The copy of the new disk is continued, and the next loss loses nothing that it confirmed.
    fs::remove_dir_all(place.path("new")).unwrap();
    let server = start(&["d1", "d2", "d3"], &["--refill", "d2"]);
    check(&server, 0..130);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().0, Some(0));
    let all = ["store", "ls", "b-1", "--data", "d1", "--data", "d2", "--data", "d3"];
    if !place.path("d2/REMOTE").exists() {
        assert_eq!(place.run(&all).code(0).lines().len(), 130);
    }
}

#[test]
fn refill_without_a_copy_changes_nothing() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let start = |dirs: &[&str], more: &[&str]| {
        let data = dirs.iter().flat_map(|dir| ["--data", dir]);
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        TestDir::start(place.command(&arguments).args(data).args(more))
    };
    let server = start(&["d1", "d2"], &["--bucket", "b-1"]);
    put(&server, 0..20);
    kill(server);
    fs::rename(place.path("d2"), place.path("away")).unwrap();
    let refused = |dirs: &[&str], more: &[&str], what: &str| {
        let output = command(&place, &remote, dirs, more).output().unwrap();
        Finished(output).code(3).stderr_contains(&[what]);
    };
    let no_copy = "the remote store holds no copy: there is no object haul/member-1/manifest";
    refused(&["d1", "d2"], &["--refill", "d2"], no_copy);
    assert!(!place.path("d2").exists());
    refused(&["d1", "d2"], &["--refill", "d3"], "d3 is not one of the directories");
    fs::rename(place.path("away"), place.path("d2")).unwrap();
    fs::create_dir(place.path("d3")).unwrap();
    refused(&["d1", "d2", "d3"], &["--refill", "d3"], "no directory is missing");
    let server = start(&["d1", "d2"], &[]);
    check(&server, 0..20);
}

/// Restores the copies of all disks.
fn restore(place: &TestDir, remote: &RemoteStore, dirs: &[&str], more: &[&str]) -> Finished {
    let mut command = place.command(&["store", "restore"]);
    command.args(dirs.iter().flat_map(|dir| ["--data", dir])).args(remote.arguments()).args(more);
    Finished(command.output().unwrap())
}

fn lose(place: &TestDir, dirs: &[&str]) {
    dirs.iter().for_each(|dir| fs::remove_dir_all(place.path(dir)).unwrap());
}

/// Returns the text between two marks.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    text.split_once(before).unwrap().1.split_once(after).unwrap().0
}

fn text(server: &Serving, method: &str, path: &str, body: &[u8]) -> String {
    let (status, answer) = server.request(method, path, body);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert_eq!(status, 200, "{method} {path}: {answer}");
    answer
}

#[test]
fn everything_is_back_after_the_loss_of_all_disks() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let start =
        |dirs: &[&str], more: &[&str]| TestDir::start(&mut command(&place, &remote, dirs, more));
    let small = ["--bucket", "b-1", "--big-object", "128KiB", "--ack", "remote"];
    let server = start(&["d1", "d2", "d3"], &small);
    put(&server, 0..100);
    assert_eq!(server.request("PUT", "/versions", b"").0, 200);
    let enabled = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    text(&server, "PUT", "/versions?versioning", enabled);
    for number in 0..10 {
        for version in 0..3 {
            let path = format!("/versions/{number}");
            assert_eq!(server.request("PUT", &path, &noise(number + version, 100)).0, 200);
        }
    }
    assert_eq!(server.request("DELETE", "/versions/0", b"").0, 204);
    let started = text(&server, "POST", "/b-1/upload?uploads", b"");
    let upload = between(&started, "<UploadId>", "</UploadId>").to_owned();
    let part = format!("/b-1/upload?partNumber=1&uploadId={upload}");
    let answer = text(&server, "PUT", &part, b"content").to_ascii_lowercase();
    let etag = between(&answer, "etag: \"", "\"").to_owned();
    let versions = text(&server, "GET", "/versions?versions", b"");
    let versions = between(&versions, "<ListVersionsResult", "</ListVersionsResult>").to_owned();
    kill(server);
    lose(&place, &["d1", "d2", "d3"]);

    let two = restore(&place, &remote, &["n1", "n2"], &[]);
    two.code(3)
        .stderr_contains(&["is 2, and the pool has 3 members (member-0, member-1, member-2)"]);
    restore(&place, &remote, &["n1"], &[]).code(3).stderr_contains(&["is 1, and the pool has 3"]);
    assert!(!place.path("n1").exists());
    fs::create_dir(place.path("n1")).unwrap();
    let new = ["n1", "n2", "n3"];
    let restored = restore(&place, &remote, &new, &[]).code(0);
    let lines = restored.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].starts_with("restored s3://backup/haul/member-1 to n2 as of 2"), "{lines:?}");
    // The directory with the newest copy is named, which may be any of them.
    restore(&place, &remote, &new, &[])
        .code(3)
        .stderr_contains(&[" is not empty, so that no copy"]);
    let all = ["store", "ls", "b-1", "--data", "n3", "--data", "n1", "--data", "n2"];
    assert_eq!(place.run(&all).code(0).lines().len(), 100);

    let server = start(&new, &["--ack", "remote"]);
    check(&server, 0..100);
    assert!(page(&server, "/metrics").contains("\nhaul_moving_slots 0\n"));
    assert!(text(&server, "GET", "/versions?versions", b"").contains(&versions));
    assert!(text(&server, "GET", "/versions?versioning", b"").contains("<Status>Enabled<"));
    put(&server, 100..130);
    kill(server);
    lose(&place, &new);

    // The copies go on, and a restore on demand is served before everything is fetched.
    let restored = restore(&place, &remote, &["m1", "m2", "m3"], &["--on-demand", "--json"]);
    let json = restored.code(0).text().to_owned();
    assert!(json.contains("\"moving_slots\":0"), "{json}");
    let server = start(&["m1", "m2", "m3"], &["--ack", "remote"]);
    check(&server, 0..130);
    let uploads = text(&server, "GET", "/b-1?uploads", b"");
    assert!(uploads.contains(&upload), "{uploads}");
    let listed = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    text(&server, "POST", &format!("/b-1/upload?uploadId={upload}"), listed.as_bytes());
    assert!(text(&server, "GET", "/b-1/upload", b"").ends_with("\r\n\r\ncontent"));
    assert!(text(&server, "GET", "/versions?versions", b"").contains(&versions));
}

#[test]
fn disks_that_were_lost_while_keys_moved_are_restored() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let start =
        |dirs: &[&str], more: &[&str]| TestDir::start(&mut command(&place, &remote, dirs, more));
    // The copy of a single disk is at the URL itself, and is not continued.
    let server = start(&["d1"], &["--bucket", "b-1", "--big-object", "128KiB"]);
    put(&server, 0..100);
    // Many keys share their slots with others, some of which have moved. They move first.
    assert_eq!(server.request("PUT", "/a-small", b"").0, 200);
    let is_small = |server: &Serving, number: u64| {
        server.request("GET", &format!("/a-small/{number}"), b"").1.ends_with(&noise(number, 100))
    };
    for number in 0..1500 {
        let put = server.request("PUT", &format!("/a-small/{number}"), &noise(number, 100));
        assert_eq!(put.0, 200);
    }
    kill(server);
    fs::create_dir(place.path("d2")).unwrap();
    let server = start(&["d1", "d2"], &["--ack", "remote", "--move-rate", "64KiB"]);
    wait_for_copies(&server);
    let is_moving = || !page(&server, "/metrics").contains("\nhaul_moving_slots 0\n");
    eventually("keys have moved", || {
        !page(&server, "/metrics").contains("\nhaul_moved_keys_total 0\n")
    });
    assert!(is_moving());
    put(&server, 90..110);
    kill(server);
    lose(&place, &["d1", "d2"]);
    let restored = restore(&place, &remote, &["n1", "n2"], &[]).code(0);
    let moving = "in two directories: they are moved";
    assert!(restored.text().contains(moving), "{}", restored.text());
    let server = start(&["n1", "n2"], &["--ack", "remote"]);
    check(&server, 0..110);
    assert!((0..1500).all(|number| is_small(&server, number)));
    eventually("all keys are at their disks", || {
        page(&server, "/metrics").contains("\nhaul_moving_slots 0\n")
    });
    check(&server, 0..110);
    assert!((0..1500).all(|number| is_small(&server, number)));
}

#[test]
fn earlier_state_of_all_disks_is_restored() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let options = ["--bucket", "b-1", "--ack", "remote", "--keep", "5min", "--keep-every", "50ms"];
    let server = TestDir::start(&mut command(&place, &remote, &["d1", "d2"], &options));
    put(&server, 0..20);
    wait_for_copies(&server);
    let start = std::time::Instant::now();
    eventually("the time passes", || start.elapsed().as_millis() > 1200);
    let now = std::process::Command::new("date").args(["-u", "+%FT%TZ"]).output().unwrap();
    let now = String::from_utf8(now.stdout).unwrap();
    eventually("the time passes", || start.elapsed().as_millis() > 2400);
    for number in 0..20 {
        assert_eq!(server.request("DELETE", &format!("/b-1/{number}"), b"").0, 204);
    }
    kill(server);
    restore(&place, &remote, &["n1", "n2"], &["--at", now.trim()]).code(0);
    let listed = place.run(&["store", "ls", "b-1", "--data", "n1", "--data", "n2"]);
    assert_eq!(listed.code(0).lines().len(), 20);
    let old = restore(&place, &remote, &["o1", "o2"], &["--at", "2h ago"]);
    old.code(1).stderr_contains(&["member-0 is not kept as of then", "oldest state"]);
    assert!(!place.path("o1").exists());
}

#[test]
fn missing_copy_of_a_disk_is_named() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let server = TestDir::start(&mut command(&place, &remote, &["d1", "d2"], &["--bucket", "b-1"]));
    put(&server, 0..20);
    wait_for_copies(&server);
    kill(server);
    let gone = "/backup/haul/member-1/manifest";
    assert_eq!(remote.server.request("DELETE", gone, b"").0, 204);
    for dirs in [&["n1", "n2"][..], &["n1"]] {
        let refused = restore(&place, &remote, dirs, &[]);
        refused.code(3).stderr_contains(&["no copy of member-1, whose keys would be lost"]);
    }
    assert!(!place.path("n1").exists() && !place.path("n1.incomplete").exists());
}
