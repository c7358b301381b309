//! Tests that restic backs up a directory tree to a server over TLS, and restores it.

use std::process::Command;

use haul_testing::skip;

use crate::program;
use crate::rclone::{contents, create_tree};
use crate::server::{KEYS, Server};
use crate::tls::Certificates;

#[test]
fn restic_backs_up_prunes_and_restores_over_tls() {
    if Command::new("restic").arg("version").output().is_err() {
        return skip("restic is not installed");
    }
    let (dir, certificates) = (tempfile::tempdir().unwrap(), Certificates::new());
    let [tree, back, data] = ["tree", "back", "data"].map(|name| dir.path().join(name));
    create_tree(&tree);
    let server = Server::start_with_keys(&data, &certificates.options());
    let restic = |arguments: &[&str]| {
        let output = Command::new("restic")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", dir.path())
            .env("AWS_ACCESS_KEY_ID", KEYS.0)
            .env("AWS_SECRET_ACCESS_KEY", KEYS.1)
            .env("RESTIC_PASSWORD", "acceptance")
            .args(["--repo", &format!("s3:{}/backups/tree", server.url()), "--cacert"])
            .arg(certificates.authority())
            .args(arguments)
            .current_dir(&tree)
            .output();
        program::assert_success(&output.unwrap());
    };
    restic(&["init"]);
    restic(&["backup", "."]);
    std::fs::remove_dir_all(tree.join("many/3")).unwrap();
    std::fs::write(tree.join("empty"), "no more").unwrap();
    restic(&["backup", "."]);
    restic(&["forget", "--keep-last", "1", "--group-by", "", "--prune"]);
    restic(&["check", "--read-data"]);
    restic(&["restore", "latest", "--target", back.to_str().unwrap()]);
    assert!(contents(&tree) == contents(&back), "the restored tree differs");
    server.stop();
    program::assert_success(&program::store("verify", &data, &[]));
}
