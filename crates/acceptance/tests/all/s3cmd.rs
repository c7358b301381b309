//! Tests that s3cmd works with a server, with nothing but its address and a key pair.

use std::path::Path;
use std::process::{Command, Output};

use haul_testing::skip;

use crate::program;
use crate::rclone::{contents, create_tree};
use crate::server::{KEYS, Server};

fn s3cmd(server: &Server, arguments: &[&str]) -> Output {
    let options = ["--no-ssl", "--host", &server.listen, "--host-bucket", &server.listen];
    let output = Command::new("s3cmd")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        // It decodes names by the locale.
        .env("LC_ALL", "C.UTF-8")
        .args(["--config", "/dev/null", "--access_key", KEYS.0, "--secret_key", KEYS.1])
        .args(options)
        .args(arguments)
        .output()
        .expect("s3cmd starts");
    program::assert_success(&output);
    output
}

#[test]
fn tree_round_trips_through_s3cmd() {
    if Command::new("s3cmd").arg("--version").output().is_err() {
        return skip("s3cmd is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let [tree, back, data] = ["tree", "back", "data"].map(|name| dir.path().join(name));
    create_tree(&tree);
    // s3cmd replaces control characters in names.
    for name in ["new\nline", "tab\tand\u{7f}delete"] {
        std::fs::remove_file(tree.join("odd").join(name)).unwrap();
    }
    std::fs::create_dir(&back).unwrap();
    let server = Server::start_with_keys(&data, &[]);
    let in_tree = |path: &Path| format!("{}/", path.display());

    s3cmd(&server, &["mb", "s3://acceptance"]);
    let parts = ["--multipart-chunk-size-mb", "5"];
    let up = ["sync", &in_tree(&tree), "s3://acceptance/tree/", parts[0], parts[1]];
    s3cmd(&server, &up);
    s3cmd(&server, &["sync", "s3://acceptance/tree/", &in_tree(&back)]);
    let (sent, received) = (contents(&tree), contents(&back));
    let differs = |name: &&String| sent.get(*name) != received.get(*name);
    let different: Vec<_> = sent.keys().chain(received.keys()).filter(differs).collect();
    assert!(different.is_empty(), "{different:?}");

    // A second sync transfers only the changes.
    std::fs::write(tree.join("empty"), "no more").unwrap();
    let again = [&up[..], &["--delete-removed"]].concat();
    std::fs::remove_dir_all(tree.join("many/3")).unwrap();
    s3cmd(&server, &again);
    let listed = s3cmd(&server, &["ls", "--recursive", "s3://acceptance/tree/"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.lines().count(), contents(&tree).len(), "{listed}");

    s3cmd(&server, &["cp", "s3://acceptance/tree/big/12 MiB", "s3://acceptance/copy"]);
    s3cmd(&server, &["mv", "s3://acceptance/copy", "s3://acceptance/moved"]);
    let got = dir.path().join("moved");
    s3cmd(&server, &["get", "s3://acceptance/moved", got.to_str().unwrap()]);
    assert!(std::fs::read(&got).unwrap() == std::fs::read(tree.join("big/12 MiB")).unwrap());
    s3cmd(&server, &["rb", "--recursive", "--force", "s3://acceptance"]);
    server.stop();
}
