//! Tests the messages for invalid arguments and failures to start.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use crate::helper::TestDir;

#[test]
fn invalid_command_line_exits_2() {
    let place = TestDir::new();
    for arguments in [
        &["store", "get", "bucket-without-key"][..],
        &["store", "put", "/key"],
        &["store", "import", "b-1", ".", "--jobs", "0"],
        &["store", "ls", "--long", "--json"],
        &["store", "rm", "--yes", "b-1/k"],
        &["serve", "--listen", "9000"],
        &["serve", "--big-object", "4X"],
        &["serve", "--drain-time", "30"],
        &["nonsense"],
        &[],
    ] {
        place.run(arguments).code(2).stderr_contains(&["--help"]);
    }
    place
        .run(&["store", "--big-object", "1GiB", "mb", "b-1"])
        .code(2)
        .stderr_contains(&["--big-object", "16MiB"]);
}

#[test]
fn messages_have_the_names_of_options() {
    let place = TestDir::new();
    let relay = ["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1"];
    let files = ["files", ".", "--listen", "127.0.0.1:0"];
    let remote = ["serve", "--remote", "s3://b/p"];
    for (command, options, words) in [
        (&["store", "mb", "b-1"][..], &["--big-object", "1GiB"][..], "between 64KiB and 16MiB"),
        (&["store", "mb", "b-1"], &["--volume", "3MiB"], "between 4MiB and 2GiB"),
        (&["serve"], &["--volume", "-5"], "must not be negative"),
        (&["serve"], &["--volume", "4MiB", "--big-object", "2MiB"], "4 times --big-object"),
        (&["serve"], &["--log-size", "1"], "at least 4KiB"),
        (&remote, &["--lease", "1ms"], "between 100ms and 1h"),
        (&remote, &["--keep", "1000d", "--keep-every", "1s"], "10,000 times --keep-every"),
        (&["log", "d"], &["--max-size", "1k"], "at least 4KiB"),
        (&["log", "d"], &["--rotate-every", "500ms"], "at least 1s"),
        (&["log", "d"], &["--rotate-every", "1.5s"], "whole seconds"),
        (&["log", "d"], &["--sync", "0s"], "at least 1ms"),
        (&["log", "d"], &["--keep-bytes", "1MiB"], "--max-size"),
        (&["log", "d", "--compress=zstd"], &["--keep-bytes", "20MiB"], "twice --max-size"),
        (&files, &["--threads", "0"], "1..=1024"),
        (&files, &["--disk-threads", "0"], "1..=1024"),
        (&files, &["--connections", "0"], "1.."),
        (&files, &["--promote-after", "0"], "1.."),
        (&files, &["--cache-object-max", "17MiB"], "between 0 and 16MiB"),
        (&files, &["--burst-per-client", "0", "--rate-per-client", "1/s"], "at least 1"),
        (&["dups", "."], &["--threads", "0"], "at least 1"),
        (&["sum", "."], &["--threads", "0"], "1..=1024"),
        (&relay, &["--threads", "0"], "1..=1024"),
        (&relay, &["--pipe-size", "1KiB"], "between 64KiB and 1GiB"),
        (&relay, &["--connections", "0"], "1.."),
        (&relay, &["--resolve-every", "0s"], "at least 1ms"),
        (&relay, &["--check-every", "0s"], "at least 1ms"),
        (&relay, &["--connect-time", "0s"], "at least 1ms"),
    ] {
        let arguments = [command, options].concat();
        let ended = place.run(&arguments).code(2).stderr_contains(&[options[0], words]);
        let text = ended.stderr();
        for internal in ["_bytes", "_max", "_time", "SyncMode", "non-zero type"] {
            assert!(!text.contains(internal), "{arguments:?}: {text}");
        }
        assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 0, "{arguments:?}");
    }
}

#[test]
fn missing_store_is_not_created_by_reading_commands() {
    let place = TestDir::new();
    fs::create_dir(place.path("empty")).unwrap();
    for dir in ["nowhere", "empty"] {
        for command in [&["ls"][..], &["verify"], &["get", "b-1/k"], &["export", "b-1", "copy"]] {
            let arguments = [&["store", "--data", dir], command].concat();
            place.run(&arguments).code(3).stderr_contains(&["no store in", dir, "--data"]);
        }
    }
    assert!(!place.path("nowhere").exists());
}

#[test]
fn directory_with_other_files_is_not_used_as_a_store() {
    let place = TestDir::new();
    let file = place.write("photos/cat.jpg", "cat");
    for arguments in
        [&["store", "mb", "b-1", "--data", "photos"][..], &["serve", "--data", "photos"]]
    {
        place.run(arguments).code(3).stderr_contains(&[
            "cannot be used as a store",
            "photos",
            "--data",
        ]);
    }
    assert_eq!(fs::read(file).unwrap(), b"cat");
    assert_eq!(fs::read_dir(place.path("photos")).unwrap().count(), 1);
}

