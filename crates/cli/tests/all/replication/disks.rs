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
    refused(&["d1", "d2", "d3"], &["--refill", "d3"], "no directory is missing");
    let server = start(&["d1", "d2"], &[]);
    check(&server, 0..20);
}
