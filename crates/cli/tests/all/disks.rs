//! `haul serve` and `haul store` over several directories.

use std::fs;

use haul_testing::eventually;
use haul_testing::http::Peer;
use rustix::process::Signal;

use crate::helper::{Serving, TestDir, noise};

/// Starts a server over these directories.
fn serve(place: &TestDir, dirs: &[&str], more: &[&str]) -> Serving {
    let data = dirs.iter().flat_map(|dir| ["--data", dir]);
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    arguments.extend(data.chain(more.iter().copied()));
    TestDir::start(&mut place.command(&arguments))
}

fn stop(serving: Serving) {
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().0, Some(0));
}

fn content(number: u64) -> Vec<u8> {
    noise(number, if number.is_multiple_of(16) { 200_000 } else { 1000 })
}

fn put(serving: &Serving, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(serving.request("PUT", &format!("/b-1/{number}"), &content(number)).0, 200);
    }
}

/// Reads the objects. Returns the number of those that are there; the others are answered with 503.
fn read(serving: &Serving, numbers: std::ops::Range<u64>) -> usize {
    let is_there = |number: &u64| {
        let (status, answer) = serving.request("GET", &format!("/b-1/{number}"), b"");
        match status {
            200 => assert!(answer.ends_with(&content(*number)), "{number} is another object"),
            503 => assert!(
                String::from_utf8_lossy(&answer).contains("A disk of the server is missing")
            ),
            _ => panic!("{number}: {status}"),
        }
        status == 200
    };
    numbers.filter(is_there).count()
}

