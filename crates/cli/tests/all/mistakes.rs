//! What people hear when something is wrong.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use crate::helper::Place;

#[test]
fn a_wrong_command_line_exits_2() {
    let place = Place::new();
    for arguments in [
        &["store", "get", "bucket-without-key"][..],
        &["store", "put", "/key"],
        &["store", "import", "b-1", ".", "--jobs", "0"],
        &["store", "ls", "--long", "--json"],
        &["store", "rm", "--yes", "b-1/k"],
        &["serve", "--listen", "9000"],
        &["serve", "--big-object", "4M"],
        &["serve", "--drain-time", "30"],
        &["nonsense"],
        &[],
    ] {
        place.run(arguments).code(2).tells(&["--help"]);
    }
    place.run(&["store", "--big-object", "1GiB", "mb", "b-1"]).code(2).tells(&["16 MiB"]);
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_looking_for_it() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    for dir in ["nowhere", "empty"] {
        for command in [&["ls"][..], &["verify"], &["get", "b-1/k"], &["export", "b-1", "copy"]] {
            let arguments = [&["store", "--data", dir], command].concat();
            place.run(&arguments).code(3).tells(&["no store in", dir, "--data"]);
        }
    }
    assert!(!place.path("nowhere").exists());
}

#[test]
fn a_directory_of_others_is_left_alone() {
    let place = Place::new();
    let file = place.write("photos/cat.jpg", "cat");
    for arguments in
        [&["store", "mb", "b-1", "--data", "photos"][..], &["serve", "--data", "photos"]]
    {
        place.run(arguments).code(3).tells(&["cannot be used as a store", "photos", "--data"]);
    }
    assert_eq!(fs::read(file).unwrap(), b"cat");
    assert_eq!(fs::read_dir(place.path("photos")).unwrap().count(), 1);
}

#[test]
fn a_store_in_use_says_by_whom() {
    let place = Place::new();
    let serving = place.serve();
    let process = format!("process {}", serving.id());
    let words = ["haul-data is in use by haul serve", &process];
    place.run(&["store", "ls"]).code(3).tells(&words);
    place.run(&["store", "import", "b-1", "."]).code(3).tells(&words);
    place.run(&["serve"]).code(3).tells(&words);
}

#[test]
fn an_unknown_bucket_is_told_with_what_to_do() {
    let place = Place::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    for command in [&["ls", "b-2"][..], &["put", "b-2/k"], &["get", "b-2/k"], &["rm", "b-2/k"]] {
        let arguments = [&["store"], command].concat();
        place.run(&arguments).code(1).tells(&["no bucket \"b-2\"", "haul store mb"]);
    }
    place.run(&["store", "mb", "b-1"]).code(1).tells(&["already there"]);
    place.run(&["store", "mb", "Not_A_Name"]).code(1).tells(&["cannot be the name of a bucket"]);
}

#[test]
fn a_public_address_without_keys_is_refused() {
    let place = Place::new();
    place.run(&["serve", "--listen", "0.0.0.0:0"]).code(3).tells(&["0.0.0.0", "credentials"]);
}

#[test]
fn an_address_that_is_taken_is_told() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place.run(&["serve", "--listen", &address, "--admin", "127.0.0.1:0"]).code(3).tells(&[
        "cannot listen on",
        &address,
        "in use",
    ]);
}

#[test]
fn keys_that_cannot_be_used_are_told() {
    let place = Place::new();
    let half = place.command(&["serve"]).env("HAUL_ACCESS_KEY", "me").output().unwrap();
    assert_eq!(half.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&half.stderr).into_owned();
    assert!(stderr.contains("HAUL_SECRET_KEY is not"), "{stderr}");

    let keys = place.write("keys", "me\nsecret\n");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    let serve = ["serve", "--credentials", "keys"];
    place.run(&serve).code(3).tells(&["everybody", "chmod"]);
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&keys, "me\n").unwrap();
    place.run(&serve).code(3).tells(&["keys", "two lines"]);
    assert!(!place.path("haul-data").exists(), "refused before a store is made");
}
