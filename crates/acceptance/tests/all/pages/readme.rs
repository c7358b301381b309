//! Executes the example sessions of the README, the page of the tools and the tour in a shell.

use std::net::TcpListener;

use haul_testing::skip;

use super::block::blocks;
use super::{read, shell};
use crate::boto3::has_boto3;
use crate::program;

/// The ports used in the session.
const PORTS: [u16; 4] = [9000, 9001, 9080, 9081];

/// Expected parts of the output, in order; the rest depends on the machine.
const EXPECTED: [&str; 21] = [
    "haul is ready: S3 on http://127.0.0.1:9000, admin on http://127.0.0.1:9001\n",
    "a durable note\n",
    "rm ",
    "haul is ready: files on http://127.0.0.1:9080\na durable note\n",
    "haul is ready: S3 on http://127.0.0.1:9000, admin on http://127.0.0.1:9001\n",
    "hello, disk\n",
    "<Key>2026/greeting.txt</Key>",
    "image/jpeg {'camera': 'old'}",
    "['2026/cat.jpg', '2026/greeting.txt']\n",
    "2026/greeting.txt\n",
    "GNU GENERAL PUBLIC LICENSE\n",
    "haul-data",
    "a service begins\n",
    "# Redundant: 12 B (12 B) in 1 files\n",
    "rm ",
    "pictures/greeting.txt: OK\n",
    "haul is ready: files on http://127.0.0.1:9080\nhello",
    "haul is ready: 127.0.0.1:9081 to 127.0.0.1:9080\nhello, disk\n",
    "1 connection in ",
    "  ended: 1 cleanly\n",
    "  127.0.0.1:9080 is up: 1 connection, 0 failed, 0 active\n",
];

/// Returns the lines of all blocks of the session of a page.
fn session(page: &str) -> Vec<String> {
    let session = blocks(&read(page)).into_iter().filter(|block| block.is_session);
    session.flat_map(|block| block.lines).collect()
}

#[test]
fn sessions_of_readme_tools_and_tour_work_as_written() {
    let sessions = ["README.md", "docs/tools.md", "docs/tour.md"].map(session);
    assert!(sessions.iter().all(|lines| !lines.is_empty()), "no block is marked as the session");
    if !has_boto3() {
        return skip("python3 has no boto3, which the README uses");
    }
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    if !PORTS.iter().all(is_free) {
        return skip("ports 9000, 9001, 9080 and 9081, which the README names, are in use");
    }
    let dir = tempfile::tempdir().unwrap();
    let output = shell::run(dir.path(), &sessions.concat().join("\n"));
    program::assert_success(&output);
    assert_in_order(&String::from_utf8_lossy(&output.stdout), &EXPECTED);
    let listing = std::fs::read_to_string(dir.path().join("listing.html")).unwrap();
    assert!(listing.contains("greeting.txt"), "{listing}");
}

/// Asserts that the text contains the expected parts in this order.
fn assert_in_order(mut text: &str, expected: &[&str]) {
    for part in expected {
        let Some((_, rest)) = text.split_once(part) else { panic!("no {part:?} in:\n{text}") };
        text = rest;
    }
}
