//! The minute of real use in the README, pasted line by line into a shell.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use haul_test_image::skip;

use crate::boto3::has_boto3;
use crate::program::{self, root};

/// Stands on the line before each block that belongs to the session.
const MARK: &str = "<!-- session -->";

/// What the README's commands listen on.
const PORTS: [u16; 4] = [9000, 9001, 9080, 9081];

/// What its lines print, beside much that differs from machine to machine, one behind the other.
const PRINTED: [&str; 17] = [
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
    "  ended: 1 properly\n",
    "  127.0.0.1:9080 is up: 1 connection, 0 failed, 0 now\n",
];

/// Stops at the first line that fails, says which, and leaves no server behind.
const CAREFULLY: &str = r#"
set -e
trap 'echo "this line failed: $BASH_COMMAND" >&2' ERR
trap 'jobs -p | xargs -r kill' EXIT
"#;

/// The lines of all marked blocks of a page.
fn session(page: &str) -> Vec<&str> {
    let (mut lines, mut marked, mut inside) = (Vec::new(), false, false);
    for line in page.lines() {
        match line.trim_end() {
            "```" if inside => inside = false,
            _ if inside => lines.push(line),
            "```sh" => (inside, marked) = (marked, false),
            MARK => marked = true,
            "" => {}
            _ => marked = false,
        }
    }
    lines
}

/// Folders of programs the session may name: `haul` itself, and the Python that has boto3.
fn search_path() -> String {
    let python = std::env::var("HAUL_PYTHON").unwrap_or_default();
    let folder = |path: &Path| path.parent().map(|path| path.display().to_string());
    let folders = [folder(program::path()), folder(Path::new(&python))].into_iter().flatten();
    let path = std::env::var("PATH").unwrap_or_default();
    folders.filter(|folder| !folder.is_empty()).chain([path]).collect::<Vec<_>>().join(":")
}

#[test]
fn the_session_of_the_readme_works_as_written() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap_or_default();
    let lines = session(&page);
    if lines.is_empty() {
        return skip("README.md has no block marked as the session");
    }
    if !has_boto3() {
        return skip("python3 has no boto3, which the README uses");
    }
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    if !PORTS.iter().all(is_free) {
        return skip("ports 9000, 9001, 9080 and 9081, which the README names, are in use");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut shell = Command::new("timeout");
    shell.args(["120", "bash", "-c"]).arg([CAREFULLY, &lines.join("\n")].concat());
    shell.env("PATH", search_path()).env_remove("HAUL_ACCESS_KEY").env_remove("HAUL_SECRET_KEY");
    // curl finds here that an error of the server is one of the line.
    std::fs::write(dir.path().join(".curlrc"), "fail\n").unwrap();
    shell.env("CURL_HOME", dir.path());
    let output = shell.current_dir(dir.path()).output().unwrap();
    println!("{}", program::said(&output));
    program::assert_success(&output);
    assert_in_order(&String::from_utf8_lossy(&output.stdout), &PRINTED);
    let listing = std::fs::read_to_string(dir.path().join("listing.html")).unwrap();
    assert!(listing.contains("greeting.txt"), "{listing}");
}

/// Fails unless each of these stands somewhere behind the one before.
fn assert_in_order(mut text: &str, expected: &[&str]) {
    for one in expected {
        let Some((_, rest)) = text.split_once(one) else { panic!("no {one:?} in:\n{text}") };
        text = rest;
    }
}

#[test]
fn only_marked_blocks_are_the_session() {
    let page = "```sh\nno\n```\n<!-- session -->\n\n```sh\nhaul serve\ncurl a \\\n  b\n```\n\
                <!-- session -->\nprose\n```sh\nno\n```\n";
    assert_eq!(session(page), ["haul serve", "curl a \\", "  b"]);
}
