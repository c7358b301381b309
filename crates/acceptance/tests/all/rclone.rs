//! rclone, as people use it to move a tree to a server and back.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use haul_test_image::skip;

use crate::program::{self, files_below};
use crate::random::Random;
use crate::server::{KEYS, Server};

/// rclone without any settings but the server's, and with parts of 5 MiB.
fn rclone(server: &Server, arguments: &[&str]) -> Output {
    Command::new("rclone")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(["--config", "/dev/null", "--retries", "1", "--low-level-retries", "1"])
        .args(["--s3-provider", "Other", "--s3-endpoint", &server.url()])
        .args(["--s3-access-key-id", KEYS.0, "--s3-secret-access-key", KEYS.1])
        .args(["--s3-upload-cutoff", "5Mi", "--s3-chunk-size", "5Mi"])
        .args(arguments)
        .output()
        .expect("rclone starts")
}

fn is_installed() -> bool {
    Command::new("rclone").arg("version").output().is_ok_and(|output| output.status.success())
}

/// A few hundred files: small ones, an empty one, a big one, odd names, deep folders.
fn make_tree(folder: &Path) {
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
    for name in ODD_NAMES {
        write(&format!("odd/{name}"), 1000);
    }
    write("a/b/c/d/e/f/g/h/i/j/k/l/deep", 1);
}

const ODD_NAMES: &[&str] = &[
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

/// Names below a folder, with contents.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let below = |path: &Path| path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    files_below(folder).iter().map(|path| (below(path), std::fs::read(path).unwrap())).collect()
}

#[test]
fn a_tree_goes_up_is_checked_and_comes_back_the_same() {
    if !is_installed() {
        return skip("rclone is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let [tree, back, data] = ["tree", "back", "data"].map(|name| dir.path().join(name));
    make_tree(&tree);
    let server = Server::start_with_keys(&data);
    let path = |path: &Path| path.to_str().unwrap().to_owned();

    let up = ["sync", &path(&tree), ":s3:acceptance/tree"];
    program::assert_success(&rclone(&server, &up));
    let check = ["check", "--download", &path(&tree), ":s3:acceptance/tree"];
    program::assert_success(&rclone(&server, &check));
    let down = ["copy", ":s3:acceptance/tree", &path(&back)];
    program::assert_success(&rclone(&server, &down));
    assert!(contents(&tree) == contents(&back), "what came back is not what went up");

    // A second sync finds the changes, and only those.
    std::fs::remove_dir_all(tree.join("many/3")).unwrap();
    std::fs::write(tree.join("empty"), "no more").unwrap();
    let again = rclone(&server, &["-v", up[0], up[1], up[2]]);
    program::assert_success(&again);
    let said = program::said(&again);
    let count = |words: &str| said.lines().filter(|line| line.contains(words)).count();
    assert_eq!((count(": Copied ("), count(": Deleted")), (1, 43), "{said}");
    program::assert_success(&rclone(&server, &check));
    server.stop();
}