fn admin(serving: &Serving, path: &str) -> String {
    let mut client = Peer::connect(serving.address("admin")).unwrap();
    let host = serving.address("admin");
    let page = client.exchange(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    page.text().to_owned()
}

fn wait_for_moves(serving: &Serving) {
    eventually("all keys are at their disks", || {
        admin(serving, "/metrics").contains("\nhaul_moving_slots 0\n")
    });
}

/// Asserts that the store in `d1` gets no directory that does not exist, and none by a command.
fn assert_mistyped_directories_are_refused(place: &TestDir) {
    let refused = |arguments: &[&str]| place.run(arguments).code(3).stderr().to_owned();
    let both = ["--data", "d1", "--data", "absent"];
    let absent = refused(&[&["serve", "--listen", "127.0.0.1:0"], &both[..]].concat());
    assert!(absent.contains("absent does not exist; create it"), "{absent}");
    fs::create_dir(place.path("absent")).unwrap();
    let read_only = refused(&[&["store", "ls"], &both[..]].concat());
    assert!(read_only.contains("absent is not in the store"), "{read_only}");
    assert_eq!(fs::read_dir(place.path("absent")).unwrap().count(), 0);
}

/// Loses `d3` beside `d2` for good, and adds it again.
fn lose_for_good(place: &TestDir) {
    fs::rename(place.path("d3"), place.path("gone")).unwrap();
    fs::create_dir(place.path("d4")).unwrap();
    let mut serving = serve(place, &["d2", "d4"], &[]);
    assert!(serving.stderr_line().contains("d4 is not added to the store while another disk is"));
    stop(serving);
    let mut serving = serve(place, &["d2"], &["--accept-loss", "d3"]);
    assert!(serving.stderr_line().contains("accepted the loss of d3"));
    let (_, listing) = serving.request("GET", "/b-1?list-type=2", b"");
    let left = String::from_utf8_lossy(&listing).matches("<Contents>").count();
    assert!((30..=70).contains(&left), "{left}");
    put(&serving, 0..100);
    assert_eq!(read(&serving, 0..100), 100);
    stop(serving);
    let refused = place.run(&["serve", "--data", "d2", "--data", "gone"]).code(3);
    assert!(refused.stderr().contains("gone is no longer a member of the pool"));
    let mut again = serve(place, &["d2"], &["--accept-loss", "d3"]);
    assert!(again.stderr_line().contains("d3 is not in the store: remove its --accept-loss"));
    stop(again);
    fs::create_dir(place.path("d3")).unwrap();
    let serving = serve(place, &["d2", "d3"], &[]);
    wait_for_moves(&serving);
    stop(serving);
}

#[test]
fn store_grows_loses_a_disk_gets_it_back_and_retires_one() {
    let place = TestDir::new();
    let serving = serve(&place, &["d1"], &["--bucket", "b-1", "--big-object", "128KiB"]);
    put(&serving, 0..60);
    assert!(admin(&serving, "/stats.json").contains("\"disks\":null"));
    stop(serving);

    assert_mistyped_directories_are_refused(&place);
    for dir in ["d2", "d3"] {
        fs::create_dir(place.path(dir)).unwrap();
    }

    // Two disks join, and the server is killed while keys move.
    let serving = serve(&place, &["d1", "d2", "d3"], &["--disk-kind", "rotating"]);
    assert_eq!(read(&serving, 0..60), 60);
    put(&serving, 60..100);
    serving.signal(Signal::KILL);
    serving.wait();
    let serving = serve(&place, &["d3", "d1", "d2"], &[]);
    wait_for_moves(&serving);
    assert_eq!(read(&serving, 0..100), 100);
    let (_, listing) = serving.request("GET", "/b-1?list-type=2", b"");
    assert!(String::from_utf8_lossy(&listing).contains("<KeyCount>100</KeyCount>"));
    stop(serving);

    // One disk is lost.
    fs::rename(place.path("d2"), place.path("elsewhere")).unwrap();
    fs::create_dir(place.path("d2")).unwrap();
    commands_work_on_what_is_there(&place);
    let serving = serve(&place, &["d1", "d2", "d3"], &[]);
    let served = read(&serving, 0..100);
    assert!((40..=90).contains(&served), "{served}");
    let health = admin(&serving, "/health");
    assert!(health.contains("d2 is missing, and its keys are not available"), "{health}");
    assert!(admin(&serving, "/metrics").contains("/d2\"} 0"));
    assert_eq!(serving.request("GET", "/b-1?list-type=2", b"").0, 503);
    assert_eq!(serving.request("PUT", "/b-2", b"").0, 503);
    stop(serving);
    assert_eq!(fs::read_dir(place.path("d2")).unwrap().count(), 0, "nothing is written to it");

    // It is back, and another one is retired.
    fs::remove_dir(place.path("d2")).unwrap();
    fs::rename(place.path("elsewhere"), place.path("d2")).unwrap();
    let serving = serve(&place, &["d1", "d2", "d3"], &["--retire", "d1"]);
    assert_eq!(admin(&serving, "/health"), "ok\n");
    wait_for_moves(&serving);
    assert_eq!(read(&serving, 0..100), 100);
    stop(serving);
    // A service manager starts the server with the same options as before.
    let mut serving = serve(&place, &["d1", "d2", "d3"], &["--retire", "d1"]);
    assert!(serving.stderr_line().contains("d1 has left the store"));
    assert!(serving.stderr_line().contains("d1 is not in the store: remove its --retire"));
    fs::remove_dir_all(place.path("d1")).unwrap();
    assert_eq!(read(&serving, 0..100), 100);
    stop(serving);

    lose_for_good(&place);

    // The commands work on all disks.
    let both = ["--data", "d2", "--data", "d3"];
    let run = |command: &[&str]| place.run(&[&["store"], command, &both[..]].concat()).code(0);
    assert_eq!(run(&["ls", "b-1"]).lines().len(), 100);
    assert!(run(&["verify"]).text().contains("verified 100 objects"));
    assert_eq!(run(&["get", "b-1/16"]).stdout(), content(16));
    run(&["compact"]);
    run(&["snapshot", "copy"]);
    let snapshot = ["store", "ls", "b-1", "--data", "copy/1", "--data", "copy/3"];
    assert_eq!(place.run(&snapshot).code(0).lines().len(), 100);
}

/// Runs the commands of a store whose directory d2 is missing.
fn commands_work_on_what_is_there(place: &TestDir) {
    let run = |command: &[&str]| {
        place
            .run(&[&["store"], command, &["--data", "d1", "--data", "d2", "--data", "d3"]].concat())
    };
    for (command, done) in [
        ("verify", "verified"),
        ("compact", "compacted"),
        ("accept-damage", "accepted"),
        ("map", "mapped"),
    ] {
        let ended = run(&[command]).code(1);
        let expected = format!("haul: 1 of 3 directories is missing and was not {done}: ");
        let stderr = ended.stderr();
        let last = stderr.lines().next_back().unwrap();
        assert!(last.starts_with(&expected) && last.ends_with("/d2"), "{command}: {stderr}");
        if command == "map" {
            let dirs = ended.lines().into_iter().filter(|line| line.ends_with(':'));
            let dirs: Vec<_> = dirs.map(|line| line.rsplit('/').next().unwrap_or(line)).collect();
            assert_eq!(dirs, ["d1:", "d3:"]);
            continue;
        }
        let json = run(&[command, "--json"]).code(1);
        let summary: serde_json::Value = serde_json::from_str(json.lines().pop().unwrap()).unwrap();
        let missing = summary["missing"].as_array().unwrap();
        assert!(matches!(&missing[..], [dir] if dir.as_str().unwrap().ends_with("/d2")));
    }
    let volume = run(&["map", "--json"]).code(1);
    let volume: serde_json::Value = serde_json::from_str(volume.lines()[0]).unwrap();
    assert!(volume["dir"].as_str().unwrap().ends_with("/d1"), "{volume}");
    for command in [&["ls", "b-1"][..], &["stat", "b-1"], &["ls", "--long"]] {
        let refused = run(command).code(1);
        assert!(refused.text().is_empty(), "{}", refused.text());
        refused.stderr_contains(&["d2"]);
    }
    assert_eq!(run(&["ls"]).code(0).text(), "b-1\n");
}

#[test]
fn directories_that_do_not_fit_are_refused_with_advice() {
    let place = TestDir::new();
    for dirs in [["d1", "d2"], ["e1", "e2"]] {
        stop(serve(&place, &dirs, &["--bucket", "b-1"]));
    }
    let refused = |arguments: &[&str]| {
        let command = [&["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"], arguments];
        place.run(&command.concat()).code(3).stderr().to_owned()
    };
    let mixed = refused(&["--data", "d1", "--data", "e1"]);
    assert!(mixed.contains("members of different pools"), "{mixed}");
    let there = refused(&["--data", "d1", "--data", "d2", "--accept-loss", "d2"]);
    assert!(there.contains("d2 is not missing"), "{there}");
    let mut other = serve(&place, &["d1", "d2"], &["--retire", "other"]);
    assert!(other.stderr_line().contains("other is not in the store"));
    stop(other);
    for option in [&["--lease", "3s"][..], &["--standby"], &["--local-space", "1GiB"]] {
        let two = ["serve", "--data", "d1", "--data", "d2", "--remote", "s3://backup/haul"];
        let needed = format!("{} needs one --data", option[0]);
        place.run(&[&two[..], option].concat()).code(2).stderr_contains(&[&needed]);
    }
}

#[test]
fn directory_that_is_named_twice_is_refused_before_anything_is_created() {
    let place = TestDir::new();
    fs::create_dir(place.path("e1")).unwrap();
    std::os::unix::fs::symlink("e1", place.path("link")).unwrap();
    for [first, again] in [["e1", "e1"], ["e1", "./e1"], ["e1", "link"], ["none", "./none"]] {
        let refused = place.run(&["serve", "--data", first, "--data", again]).code(2);
        refused.stderr_contains(&[&format!("--data names {first} twice")]);
    }
    assert_eq!(fs::read_dir(place.path("e1")).unwrap().count(), 0);
    assert!(!place.path("none").exists());
}

#[test]
fn snapshot_while_keys_move_says_that_a_server_moves_them() {
    let place = TestDir::new();
    let serving = serve(&place, &["d1"], &["--bucket", "b-1"]);
    put(&serving, 0..100);
    stop(serving);
    fs::create_dir(place.path("d2")).unwrap();
    // Without a server, no key moves.
    stop(serve(&place, &["d1", "d2"], &["--move-rate", "1"]));
    let refused = place.run(&["store", "snapshot", "copy", "--data", "d1", "--data", "d2"]).code(1);
    refused
        .stderr_contains(&["keys are being moved", "serve the store until haul_moving_slots is 0"]);
    assert!(!place.path("copy").exists());
}
