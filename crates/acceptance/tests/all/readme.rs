//! Executes the example session of the README in a shell.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use haul_testing::skip;

use crate::boto3::has_boto3;
use crate::program::{self, root};

/// The line before each block of the session.
const MARK: &str = "<!-- session -->";

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

/// Shell commands that precede the session. They make the shell stop at the first failing line,
/// report this line, and kill all servers.
const PROLOGUE: &str = r#"
set -e
trap 'echo "this line failed: $BASH_COMMAND" >&2' ERR
trap 'jobs -p | xargs -r kill' EXIT
"#;

/// Returns the lines of all marked blocks of a page.
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

/// Returns a `PATH` with `haul` and the Python that has boto3.
fn search_path() -> String {
    let python = std::env::var("HAUL_PYTHON").unwrap_or_default();
    let folder = |path: &Path| path.parent().map(|path| path.display().to_string());
    let folders = [folder(program::path()), folder(Path::new(&python))].into_iter().flatten();
    let path = std::env::var("PATH").unwrap_or_default();
    folders.filter(|folder| !folder.is_empty()).chain([path]).collect::<Vec<_>>().join(":")
}

#[test]
fn session_of_readme_and_tour_works_as_written() {
    let read = |page| std::fs::read_to_string(root().join(page)).unwrap();
    let pages = ["README.md", "docs/tour.md"].map(read);
    assert!(
        pages.iter().all(|page| !session(page).is_empty()),
        "no block is marked as the session"
    );
    let page = pages.concat();
    let lines = session(&page);
    if !has_boto3() {
        return skip("python3 has no boto3, which the README uses");
    }
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    if !PORTS.iter().all(is_free) {
        return skip("ports 9000, 9001, 9080 and 9081, which the README names, are in use");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut shell = Command::new("timeout");
    shell.args(["120", "bash", "-c"]).arg([PROLOGUE, &lines.join("\n")].concat());
    shell.env("PATH", search_path()).env_remove("HAUL_ACCESS_KEY").env_remove("HAUL_SECRET_KEY");
    // Make curl fail on HTTP errors.
    std::fs::write(dir.path().join(".curlrc"), "fail\n").unwrap();
    shell.env("CURL_HOME", dir.path());
    let output = shell.current_dir(dir.path()).output().unwrap();
    println!("{}", program::output_text(&output));
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

#[test]
fn session_consists_of_marked_blocks() {
    let page = "```sh\nno\n```\n<!-- session -->\n\n```sh\nhaul serve\ncurl a \\\n  b\n```\n\
                <!-- session -->\nprose\n```sh\nno\n```\n";
    assert_eq!(session(page), ["haul serve", "curl a \\", "  b"]);
}
