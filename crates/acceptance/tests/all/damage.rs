//! Bytes that changed on the medium: what they belong to fails with a message that names file and
//! offset, and nothing else does.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::http::{Answer, Client};
use crate::keys::{list, target};
use crate::program::{self, files_below, said};
use crate::random::Random;
use crate::server::{SMALL_VOLUMES, Server};

const OBJECTS: usize = 50;

/// The one that gets a file of its own.
const BIG: usize = 20;

/// Contents of a few kilobytes, and one of 5 MiB.
fn content(number: usize) -> Vec<u8> {
    let bytes = if number == BIG { 5 << 20 } else { 3000 + 500 * number };
    Random::new(number as u64).bytes(bytes)
}

fn get(client: &mut Client, number: usize) -> Answer {
    client.request("GET", &target("hurt", &number.to_string()), b"").unwrap()
}

/// A store with all objects in it, cleanly closed.
fn make_store(data: &Path) {
    let server = Server::start_with(data, SMALL_VOLUMES);
    let mut client = server.client();
    client.request("PUT", "/hurt", b"").unwrap();
    for number in 0..OBJECTS {
        let target = target("hurt", &number.to_string());
        assert_eq!(client.request("PUT", &target, &content(number)).unwrap().status, 200);
    }
    server.stop();
}

/// Which file holds these bytes, and where in it.
fn find(data: &Path, bytes: &[u8]) -> (PathBuf, u64) {
    let found = files_below(data).into_iter().find_map(|file| {
        let content = std::fs::read(&file).unwrap();
        let at = content.windows(bytes.len()).position(|window| window == bytes)?;
        Some((file, at as u64))
    });
    found.expect("the content is in one of the files")
}

/// Flips one bit of an object's content, 1,000 bytes from its start.
fn flip(data: &Path, number: usize) -> (PathBuf, u64) {
    let (path, start) = find(data, &content(number)[..64]);
    let at = start + 1000;
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    (path, at)
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn a_flipped_bit_fails_one_object_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    make_store(dir.path());
    let small = flip(dir.path(), 7);
    let big = flip(dir.path(), BIG);
    assert_ne!(small.0, big.0, "the big object has a file of its own");

    let server = Server::start_with(dir.path(), SMALL_VOLUMES);
    let mut client = server.client();
    assert_eq!(list(&mut client, "hurt").len(), OBJECTS);
    for number in (0..OBJECTS).filter(|number| ![7, BIG].contains(number)) {
        let answer = get(&mut client, number);
        assert!(answer.status == 200 && answer.body == content(number), "{number} suffers too");
    }
    for (number, (file, _)) in [(7, &small), (BIG, &big)] {
        let answer = get(&mut client, number);
        assert_eq!(answer.status, 500, "{number}");
        let text = answer.text();
        assert!(text.contains(name(file)) && text.contains("offset"), "{text}");
    }
    // What is damaged can be replaced.
    let again = client.request("PUT", &target("hurt", "7"), &content(7)).unwrap();
    assert_eq!((again.status, get(&mut client, 7).body), (200, content(7)));
    server.stop();

    let verify = program::store("verify", dir.path(), SMALL_VOLUMES);
    let told = said(&verify);
    assert_eq!(verify.status.code(), Some(1), "{told}");
    assert!(told.contains("hurt") && told.contains(name(&big.0)), "{told}");
}

#[test]
fn a_truncated_volume_loses_only_what_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    make_store(dir.path());
    let (volume, cut) = find(dir.path(), &content(40)[..64]);
    OpenOptions::new().write(true).open(&volume).unwrap().set_len(cut + 1000).unwrap();

    let server = Server::start_with(dir.path(), SMALL_VOLUMES);
    let mut client = server.client();
    for number in 0..40 {
        let answer = get(&mut client, number);
        assert!(answer.status == 200 && answer.body == content(number), "{number} suffers too");
    }
    for number in 40..OBJECTS {
        let answer = get(&mut client, number);
        assert!(matches!(answer.status, 404 | 500), "{number}: {}", answer.status);
    }
    server.stop();

    let verify = program::store("verify", dir.path(), SMALL_VOLUMES);
    let told = said(&verify);
    assert_eq!(verify.status.code(), Some(1), "{told}");
    assert!(told.contains(name(&volume)), "{told}");
}
