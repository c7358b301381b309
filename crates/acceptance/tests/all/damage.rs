//! Tests that corrupted bytes on the disk make reads of the affected object fail with file and
//! offset, and affect no other object.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use haul_testing::noise;

use crate::http::{Client, Response};
use crate::keys::{list, target};
use crate::program::{self, files_below, output_text};
use crate::server::{SMALL_VOLUMES, Server};

const OBJECTS: usize = 50;

/// The number of the object that is stored in its own file.
const BIG: usize = 20;

/// The numbers of two objects: one in a sealed volume (a file of many objects that is full and no
/// longer written), the other in the volume that is being written.
const SEALED: usize = 7;
const CURRENT: usize = OBJECTS - 2;

/// Returns the content of an object. All objects together fill one volume and a part of the next.
fn content(number: usize) -> Vec<u8> {
    let bytes = if number == BIG { 5 << 20 } else { 200_000 + 500 * number };
    noise(number as u64, bytes)
}

fn get(client: &mut Client, number: usize) -> Response {
    client.request("GET", &target("hurt", &number.to_string()), b"").unwrap()
}

/// Creates a store with all objects and closes it cleanly.
fn create_store(data: &Path) {
    let server = Server::start_with(data, SMALL_VOLUMES);
    let mut client = server.client();
    client.request("PUT", "/hurt", b"").unwrap();
    for number in 0..OBJECTS {
        let target = target("hurt", &number.to_string());
        assert_eq!(client.request("PUT", &target, &content(number)).unwrap().status, 200);
    }
    server.stop();
}

/// Returns the file that contains `bytes`, and the offset of `bytes` in the file.
fn find(data: &Path, bytes: &[u8]) -> (PathBuf, u64) {
    let found = files_below(data).into_iter().find_map(|file| {
        let content = std::fs::read(&file).unwrap();
        let at = content.windows(bytes.len()).position(|window| window == bytes)?;
        Some((file, at as u64))
    });
    found.expect("the content is in one of the files")
}

/// Flips one bit of an object, 1,000 bytes from its start; returns the file.
fn flip_bit(data: &Path, number: usize) -> PathBuf {
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
    let response = get(client, number);
    response.status == 200 && response.body == content(number)
}

/// Asserts that `verify` fails and reports all these names.
fn assert_verify_reports(data: &Path, names: &[&str]) {
    let verify = program::store("verify", data, SMALL_VOLUMES);
    let output = output_text(&verify);
    assert_eq!(verify.status.code(), Some(1), "{output}");
    assert!(names.iter().all(|name| output.contains(name)), "{output}");
}

#[test]
fn flipped_bit_is_reported_and_fails_one_object() {
    let dir = tempfile::tempdir().unwrap();
    create_store(dir.path());
    let corrupted = [SEALED, CURRENT, BIG];
    let files = corrupted.map(|number| flip_bit(dir.path(), number));
    assert!(files[0] < files[1], "two volumes: {files:?}");
    assert_ne!(files[2].parent(), files[0].parent(), "the big object is not in a volume");
    let file_names = files.each_ref().map(|file| name(file));
    assert_verify_reports(dir.path(), &file_names);

    let mut server = Server::start_with(dir.path(), SMALL_VOLUMES);
    let mut client = server.client();
    assert_eq!(list(&mut client, "hurt").len(), OBJECTS);
    for number in (0..OBJECTS).filter(|number| !corrupted.contains(number)) {
        assert!(is_intact(&mut client, number), "{number} is affected, too");
    }
    for (number, file) in corrupted.into_iter().zip(file_names) {
        let response = get(&mut client, number);
        assert_eq!(response.status, 500, "{number}");
        // Clients do not learn the place, which is in the log.
        let text = response.text();
        assert!(text.contains("damaged") && !text.contains(file), "{text}");
        let log = server.log();
        let is_told = |line: &str| {
            ["a request failed", file, "offset"].iter().all(|part| line.contains(part))
        };
        assert!(log.lines().any(is_told), "{file}: {log}");
    }

    // A corrupted object can be replaced.
    for number in corrupted {
        let target = target("hurt", &number.to_string());
        assert_eq!(client.request("PUT", &target, &content(number)).unwrap().status, 200);
        assert!(is_intact(&mut client, number), "{number}");
    }
    server.stop();
}

#[test]
fn truncated_volume_loses_only_objects_behind_its_end() {
    const FIRST_LOST: usize = 25;
    let dir = tempfile::tempdir().unwrap();
    create_store(dir.path());
    let (volume, cut) = find(dir.path(), &content(FIRST_LOST)[..64]);
    OpenOptions::new().write(true).open(&volume).unwrap().set_len(cut + 1000).unwrap();
    assert_verify_reports(dir.path(), &[name(&volume)]);

    let server = Server::start_with(dir.path(), SMALL_VOLUMES);
    let mut client = server.client();
    let lost: Vec<_> = (0..OBJECTS).filter(|number| !is_intact(&mut client, *number)).collect();
    let end = FIRST_LOST + lost.len();
    assert!(lost.iter().copied().eq(FIRST_LOST..end) && (FIRST_LOST + 1..=OBJECTS).contains(&end));
    for number in lost {
        let response = get(&mut client, number);
        assert!(matches!(response.status, 404 | 500), "{number}: {}", response.status);
    }
    server.stop();
    assert_verify_reports(dir.path(), &[name(&volume)]);
}
