//! A medium that does not return what was written.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use haul_s3_server::Limits;

use crate::client::{Running, assert_refused, noise};

/// Flips a bit of these bytes wherever a file below `dir` holds them. Returns the file.
fn damage(dir: &Path, bytes: &[u8]) -> PathBuf {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let content = fs::read(&path).unwrap();
            let found = content.windows(bytes.len()).position(|window| window == bytes);
            if let Some(at) = found {
                let file: File = OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&[bytes[0] ^ 1], at as u64).unwrap();
                return path;
            }
        }
    }
    panic!("no file holds the bytes");
}

#[test]
fn damaged_bytes_are_an_error_that_names_the_file() {
    let server = Running::new();
    let body = noise(100_000);
    server.s3.put("/bucket/damaged", &body);
    server.s3.put("/bucket/good", b"hello");
    let file = damage(server.dir(), &body[50_000..50_064]);
    let reply = server.s3.get("/bucket/damaged");
    assert_refused(&reply, 500, "InternalError");
    let message = reply.xml("Message").unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(message.contains(name) && message.contains("offset"), "{message}");
    assert_eq!(server.s3.get("/bucket/good").text(), "hello");
    assert_eq!(server.s3.get("/bucket?list-type=2").all_xml("Key").len(), 2);
}

#[test]
fn damage_in_the_middle_of_a_big_object_breaks_the_connection() {
    let server = Running::new();
    let body = noise(12 << 20);
    server.s3.put("/bucket/damaged", &body);
    let dir = server.into_dir();
    damage(dir.path(), &body[9 << 20..(9 << 20) + 64]);
    let again = Running::on(dir, None, Limits::default());
    let reply = again.s3.get("/bucket/damaged");
    assert_eq!(reply.status, 200);
    assert!(!reply.is_whole() && body.starts_with(&reply.body), "{}", reply.body.len());
    let range = [("range", "bytes=0-1000000")];
    let start = again.s3.send("GET", "/bucket/damaged", &range, b"");
    assert!(start.is_whole() && start.body == body[..=1_000_000]);
    let range = [("range", "bytes=9437180-9437190")];
    let middle = again.s3.send("GET", "/bucket/damaged", &range, b"");
    assert_refused(&middle, 500, "InternalError");
}
