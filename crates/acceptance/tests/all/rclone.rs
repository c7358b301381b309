//! Tests that rclone syncs a directory tree to a server and back.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use haul_testing::{Random, skip};

use crate::program::{self, files_below};
use crate::server::{KEYS, Server};
use crate::tls::Certificates;

/// Runs rclone with only the settings of the server, and parts of 5 MiB.
fn rclone(server: &Server, ca: Option<&Path>, arguments: &[&str]) -> Output {
    Command::new("rclone")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(["--config", "/dev/null", "--retries", "1", "--low-level-retries", "1"])
        .args(["--s3-provider", "Other", "--s3-endpoint", &server.url()])
        .args(["--s3-access-key-id", KEYS.0, "--s3-secret-access-key", KEYS.1])
        .args(["--s3-upload-cutoff", "5Mi", "--s3-chunk-size", "5Mi"])
        .args(ca.into_iter().flat_map(|ca| [Path::new("--ca-cert"), ca]))
        .args(arguments)
        .output()
        .expect("rclone starts")
}

fn is_installed() -> bool {
    Command::new("rclone").arg("version").output().is_ok_and(|output| output.status.success())
}

/// Creates a few hundred files: small, empty and large ones, unusual names, deep directories.
pub(crate) fn create_tree(folder: &Path) {
    let mut random = Random::from_environment();
    let mut write = |name: &str, bytes: usize| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, random.bytes(bytes)).unwrap();
    };
    for number in 0..300 {
        write(&format!("many/{}/{number:03}.bin", number % 7), number * 97);
    }
    write("empty", 0);
    write("big/12 MiB", 12 << 20);
    for name in UNUSUAL_NAMES {
        write(&format!("odd/{name}"), 1000);
    }
    write("a/b/c/d/e/f/g/h/i/j/k/l/deep", 1);
}

const UNUSUAL_NAMES: &[&str] = &[
    "with space",
    "plus+and%20percent%",
    "amp&lt<gt>quote\"apostrophe'",
    "question?hash#semi;colon:",
    "umlaut-äöü-日本語-😀",
    "decomposed-a\u{308}",
    "..two-dots",
    "...",
    "-dash",
    "~tilde",
    "back\\slash",
    "new\nline",
    "tab\tand\u{7f}delete",
    "brackets[]{}()|^`$*!@=,",
    " leading and trailing ",
];

/// Returns the relative paths and contents of all files below a folder.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let below = |path: &Path| path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    files_below(folder).iter().map(|path| (below(path), std::fs::read(path).unwrap())).collect()
}

#[test]
fn tree_round_trips_through_rclone() {
    round_trip(&[], None);
}

#[test]
fn tree_round_trips_through_rclone_over_tls() {
    let certificates = Certificates::new();
    round_trip(&certificates.options(), Some(&certificates.authority()));
}

fn round_trip(options: &[&str], ca: Option<&Path>) {
    if !is_installed() {
        return skip("rclone is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let [tree, back, data] = ["tree", "back", "data"].map(|name| dir.path().join(name));
    create_tree(&tree);
    let server = Server::start_with_keys(&data, options);
    let path = |path: &Path| path.to_str().unwrap().to_owned();

    let up = ["sync", &path(&tree), ":s3:acceptance/tree"];
    program::assert_success(&rclone(&server, ca, &up));
    let check = ["check", "--download", &path(&tree), ":s3:acceptance/tree"];
    program::assert_success(&rclone(&server, ca, &check));
    let down = ["copy", ":s3:acceptance/tree", &path(&back)];
    program::assert_success(&rclone(&server, ca, &down));
    assert!(contents(&tree) == contents(&back), "the downloaded tree differs");

    // A second sync transfers only the changes.
    std::fs::remove_dir_all(tree.join("many/3")).unwrap();
    std::fs::write(tree.join("empty"), "no more").unwrap();
    let again = rclone(&server, ca, &["-v", up[0], up[1], up[2]]);
    program::assert_success(&again);
    let output = program::output_text(&again);
    let count = |text: &str| output.lines().filter(|line| line.contains(text)).count();
    assert_eq!((count(": Copied ("), count(": Deleted")), (1, 43), "{output}");
    program::assert_success(&rclone(&server, ca, &check));
    server.stop();
}