#[test]
fn store_in_use_is_reported_with_its_holder() {
    let place = TestDir::new();
    let serving = place.serve();
    let process = format!("process {}", serving.id());
    let words = ["haul-data is in use by haul serve", &process];
    place.run(&["store", "ls"]).code(3).stderr_contains(&words);
    place.run(&["store", "import", "b-1", "."]).code(3).stderr_contains(&words);
    // With free ports: other tests use the default ones.
    let serve = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    place.run(&serve).code(3).stderr_contains(&words);
}

#[test]
fn unknown_bucket_is_reported_with_advice() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    for command in [&["ls", "b-2"][..], &["put", "b-2/k"], &["get", "b-2/k"], &["rm", "b-2/k"]] {
        let arguments = [&["store"], command].concat();
        place
            .run(&arguments)
            .code(1)
            .stderr_contains(&["bucket \"b-2\" does not exist", "haul store mb"]);
    }
    place.run(&["store", "mb", "b-1"]).code(1).stderr_contains(&["already exists"]);
    place.run(&["store", "mb", "Not_A_Name"]).code(1).stderr_contains(&["invalid bucket name"]);
}

#[test]
fn public_address_without_keys_is_refused() {
    let place = TestDir::new();
    place
        .run(&["serve", "--listen", "0.0.0.0:0"])
        .code(3)
        .stderr_contains(&["0.0.0.0", "credentials"]);
}

#[test]
fn address_in_use_is_reported() {
    let place = TestDir::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place
        .run(&["serve", "--listen", &address, "--admin", "127.0.0.1:0"])
        .code(3)
        .stderr_contains(&["cannot listen on", &address, "in use"]);
}

#[test]
fn failed_start_leaves_no_files() {
    let place = TestDir::new();
    place.write("half", "me\n");
    fs::set_permissions(place.path("half"), fs::Permissions::from_mode(0o600)).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    for (arguments, code) in [
        (&["serve", "--listen", "0.0.0.0:0", "--admin", free][..], 3),
        (&["serve", "--listen", free, "--admin", "0.0.0.0:0"], 3),
        (&["serve", "--listen", &taken, "--admin", free], 3),
        (&["serve", "--listen", free, "--admin", &taken], 3),
        (&["serve", "--listen", free, "--admin", free, "--credentials", "half"], 3),
        (&["serve", "--listen", free, "--admin", free, "--credentials", "none"], 3),
        (&["serve", "--listen", free, "--admin", free, "--big-object", "1GiB"], 2),
        (&["serve", "--volume", "4MiB", "--big-object", "4MiB", "--audit-log", "log"], 2),
        (&["serve", "--listen", "nonsense.invalid:0"], 3),
        (&["serve", "--listen", "unix:socket"], 2),
        (&["serve", "--connections", "0"], 2),
        (&["serve", "--listen", "nonsense"], 2),
        (&["serve", "--no-such-option"], 2),
        (&["store", "mb", "b-1", "--big-object", "1GiB"], 2),
        (&["store", "ls"], 3),
        (&["store", "stat", "b-1/k"], 3),
        (&["store", "rm", "b-1/k"], 3),
        (&["store", "compact"], 3),
        (&["store", "map", "--svg", "picture"], 3),
        (&["store", "snapshot", "to"], 3),
        (&["store", "put", "b-1/k"], 3),
        (&["files", "none", "--listen", free, "--access-log", "log"], 3),
        (&["files", ".", "--listen", &taken, "--access-log", "log"], 3),
        (&["files", ".", "--listen", "0.0.0.0:0", "--access-log", "log"], 3),
        (&["files", "nonsense.invalid", "--listen", "nonsense.invalid:0"], 3),
        (&["relay", "--listen", &taken, "--to", free], 3),
        (&["relay", "--listen", free, "--to", "nonsense.invalid:80"], 3),
        (&["relay", "--http", "--listen", "0.0.0.0:0", "--to", free], 3),
        (&["relay", "--listen", free, "--admin", "0.0.0.0:0", "--to", free], 3),
        (&["relay", "--to", free], 2),
        (&["relay", "--listen", free, "--to", free, "--access-log", "log"], 2),
        (&["relay", "--http", "--listen", &taken, "--to", free, "--access-log", "log"], 3),
    ] {
        let ended = place.run(arguments);
        let left: Vec<_> =
            fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["half"], "{arguments:?}: {}", ended.stderr());
        ended.code(code);
    }
}

#[test]
fn unusable_keys_are_reported() {
    let place = TestDir::new();
    let half = place.command(&["serve"]).env("HAUL_ACCESS_KEY", "me").output().unwrap();
    assert_eq!(half.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&half.stderr).into_owned();
    assert!(stderr.contains("HAUL_SECRET_KEY is not"), "{stderr}");

    let keys = place.write("keys", "me\nsecret\n");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    let serve = ["serve", "--credentials", "keys"];
    place.run(&serve).code(3).stderr_contains(&["other users", "chmod"]);
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&keys, "me\n").unwrap();
    place.run(&serve).code(3).stderr_contains(&["keys", "two lines"]);
    assert!(!place.path("haul-data").exists(), "refused before a store is created");
}
