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

/// One in a volume that was full and is sealed, and one in the volume being written.
const SEALED: usize = 7;
const CURRENT: usize = OBJECTS - 2;

/// Contents that fill a volume and a part of the next.
fn content(number: usize) -> Vec<u8> {
    let bytes = if number == BIG { 5 << 20 } else { 200_000 + 500 * number };
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

/// Flips one bit of an object's content, 1,000 bytes from its start; returns the file.
fn flip(data: &Path, number: usize) -> PathBuf {
    let (path, start) = find(data, &content(number)[..64]);
    let at = start + 1000;
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    path
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn is_intact(client: &mut Client, number: usize) -> bool {
    let answer = get(client, number);
    answer.status == 200 && answer.body == content(number)
}

/// `verify` must fail, and name all of this.
fn assert_verify_tells(data: &Path, names: &[&str]) {
    let verify = program::store("verify", data, SMALL_VOLUMES);
    let told = said(&verify);
    assert_eq!(verify.status.code(), Some(1), "{told}");
    assert!(names.iter().all(|name| told.contains(name)), "{told}");
}

#[test]
fn a_flipped_bit_fails_one_object_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    make_store(dir.path());
    let hurt = [SEALED, CURRENT, BIG];
    let files = hurt.map(|number| flip(dir.path(), number));
    assert!(files[0] < files[1], "two volumes: {files:?}");
    assert_ne!(files[2].parent(), files[0].parent(), "the big object is in no volume");
    let file_names = files.each_ref().map(|file| name(file));
    assert_verify_tells(dir.path(), &file_names);

    let server = Server::start_with(dir.path(), SMALL_VOLUMES);
    let mut client = server.client();
    assert_eq!(list(&mut client, "hurt").len(), OBJECTS);
    for number in (0..OBJECTS).filter(|number| !hurt.contains(number)) {
        assert!(is_intact(&mut client, number), "{number} suffers too");
    }
    for (number, file) in hurt.into_iter().zip(file_names) {
        let answer = get(&mut client, number);
        assert_eq!(answer.status, 500, "{number}");
        let text = answer.text();
        assert!(text.contains(file) && text.contains("offset"), "{text}");
    }

    // What is damaged can be replaced, which is all that can be done about it.
    for number in hurt {
        let target = target("hurt", &number.to_string());
        assert_eq!(client.request("PUT", &target, &content(number)).unwrap().status, 200);
        assert!(is_intact(&mut client, number), "{number}");
    }
    server.stop();
}

#[test]
fn a_truncated_volume_loses_only_what_was_cut_off() {
    const FIRST_LOST: usize = 25;
    let dir = tempfile::tempdir().unwrap();
    make_store(dir.path());
    let (volume, cut) = find(dir.path(), &content(FIRST_LOST)[..64]);
    OpenOptions::new().write(true).open(&volume).unwrap().set_len(cut + 1000).unwrap();
    assert_verify_tells(dir.path(), &[name(&volume)]);

    let server = Server::start_with(dir.path(), SMALL_VOLUMES);
    let mut client = server.client();
    let lost: Vec<_> = (0..OBJECTS).filter(|number| !is_intact(&mut client, *number)).collect();
    let end = FIRST_LOST + lost.len();
    assert!(lost.iter().copied().eq(FIRST_LOST..end) && (FIRST_LOST + 1..OBJECTS).contains(&end));
    for number in lost {
        let answer = get(&mut client, number);
        assert!(matches!(answer.status, 404 | 500), "{number}: {}", answer.status);
    }
    server.stop();
    assert_verify_tells(dir.path(), &[name(&volume)]);
}
